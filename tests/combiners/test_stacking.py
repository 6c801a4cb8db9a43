"""Stacking and RobustStacking: against their definitions and their certificates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelbank as kb
from support.combining import one_by_one, problem, run_combiner
from support.instances import stream
from support.naive import combiners as naive_combiners

EPS = np.finfo(float).eps
MAX_COLUMNS, MAX_FACE = 64, 48  # of the core's solver: columns that it keeps, slots of a face step
WORST_RATIO = 2.0**60  # a slot with more than this times the best slot's loss is left out
C = kb.combiners
BOTH = [C.Stacking(), C.RobustStacking()]
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


def moments(predictions, targets, discount):
    """sum_i d^(n-i) e_i e_i', from the whole history."""
    errors = predictions - targets[:, None]
    return (errors.T * discount ** np.arange(len(errors))[::-1]) @ errors


def certificate(weights, matrix, ridge):
    """The Frank-Wolfe gap by its definition, the cost, and the curvature ridge * L."""
    penalty = ridge * matrix.diagonal().min()
    gradient = 2 * matrix @ weights + 2 * penalty * weights
    cost = weights @ matrix @ weights + penalty * weights @ weights
    return float(weights @ gradient - gradient.min()), float(cost), float(penalty)


def on_simplex(weights):
    return (
        np.isfinite(weights).all()
        and weights.min() >= 0
        and np.abs(weights.sum(axis=1) - 1).max() <= 8 * weights.shape[1] * EPS
    )


# --- the definitions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("discount", "ridge", "alike"), [(1.0, 0.02, 0.9), (0.95, 3.0, 0.0), (0.5, 0.1, 0.9)]
)
def test_stacking_weights_equal_their_definition(discount, ridge, alike):
    """|w - w*|^2 <= gap / (ridge L)."""
    combiner = C.Stacking(discount, ridge, tolerance=1e-9, steps=10_000)
    for seed, slots in enumerate([1, 2, 5]):
        predictions, targets = problem(seed, slots, 40, False, alike=alike)
        result = run_combiner(combiner, values=predictions, targets=targets, cuts=one_by_one(40))
        for n in (0, 1, 2, *range(3, 40, 6), 39):
            seen = predictions[: n + 1], targets[: n + 1]
            matrix = moments(*seen, discount)
            gap, _, penalty = certificate(result.weights[n], matrix, ridge)
            rounding = 100 * EPS * matrix.diagonal().max()
            assert gap <= 1e-9 * 1.01 * result.history[n]["scale"] + rounding, n
            expected = naive_combiners.stacking(*seen, discount, ridge)
            # the naive solver works with squares of the predictions, and is off by their rounding
            size = (seen[0] ** 2).sum() + (seen[1] ** 2).sum()
            allowed = np.sqrt((gap + rounding) / penalty) + 100 * EPS * size / penalty
            assert allowed < 1e-3
            assert np.linalg.norm(result.weights[n] - expected) <= allowed, n


