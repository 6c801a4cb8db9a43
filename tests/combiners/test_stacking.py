"""Stacking and RobustStacking: against their definitions and their certificates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import kernelbank as kb
from support.combining import one_by_one, problem, run_combiner
from support.instances import stream

EPS = np.finfo(float).eps
MAX_COLUMNS, MAX_FACE = 64, 48  # of the core's solver: columns that it keeps, slots of a face step
WORST_RATIO = 2.0**60  # a slot with more than this times the best slot's loss is left out
C, L = kb.combiners, kb.losses
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


# --- joint ----------------------------------------------------------------------------------------


def solve_joint(values, targets, loss, penalty, **options):
    """Weights, certificate and cost of one joint problem, given as one window."""
    rows, slots = values.shape
    combiner = C.Joint(**options)
    window = np.zeros((rows, rows, slots))  # the window fills up; its last state is the problem
    for n in range(rows):
        window[n, rows - n - 1 :] = values[: n + 1]
    padded = np.concatenate([np.zeros(rows - 1), targets])
    result = run_combiner(
        combiner,
        values=window,
        targets=padded,
        curvature=np.tile(penalty, (rows, 1)),
        loss=loss,
    )
    return result.weights[-1], result.diagnostics


# A kinked loss as max over k of slope_k z + height_k, with z = w'values.
PIECES = {
    L.Absolute(): lambda y: [(1.0, -y), (-1.0, y)],
    L.Pinball(0.8): lambda y: [(-0.8, 0.8 * y), (0.2, -0.2 * y)],
    L.EpsilonInsensitive(0.2): lambda y: [(1.0, -y - 0.2), (-1.0, y - 0.2), (0.0, 0.0 * y)],
    L.Hinge(): lambda y: [(-y[:, None], 1.0 + 0.0 * y), (0.0, 0.0 * y)],
}


def least_cost(values, targets, loss):
    """By linear programming: t >= slope z + height, the least sum of t."""
    rows, slots = values.shape
    parts = PIECES[loss](targets)
    return linprog(
        np.append(np.zeros(slots), np.ones(rows)),
        A_ub=np.vstack([np.hstack([slope * values, -np.eye(rows)]) for slope, _ in parts]),
        b_ub=np.concatenate([-height for _, height in parts]),
        A_eq=np.hstack([np.ones((1, slots)), np.zeros((1, rows))]),
        b_eq=[1.0],
        bounds=[(0, None)] * slots + [(None, None)] * rows,
    ).fun


@pytest.mark.parametrize("steps", [1, 5000])
@pytest.mark.parametrize("loss", PIECES, ids=repr)
def test_joint_weights_for_losses_with_kinks_have_a_true_certificate(loss, steps):
    for seed, (slots, rows, alike) in enumerate([(3, 8, 0.0), (6, 20, 0.95), (9, 5, 0.9)]):
        values, targets = problem(seed, slots, rows, loss.labels, alike=alike)
        weights, shown = solve_joint(
            values, targets, loss, np.zeros(slots), tolerance=1e-6, steps=steps
        )
        cost = float(loss.value(values @ weights, targets).sum())
        rounding = 100 * rows * EPS * (1 + cost)
        assert abs(shown["cost"] - cost) <= rounding
        assert abs(weights.sum() - 1) <= 8 * slots * EPS
        assert weights.min() >= 0
        assert cost - least_cost(values, targets, loss) <= shown["gap"] + rounding + 1e-9 * cost
        assert shown["scale"] <= cost + 1e-3 * (cost + np.abs(targets).sum() ** 2)
        if steps > 1:
            assert shown["gap"] <= 1e-6 * shown["scale"], (seed, shown)


SMOOTH = [L.Squared(), L.Huber(0.4), L.Logistic(), L.SquaredHinge(), L.Poisson(0.2)]


def joint_certificate(weights, values, targets, discounts, penalty, loss):
    """The Frank-Wolfe gap by its definition, and the cost."""
    mixed = values @ weights
    gradient = values.T @ (discounts * loss.derivative(mixed, targets)) + 2 * penalty * weights
    cost = (discounts * loss.value(mixed, targets)).sum() + (penalty * weights**2).sum()
    return float(weights @ gradient - gradient.min()), float(cost)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(SMOOTH), st.booleans(), st.data())
def test_joint_solves_every_sample_to_its_certificate(seed, loss, degenerate, draw):
    pick = np.random.default_rng(seed)
    slots = int(pick.choice([1, 2, 3, 8, 21]))
    horizon, discount, ridge = draw.draw(
        st.tuples(
            st.sampled_from([1, 2, 9, 40]),
            st.sampled_from([1.0, 0.9, 0.5]),
            st.sampled_from([0.0, 1e-3, 2.0]),
        )
    )
    values, targets = problem(seed, slots, 50, loss.labels, alike=float(pick.choice([0.0, 0.9])))
    targets = targets if loss.any_target or loss.labels else np.abs(targets)
    if degenerate:  # equal slots, a slot of nothing
        values[:, slots // 2] = values[:, 0]
        values[:, -1] = 0.0
    curvature = pick.choice([0.0, 0.1]) * pick.uniform(size=(50, slots))
    joint = C.Joint("prequential", horizon, discount, ridge, tolerance=1e-5, steps=10_000)
    result = run_combiner(
        joint,
        values=values,
        targets=targets,
        curvature=curvature,
        loss=loss,
        cuts=one_by_one(50),
    )
    for n in range(50):
        rows = slice(max(0, n + 1 - horizon), n + 1)
        discounts = discount ** (n - np.arange(rows.start, n + 1.0))
        seen = (values[rows], targets[rows], discounts, curvature[n] + ridge, loss)
        gap, cost = joint_certificate(result.weights[n], *seen)
        shown = result.history[n]
        rounding = 1e-12 * (1 + cost)
        assert abs(shown["gap"] - gap) <= rounding, n
        assert abs(shown["cost"] - cost) <= rounding, n
        assert cost <= shown["scale"] * (1 + 1e-12)
        assert gap <= 1e-5 * shown["scale"] + rounding, (n, shown)


def test_joint_with_more_active_slots_than_columns_is_solved():
    slots = MAX_COLUMNS + 40  # more columns and a larger face than are kept
    values = np.eye(slots) * 10.0
    targets = np.linspace(0.95, 1.0, slots)
    weights, shown = solve_joint(
        values, targets, L.Squared(), np.zeros(slots), tolerance=1e-6, steps=10**5
    )
    # On the whole simplex: w_p = (y_p - m) / 10 with m such that they add up to one.
    expected = (targets - (targets.sum() - 10) / slots) / 10
    assert shown["gap"] <= 1e-6 * shown["cost"]
    assert np.abs(weights - expected).max() <= np.sqrt(1e-6 * shown["cost"]) / 10


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
@pytest.mark.parametrize("size", [1e-120, 1e30, 1e149])
def test_joint_weights_for_values_of_any_size_are_finite(loss, size):
    values, targets = problem(1, 6, 30, False, spread=size)
    values[:, 3] *= 1e3
    rule = C.Joint("prequential", horizon=20)
    result = run_combiner(rule, values=values, targets=targets, loss=L.as_loss(loss))
    assert np.isfinite(result.weights).all()
    assert np.abs(result.weights.sum(axis=1) - 1).max() <= 50 * EPS
    if loss == "absolute" or (loss == "squared" and 1e-120 < size < 1e149):
        values, targets = problem(1, 6, 30, False)
        values[:, 3] *= 1e3
        plain = run_combiner(rule, values=values, targets=targets, loss=L.as_loss(loss))
        costs = [
            L.as_loss(loss).value(values[10:] @ weights, targets[10:]).sum()
            for weights in (plain.weights[-1], result.weights[-1])
        ]
        assert costs[1] == pytest.approx(costs[0], rel=2e-4)
