"""RobustStacking: against its definition, and where errors come in bursts."""

import numpy as np
import pytest

import kernelbank as kb
from support.combining import problem, run_combiner
from support.instances import stream
from support.stacking_checks import EXACT_ROBUST, ROBUST_SETTINGS, check_robust_definition

C = kb.combiners


def test_robust_stacking_weights_equal_their_definition():
    check_robust_definition()


@pytest.mark.parametrize("other", [{"degrees_of_freedom": 6.0}, {"discount": 0.9}, {"ridge": 0.2}])
def test_robust_stacking_with_other_settings_fails_its_test(other):
    with pytest.raises(AssertionError):
        check_robust_definition(ROBUST_SETTINGS | other)


@pytest.mark.parametrize("factor", [2.0**-40, 2.0**40])
def test_robust_stacking_scaled_by_a_power_of_two_has_the_same_weights(factor):
    predictions, targets = problem(0, 5, 200, False)
    one, other = (
        run_combiner(EXACT_ROBUST, values=f * predictions, targets=f * targets).weights
        for f in (1.0, factor)
    )
    assert np.array_equal(one, other)


def two_slots(seed=0):
    """Errors (300, 2): the first slot is better, but for one sample at which all are far off."""
    draw = np.random.default_rng(seed)
    errors = np.column_stack([0.1 * draw.normal(size=300), 0.3 * draw.normal(size=300)])
    errors[150] = [30.0, 25.0]
    return errors


def test_an_outlier_says_little_about_the_second_weights():
    errors = two_slots()
    plain, robust = (
        run_combiner(rule, values=errors, targets=np.zeros(300)).weights[160:].mean(axis=0)
        for rule in (C.Stacking(), C.RobustStacking())
    )
    assert plain[0] < 0.1
    assert robust[0] > 0.4  # about half of the weights are those of Stacking


def test_rare_samples_that_matter_most_leave_the_weights_of_stacking():
    draw = np.random.default_rng(1)
    jumps = np.arange(400) % 20 == 19  # a slot predicts them, the other is right between them
    errors = np.column_stack([0.1 * draw.normal(size=400), np.where(jumps, 3.0, 0.0)])
    plain, robust = (
        run_combiner(rule, values=errors, targets=np.zeros(400))
        for rule in (C.Stacking(), C.RobustStacking())
    )
    assert robust.state["robust_weights"][1] > 0.5
    assert plain.weights[-1, 1] < 0.1
    assert robust.diagnostics["share"] == 0.0
    assert np.array_equal(robust.weights[-1], plain.weights[-1])


def test_robust_stacking_with_a_failed_slot_or_without_errors_stays_on_the_simplex():
    predictions, targets = problem(1, 4, 60, False)
    predictions[20:, 1] = np.nan
    found = run_combiner(C.RobustStacking(), values=predictions, targets=targets).weights
    assert np.isfinite(found).all()
    assert (found[20:, 1] == 0).all()
    assert np.abs(found.sum(axis=1) - 1).max() < 1e-12
    right = np.tile(targets[:, None], (1, 3))  # the bank is never wrong
    found = run_combiner(C.RobustStacking(), values=right, targets=targets).weights
    assert np.abs(found - 1 / 3).max() < 1e-12


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e150, 1e300])
def test_robust_stacking_of_extreme_numbers_stays_on_the_simplex(size):
    predictions, targets = problem(1, 6, 60, False)
    predictions[:, 3] *= 1e3
    with np.errstate(over="ignore"):
        predictions *= size
    found = run_combiner(C.RobustStacking(), values=predictions, targets=size * targets)
    assert np.isfinite(found.weights).all()
    assert found.weights.min() >= 0
    assert np.abs(found.weights.sum(axis=1) - 1).max() < 1e-12
    assert all(np.isfinite(x) for x in found.diagnostics.values())


def test_robust_stacking_with_wrong_settings_is_refused():
    with pytest.raises(
        ValueError,
        match="'degrees_of_freedom' of RobustStacking must be a finite number > 0; got 0",
    ):
        C.RobustStacking(degrees_of_freedom=0)
    with pytest.raises(ValueError, match="'ridge' of RobustStacking"):
        C.RobustStacking(ridge=-1)


def test_new_slot_starts_without_weight_in_both_parts():
    X, y = stream(0, 80, 2)
    grid = list(kb.gaussian_grid(0.2, 2, 3))
    bank = kb.KernelBank(grid, combiner=C.RobustStacking())
    bank.run(X, y)
    other = bank.with_slots([*bank.slots, bank.slots[0]], [0, 1, 2, None], [0, 1, 2, 0])
    state = other.state()
    for name in ("output0/combiner/robust_weights", "output0/combiner/plain_weights"):
        assert state[name][3] == 0
        assert np.array_equal(state[name][:3], bank.state()[name])
    assert other.weights[3] == 0
