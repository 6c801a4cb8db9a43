"""AutoBank as its users see it: the same bits however a stream is cut, and answers that hold."""

import itertools
import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelbank as kb
from kernelbank.errors import FileRefused, InvalidArgument
from kernelbank.io import checkpoint

SMALL = {"size": "small"}


def numbers(count, seed=0, noise=0.1, dimension=3):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(count, dimension))
    y = 5 + 2 * np.sin(2 * X[:, 0]) + X[:, 1] * X[:, -1] + noise * draw.normal(size=count)
    return X, y


def troubled(count, seed=0):
    """Numbers with missing inputs, glitches, a new level and a burst of far targets."""
    X, y = numbers(count, seed)
    draw = np.random.default_rng(seed + 1)
    X[draw.random(X.shape) < 0.05] = np.nan
    X[50, 0], X[90, 1] = 1e9, -1e5
    y[60], y[100] = 1e8, -200.0
    y[120:123] += 300
    y[150:] += 100
    return X, y


def labelled(count, kind, seed=0):
    X, y = numbers(count, seed)
    bounds = [4.0, 6.0] if kind == "three" else [5.0]
    classes = np.digitize(y, bounds)
    return X, {
        "two": classes,
        "three": classes,
        "late": np.where(np.arange(count) < 90, 0, classes),
    }[kind]


def asked(bank, X, y, delay=0, files=(), path=None):
    """Predictions by predict_one and learn_one, through files at some rows."""
    answers, waiting = [], []
    for t in range(len(y)):
        answers.append(bank.predict_one(X[t]))
        waiting.append(t)
        if len(waiting) > delay:
            row = waiting.pop(0)
            bank.learn_one(X[row], y[row])
        if t in files:
            bank.save(path)
            bank = kb.load(path)
    for row in waiting:
        bank.learn_one(X[row], y[row])
    return answers, bank


def same_state(one, other):
    from kernelbank.auto.auto_serialization import describe

    first, second = describe(one), describe(other)
    assert first[0] == second[0]
    assert first[1].keys() == second[1].keys()
    for name, array in first[1].items():
        np.testing.assert_array_equal(array, second[1][name], err_msg=name)


# --- the same bits --------------------------------------------------------------------------------


@pytest.mark.parametrize("lags", [0, 2])
@pytest.mark.parametrize("delay", [0, 3])
def test_run_is_asking_and_learning_row_by_row(lags, delay, tmp_path):
    X, y = troubled(260)
    whole = kb.AutoBank(lags=lags, **SMALL)
    trace = whole.run(X, y, delay=delay)
    files = (1, 4, 20, 60, 61, 121, 152, 200)
    answers, loop = asked(kb.AutoBank(lags=lags, **SMALL), X, y, delay, files, tmp_path / "auto.kb")
    np.testing.assert_array_equal(answers, trace.predictions)
    assert {c.what for c in whole.ledger.changes} >= {"target level"}
    same_state(whole, loop)


