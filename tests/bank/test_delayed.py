"""Delayed targets: slots are judged by their past predictions, and learn as always."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.bank.slot import late_prices
from kernelbank.errors import InvalidArgument
from support.marks import refuses
from support.naive import combiners as naive_combiners
from support.same_bits import assert_same_state

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
ALL = [C.Simplex(), C.Joint(), C.Joint(evidence="prequential"), C.OMKR()]
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


def test_predict_slots_one_returns_prediction_and_slot_predictions():
    X, y = stream(30)
    for settings in ({}, {"window": 3}, {"regularization": 0.1}):
        bank = bank_of(C.Hedge(), **settings)
        prediction, past = bank.predict_slots_one(X[0])
        assert prediction == 0
        assert np.array_equal(past, np.zeros(5))
        for t in range(25):
            prediction, past = bank.predict_slots_one(X[t])
            assert prediction == bank.predict_one(X[t])
            np.testing.assert_array_equal(past, bank.predict_slots(X[t : t + 1])[0])
            assert prediction == pytest.approx(bank.weights @ past, abs=1e-12)
            bank.learn_one(X[t], y[t])
        _, kept = bank.predict_slots_one(X[26])
        before = kept.copy()
        bank.predict_slots_one(X[27])
        assert np.array_equal(kept, before)  # it is the caller's own


@pytest.mark.parametrize("combiner", ALL, ids=repr)
@pytest.mark.parametrize("window", [1, 4])
def test_past_predictions_equal_to_present_ones_change_no_bit(combiner, window):
    X, y = stream(40)
    delayed, plain = bank_of(combiner, window=window), bank_of(combiner, window=window)
    for x, target in zip(X, y, strict=True):
        delayed.learn_one(x, target, delayed.predict_slots_one(x)[1])
        plain.learn_one(x, target)
    assert_same_state(delayed, plain)
    delayed.run(X, y)
    plain.run(X, y)
    assert_same_state(delayed, plain)


@pytest.mark.parametrize("name", COMBINERS)
@pytest.mark.parametrize("delay", [1, 7])
def test_combiner_with_delayed_targets_uses_past_predictions(name, delay):
    X, y = stream(60)
    combiner, rule = COMBINERS[name]
    bank = bank_of(combiner, window=1)
    past = []
    for t in range(len(y) + delay):
        if t < len(y):
            past.append(bank.predict_slots_one(X[t])[1])
        if t < delay:
            continue
        late = t - delay
        bank.learn_one(X[late], y[late], past[late])
        expected = rule(np.array(past[: late + 1]), y[: late + 1])
        room = 1e-4 if name == "stacking" else 1e-9
        assert np.abs(bank.weights - expected).max() <= room
        losses = squares(np.array(past[: late + 1]), y[: late + 1]).sum(axis=0)
        assert bank.ledger.slot_loss == pytest.approx(losses, rel=1e-12)


def test_past_predictions_do_not_change_what_slots_learn():
    """Only the judgement is by past predictions: functions and costs are those of the stream."""
    X, y = stream(50)
    delayed, plain = bank_of(C.Hedge(), window=3), bank_of(C.Hedge(), window=3)
    for x, target in zip(X, y, strict=True):
        delayed.learn_one(x, target, [9.0, -9.0, 0.0, 1.0, 2.0])
        plain.learn_one(x, target)
    np.testing.assert_array_equal(delayed.predict_slots(X), plain.predict_slots(X))
    first, second = delayed.ledger, plain.ledger
    np.testing.assert_array_equal(first.slot_cumulative_cost, second.slot_cumulative_cost)
    assert delayed.weights[2] > 0.9  # it was the least wrong
    before = delayed.ledger.slot_loss[0]
    delayed.learn_one(X[0], y[0])  # past predictions count for one sample only
    assert delayed.ledger.slot_loss[0] < before + 10


@pytest.mark.parametrize(
    "past",
    [1.0, [1.0], np.zeros(6), np.zeros((1, 5)), [], ["a"] * 5, [None] * 5, [1e200, 0, 0, 0, 0]],
    ids=str,
)
@pytest.mark.parametrize("learned", [0, 10])
def test_wrong_past_predictions_are_refused_and_change_nothing(past, learned):
    X, y = stream(20)
    bank, other = bank_of(C.Stacking()), bank_of(C.Stacking())
    for t in range(learned):
        bank.learn_one(X[t], y[t])
        other.learn_one(X[t], y[t])
    refuses("past_predictions", bank.learn_one, X[10], y[10], past)
    for x, target in [(np.zeros((2, 2)), 1.0), (X[10], np.nan), (X[10], "a"), ([np.nan, 0], 1.0)]:
        with pytest.raises(InvalidArgument):
            bank.learn_one(x, target, np.full(5, 7.0))
    assert bank.samples == learned
    assert_same_state(bank, other)
    bank.run(X[10:], y[10:])
    other.run(X[10:], y[10:])
    assert_same_state(bank, other)


@pytest.mark.parametrize("combiner", ALL, ids=repr)
def test_non_finite_past_prediction_is_replaced_by_the_present_one(combiner):
    """Such a slot would be out. One that is not must not be lost by it."""
    X, y = stream(40)
    delayed, plain = bank_of(combiner, window=1), bank_of(combiner, window=1)
    for t in range(40):
        past = delayed.predict_slots_one(X[t])[1]
        past[t % 5] = (np.nan, np.inf, -np.inf)[t % 3]
        delayed.learn_one(X[t], y[t], past)
        plain.learn_one(X[t], y[t])
    assert delayed.quarantined == ()
    assert_same_state(delayed, plain)


def test_late_prices_of_slots_say_what_luck_may_explain():
    """Nothing for a line, all for what follows the last errors, and never less than the base's."""
    quick = {"forgetting": 0.999, "forget": "prior", "constant_forgetting": 0.8}
    tree = L.PartitionTree(nodes=15)
    listed = [
        (kb.Slot(K.Linear(), L.LinearRLS()), 0.0),
        (kb.Slot(K.Linear(), L.LinearRLS(forgetting=0.99)), 0.5),
        (kb.Slot(K.Linear(), L.LinearRLS(**quick)), 1.0),
        (kb.Slot(K.Gaussian(1.0), L.FourierRLS(features=8, **quick)), 1.0),
        (kb.Slot(K.NoKernel(), L.LastValue()), 0.25),
        (kb.Slot(K.TreeKernel(), tree, residual_of=0), 0.5),
        (kb.Slot(K.TreeKernel(), tree, residual_of=2), 1.0),
    ]
    assert late_prices([slot for slot, _ in listed]) == [price for _, price in listed]


