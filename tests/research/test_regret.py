"""Regret: every figure is that of the comparator that was tried by hand."""

import itertools

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument
from support.naive import regret as naive

R = kb.regret
DRAW = np.random.default_rng(3)
LOSS, SLOT_LOSS = DRAW.uniform(0, 1, 9), DRAW.uniform(0, 1, (9, 3))


@pytest.mark.parametrize("samples", range(1, 10))
def test_regret_after_each_sample_is_that_of_the_best_comparator_so_far(samples):
    loss, alone = LOSS[:samples], SLOT_LOSS[:samples]
    assert R.best_slot(LOSS, SLOT_LOSS)[samples - 1] == pytest.approx(naive.best_slot(loss, alone))
    for length in (1, 2, 4, 20):
        found = R.best_slot_per_interval(LOSS, SLOT_LOSS, length)[samples - 1]
        assert found == pytest.approx(naive.best_slot_per_interval(loss, alone, length))
    for switches in (0, 1, 3, 8):
        found = R.best_slot_sequence(LOSS, SLOT_LOSS, switches)[samples - 1]
        assert found == pytest.approx(naive.best_slot_sequence(loss, alone, switches))


def test_comparators_that_may_do_more_have_more_regret():
    static = R.best_slot(LOSS, SLOT_LOSS)
    assert R.best_slot_sequence(LOSS, SLOT_LOSS, 0) == pytest.approx(static)
    assert R.best_slot_per_interval(LOSS, SLOT_LOSS, 9) == pytest.approx(static)
    curves = [R.best_slot_sequence(LOSS, SLOT_LOSS, switches) for switches in range(9)]
    assert all((fewer <= more + 1e-12).all() for fewer, more in itertools.pairwise(curves))
    every = np.cumsum(LOSS - SLOT_LOSS.min(axis=1))
    assert curves[-1] == pytest.approx(every)
    assert R.best_slot_per_interval(LOSS, SLOT_LOSS, 1) == pytest.approx(every)


def test_regret_of_a_run_by_cost_is_that_of_trace_and_ledger():
    x, y = kb.datasets.ar1(seed=1, samples=300)
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 5))
    trace = bank.run(x, y)
    found = R.best_slot(trace.cost, trace.slot_cost)
    assert found == pytest.approx(trace.regret, rel=1e-9, abs=1e-9)
    assert found[-1] == pytest.approx(bank.ledger.regret, rel=1e-9)


def test_a_slot_that_is_out_is_not_the_best():
    alone = SLOT_LOSS.copy()
    alone[4:, int(SLOT_LOSS.sum(axis=0).argmin())] = np.inf
    for found in (
        R.best_slot(LOSS, alone),
        R.best_slot_per_interval(LOSS, alone, 3),
        R.best_slot_sequence(LOSS, alone, 2),
    ):
        assert np.isfinite(found).all()


# --- comparators ----------------------------------------------------------------------------------


def slope(factor):
    return lambda X: factor * X[:, 0]


X, Y = DRAW.normal(size=(12, 2)), DRAW.normal(size=12)
PARTS = [(0, slope(1.0)), (4, slope(-0.5)), (5, slope(2.0))]
FUNCTIONS = [slope(1.0)] * 4 + [slope(-0.5)] + [slope(2.0)] * 7


def test_losses_of_predictions_are_those_of_the_loss():
    predictions = DRAW.normal(size=(12, 3))
    for loss in ("squared", kb.losses.Pinball(0.2)):
        one = R.comparator_loss(predictions[:, 1], None, Y, loss)
        value = kb.losses.Squared().value if loss == "squared" else loss.value
        assert one == pytest.approx(
            [value(f, y) for f, y in zip(predictions[:, 1], Y, strict=True)]
        )
        assert (R.comparator_loss(predictions, None, Y, loss)[:, 1] == one).all()


