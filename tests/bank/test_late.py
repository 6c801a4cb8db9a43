"""Targets that come late: slots are judged by what they said, and learn all the same."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.auto import calibration
from kernelbank.errors import InvalidArgument
from support.naive import combiners as naive_combiners

C, K, L = kb.combiners, kb.kernels, kb.learners

COMBINERS = {
    "hedge": (C.Hedge(0.7), lambda f, y: naive_combiners.hedge(squares(f, y), 0.7)),
    "adahedge": (C.Hedge(), lambda f, y: naive_combiners.hedge(squares(f, y), None)),
    "share": (
        C.FixedShare(0.5, 0.05),
        lambda f, y: naive_combiners.fixed_share(squares(f, y), 0.5, 0.05),
    ),
    "stacking": (
        C.Stacking(0.9, 0.1, 1e-10),
        lambda f, y: naive_combiners.stacking(f, y, 0.9, 0.1),
    ),
}
ALL = [C.Simplex(), C.Joint(), C.Joint(evidence="prequential"), C.Intervals(), C.OMKR()]
ALL += [combiner for combiner, _ in COMBINERS.values()]


def squares(predictions, targets):
    return (predictions - targets[:, None]) ** 2


def slots():
    return [
        kb.Slot(K.Linear(), L.LinearRLS()),
        kb.Slot(K.Gaussian(0.5), L.Norma()),
        kb.Slot(K.Gaussian(2.0), L.FourierRLS(features=8)),
        kb.Slot(K.TreeKernel(), L.PartitionTree(nodes=15)),
        kb.Slot(K.TreeKernel(), L.PartitionTree(nodes=15), residual_of=0),
    ]


def bank_of(combiner, **settings):
    return kb.KernelBank(slots=slots(), combiner=combiner, **settings)


def stream(rows, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(rows, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * draw.normal(size=rows)


def same(one, other):
    first, second = one._state(), other._state()
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)


def learn_late(bank, X, y, delay):
    """Every target comes `delay` rows after its question; (n, P) what was said to each."""
    said = []
    for t in range(len(y) + delay):
        if t < len(y):
            said.append(bank.predict_slots_one(X[t])[1])
        if t >= delay:
            bank.learn_one(X[t - delay], y[t - delay], said[t - delay])
    return np.array(said)


def test_an_answer_is_the_proposal_and_what_the_slots_say():
    X, y = stream(30)
    for settings in ({}, {"window": 3}, {"regularization": 0.1}):
        bank = bank_of(C.Hedge(), **settings)
        proposal, said = bank.predict_slots_one(X[0])
        assert proposal == 0
        assert np.array_equal(said, np.zeros(5))
        for t in range(25):
            proposal, said = bank.predict_slots_one(X[t])
            assert proposal == bank.predict_one(X[t])
            np.testing.assert_array_equal(said, bank.predict_slots(X[t : t + 1])[0])
            assert proposal == pytest.approx(bank.weights @ said, abs=1e-12)
            bank.learn_one(X[t], y[t])
        _, kept = bank.predict_slots_one(X[26])
        before = kept.copy()
        bank.predict_slots_one(X[27])
        assert np.array_equal(kept, before)  # it is the caller's own


def test_one_slot_says_what_it_says():
    """A bank of one slot has a shorter way; what it says is the same."""
    X, y = stream(20)
    bank = kb.KernelBank(slots=slots()[:1], combiner=C.Hedge(), window=1)
    for t in range(20):
        proposal, said = bank.predict_slots_one(X[t])
        assert said.shape == (1,)
        assert proposal == said[0]
        assert said[0] == bank.predict_slots(X[t : t + 1])[0, 0]
        bank.learn_one(X[t], y[t])


@pytest.mark.parametrize("combiner", ALL, ids=repr)
@pytest.mark.parametrize("window", [1, 4])
def test_the_same_bits_if_that_is_what_would_be_said_anyway(combiner, window):
    X, y = stream(40)
    told, plain = bank_of(combiner, window=window), bank_of(combiner, window=window)
    for x, target in zip(X, y, strict=True):
        told.learn_one(x, target, told.predict_slots_one(x)[1])
        plain.learn_one(x, target)
    same(told, plain)
    told.run(X, y)
    plain.run(X, y)
    same(told, plain)


@pytest.mark.parametrize("name", COMBINERS)
@pytest.mark.parametrize("delay", [1, 7])
def test_combiners_see_what_was_said(name, delay):
    X, y = stream(60)
    combiner, rule = COMBINERS[name]
    bank = bank_of(combiner, window=1)
    said = []
    for t in range(len(y) + delay):
        if t < len(y):
            said.append(bank.predict_slots_one(X[t])[1])
        if t < delay:
            continue
        late = t - delay
        bank.learn_one(X[late], y[late], said[late])
        expected = rule(np.array(said[: late + 1]), y[: late + 1])
        room = 1e-4 if name == "stacking" else 1e-9
        assert np.abs(bank.weights - expected).max() <= room
        losses = squares(np.array(said[: late + 1]), y[: late + 1]).sum(axis=0)
        assert bank.ledger.slot_loss == pytest.approx(losses, rel=1e-12)


def test_what_was_said_makes_a_difference():
    X, y = stream(60)
    for combiner, _ in COMBINERS.values():
        late, now = bank_of(combiner, window=1), bank_of(combiner, window=1)
        learn_late(late, X, y, 7)
        now.run(X, y)
        assert np.abs(late.weights - now.weights).max() > 1e-3


@pytest.mark.parametrize("loss", ["squared", "huber", "absolute"])
def test_losses_of_what_was_said_are_the_banks_own(loss):
    X, y = stream(40)
    bank = kb.KernelBank(K.Gaussian(1.0), combiner=C.Hedge(), loss=loss, window=1)
    said = learn_late(bank, X, y, 4)
    size = np.abs(said[:, 0] - y)
    found = bank.ledger.slot_loss[0]
    if loss == "squared":
        assert found == pytest.approx(np.sum(size**2), rel=1e-12)
    elif loss == "absolute":
        assert found == pytest.approx(np.sum(size), rel=1e-12)
    else:
        own = kb.losses.Huber()
        values = [own.value(f, target) for f, target in zip(said[:, 0], y, strict=True)]
        assert found == pytest.approx(np.sum(values), rel=1e-12)


def test_slots_learn_as_if_nothing_had_been_said():
    """Only the judgement is by what was said: functions and costs are those of the stream."""
    X, y = stream(50)
    told, plain = bank_of(C.Hedge(), window=3), bank_of(C.Hedge(), window=3)
    for x, target in zip(X, y, strict=True):
        told.learn_one(x, target, [9.0, -9.0, 0.0, 1.0, 2.0])
        plain.learn_one(x, target)
    np.testing.assert_array_equal(told.predict_slots(X), plain.predict_slots(X))
    first, second = told.ledger, plain.ledger
    np.testing.assert_array_equal(first.slot_cumulative_cost, second.slot_cumulative_cost)
    assert told.weights[2] > 0.9  # it was the least wrong
    before = told.ledger.slot_loss[0]
    told.learn_one(X[0], y[0])  # what was said once is not said again
    assert told.ledger.slot_loss[0] < before + 10


def test_threads_give_the_same_bits():
    X, y = stream(40)
    one, other = bank_of(C.Stacking()), bank_of(C.Stacking(), engine="threads")
    learn_late(one, X, y, 3)
    learn_late(other, X, y, 3)
    same(one, other)


@pytest.mark.parametrize(
    "said",
    [1.0, [1.0], np.zeros(6), np.zeros((1, 5)), [], ["a"] * 5, [None] * 5, [1e200, 0, 0, 0, 0]],
    ids=str,
)
@pytest.mark.parametrize("learned", [0, 10])
def test_wrong_values_are_refused_and_change_nothing(said, learned):
    X, y = stream(20)
    bank, other = bank_of(C.Stacking()), bank_of(C.Stacking())
    for t in range(learned):
        bank.learn_one(X[t], y[t])
        other.learn_one(X[t], y[t])
    with pytest.raises(InvalidArgument, match="past_predictions"):
        bank.learn_one(X[10], y[10], said)
    for x, target in [(np.zeros((2, 2)), 1.0), (X[10], np.nan), (X[10], "a"), ([np.nan, 0], 1.0)]:
        with pytest.raises(InvalidArgument):
            bank.learn_one(x, target, np.full(5, 7.0))
    assert bank.samples == learned
    same(bank, other)
    bank.run(X[10:], y[10:])
    other.run(X[10:], y[10:])
    same(bank, other)


@pytest.mark.parametrize("combiner", ALL, ids=repr)
def test_a_slot_that_said_no_number_is_judged_by_what_it_says_now(combiner):
    """Such a slot would be out. One that is not must not be lost by it."""
    X, y = stream(40)
    told, plain = bank_of(combiner, window=1), bank_of(combiner, window=1)
    for t in range(40):
        said = told.predict_slots_one(X[t])[1]
        said[t % 5] = (np.nan, np.inf, -np.inf)[t % 3]
        told.learn_one(X[t], y[t], said)
        plain.learn_one(X[t], y[t])
    assert told.quarantined == ()
    same(told, plain)


def test_a_slot_that_is_out_stays_out():
    def wild(X, Z):
        return np.where(X[:, :1] > 5, np.nan, 1.0) * np.ones((len(X), len(Z)))

    X, y = stream(12)
    pair = [kb.Slot(K.Linear(), L.LinearRLS()), kb.Slot(K.Custom(wild), L.Norma())]
    bank = kb.KernelBank(slots=pair, combiner=C.Hedge(), window=1)
    bank.run(X[:5], y[:5])
    with pytest.warns(kb.errors.KernelBankWarning):
        bank.learn_one([9.0, 0.0], 1.0)
    assert bank.quarantined == (1,)
    for t in range(5, 12):
        proposal, said = bank.predict_slots_one(X[t])
        said[1] = y[t]  # the best it could have said
        bank.learn_one(X[t], y[t], said)
        assert np.isfinite(proposal)
        assert np.array_equal(bank.weights, [1.0, 0.0])
    assert bank.ledger.slot_loss[1] == np.inf


def test_a_function_that_fails_undoes_the_row():
    fails = []

    def own(X, Z):
        if fails:
            raise ZeroDivisionError
        return X @ Z.T

    X, y = stream(12)
    pair = [kb.Slot(K.Linear(), L.LinearRLS()), kb.Slot(K.Custom(own), L.Norma())]
    one = kb.KernelBank(slots=pair, combiner=C.Hedge(), window=1)
    other = one.fresh()
    one.run(X[:8], y[:8])
    other.run(X[:8], y[:8])
    fails.append(True)
    with pytest.raises(ZeroDivisionError):
        one.learn_one(X[8], y[8], [3.0, 4.0])
    fails.clear()
    same(one, other)
    one.learn_one(X[8], y[8])
    other.learn_one(X[8], y[8])
    same(one, other)


# --- AutoBank -------------------------------------------------------------------------------------


@pytest.mark.parametrize("late", [False, True])
def test_a_class_that_comes_between_question_and_target(late, tmp_path):
    """The one bank of two classes is that of the second; with a third class it has another place."""
    X, y = stream(102)
    labels = np.where(y > 0, "b", "a")
    labels[:2] = "a", "b"
    bank = kb.AutoBank("classification", slots=slots()[:3:2])
    bank.run(X[:100], labels[:100])
    model = bank._model
    row = [3.0, 0.3]
    _, own = model.banks[0].predict_slots_one(
        model.scaling.scale_rows(np.array([row]), np.zeros((1, 0)))[0]
    )
    bank.predict_one(row)
    score = bank._pending.items[0][1].scores[0, 0]
    if late:  # the third class is that of another row
        bank.learn_one(X[100], "c")
        assert len(bank.banks) == 3
        platt = model.platt.copy()
        bank.save(tmp_path / "bank")
        bank = kb.load(tmp_path / "bank")
        model = bank._model
        losses = [inner.ledger.slot_loss for inner in bank.banks]
        shown = model.scaling.scale_rows(np.array([row]), np.zeros((1, 0)))
        now = [inner.predict_slots(shown)[0] for inner in bank.banks]
        bank.learn_one(row, "b")
        for head, (said, sign) in enumerate([(now[0], -1), (own, 1), (now[2], -1)]):
            added = bank.banks[head].ledger.slot_loss - losses[head]
            assert added == pytest.approx((said - sign) ** 2, rel=1e-6, abs=1e-9)
        number = 1
    else:  # it is its own
        first = np.array(calibration.PLATT_START)
        platt = np.array([first, model.platt[0], first])
        bank.learn_one(row, "c")
        number = 2
    calibration.update_platt_row(np.array([0.0, score, 0.0]), number, platt)
    np.testing.assert_array_equal(model.platt, platt)


def test_labels_are_watched_by_how_often_they_are_wrong():
    """One error of size 0 or 1 a row, from the first bank on."""
    X, _ = stream(600)
    labels = (X[:, 0] > 0).astype(int)
    labels[400:] = 1 - labels[400:]
    bank = kb.AutoBank("classification", slots=slots()[::2])
    found = bank.run(X, labels).predictions
    wrong = (found != labels).astype(float)
    ring = bank._model.recent_errors
    signals = [c.row for c in bank.ledger.changes if c.what.startswith("error")]
    start = signals[-1] - 1 if signals else 5
    assert np.array_equal(ring[: 600 - start], wrong[start:])
    assert [c.what for c in bank.ledger.changes if 400 < c.row < 450] == ["error grew"]
