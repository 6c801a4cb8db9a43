"""Intervals, probabilities and signals of change against their naive forms and their promises."""

import math

import numpy as np
import pytest

import kernelbank as kb
from kernelbank import _core
from support.auto_streams import SMALL
from support.core_banks import put, put_entry
from support.marks import slow
from support.naive import auto as naive

EPS = np.finfo(float).eps
NAN = math.nan
TAILS = _core.TAILS
LOW, HIGH, VARIANCE, WEIGHT, ROWS = range(5)


def new_intervals(quantiles=None, bounds=(-np.inf, np.inf)):
    """Intervals that start from these quantiles (2, tails), by default from some that fall."""
    own = _core.Intervals(lower=bounds[0], upper=bounds[1])
    start = np.tile(np.linspace(3, 0, len(TAILS)), (2, 1)) if quantiles is None else quantiles
    put(own, quantiles=np.asarray(start, dtype=float))
    return own


def predict(own, score, mean, sd, tail, spread=np.inf):
    """The prediction of one row and the ends of its interval."""
    value, *ends = own.predict(score, spread, mean, sd, tail)
    return value, np.array(ends)


def new_curve(*curve):
    """The logistic curve of two classes; at its start by default."""
    own = _core.Probabilities(scores=1)
    if curve:
        put(own, curves=np.array([curve]))
    return own


def predict_and_update(probabilities, scores, labels, delay=0.0):
    """Predict each row (classes,), and then fit it: (n, classes)."""
    rows = []
    for row, label in zip(scores, labels, strict=True):
        rows.append(probabilities.predict(row))
        probabilities.update(row, int(label), delay)
    return np.array(rows)


class CalibrationPair:
    """Predictions in both forms, fed the same rows."""

    def __init__(self, quantiles=None, bounds=(-np.inf, np.inf)):
        self.own = new_intervals(quantiles, bounds)
        self.naive = naive.Calibration(TAILS, self.own["quantiles"], bounds)

    def feed(self, scores, scale, targets, tails):
        spreads = 0.3 * np.abs(np.roll(scores, 1))
        rows = zip(scores, scale, targets, tails, spreads, strict=True)
        for score, (mean, sd), y, tail, spread in rows:
            value, ends = predict(self.own, score, mean, sd, tail, spread)
            size = abs(mean) + sd * (abs(score) + 2 * spread + 10) + abs(y)
            assert abs(value - self.naive.predict(score, mean, sd, spread)) <= 8 * EPS * size
            unit = math.sqrt(self.naive.variance)
            largest = 1 + abs(self.naive.quantiles).max()
            # Ends that nearly meet may cross in one form only.
            room = 64 * EPS * (self.naive.rows + 10) * (size + unit * largest * 10)
            expected = self.naive.interval(value, tail)
            if ends[0] < ends[1] and expected[0] < expected[1]:
                assert np.abs(ends - expected).max() <= room, (ends, expected)
            self.own.score(value, y, mean, sd)
            self.naive.score(value, mean, sd, y)
            rows = self.naive.rows
            assert (
                np.abs(self.own["quantiles"] - self.naive.quantiles).max()
                <= 4 * EPS * rows * largest
            )
            low, high, variance, *_ = self.own["stats"]
            assert abs(variance - self.naive.variance) <= 8 * EPS * rows * self.naive.variance
            lowest, highest = min(self.naive.targets), max(self.naive.targets)
            assert abs(low - lowest) <= 8 * EPS * (abs(lowest) + 20 * sd)
            assert abs(high - highest) <= 8 * EPS * (abs(highest) + 20 * sd)


@pytest.mark.parametrize("seed", range(6))
def test_predictions_and_intervals_equal_the_naive_form(seed):
    draw = np.random.default_rng(seed)
    count = 400
    size = [1.0, 1e-120, 1e140, 1.0, 1.0, 1.0][seed]
    scale = np.column_stack([draw.normal(size=count), 0.5 + draw.random(count)]) * size
    scores = draw.normal(size=count)
    targets = size * draw.standard_t(2, size=count)
    if seed == 3:
        targets[:150] = scale[:150] = 0.0
    if seed == 4:
        targets[::9] *= 1e6
    if seed == 5:
        scores[::7] = 50.0
    CalibrationPair().feed(scores, scale, targets, draw.uniform(1e-5, 0.5, size=count))


