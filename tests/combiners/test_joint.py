"""Joint on artificial evidence: against its definition, its certificate and another solver."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import kernelbank as kb
from support.combining import one_by_one, problem, run_combiner

EPS = np.finfo(float).eps
MAX_COLUMNS = 64  # of a matrix that the core's solver keeps
C, L = kb.combiners, kb.losses
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


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


def certificate(weights, values, targets, discounts, penalty, loss):
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
        gap, cost = certificate(result.weights[n], *seen)
        shown = result.history[n]
        rounding = 1e-12 * (1 + cost)
        assert abs(shown["gap"] - gap) <= rounding, n
        assert abs(shown["cost"] - cost) <= rounding, n
        assert cost <= shown["scale"] * (1 + 1e-12)
        assert gap <= 1e-5 * shown["scale"] + rounding, (n, shown)


@pytest.mark.parametrize("evidence", ["window", "prequential"])
@pytest.mark.parametrize("slots", [5, MAX_COLUMNS + 40])
def test_joint_weights_in_blocks_of_any_lengths_have_the_same_bits(evidence, slots):
    draw = np.random.default_rng(4)
    shape = (40, 12, slots) if evidence == "window" else (40, slots)
    values = draw.normal(size=shape)
    values[25:, ..., 1] = np.nan
    options = {
        "values": values,
        "targets": draw.normal(size=40 + (12 if evidence == "window" else 1)),
    }
    for loss in (L.Squared(), L.Huber(0.3), L.Absolute()):
        combiner = C.Joint(evidence, horizon=12, ridge=0.01)
        whole = run_combiner(combiner, loss=loss, **options)
        for cuts in (one_by_one(40), (3, 4, 30)):
            again = run_combiner(combiner, loss=loss, cuts=cuts, **options)
            assert (whole.weights == again.weights).all()
            assert all(np.array_equal(whole.state[k], again.state[k]) for k in whole.state)
        assert (whole.weights[25:, 1] == 0).all()
        assert np.abs(whole.weights.sum(axis=1) - 1).max() <= 8 * slots * EPS


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