@pytest.mark.parametrize("kind", ["two", "three", "late"])
@pytest.mark.parametrize("delay", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_labels_row_by_row(kind, delay, tmp_path):
    X, y = labelled(200, kind)
    whole = kb.AutoBank("classification", lags=1, **SMALL)
    trace = whole.run(X, y, delay=delay)
    bank = kb.AutoBank("classification", lags=1, **SMALL)
    answers, loop = asked(bank, X, y, delay, (3, 40, 95), tmp_path / "auto.kb")
    unknown = [t for t, answer in enumerate(answers) if answer is None]
    assert unknown == list(range(delay + 1))
    np.testing.assert_array_equal(answers[delay + 1 :], trace.predictions[delay + 1 :])
    same_state(whole, loop)


@settings(max_examples=8)
@given(st.lists(st.integers(1, 259), max_size=4), st.booleans())
def test_cuts_do_not_matter(cuts, classes):
    X, y = troubled(260)
    task = "classification" if classes else "regression"
    y = np.where(y > np.median(y), "high", "low") if classes else y
    whole, pieces = kb.AutoBank(task, **SMALL), kb.AutoBank(task, **SMALL)
    whole.run(X, y)
    edges = [0, *sorted(set(cuts)), 260]
    for start, end in itertools.pairwise(edges):
        pieces.run(X[start:end], y[start:end])
    same_state(whole, pieces)


def test_threads_give_the_same_bits():
    X, y = troubled(200)
    serial, threads = kb.AutoBank(**SMALL), kb.AutoBank(engine="threads", **SMALL)
    one, two = serial.run(X, y, record="all"), threads.run(X, y, record="all")
    for name in one.fields:
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_the_trace_is_made_of_what_the_slots_said():
    X, y = numbers(300)
    trace = kb.AutoBank(**SMALL).run(X, y, record="all")
    mixed = (trace.weights * trace.slot_predictions).sum(axis=1)
    low, high = np.minimum.accumulate(y), np.maximum.accumulate(y)
    room = 0.05 * (high - low)
    inside = (mixed > (low - room)[:-1].min()) & (mixed < (high + room)[:-1].max())
    rows = np.arange(300) >= 40
    close = np.isclose(mixed, trace.predictions, rtol=1e-9)
    assert (close | ~inside | ~rows).all()
    assert close[rows].mean() > 0.95


def test_a_question_changes_no_answer():
    X, y = numbers(120)
    quiet, nosy = kb.AutoBank(lags=1, **SMALL), kb.AutoBank(lags=1, **SMALL)
    for t in range(120):
        nosy.predict_one(X[t])
        nosy.predict_one(X[t])
        nosy.predict(X)
        nosy.predict_interval_one(X[t], 0.5)
        nosy.learn_one(X[t], y[t])
        quiet.learn_one(X[t], y[t])
    assert quiet.predict_one(X[0]) == nosy.predict_one(X[0])
    np.testing.assert_array_equal(quiet.bank.weights, nosy.bank.weights)


# --- streams that misbehave -----------------------------------------------------------------------


def rmse(trace, y, rows):
    return float(np.sqrt(np.mean((trace.predictions[rows] - y[rows]) ** 2)))


@pytest.mark.parametrize("shift", ["level", "scale", "both"])
def test_a_new_level_is_learned_within_tens_of_rows(shift):
    X, y = numbers(700)
    after = np.arange(700) >= 400
    moved = np.where(after, y * (1000 if shift != "level" else 1), y)
    moved += np.where(
        after & (shift != "scale"), 50 * y.std() * (1 if shift == "level" else 1e4), 0
    )
    unit = 1000 if shift != "level" else 1
    bank = kb.AutoBank(**SMALL)
    trace = bank.run(X, moved)
    before = rmse(trace, moved, slice(350, 400))
    assert rmse(trace, moved, slice(440, 490)) < 1.5 * before * unit
    assert [c.row for c in bank.ledger.changes if c.what == "target level"] == [405]


def test_an_input_with_a_new_level():
    X, y = numbers(700)
    X[400:, 0] += 50
    bank = kb.AutoBank(**SMALL)
    trace = bank.run(X, y)
    assert rmse(trace, y, slice(440, 490)) < 1.5 * rmse(trace, y, slice(350, 400))
    assert ("input level", 0, 405) in [(c.what, c.column, c.row) for c in bank.ledger.changes]


def test_one_glitch_does_no_harm():
    X, y = numbers(500)
    clean = kb.AutoBank(**SMALL).run(X, y)
    bad_X, bad_y = X.copy(), y.copy()
    bad_X[300, 0] *= 1e6
    bad_y[320] = 1e6 * y.std()
    bad_y[12] = -1e6 * y.std()  # also among the first rows
    trace = kb.AutoBank(**SMALL).run(bad_X, bad_y)
    later = slice(330, 500)
    assert rmse(trace, y, later) < 1.1 * rmse(clean, y, later)


HOSTILE = {
    "constant inputs": lambda X, y: (np.ones_like(X), y),
    "constant target": lambda X, y: (X, np.full(len(y), 7.0)),
    "nearly constant": lambda X, y: (1e9 + 1e-9 * X, 1e9 + 1e-9 * y),
    "tiny": lambda X, y: (X * 1e-140, y * 1e-140),
    "huge": lambda X, y: (X * 1e148, y * 1e148),
    "mixed scales": lambda X, y: (X * np.array([1e-100, 1.0, 1e100]), y),
    "alternating": lambda X, y: (X, np.where(np.arange(len(y)) % 2, 1e150, -1e150)),
    "heavy tails": lambda X, y: (np.tan(1.57 * np.tanh(X)), np.sinh(3 * y)),
    "wild": lambda X, y: (X * 10.0 ** (50 * y)[:, None].clip(-2, 2), y * 10.0 ** (50 * X[:, 0])),
    "all missing": lambda X, y: (np.full_like(X, np.nan), y),
    "mostly missing": lambda X, y: (np.where(X > 1, X, np.nan), y),
    "steps": lambda X, y: (np.round(X), np.round(np.arange(len(y)) / 50) * 1e6),
    "walk": lambda X, y: (np.cumsum(X, axis=0), np.cumsum(y - 5) * 100),
    "growing": lambda X, y: (X, np.exp(np.arange(len(y)) / 2).clip(0, 1e150)),
    "spikes": lambda X, y: (X, np.where(np.arange(len(y)) % 37 == 0, 1e12, y)),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
def test_nothing_is_ever_infinite(name):
    X, y = HOSTILE[name](*numbers(400))
    bank = kb.AutoBank(lags=1, **SMALL)
    trace = bank.run(X, y.clip(-1e150, 1e150), record="all")
    for field in trace.fields:
        assert np.isfinite(getattr(trace, field)).all(), field
    seen = y.clip(-1e150, 1e150)
    assert np.abs(trace.predictions).max() <= 2 * np.abs(seen).max() + 1e-300
    for value in (*bank.predict_interval_one(X[0]), bank.predict_one(X[1]), *bank.predict(X[:5])):
        assert np.isfinite(value)
    labels = np.where(y > np.median(y), 1, 0)
    chances = kb.AutoBank("classification", **SMALL).run(X, labels).probabilities
    assert np.isfinite(chances).all()


def test_missing_inputs_lose_no_row_and_are_better_than_nothing():
    draw = np.random.default_rng(3)
    walk = np.cumsum(draw.normal(size=1200)) / 10
    X = np.column_stack([walk, draw.normal(size=1200)])
    y = walk + 0.1 * draw.normal(size=1200)
    X[draw.random(X.shape) < 0.3] = np.nan
    bank = kb.AutoBank(**SMALL)
    trace = bank.run(X, y)
    assert bank.samples == 1200
    # A column that goes slowly is filled in from its last value: far better than its mean.
    hidden = np.isnan(X[:, 0]) & (np.arange(1200) > 300)
    assert np.mean((trace.predictions[hidden] - y[hidden]) ** 2) < 0.15 * y.var()


def test_wide_and_narrow_inputs():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(120, 220))
    y = X[:, :5].sum(axis=1)
    trace = kb.AutoBank(**SMALL).run(X, y)
    assert np.isfinite(trace.predictions).all()
    x = draw.uniform(-2, 2, 900)
    trace = kb.AutoBank(**SMALL).run(x, np.sin(3 * x))
    assert np.mean((trace.predictions[800:] - np.sin(3 * x[800:])) ** 2) < 1e-3


def test_a_longer_stream_takes_no_more_memory(tmp_path):
    X, y = numbers(1500, noise=0.5)
    bank = kb.AutoBank(lags=1, **SMALL)
    sizes = []
    for part in range(3):
        rows = slice(part * 500, part * 500 + 500)
        bank.run(X[rows], y[rows])
        bank.save(tmp_path / "auto.kb")
        sizes.append((tmp_path / "auto.kb").stat().st_size)
    assert max(sizes) - min(sizes) < 1000  # the signals of change, and digits of numbers


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95])
def test_intervals_hold_what_they_promise(coverage):
    draw = np.random.default_rng(1)
    X, y = numbers(1500, noise=0.3)
    y = y + np.where(np.arange(1500) > 700, 3.0, 0.3) * draw.standard_t(3, 1500)
    trace = kb.AutoBank(**SMALL).run(X, y, coverage=coverage)
    inside = ((y >= trace.lower) & (y <= trace.upper))[100:]
    room = max(0.02, 2 * np.sqrt(coverage * (1 - coverage) / len(inside)))
    assert abs(inside.mean() - coverage) < room
    assert (trace.lower <= trace.predictions).mean() > 0.99