@pytest.mark.parametrize("window", [1, 3, 20])
def test_costs_of_functions_are_those_of_the_definition(window):
    norms = [0.3, 0.7, 1.1]
    wanted = naive.comparator_cost(
        FUNCTIONS,
        X,
        Y,
        lambda f, y: (f - y) ** 2,
        window,
        0.1,
        [0.3] * 4 + [0.7] + [1.1] * 7,
    )
    found = R.comparator_loss(PARTS, X, Y, window=window, regularization=0.1, norm2=norms)
    assert found == pytest.approx(wanted)
    one = R.comparator_loss(slope(2.0), X, Y, window=window)
    assert one == pytest.approx(
        naive.comparator_cost(
            [slope(2.0)] * 12, X, Y, lambda f, y: (f - y) ** 2, window, 0.0, [0.0] * 12
        )
    )


def test_costs_of_a_slot_as_a_comparator_are_its_costs():
    """The functions of slot 1 itself, one per sample, are charged what the bank charges the slot."""
    x, y = kb.datasets.ar1(seed=0, samples=25)
    bank = kb.KernelBank(kb.gaussian_grid(0.5, 2, 2), window=4, regularization=0.1)
    parts, norms = [], []
    costs = bank.fresh().run(x, y).slot_cost[:, 1]
    for n in range(25):
        values = bank.predict_slots(x)[:, 1]
        parts.append((n, lambda X, v=values: v[np.searchsorted(x, X[:, 0])]))
        norms.append(bank.evidence()["curvature"][1] / 0.05)
        bank.learn_one(x[n], y[n])
    found = R.comparator_loss(parts, x, y, window=4, regularization=0.1, norm2=norms)
    assert found == pytest.approx(costs, rel=1e-9)


def test_path_length_is_the_sum_of_changes():
    predictions = DRAW.normal(size=(12, 2))
    wanted = [sum(abs(a - b) for a, b in itertools.pairwise(column)) for column in predictions.T]
    assert R.path_length(predictions) == pytest.approx(wanted)
    assert R.path_length(predictions[:, 0]) == pytest.approx(wanted[0])
    changes = [
        abs(float(after(X[n : n + 1])[0] - before(X[n : n + 1])[0]))
        for n, (before, after) in enumerate(itertools.pairwise(FUNCTIONS), 1)
    ]
    assert R.path_length(PARTS, X) == pytest.approx(sum(changes))
    assert R.path_length(slope(3.0), X) == 0.0


def test_a_function_cannot_change_the_inputs():
    def careless(points):
        points[:] = 7.0
        return points[:, 0]

    before = X.copy()
    R.comparator_loss(careless, X, Y)
    assert (before == X).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: R.best_slot([], np.zeros((0, 2))), "'loss' must have the shape"),
        (lambda: R.best_slot(LOSS, SLOT_LOSS[:5]), "'slot_loss' must have the shape"),
        (lambda: R.best_slot([np.nan], [[1.0]]), "'loss' must have no NaN"),
        (lambda: R.best_slot_per_interval(LOSS, SLOT_LOSS, 0), "'length'"),
        (lambda: R.best_slot_sequence(LOSS, SLOT_LOSS, -1), "'switches'"),
        (lambda: R.comparator_loss(Y[:5], X, Y), "12 prediction"),
        (lambda: R.comparator_loss(Y, X, Y, window=3), "be functions for a window"),
        (lambda: R.comparator_loss(lambda X: 1.0, X, Y), "return 12 values"),
        (lambda: R.comparator_loss(PARTS[1:], X, Y), "the first 0"),
        (lambda: R.comparator_loss([PARTS[0], PARTS[0]], X, Y), "ascending"),
        (lambda: R.comparator_loss([(0, slope(1)), (12, slope(1))], X, Y), "whole number"),
        (lambda: R.comparator_loss(PARTS, X, Y, norm2=[1.0, 2.0]), "'norm2'"),
        (lambda: R.comparator_loss("rising", X, Y), "'comparator'"),
        (lambda: R.comparator_loss(np.full(12, np.nan), X, Y), "finite"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(InvalidArgument, match=message):
        call()
