"""Bounds of the target: predictions and intervals stay within, targets beyond are refused."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument
from support.auto_streams import SMALL

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(400, 2))
Y = np.maximum(0.0, 3 * X[:, 0] + DRAW.normal(size=400))


def within(trace, low, high):
    ends = np.concatenate([trace.predictions, trace.lower, trace.upper])
    ends = ends[~np.isnan(ends)]
    return low <= ends.min() and ends.max() <= high


def test_predictions_and_intervals_lie_within_the_bounds():
    assert not within(kb.AutoBank(**SMALL).run(X, Y), 0, 5)
    targets = np.minimum(Y, 5)
    bank = kb.AutoBank(lower=0, upper=5, **SMALL)
    assert within(bank.run(X, targets), 0, 5)
    far = 9 * X[:50]
    assert bank.predict(far).min() >= 0
    assert bank.predict_interval(far, 0.99).max() <= 5
    low, high = bank.predict_interval_one(far[0])
    assert 0 <= low <= bank.predict_one(far[0]) <= high <= 5


def test_bounded_prediction_is_the_one_that_is_scored():
    bank = kb.AutoBank(lower=0, **SMALL)
    trace = bank.run(X, Y)
    assert bank.ledger.mean_loss == pytest.approx(np.mean((trace.predictions - Y)[1:] ** 2))
    free = kb.AutoBank(**SMALL)
    free.run(X, Y)
    assert bank.ledger.mean_loss < free.ledger.mean_loss


def test_bounds_hold_while_far_targets_are_held_back():
    targets = Y.copy()
    targets[300:303] = 500.0
    bank = kb.AutoBank(lower=0, upper=500, **SMALL)
    assert within(bank.run(X, targets), 0, 500)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"lower": 3, "upper": 1}, ["'lower'", "less than upper", "got 3.0"]),
        ({"lower": 1, "upper": 1}, ["less than upper"]),
        ({"upper": "a"}, ["'upper'", "finite number", "leave it out"]),
        ({"lower": float("nan")}, ["'lower'", "finite number"]),
        ({"lower": True}, ["'lower'", "finite number"]),
        ({"task": "classification", "upper": 1}, ["'upper'", "left out for classification"]),
    ],
)
def test_wrong_bounds_are_refused(given, words):
    with pytest.raises(InvalidArgument) as refused:
        kb.AutoBank(**given)
    for word in words:
        assert word in str(refused.value)


def test_target_beyond_a_bound_is_refused_and_changes_nothing():
    bank = kb.AutoBank(lower=0, upper=20, **SMALL)
    bank.run(X, Y)
    before = bank.predict(X).tobytes()
    with pytest.raises(InvalidArgument, match=r"at least lower=0; got -1.0. Correct .* row 2"):
        bank.run(X[:3], [1.0, 2.0, -1.0])
    with pytest.raises(InvalidArgument, match=r"at most upper=20; got 21\.0"):
        bank.learn_one(X[0], 21.0)
    assert bank.samples == len(X)
    assert bank.predict(X).tobytes() == before