@pytest.mark.parametrize("delay", [1.0, 20.0])
def test_stacking_of_late_targets_charges_slots_for_luck(delay):
    """The weights have the least cost with the price, by the Frank-Wolfe gap."""
    X, y = stream(60)
    draw, discount, ridge = np.random.default_rng(1), 0.97, 0.05
    bank = bank_of(C.Stacking(discount, ridge, tolerance=1e-9, steps=10_000))
    plain = bank_of(C.Stacking(discount, ridge, tolerance=1e-9, steps=10_000))
    prices, matrix, count = np.array(late_prices(slots())), np.zeros((5, 5)), 0.0
    for x, target in zip(X, y, strict=True):
        past = target + draw.normal(size=5) * [1.1, 1.0, 1.0, 1.0, 1.0]
        bank._learn_rows(x[None], np.array([[target]]), past[None, None], {}, delay)
        plain._learn_rows(x[None], np.array([[target]]), past[None, None], {})
        matrix = discount * matrix + np.outer(past - target, past - target)
        count = discount * count + 1
    least = matrix.diagonal().min()
    price = 4 * least * delay / (count + delay)
    gradient = 2 * (matrix + ridge * least * np.eye(5)) @ bank.weights + price * prices
    gap = bank.weights @ gradient - gradient.min()
    assert gap <= 1e-8 * (bank.weights @ matrix @ bank.weights)
    assert bank.weights[0] > plain.weights[0]  # the line, to which nothing is charged