def test_wider_coverage_is_a_wider_interval():
    X, y = numbers(300)
    bank = kb.AutoBank(**SMALL)
    bank.run(X, y)
    ends = [bank.predict_interval_one(X[0], c) for c in (0.1, 0.3, 0.5, 0.77, 0.9, 0.99, 0.9999)]
    widths = [high - low for low, high in ends]
    assert widths == sorted(widths)
    assert widths[0] >= 0
    np.testing.assert_array_equal(bank.predict_interval(X[:1], 0.9)[0], ends[4])


def test_forecasts_go_on_from_their_own_predictions():
    t = np.arange(900.0)
    y = 10 + 3 * np.sin(t / 5) + np.sin(t / 3)
    bank = kb.AutoBank(lags=8, **SMALL)
    X = np.zeros((900, 1))
    bank.run(X[:800], y[:800])
    ahead = bank.predict(X[800:830])
    assert ahead[0] == bank.predict_one(X[800])
    standing = np.mean((y[799] - y[800:830]) ** 2)
    assert np.mean((ahead - y[800:830]) ** 2) < 0.1 * standing
    one_step = bank.predict(X[800:801])
    assert one_step.shape == (1,)
    assert one_step[0] == ahead[0]
    # Without lags, rows are independent of each other and of their order.
    plain = kb.AutoBank(**SMALL)
    rows, targets = numbers(200)
    plain.run(rows, targets)
    np.testing.assert_allclose(plain.predict(rows[:9])[::-1], plain.predict(rows[8::-1]), rtol=0)