@pytest.mark.parametrize("delay", [0, 3, 50])
def test_late_and_far_targets_are_scored_as_by_the_naive_form(delay):
    """An error is compared with what was made for it, and a far target is believed to be near."""
    draw = np.random.default_rng(delay)
    pair = CalibrationPair()
    fast, slow, waiting = pair.own, pair.naive, []
    for _ in range(300):
        waiting.append((fast.ends(), slow.ends()))
        unit, quantiles = waiting[-1][1]
        assert waiting[-1][0] == pytest.approx([unit, *quantiles.ravel()], rel=1e-9, abs=1e-9)
        if len(waiting) <= delay:
            continue
        ends, made = waiting.pop(0)
        value, y, far = draw.normal(), draw.normal(), bool(draw.random() < 0.05)
        y += 30.0 * far
        fast.score(value, y, 0.1, 1.2, far, float(delay), ends)
        slow.score(value, 0.1, 1.2, y, far=far, delay=delay, made=made)
    assert fast["stats"][:3] == pytest.approx(
        [min(slow.targets), max(slow.targets), slow.variance], rel=1e-9
    )


def test_targets_without_an_error_give_the_range_and_nothing_else():
    """Rows before the first late target have no prediction, and their targets are no errors."""
    draw = np.random.default_rng(0)
    pair = CalibrationPair()
    for n, y in enumerate(draw.normal(450.0, 17.0, size=60)):
        pair.own.skip(y, 0.0, 0.0)
        if n == 0:
            pair.naive.targets.append(y)
        else:
            pair.naive.skip(y)
    unit, quantiles = pair.naive.ends()
    assert pair.own.ends() == pytest.approx([unit, *quantiles.ravel()], rel=1e-9)
    assert 10.0 < unit < 30.0