def test_robust_stacking_weights_equal_their_definition():
    given = {"discount": 0.95, "ridge": 0.1, "degrees_of_freedom": 3.0}
    exact = C.RobustStacking(**given, tolerance=1e-10, steps=10_000)
    for seed, slots in enumerate([1, 2, 5]):
        predictions, targets = problem(seed, slots, 25, False)
        found = run_combiner(exact, values=predictions, targets=targets, cuts=one_by_one(25))
        expected = naive_combiners.robust_stacking_path(predictions, targets, **given)
        # gap <= 1e-10 cost, cost = w'Mw + ridge L |w|^2 <= (1 + ridge) L if w is the best slot:
        # |w - w*|^2 <= gap / (ridge L) <= 1.1e-9
        assert np.abs(found.weights - expected).max() < 1e-4


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 3, 8, 21, MAX_COLUMNS + 10]),
    st.sampled_from([1.0, 0.9, 0.5]),
    st.sampled_from([0.0, 1e-3, 0.1, 2.0]),
    st.booleans(),
)
def test_stacking_solves_every_sample_to_its_certificate(seed, slots, discount, ridge, degenerate):
    pick = np.random.default_rng(seed)
    predictions, targets = problem(seed, slots, 40, False, alike=float(pick.choice([0.0, 0.9])))
    if degenerate:  # equal slots, a slot of nothing
        predictions[:, slots // 2] = predictions[:, 0]
        predictions[:, -1] = 0.0
    combiner = C.Stacking(discount, ridge, tolerance=1e-5, steps=10_000)
    result = run_combiner(combiner, values=predictions, targets=targets, cuts=one_by_one(40))
    assert on_simplex(result.weights)
    for n in range(40):
        matrix = moments(predictions[: n + 1], targets[: n + 1], discount)
        gap, cost, _ = certificate(result.weights[n], matrix, ridge)
        shown = result.history[n]
        rounding = 200 * EPS * matrix.diagonal().max() * (1 + ridge)
        assert abs(shown["gap"] - gap) <= rounding, n
        assert abs(shown["cost"] - cost) <= rounding, n
        assert shown["scale"] >= shown["cost"]
        # more slots than a face step takes may need more moves than there are, while there are
        # fewer samples than slots and the matrix is singular but for a small ridge
        if slots <= MAX_FACE or shown["steps"] < combiner.steps:
            assert gap <= 1e-5 * shown["scale"] + rounding, (n, shown)


def test_stacking_with_too_few_steps_shows_a_true_certificate():
    predictions, targets = problem(0, 8, 40, False)
    rough = run_combiner(C.Stacking(1.0, 0.1, 1e-12, 1), values=predictions, targets=targets)
    least = naive_combiners.stacking(predictions, targets, 1.0, 0.1)
    matrix = moments(predictions, targets, 1.0)
    gap, cost, _ = certificate(rough.weights[-1], matrix, 0.1)
    assert rough.diagnostics["steps"] == 1
    assert rough.diagnostics["gap"] == pytest.approx(gap, rel=1e-9)
    assert gap > 1e-12 * cost
    assert 0 <= cost - certificate(least, matrix, 0.1)[1] <= gap


# --- scales ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [-300, -1, 60, 400])
def test_stacking_scaled_by_a_power_of_two_has_the_same_bits(power):
    predictions, targets = problem(5, 7, 60, False, alike=0.5)
    factor = 2.0**power
    plain, scaled = (
        run_combiner(C.Stacking(0.9), values=f * predictions, targets=f * targets)
        for f in (1.0, factor)
    )
    assert (plain.weights == scaled.weights).all()
    assert (plain.state["moments"] * factor**2 == scaled.state["moments"]).all()
    for name in ("gap", "cost", "scale"):
        assert plain.diagnostics[name] * factor**2 == scaled.diagnostics[name]
    if abs(power) < 100:
        one, other = (
            run_combiner(C.RobustStacking(), values=f * predictions, targets=f * targets)
            for f in (1.0, factor)
        )
        assert np.array_equal(one.weights, other.weights)


@pytest.mark.parametrize("combiner", BOTH, ids=repr)
@pytest.mark.parametrize("size", [1e-323, 1e-160, 1e142, 1e300])
def test_stacking_weights_for_errors_of_any_size_are_on_the_simplex(combiner, size):
    predictions, targets = problem(1, 6, 60, False)
    predictions[:, 3] *= 1e3
    with np.errstate(over="ignore"):
        predictions *= size
    for ridge, discount in ((0.0, 1.0), (0.1, 0.9), (1e9, 0.9)):
        rule = type(combiner)(discount, ridge)
        result = run_combiner(rule, values=predictions, targets=size * targets)
        assert on_simplex(result.weights)
        assert all(np.isfinite(x) for x in result.diagnostics.values())


def test_stacking_after_one_extreme_prediction_drops_the_slot_for_a_time_only():
    predictions, targets = problem(2, 4, 1200, False)
    predictions[10, 2] = 1e200
    combiner = C.Stacking(0.5, 0.1, 1e-9)
    result = run_combiner(combiner, values=predictions, targets=targets)
    others = run_combiner(combiner, values=predictions[:, [0, 1, 3]], targets=targets)
    assert (result.weights[10:500, 2] == 0).all()
    assert np.abs(result.weights[10:500][:, [0, 1, 3]] - others.weights[10:500]).max() <= 1e-3
    late = naive_combiners.stacking(predictions[-60:], targets[-60:], 0.5, 0.1)
    assert late[2] > 0.01
    assert np.abs(result.weights[-1] - late).max() <= 1e-3


@pytest.mark.parametrize(("power", "ridge"), [(2, 0.0), (8, 0.0), (9, 0.1), (10, 0.0), (15, 0.1)])
def test_stacking_with_one_slot_of_large_errors_solves_for_the_others(power, ridge):
    predictions, targets = problem(4, 5, 60, False)
    predictions[:, 2] *= 10.0**power
    combiner = C.Stacking(0.95, ridge)
    result = run_combiner(combiner, values=predictions, targets=targets, cuts=one_by_one(60))
    for n in range(5, 60):
        matrix = moments(predictions[: n + 1], targets[: n + 1], 0.95)
        losses = matrix.diagonal()
        active = losses <= WORST_RATIO * losses.min()
        assert active[[0, 1, 3, 4]].all()
        assert (result.weights[n, ~active] == 0).all()
        own = result.weights[n, active], matrix[np.ix_(active, active)]
        gap = certificate(*own, ridge)[0]
        noise = 40 * EPS * np.sqrt(losses[active].max() * losses.min())
        assert gap <= 1.01e-4 * result.history[n]["scale"] + noise, n


# --- slots that have failed, are equal, perfect, opposite -----------------------------------------


@pytest.mark.parametrize("slots", [5, MAX_COLUMNS + 40])
def test_stacking_weights_in_blocks_of_any_lengths_have_the_same_bits(slots):
    draw = np.random.default_rng(4)
    options = {"values": draw.normal(size=(40, slots)), "targets": draw.normal(size=40)}
    options["values"][25:, 1] = np.nan
    for combiner in BOTH:
        whole = run_combiner(combiner, **options)
        for cuts in (one_by_one(40), (3, 4, 30)):
            again = run_combiner(combiner, cuts=cuts, **options)
            assert (whole.weights == again.weights).all()
            assert all(np.array_equal(whole.state[k], again.state[k]) for k in whole.state)
        assert (whole.weights[25:, 1] == 0).all()
        assert on_simplex(whole.weights)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_stacking_with_a_failed_slot_keeps_the_moments_of_the_others(value):
    predictions, targets = problem(6, 4, 50, False)
    predictions[:, 1] = targets + 0.01 * predictions[:, 1]  # by far the best, and so L is its loss
    losses = np.ones((50, 4))
    losses[20:, 1] = np.inf
    predictions[20:, 1] = value
    combiner = C.Stacking(0.95, 0.1, tolerance=1e-10)
    with np.errstate(invalid="ignore"):
        values = np.where(np.isinf(losses), np.nan, predictions)
        result = run_combiner(combiner, losses, values=values, targets=targets)
    rest = [0, 2, 3]
    alone = run_combiner(combiner, values=predictions[:, rest], targets=targets)
    assert result.weights[19, 1] > 0.9
    assert (result.weights[20:, 1] == 0).all()
    assert (result.state["moments"][np.ix_(rest, rest)] == alone.state["moments"]).all()
    assert np.abs(result.weights[20:][:, rest] - alone.weights[20:]).max() <= 1e-4


def test_stacking_with_perfect_predictions_keeps_the_weights():
    targets = np.linspace(-1, 1, 30)
    predictions = np.tile(targets[:, None], (1, 3))
    for combiner in BOTH:
        weights = run_combiner(combiner, values=predictions, targets=targets).weights
        assert np.abs(weights - 1 / 3).max() < 1e-12
    predictions[:10, 1:] += [0.3, 1.0]
    result = run_combiner(C.Stacking(0.01, 0.1), values=predictions, targets=targets)
    assert result.weights[9, 0] > 0.99
    assert on_simplex(result.weights)


def test_stacking_with_equal_slots_shares_under_a_ridge_and_is_solved_without():
    predictions, targets = problem(7, 3, 50, False)
    twice = predictions[:, [0, 1, 2, 2]]
    joined = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]
    ridged = run_combiner(C.Stacking(1.0, 0.1, 1e-12), values=twice, targets=targets)
    assert np.abs(ridged.weights[:, 2] - ridged.weights[:, 3]).max() <= 1e-5
    plain = run_combiner(C.Stacking(1.0, 0.0, 1e-10), values=twice, targets=targets)
    single = run_combiner(C.Stacking(1.0, 0.0, 1e-10), values=predictions, targets=targets)
    assert on_simplex(plain.weights)
    assert plain.diagnostics["gap"] <= 1e-10 * plain.diagnostics["scale"]
    assert np.abs(plain.weights @ joined - single.weights)[5:].max() <= 1e-3


