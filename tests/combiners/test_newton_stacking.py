"""NewtonStacking: against its definition for every loss, and what it is for."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.combiners import newton_stacking_steps as hot
from kernelbank.native.jit import inline
from kernelbank.native.phases import variant
from support.instances import LOSSES, name_of
from support.naive import combiners as naive_combiners
from support.weighing import one_by_one, problem, weigh

C = kb.combiners
SETTINGS = {"discount": 0.95, "ridge": 0.1, "caution": 3.0}
EXACT = C.NewtonStacking(**SETTINGS, tolerance=1e-10, steps=10_000)


def check_definition(loss, naive, settings=SETTINGS):
    for seed, slots in enumerate([1, 2, 5]):
        predictions, targets = problem(seed, slots, 40, loss.labels)
        found = weigh(EXACT, values=predictions, targets=targets, loss=loss, cuts=one_by_one(40))
        before = np.vstack([np.full(slots, 1 / slots), found.weights[:-1]])
        for n in range(40):
            seen = predictions[: n + 1], targets[: n + 1], before[: n + 1]
            expected = naive_combiners.newton_stacking(*seen, naive, **settings)
            assert np.abs(found.weights[n] - expected).max() < 1e-4, n


@pytest.mark.parametrize(("loss", "naive"), LOSSES, ids=map(name_of, LOSSES))
def test_definition(loss, naive):
    check_definition(loss, naive)


@inline
def _of_the_slot(predictions, mixture, slope, unit, slots, errors):
    for p in range(slots):
        errors[p] = predictions[p] - mixture


@pytest.mark.slow
def test_other_errors_are_found(monkeypatch):
    other = variant(hot.slope_stacking, "no_slopes", _slope_errors=_of_the_slot)
    monkeypatch.setattr(hot, "newton_stacking", other)
    with pytest.raises(AssertionError):
        check_definition(*LOSSES[1])


def test_other_settings_are_found():
    with pytest.raises(AssertionError):
        check_definition(*LOSSES[1], SETTINGS | {"caution": 6.0})


@pytest.mark.parametrize("factor", [2.0**-40, 2.0**40])
def test_units_do_not_matter(factor):
    predictions, targets = problem(0, 5, 200, False)
    for loss in (kb.losses.Pinball(0.2), kb.losses.Squared()):
        one = weigh(EXACT, values=predictions, targets=targets, loss=loss)
        other = weigh(EXACT, values=factor * predictions, targets=factor * targets, loss=loss)
        assert np.abs(one.weights - other.weights).max() < 1e-6


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_it_aims_at_what_the_loss_aims_at(quantile):
    targets = np.random.default_rng(0).normal(size=4000)
    predictions = np.tile([-4.0, 4.0], (4000, 1))
    rule = C.NewtonStacking(discount=0.999, ridge=0.0)
    loss = kb.losses.Pinball(quantile)
    weights = weigh(rule, values=predictions, targets=targets, loss=loss).weights
    proposed = (weights * predictions).sum(axis=1)[1000:]
    assert abs(np.mean(targets[1000:] < proposed) - quantile) < 0.04


def test_slots_that_are_out_and_proposals_of_nothing():
    predictions, targets = problem(1, 4, 60, False)
    predictions[20:, 1] = np.nan
    loss = kb.losses.Absolute()
    found = weigh(C.NewtonStacking(), values=predictions, targets=targets, loss=loss).weights
    assert np.isfinite(found).all()
    assert (found[20:, 1] == 0).all()
    assert np.abs(found.sum(axis=1) - 1).max() < 1e-12
    right = np.tile(targets[:, None], (1, 3))  # nothing is ever lost
    found = weigh(C.NewtonStacking(), values=right, targets=targets, loss=loss).weights
    assert np.abs(found - 1 / 3).max() < 1e-12


def test_wrong_caution_is_refused():
    with pytest.raises(
        ValueError, match="'caution' of NewtonStacking must be a finite number > 0; got 0"
    ):
        C.NewtonStacking(caution=0)
    with pytest.raises(ValueError, match="'ridge' of NewtonStacking"):
        C.NewtonStacking(ridge=-1)