@pytest.mark.parametrize("delay", [1, 5])
def test_late_targets_are_not_seen_before_they_come(delay):
    X, y = numbers(150)
    other = y.copy()
    other[100:] = -other[100:]
    one = kb.AutoBank(lags=2, **SMALL).run(X, y, delay=delay).predictions
    two = kb.AutoBank(lags=2, **SMALL).run(X, other, delay=delay).predictions
    different = np.flatnonzero(one != two)
    assert different[0] == 100 + delay + 1


def test_late_targets_are_judged_by_what_was_said():
    """A constant that follows the last error is of no use if that error is old."""
    draw = np.random.default_rng(0)
    drift = np.zeros(1200)
    for t in range(1, 1200):
        drift[t] = 0.9 * drift[t - 1] + draw.normal()
    X = draw.normal(size=(1200, 1))
    y = X[:, 0] + drift
    late = kb.AutoBank(**SMALL).run(X, y, delay=20).predictions
    best = X[:, 0]
    rows = slice(300, 1200)
    loss = np.mean((late[rows] - y[rows]) ** 2)
    assert loss < 1.15 * np.mean((best[rows] - y[rows]) ** 2)


# --- labels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [(0, 1), (-1, 1), (False, True), ("no", "yes"), (2.5, -1.5), (0, 1, 2), ("a", "b", "c")],
)
def test_labels_come_back_as_they_were_given(names):
    X, _ = numbers(300)
    kinds = np.digitize(X[:, 0], [0.0] if len(names) == 2 else [-0.5, 0.5])
    y = np.array(names)[kinds]
    bank = kb.AutoBank("classification", classes=names, **SMALL)
    trace = bank.run(X, y)
    assert bank.classes == names == trace.classes
    assert trace.predictions.dtype == y.dtype
    assert np.mean(trace.predictions[150:] == y[150:]) > 0.85
    np.testing.assert_allclose(trace.probabilities.sum(axis=1), 1, rtol=1e-12)
    best = np.array(names)[trace.probabilities.argmax(axis=1)]
    np.testing.assert_array_equal(best, trace.predictions)
    one = bank.predict_proba_one(X[0])
    assert tuple(one) == names
    np.testing.assert_array_equal(list(one.values()), bank.predict_proba(X[:1])[0])
    assert bank.predict_one(X[0]) == bank.predict(X[:1])[0]
    assert type(bank.predict_one(X[0])) is type(names[0])