def test_stacking_with_errors_that_cancel_finds_them_and_then_stops():
    draw = np.random.default_rng(8)
    targets = draw.normal(size=300)
    error = draw.normal(size=300)
    predictions = targets[:, None] + np.stack([error, -3 * error, 2 * error, 0.9 * error], axis=1)
    options = {"values": predictions, "targets": targets, "cuts": one_by_one(300)}
    result = run_combiner(C.Stacking(0.99, 0.0), **options)
    assert predictions @ result.weights[-1] - targets == pytest.approx(0, abs=1e-6)
    assert max(shown["steps"] for shown in result.history[20:]) <= 20  # rounding is not pursued


# --- bursts of errors -----------------------------------------------------------------------------


def test_an_outlier_says_little_about_the_second_weights():
    draw = np.random.default_rng(0)
    errors = np.column_stack([0.1 * draw.normal(size=300), 0.3 * draw.normal(size=300)])
    errors[150] = [30.0, 25.0]  # the first slot is better, but for one sample
    plain, robust = (
        run_combiner(rule, values=errors, targets=np.zeros(300)).weights[160:].mean(axis=0)
        for rule in BOTH
    )
    assert plain[0] < 0.1
    assert robust[0] > 0.4  # about half of the weights are those of Stacking


def test_rare_samples_that_matter_most_leave_the_weights_of_stacking():
    draw = np.random.default_rng(1)
    jumps = np.arange(400) % 20 == 19  # a slot predicts them, the other is right between them
    errors = np.column_stack([0.1 * draw.normal(size=400), np.where(jumps, 3.0, 0.0)])
    plain, robust = (run_combiner(rule, values=errors, targets=np.zeros(400)) for rule in BOTH)
    assert robust.state["robust_weights"][1] > 0.5
    assert plain.weights[-1, 1] < 0.1
    assert robust.diagnostics["share"] == 0.0
    assert np.array_equal(robust.weights[-1], plain.weights[-1])


