"""Stacking: against its definition and its certificate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelbank as kb
from support.combining import one_by_one, problem, run_combiner
from support.instances import stream
from support.marks import slow
from support.naive import combiners as naive_combiners
from support.stacking_checks import (
    certificate,
    check_definition,
    check_extreme_prediction,
    check_scale,
    check_sizes,
    moments,
    on_simplex,
)

EPS = np.finfo(float).eps
MAX_COLUMNS, MAX_FACE = 64, 48  # of the core's solver: columns that it keeps, slots of a face step
WORST_RATIO = 2.0**60  # a slot with more than this times the best slot's loss is left out
C, L = kb.combiners, kb.losses
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


# --- the definition -------------------------------------------------------------------------------


@pytest.mark.parametrize("discount", [1.0, 0.95, 0.5])
@pytest.mark.parametrize(
    ("ridge", "alike"),
    [
        (0.02, 0.9),
        (3.0, 0.0),
        *(slow(*v) for v in ((0.02, 0.0), (0.1, 0.0), (0.1, 0.9), (3.0, 0.9))),
    ],
)
def test_stacking_weights_equal_their_definition(discount, ridge, alike):
    check_definition(discount, ridge, alike=alike)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2, 3, 8, 21, MAX_COLUMNS + 10]),
    st.sampled_from([1.0, 0.9, 0.5]),
    st.sampled_from([0.0, 1e-3, 0.1, 2.0]),
    st.booleans(),
)
def test_stacking_solves_every_sample_to_its_certificate(seed, slots, discount, ridge, degenerate):
    pick = np.random.default_rng(seed)
    predictions, targets = problem(seed, slots, 50, False, alike=float(pick.choice([0.0, 0.9])))
    if degenerate:  # equal slots, a slot of nothing
        predictions[:, slots // 2] = predictions[:, 0]
        predictions[:, -1] = 0.0
    combiner = C.Stacking(discount, ridge, tolerance=1e-5, steps=10_000)
    result = run_combiner(combiner, values=predictions, targets=targets, cuts=one_by_one(50))
    assert on_simplex(result.weights)
    for n in range(50):
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


def test_stacking_without_discount_equals_joint_over_the_whole_stream():
    predictions, targets = problem(3, 6, 60, False)
    stacked = run_combiner(C.Stacking(1.0, 0.1, 1e-10), values=predictions, targets=targets)
    matrix = moments(predictions, targets, 1.0)
    ridge = 0.1 * matrix.diagonal().min()
    options = {"horizon": 60, "ridge": ridge, "tolerance": 1e-10}
    joint = run_combiner(C.Joint("prequential", **options), values=predictions, targets=targets)
    assert stacked.state["moments"] == pytest.approx(matrix, rel=1e-12, abs=1e-12)
    assert np.array_equal(stacked.state["moments"], stacked.state["moments"].T)
    assert np.abs(stacked.weights[-1] - joint.weights[-1]).max() <= 1e-4
    assert stacked.diagnostics["cost"] == pytest.approx(float(joint.diagnostics["cost"]), rel=1e-9)


# --- scales ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [-300, -41, -1, 3, 60, 400])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_stacking_scaled_by_a_power_of_two_has_the_same_bits(power, ridge):
    check_scale(2.0**power, ridge)


@pytest.mark.parametrize("factor", [1e-100, 0.3, -7.0, 1e100])
def test_stacking_scaled_by_any_factor_has_the_same_weights(factor):
    predictions, targets = problem(5, 5, 60, False)
    combiner = C.Stacking(0.9, 0.1, tolerance=1e-12)
    plain = run_combiner(combiner, values=predictions, targets=targets)
    scaled = run_combiner(combiner, values=factor * predictions, targets=factor * targets)
    assert np.abs(plain.weights - scaled.weights).max() <= 1e-5


@pytest.mark.parametrize("size", [1e-323, 1e-200, 1e-160, 1e-150, 1e140, 1e142, 1e160, 1e300])
def test_stacking_weights_for_errors_of_any_size_are_on_the_simplex(size):
    check_sizes(size)


def test_stacking_after_one_extreme_prediction_drops_the_slot_for_a_time_only():
    check_extreme_prediction()


@pytest.mark.parametrize("power", range(1, 16))
@pytest.mark.parametrize("ridge", [0.0, 0.1])
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


# --- slots that have failed, are equal, perfect, opposite --------------------------------------------------


@pytest.mark.parametrize("slots", [5, MAX_COLUMNS + 40])
def test_stacking_weights_in_blocks_of_any_lengths_have_the_same_bits(slots):
    draw = np.random.default_rng(4)
    options = {"values": draw.normal(size=(40, slots)), "targets": draw.normal(size=40)}
    options["values"][25:, 1] = np.nan
    whole = run_combiner(C.Stacking(0.9, 0.05), **options)
    for cuts in (one_by_one(40), (3, 4, 30)):
        again = run_combiner(C.Stacking(0.9, 0.05), cuts=cuts, **options)
        assert (whole.weights == again.weights).all()
        assert all(np.array_equal(whole.state[k], again.state[k]) for k in whole.state)
    assert (whole.weights[25:, 1] == 0).all()
    assert on_simplex(whole.weights)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_stacking_with_a_failed_slot_keeps_the_moments_of_the_others(value):
    predictions, targets = problem(6, 4, 50, False)
    predictions[:, 1] = targets + 0.01 * predictions[:, 1]  # by far the best, and so L is its loss
    losses = np.ones((50, 4))
    losses[20:, 1] = np.inf
    predictions[20:, 1] = value
    combiner = C.Stacking(0.95, 0.1, tolerance=1e-10)
    with np.errstate(invalid="ignore"):
        result = run_combiner(combiner, losses, values=np.where(np.isinf(losses), np.nan, predictions),
                       targets=targets)  # fmt: skip
    rest = [0, 2, 3]
    alone = run_combiner(combiner, values=predictions[:, rest], targets=targets)
    assert result.weights[19, 1] > 0.9
    assert (result.weights[20:, 1] == 0).all()
    assert (result.state["moments"][np.ix_(rest, rest)] == alone.state["moments"]).all()
    assert np.abs(result.weights[20:][:, rest] - alone.weights[20:]).max() <= 1e-4


def test_stacking_with_perfect_predictions_keeps_the_weights():
    targets = np.linspace(-1, 1, 30)
    predictions = np.tile(targets[:, None], (1, 3))
    assert (run_combiner(C.Stacking(), values=predictions, targets=targets).weights == 1 / 3).all()
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


# --- in banks -------------------------------------------------------------------------------------


def test_stacking_in_a_bank_of_another_loss_uses_squared_errors():
    X, y = stream(2, 200, 1)
    traces = [
        kb.KernelBank(kb.gaussian_grid(0.1, 1, 5), combiner=C.Stacking(), loss=loss).run(X, y)
        for loss in ("absolute", "huber")
    ]
    for trace in traces:
        expected = run_combiner(C.Stacking(), values=trace.slot_predictions, targets=y).weights
        assert (trace.weights[1:] == expected[:-1]).all()
        assert (trace.weights[0] == 0.2).all()


def test_stacking_of_opposite_biases_beats_every_slot():
    draw = np.random.default_rng(9)
    targets = draw.normal(size=1000)
    noise = draw.normal(size=(1000, 4))
    predictions = targets[:, None] + noise + [0.5, -0.5, 0.5, -0.5]
    weights = run_combiner(C.Stacking(), values=predictions, targets=targets).weights
    before = np.vstack([np.full(4, 0.25), weights[:-1]])
    mixed = ((predictions * before).sum(axis=1) - targets)[100:]
    alone = (predictions - targets[:, None])[100:]
    assert np.mean(mixed**2) < 0.3 * np.mean(alone**2, axis=0).min()
