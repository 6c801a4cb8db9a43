"""NewtonStacking: against its definition for every loss, and on quantiles."""

import numpy as np
import pytest

import kernelbank as kb
from support.combining import problem, run_combiner
from support.instances import LOSSES, name_of
from support.stacking_checks import EXACT_NEWTON, NEWTON_SETTINGS, check_newton_definition

C = kb.combiners


@pytest.mark.parametrize(("loss", "naive"), LOSSES, ids=map(name_of, LOSSES))
def test_newton_stacking_weights_equal_their_definition(loss, naive):
    check_newton_definition(loss, naive)


def test_newton_stacking_with_other_settings_fails_its_test():
    with pytest.raises(AssertionError):
        check_newton_definition(*LOSSES[1], NEWTON_SETTINGS | {"caution": 6.0})


@pytest.mark.parametrize("factor", [2.0**-40, 2.0**40])
def test_newton_stacking_scaled_by_a_power_of_two_has_the_same_weights(factor):
    predictions, targets = problem(0, 5, 200, False)
    for loss in (kb.losses.Pinball(0.2), kb.losses.Squared()):
        one = run_combiner(EXACT_NEWTON, values=predictions, targets=targets, loss=loss)
        other = run_combiner(
            EXACT_NEWTON, values=factor * predictions, targets=factor * targets, loss=loss
        )
        assert np.abs(one.weights - other.weights).max() < 1e-6


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_newton_stacking_with_pinball_loss_finds_the_quantile(quantile):
    targets = np.random.default_rng(0).normal(size=4000)
    predictions = np.tile([-4.0, 4.0], (4000, 1))
    rule = C.NewtonStacking(discount=0.999, ridge=0.0)
    loss = kb.losses.Pinball(quantile)
    weights = run_combiner(rule, values=predictions, targets=targets, loss=loss).weights
    proposed = (weights * predictions).sum(axis=1)[1000:]
    assert abs(np.mean(targets[1000:] < proposed) - quantile) < 0.04


def test_newton_stacking_with_a_failed_slot_or_without_loss_stays_on_the_simplex():
    predictions, targets = problem(1, 4, 60, False)
    predictions[20:, 1] = np.nan
    loss = kb.losses.Absolute()
    found = run_combiner(C.NewtonStacking(), values=predictions, targets=targets, loss=loss).weights
    assert np.isfinite(found).all()
    assert (found[20:, 1] == 0).all()
    assert np.abs(found.sum(axis=1) - 1).max() < 1e-12
    right = np.tile(targets[:, None], (1, 3))  # the loss is always 0
    found = run_combiner(C.NewtonStacking(), values=right, targets=targets, loss=loss).weights
    assert np.abs(found - 1 / 3).max() < 1e-12


def test_newton_stacking_with_wrong_settings_is_refused():
    with pytest.raises(
        ValueError, match="'caution' of NewtonStacking must be a finite number > 0; got 0"
    ):
        C.NewtonStacking(caution=0)
    with pytest.raises(ValueError, match="'ridge' of NewtonStacking"):
        C.NewtonStacking(ridge=-1)