# --- in banks -------------------------------------------------------------------------------------


def test_new_slot_starts_without_weight_in_both_parts():
    X, y = stream(0, 80, 2)
    bank = kb.KernelBank(kb.gaussian_grid(0.2, 2, 3), combiner=C.RobustStacking())
    bank.run(X, y)
    other = bank.with_slots([*bank.slots, bank.slots[0]], [0, 1, 2, None], [0, 1, 2, 0])
    state = other.state()
    for name in ("output0/combiner/robust_weights", "output0/combiner/plain_weights"):
        assert state[name][3] == 0
        assert np.array_equal(state[name][:3], bank.state()[name])
    assert other.weights[3] == 0


def test_stacking_in_a_bank_of_another_loss_uses_squared_errors():
    X, y = stream(2, 200, 1)
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 1, 5), combiner=C.Stacking(), loss="absolute")
    trace = bank.run(X, y)
    expected = run_combiner(C.Stacking(), values=trace.slot_predictions, targets=y).weights
    assert (trace.weights[1:] == expected[:-1]).all()
    assert (trace.weights[0] == 0.2).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: C.Stacking(discount=0.0), "'discount' of Stacking"),
        (lambda: C.Stacking(ridge=1e10), "'ridge' of Stacking"),
        (lambda: C.RobustStacking(ridge=-1), "'ridge' of RobustStacking"),
        (lambda: C.RobustStacking(degrees_of_freedom=0), "'degrees_of_freedom' of .* > 0; got 0"),
        (lambda: C.Joint(discount=0.9), "'discount' of Joint must be 1 for the window"),
        (lambda: C.Joint(evidence="past"), "'evidence' of Joint must be one of"),
    ],
)
def test_settings_of_rules_that_solve_are_checked(make, words):
    with pytest.raises(ValueError, match=words):
        make()