def test_classes_are_found_in_the_order_in_which_they_appear():
    X, _ = numbers(60)
    y = ["b" if x > 0 else "a" for x in X[:, 0]]
    bank = kb.AutoBank("classification", **SMALL)
    bank.run(X, y)
    assert bank.classes == tuple(dict.fromkeys(y))


@pytest.mark.parametrize("first", [700, pytest.param(5000, marks=pytest.mark.slow)])
def test_a_class_that_appears_late(first):
    count = first + 400
    X, _ = numbers(count)
    y = np.where(X[:, 0] > 0, "right", "left")
    late = (np.arange(count) >= first) & (X[:, 1] > 0.8)
    y = np.where(late, "top", y)
    bank = kb.AutoBank("classification", **SMALL)
    trace = bank.run(X, y)
    assert bank.classes[2] == "top"
    assert len(bank.banks) == 3
    seen = np.flatnonzero(late)[0]
    assert (trace.probabilities[: seen + 1, 2] == 0).all()
    after = slice(count - 200, count)
    assert np.mean(trace.predictions[after] == y[after]) > 0.85
    assert np.mean(trace.predictions[first - 200 : first] == y[first - 200 : first]) > 0.9


def test_probabilities_are_calibrated():
    draw = np.random.default_rng(5)
    X = draw.normal(size=(3000, 2))
    chance = 1 / (1 + np.exp(-2 * X[:, 0] - 1))
    y = draw.random(3000) < chance
    trace = kb.AutoBank("classification", classes=[False, True], **SMALL).run(X, y)
    said = trace.probabilities[500:, 1]
    happened = y[500:]
    edges = np.quantile(said, np.linspace(0, 1, 11)[1:-1])
    for group in range(10):
        own = np.digitize(said, edges) == group
        error = np.sqrt(0.25 / own.sum())
        assert abs(said[own].mean() - happened[own].mean()) < 3 * error
    assert np.mean((said - chance[500:]) ** 2) < 0.01


def test_one_class_only_so_far():
    X, _ = numbers(50)
    bank = kb.AutoBank("classification", **SMALL)
    trace = bank.run(X, ["on"] * 50)
    assert (trace.predictions == "on").all()
    assert bank.predict_one(X[0]) == "on"
    named = kb.AutoBank("classification", classes=["on", "off"], **SMALL)
    named.run(X, ["on"] * 50)
    assert named.predict_proba_one(X[0])["off"] < 0.1


# --- looking inside -------------------------------------------------------------------------------


def test_the_ledger_adds_up():
    X, y = troubled(200)
    bank = kb.AutoBank(**SMALL)
    trace = bank.run(X, y)
    assert bank.ledger.mean_loss == pytest.approx(np.mean((trace.predictions - y)[1:] ** 2))
    assert bank.ledger.persistence_loss == pytest.approx(np.mean(np.diff(y) ** 2))
    assert "200 samples" in repr(bank.ledger)
    assert "200 samples" in repr(bank)
    labels = np.where(y > np.median(y), 1, 0)
    bank = kb.AutoBank("classification", **SMALL)
    trace = bank.run(X, labels)
    assert bank.ledger.mean_loss == np.mean((trace.predictions != labels)[1:])
    assert bank.ledger.persistence_loss == pytest.approx(np.mean(np.diff(labels) != 0))


def test_the_inner_bank_is_open():
    bank = kb.AutoBank(**SMALL)
    assert bank.bank is None
    assert bank.names == ()
    bank.run(*numbers(60))
    assert len(bank.names) == len(bank.bank.slots) == len(bank.bank.weights)
    assert bank.bank.samples == 60
    assert any("tree" in name for name in bank.names)