def errors_of(kind, count, draw):
    noise = draw.normal(size=count)
    if kind == "walk of scale":
        return noise * np.exp(np.cumsum(draw.normal(size=count) * 0.05))
    if kind == "jumps":
        return noise * 10.0 ** draw.integers(-2, 3, size=count // 500 + 1).repeat(500)[:count]
    if kind == "heavy tails":
        return draw.standard_cauchy(size=count)
    if kind == "one side":
        return abs(noise) * (1 + np.arange(count) / 100)
    return np.where(np.arange(count) % 2000 < 1000, 0.0, noise)


@pytest.mark.parametrize(
    "kind", ["jumps", *map(slow, ("walk of scale", "heavy tails", "one side", "often none"))]
)
def test_share_of_errors_beyond_a_quantile_goes_to_its_tail(kind):
    """|share - aimed| <= (moved + start) sqrt(tail) / (0.02 rows), whatever the stream does.

    aimed : the mean over the rows of tail - (1 - tail) / rows, at least half of the tail.
    """
    count = 20_000
    errors = errors_of(kind, count, np.random.default_rng(7))
    own = new_intervals()
    beyond, warm = np.zeros((2, len(TAILS))), 40  # rows after which the steps are equal
    for t, error in enumerate(errors):
        if t == warm:
            first = own["quantiles"]
        unit = math.sqrt(own["stats"][VARIANCE]) if t else 1.0
        if t >= warm:
            quantiles = own["quantiles"]
            beyond[0] += -error > unit * quantiles[0]
            beyond[1] += error > unit * quantiles[1]
        own.score(0.0, error, 0.0, 1.0)
    share = beyond / (count - warm)
    bound = abs(own["quantiles"] - first) * np.sqrt(TAILS) / (0.02 * (count - warm))
    rows = np.arange(warm, count)[:, None] + 1
    aimed = np.maximum(TAILS - (1 - np.array(TAILS)) / rows, np.array(TAILS) / 2).mean(axis=0)
    assert np.all(abs(share - aimed) <= bound + 1e-9)
    assert np.all(bound <= 0.05)  # so that it says something: quantiles do not run away
    assert np.all(bound[:, :6] <= 0.02)


@pytest.mark.parametrize(("sharp", "delay"), [(0.3, 0), (1.0, 0), (100.0, 0), (0.3, 20), (1.0, 3)])
def test_probabilities_of_two_classes_equal_the_naive_form(sharp, delay):
    draw = np.random.default_rng(1)
    rows = 300 if delay else 1500
    labels = draw.integers(0, 2, size=rows).astype(float)
    if sharp == 1.0:
        labels[:700] = 1.0
    scores = np.clip(sharp * (2 * labels - 1 + draw.normal(size=rows)), -1e6, 1e6)[:, None]
    own = new_curve()
    out = predict_and_update(own, scores, labels, float(delay))
    curve = naive.Platt()
    for t in range(rows):
        p = curve.probability(scores[t, 0])
        # An error of the line is damped by the Newton steps; 1 - p has the rounding of 1.
        assert np.allclose(out[t], [1 - p, p], rtol=1e-9, atol=1e-12), t
        curve.learn(scores[t, 0], labels[t], delay)
    (platt,) = own["curves"]
    assert np.allclose(platt[:2], curve.line, rtol=1e-9, atol=1e-9)
    assert np.allclose(platt[2:], curve.matrix[[0, 0, 1], [0, 1, 1]], rtol=1e-11)
    assert out.min() >= 1e-6
    again = own.predict(scores[0])
    assert np.allclose(again[1], curve.probability(scores[0, 0]), rtol=1e-9)


FORGED = [NAN, np.inf, -np.inf, 1e308, -1e308, -1.0, 0.0, 0.5, 4.0, 1e-320, 2.0**53, 1e19]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_forged_statistics_give_intervals_and_probabilities():
    """From any stats: probabilities between 0 and 1; an interval that is one, or no number.

    What is not finite, or no count, is refused.
    """
    draw = np.random.default_rng(1)
    possible = [value for value in FORGED if math.isfinite(value)]
    refused = 0
    for _ in range(400):
        values = possible if draw.random() < 0.8 else FORGED
        stats, own = draw.choice(values, size=8), new_intervals()
        try:
            put(own, stats=stats, quantiles=draw.choice(values, size=(2, len(TAILS))))
        except ValueError:
            impossible = (
                stats[VARIANCE] < 0 or stats[WEIGHT] < 0 or stats[ROWS] not in (0, 4, 2**53)
            )
            assert values is FORGED or impossible
            refused += 1
        for _ in range(3):
            value, ends = predict(own, 0.0, 1.0, 1.0, 0.05)
            assert not ends[0] > ends[1]
            own.score(value, 0.0, 1.0, 1.0)
        curve = new_curve(*draw.choice(possible, size=5))
        out = predict_and_update(curve, draw.choice(FORGED, size=(3, 1)), np.zeros(3))
        assert (out > 0).all()
        assert np.allclose(out.sum(axis=1), 1)
    assert 50 < refused < 390
    with pytest.raises(ValueError, match="finite"):
        new_curve(NAN, 0.0, 1.0, 0.0, 1.0)
    with pytest.raises(ValueError, match="class"):
        new_curve().update(np.zeros(1), 2)


# --- probabilities of more than two classes against their naive form and their promises -----------


COMMON_START = [2.0, 1.0, 1.0, 0.0, 1.0]
CLASS_START = [0.0, 0.0, 10.0, 0.0, 30.0]
LATE = [0.0, 1.0, 10.0, 0.0, 30.0]
"""Two parameters and their Hessian: those in common, those of a class, and of one that came late."""


def new_softmax(classes, late=()):
    own = _core.Probabilities(scores=classes)
    for k in late:
        put_entry(own, "curves", k, LATE)
    return own


def stream(classes, rows, sharp, seed=0, rare=False):
    """Noisy labels of -1 and 1 as scores, and the classes of the rows."""
    draw = np.random.default_rng(seed)
    shares = 0.5 ** np.arange(classes) if rare else np.ones(classes)
    labels = draw.choice(classes, size=rows, p=shares / shares.sum())
    truth = np.where(labels[:, None] == np.arange(classes), 1.0, -1.0)
    return np.clip(sharp * (truth + draw.normal(size=truth.shape)), -1e6, 1e6), labels


# --- against the naive form -----------------------------------------------------------------------


@pytest.mark.parametrize("sharp", [0.0, 0.3, 1.0, 100.0])
@pytest.mark.parametrize(
    ("classes", "rare"), [(3, True), slow(3, False), slow(8, True), slow(8, False)]
)
@pytest.mark.parametrize("delay", [0, 30])
def test_probabilities_equal_the_naive_form(classes, sharp, rare, delay):
    """A step adds at most some 100 eps to a parameter, because |z| < 100.

    Steps solve a convex problem, so that earlier errors do not grow: 800 * 100 * eps < 1e-10.
    """
    scores, labels = stream(classes, 200 if delay else 800, sharp, rare=rare)
    own, other = new_softmax(classes, late=[1]), naive.Softmax(classes, late=[1])
    out = predict_and_update(own, scores, labels, float(delay))
    for t, label in enumerate(labels):
        assert np.allclose(out[t], other.probabilities(scores[t]), rtol=1e-10, atol=0), t
        other.learn(scores[t], label, delay)
    assert np.allclose(own["common"][:2], other.common, rtol=0, atol=1e-10)
    assert np.allclose(own["curves"][:, :2], other.pairs, rtol=0, atol=1e-10)
    assert np.allclose(own["common"][2:], other.common_matrix[[0, 0, 1], [0, 1, 1]], rtol=1e-10)
    for curve, matrix in zip(own["curves"], other.matrices, strict=True):
        assert np.allclose(curve[2:], matrix[[0, 0, 1], [0, 1, 1]], rtol=1e-10)


# --- the same bits --------------------------------------------------------------------------------


def with_late_classes(rows=400):
    draw = np.random.default_rng(3)
    X = draw.normal(size=(rows, 2))
    y = np.digitize(X[:, 0] + 0.3 * draw.normal(size=rows), [0.0])
    y[(np.arange(rows) > 150) & (X[:, 1] > 0.8)] = 2
    y[(np.arange(rows) > 300) & (X[:, 1] < -0.8)] = 3
    return X, y


# --- classes that appear late ---------------------------------------------------------------------


def test_class_that_appears_late_keeps_the_curves_of_the_others():
    X, y = with_late_classes()
    first = np.flatnonzero(y == 3)[0]
    bank = kb.AutoBank("classification", **SMALL)
    bank.run(X[:first], y[:first])
    model = bank._model
    curves, common = (
        model.core.state()["probabilities/curves"],
        model.core.state()["probabilities/common"],
    )
    bank.learn_one(X[first], 3)
    # The row of the new class was predicted without its score, so it is left out.
    np.testing.assert_array_equal(model.core.state()["probabilities/curves"], [*curves, LATE])
    np.testing.assert_array_equal(model.core.state()["probabilities/common"], common)
    bank.learn_one(X[first], 3)
    assert model.core.state()["probabilities/curves"][3].tolist() != LATE


# --- whatever comes -------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_forged_parameters_give_probabilities_and_return_to_their_start():
    draw = np.random.default_rng(1)
    possible = [value for value in FORGED if math.isfinite(value)]
    for _ in range(400):
        own = new_softmax(3)
        put(own, curves=draw.choice(possible, size=(3, 5)), common=draw.choice(possible, size=5))
        out = predict_and_update(own, draw.choice(FORGED, size=(3, 3)), np.zeros(3))
        assert (out > 0).all()
        assert np.allclose(out.sum(axis=1), 1)
    own = new_softmax(3)
    put_entry(own, "curves", (1, slice(2, None)), 1e308)  # a determinant that is not finite
    put_entry(own, "common", slice(2, None), [1e308, 0.0, -1e308])
    own.update(np.zeros(3), 1)
    assert own["curves"][1].tolist() == CLASS_START
    assert own["common"].tolist() == COMMON_START
    for name in ("curves", "common"):
        with pytest.raises(ValueError, match="finite"):
            put_entry(own, name, 0, math.nan)


# --- signals of change, and how often they are false -----------------------------------------------


RING = 500


def new_detector(limit, slots=1, ring=RING):
    return _core.ChangeDetector(slots=slots, recent=ring, limit=limit)


def detected(sizes, limit, ring=RING, weights=None):
    """The signals of errors and of weights after each row."""
    weights = np.ones((len(sizes), 1)) if weights is None else weights
    detector = new_detector(limit, weights.shape[1], ring)
    rows = zip(sizes.tolist(), weights, strict=True)
    signals = [(detector.see_error(size), detector.see_weights(row)) for size, row in rows]
    return np.array(signals, np.int64).T


def kinds(draw, count):
    """Sizes of errors of which nothing changes."""
    some = draw.random(count) < 0.01
    return {
        "normal": abs(draw.normal(size=count)),
        "heavy": abs(draw.standard_cauchy(size=count)),
        "three": draw.integers(0, 3, size=count).astype(float),
        "two": (draw.random(count) < 0.02).astype(float),
        "mostly none": some * draw.random(count),
        "constant": np.ones(count),
    }


@pytest.mark.slow
@pytest.mark.parametrize("ring", [60, RING])
def test_error_signals_equal_the_naive_form(ring):
    """The same signals in the same rows, with every kind of ties, growth and fall."""
    actual = {1: 0, -1: 0}
    for seed in range(4):
        draw = np.random.default_rng(seed)
        for sizes in kinds(draw, 1500).values():
            changing = sizes * 4.0 ** draw.integers(-1, 2, size=10).repeat(150)
            errors, _ = detected(changing, 300.0, ring)
            own = naive.ErrorDetector(ring, 300.0)
            assert [own.see(size) for size in changing] == errors.tolist()
            actual[1] += (errors > 0).sum()
            actual[-1] += (errors < 0).sum()
    assert actual[1] > 20
    assert actual[-1] > 5


def test_sums_of_the_martingales_equal_the_naive_form():
    draw = np.random.default_rng(0)
    sizes = abs(draw.normal(size=700))
    for end in (50, 51, 300, 700):
        detector = new_detector(1e9)
        for size in sizes[:end].tolist():
            detector.see_error(size)
        own = naive.ErrorDetector(RING, 1e9)
        for size in sizes[:end]:
            own.see(size)
        # A factor is the difference of two powers that differ by one part in about 500.
        room = 64 * EPS * end * RING
        assert detector["grew"] == pytest.approx(own.grew, rel=room)
        assert detector["fell"] == pytest.approx(own.fell, rel=room)


def test_betting_factor_has_mean_one():
    """Over the ranks of errors that are all different, for every martingale; with ties at most 1."""
    for count, ties in [(50, 1), (499, 1), (51, 4), (499, 100)]:
        among = np.arange(count + 1) // ties
        total = np.zeros((2, 3))
        for k, size in enumerate(among):
            detector, ring = new_detector(1e9), np.zeros(RING)
            ring[:count] = np.delete(among, k)
            put(detector, errors=ring, seen=np.array(float(count)))
            detector.see_error(float(size))
            total += np.array([detector["grew"], detector["fell"]]) / (count + 1)
        assert np.all(total <= 1 + 1e-12)
        assert ties > 1 or np.all(total >= 1 - 1e-12)


@pytest.mark.parametrize(
    ("limit", "ring", "rows"), [slow(200.0, RING, 300_000), (1000.0, 60, 100_000)]
)
def test_false_signals_are_rare(limit, ring, rows):
    """Each sum at most once in `limit` rows, up to four deviations of a count of that mean."""
    draw = np.random.default_rng(11)
    most = rows / limit
    for name, sizes in kinds(draw, rows).items():
        errors, _ = detected(sizes, limit, ring)
        for sign in (1, -1):
            assert (errors == sign).sum() <= most + 4 * math.sqrt(most), (name, sign)


def test_weight_signals_equal_the_naive_form():
    actual = 0
    for seed in range(6):
        draw = np.random.default_rng(seed)
        shares = draw.dirichlet(np.full(4, 0.3), size=9).repeat(200, axis=0)
        weights = 0.9 * shares + 0.1 * draw.dirichlet(np.ones(4), size=len(shares))
        _, moves = detected(np.ones(len(weights)), 1e9, weights=weights)
        own = naive.WeightDetector(4)
        assert [own.see(row) for row in weights] == moves.tolist()
        actual += moves.sum()
    assert actual >= 6


def test_impossible_states_are_refused():
    detector = new_detector(1e9, slots=2, ring=60)
    for size in range(90):
        detector.see_error(float(size))
        detector.see_weights(np.full(2, 0.5))
    before = detector.state()
    for name, value in [
        ("seen", -1.0), ("seen", 0.5), ("seen", 1e300), ("seen", math.nan), ("rows", -1.0),
        ("apart", 2.0), ("errors", math.inf), ("mean_weights", math.nan), ("grew", math.nan),
    ]:  # fmt: skip
        array = np.full_like(before[name], value)
        with pytest.raises(ValueError, match=r"finite|whole"):
            put(detector, **{name: array})
    for wrong in (before | {"errors": np.zeros(61)}, before | {"more": np.zeros(1)}, {}):
        with pytest.raises(ValueError, match="has"):
            detector.restore(wrong)
    np.testing.assert_equal(detector.state(), before)  # nothing has changed