def test_slots_and_combiner_of_ones_own():
    X, y = numbers(200)
    slots = [kb.Slot(kb.kernels.Gaussian(w), kb.learners.KLMS(budget=50)) for w in (0.5, 2.0)]
    bank = kb.AutoBank(slots=slots, combiner=kb.combiners.Hedge())
    trace = bank.run(X, y, record="all")
    assert trace.weights.shape == (200, 2)
    assert isinstance(bank.bank.combiner, kb.combiners.Hedge)
    wide = kb.AutoBank(slots=slots, scalings=["rank", "standard"])
    wide.run(X, y)
    assert wide.bank.samples == 200


def test_sizes_differ_in_slots():
    counts = []
    for size in ("small", "default", "large"):
        bank = kb.AutoBank(size=size)
        bank.run(*numbers(6))
        counts.append(len(bank.names))
    assert counts == sorted(counts)
    assert len(set(counts)) == 3


# --- what is refused, and changes nothing ---------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"task": "ranking"}, "'task' of AutoBank must be one of"),
        ({"lags": -1}, "'lags' of AutoBank"),
        ({"size": "huge"}, "'size' of AutoBank"),
        ({"classes": ["a", "b"]}, "be left out for regression"),
        ({"task": "classification", "classes": "ab"}, "be a list of labels"),
        ({"task": "classification", "classes": ["a", "a"]}, "different labels"),
        ({"slots": []}, "at least one Slot"),
        ({"combiner": 3}, "be a combiner"),
        ({"scalings": ["log"]}, "'scalings' of AutoBank"),
        ({"scalings": []}, "name at least one"),
        ({"seed": -1}, "'seed' of AutoBank"),
    ],
)
def test_wrong_settings_are_refused(wrong, words):
    with pytest.raises(InvalidArgument, match=words):
        kb.AutoBank(**wrong)


def test_wrong_rows_are_refused_and_change_nothing(tmp_path):
    X, y = numbers(60)
    bank, twin = kb.AutoBank(**SMALL), kb.AutoBank(**SMALL)
    bank.run(X[:40], y[:40])
    twin.run(X[:40], y[:40])
    missing = y[40:].copy()
    missing[5] = np.nan
    wrong = [
        lambda: bank.run(X[40:], missing),
        lambda: bank.run(np.where(X[40:] > 2, np.inf, X[40:] + 9e200), y[40:]),
        lambda: bank.run(X[40:, :2], y[40:]),
        lambda: bank.run(X[40:], y[41:]),
        lambda: bank.run(X[40:], y[40:], record="most"),
        lambda: bank.run(X[40:], y[40:], record=["probabilities"]),
        lambda: bank.run(X[40:], y[40:], delay=-1),
        lambda: bank.run(X[40:], y[40:], coverage=1.0),
        lambda: bank.learn_one(X[40], float("nan")),
        lambda: bank.learn_one(X[40], "3"),
        lambda: bank.learn_one(X[40, :2], 1.0),
        lambda: bank.predict_proba_one(X[0]),
        lambda: bank.predict_interval_one(X[0], 0.0),
    ]
    for call in wrong:
        with pytest.raises(InvalidArgument):
            call()
    same_state(bank, twin)
    labels = kb.AutoBank("classification", **SMALL)
    labels.run(X[:40], ["a", "b"] * 20)
    for call in (
        lambda: labels.run(X[40:42], ["a", None]),
        lambda: labels.run(X[40:42], ["a"]),
        lambda: labels.learn_one(X[40], float("nan")),
        lambda: labels.learn_one(X[40], ["a"]),
        lambda: labels.predict_interval_one(X[0]),
        lambda: labels.run(X[:40].repeat(4, axis=0), list(range(160))),
    ):
        with pytest.raises(InvalidArgument):
            call()
    assert labels.samples == 40
    assert labels.classes == ("a", "b")
    named = kb.AutoBank("classification", classes=["a", "b"], **SMALL)
    with pytest.raises(InvalidArgument, match="at most 2 different labels"):
        named.learn_one(X[0], "c")


def test_before_the_first_row():
    X, _ = numbers(3)
    bank = kb.AutoBank()
    assert bank.predict_one(X[0]) == 0.0
    assert bank.predict_interval_one(X[0]) == (0.0, 0.0)
    np.testing.assert_array_equal(bank.predict(X), np.zeros(3))
    assert np.isnan(bank.ledger.mean_loss)
    assert bank.ledger.changes == ()
    labels = kb.AutoBank("classification")
    assert labels.predict_one(X[0]) is None
    assert labels.predict_proba_one(X[0]) == {}
    with pytest.raises(InvalidArgument, match="needs to know the labels"):
        labels.predict(X)


# --- files ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("auto") / "auto.kb"
    X, y = troubled(122)
    bank = kb.AutoBank(lags=1, **SMALL)
    bank.run(X, y)
    bank.predict_one(X[3])
    bank.save(path)
    return checkpoint.read(path)


def forged(saved, path, header=None, arrays=None):
    old_header, old_arrays = saved
    new = json.loads(json.dumps(old_header)) | (header or {})
    checkpoint.write(path, new, {**old_arrays, **(arrays or {})})
    return path


def test_a_file_with_rows_held_back_and_open_questions_goes_on(saved, tmp_path):
    header, arrays = saved
    assert header["facts"]["held"] == 2
    assert len(arrays["pending/rows"]) == 1
    assert kb.load(forged(saved, tmp_path / "x.kb")).samples == 122


@pytest.mark.parametrize(
    "header",
    [
        {"task": "ranking"},
        {"lags": 2},
        {"lags": -1},
        {"size": "large"},
        {"seed": 1},
        {"scalings": ["standard"]},
        {"labels": [{}]},
        {"labels": None},
        {"dimension": None},
        {"dimension": 4},
        {"dimension": -1},
        {"dimension": 10**12},
        {"facts": None},
        {"facts": {"rows": -5, "held": 0, "changes": []}},
        {"facts": {"rows": 1.5, "held": 0, "changes": []}},
        {"facts": {"rows": 122, "held": 9, "changes": []}},
        {"facts": {"rows": 122, "held": -1, "changes": []}},
        {"facts": {"rows": 122, "held": 0, "changes": [1]}},
        {"facts": {"rows": 3, "held": 0, "changes": []}},
        {"banks": []},
        {"combiner": {"type": "Path"}},
        {"slots": [[{"type": "Gaussian", "width": 1.0}, {"type": "KLMS"}]]},
    ],
)
def test_forged_headers_are_refused(saved, tmp_path, header):
    with pytest.raises(FileRefused):
        kb.load(forged(saved, tmp_path / "x.kb", header))


@pytest.mark.slow
@settings(max_examples=25)
@given(st.data())
def test_forged_numbers_never_crash(saved, tmp_path_factory, data):
    _header, arrays = saved
    name = data.draw(st.sampled_from(sorted(n for n in arrays if not n.startswith("bank"))))
    value = data.draw(st.sampled_from([np.nan, np.inf, -np.inf, -1.0, 1e300, 2.0**60, 0.0]))
    array = arrays[name].copy()
    if array.size:
        array.flat[data.draw(st.integers(0, array.size - 1))] = value
    path = tmp_path_factory.mktemp("forged") / "x.kb"
    try:
        bank = kb.load(forged(saved, path, arrays={name: array}))
    except FileRefused:
        return
    X, y = numbers(40)
    with np.errstate(all="ignore"):
        trace = bank.run(X, y)
    assert np.isfinite(trace.predictions).all() or not np.isfinite(value) or abs(value) > 1e100


def test_truncated_and_foreign_files(saved, tmp_path):
    path = forged(saved, tmp_path / "x.kb")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(FileRefused, match="truncated"):
        kb.load(path)
    path.write_bytes(data[:-40] + struct.pack("<Q", 1) + data[-32:])
    with pytest.raises(FileRefused, match="checksum"):
        kb.load(path)
