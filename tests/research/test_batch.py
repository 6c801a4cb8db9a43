"""The batch solution of the joint problem: certified, the best of all, and below every bank."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument
from kernelbank.research import batch

DRAW = np.random.default_rng(5)
X, Y = DRAW.uniform(-1, 1, (12, 2)), DRAW.normal(size=12)
KERNELS = [kb.kernels.Gaussian(0.3), kb.kernels.Laplacian(1.0), kb.kernels.Linear(0.5)]
MATRICES = [kernel(X, X) for kernel in KERNELS]
LOSSES = {
    "squared": Y,
    "huber": Y,
    "logistic": np.sign(Y),
    "squared_hinge": np.sign(Y),
}


def joint_cost(weights, coefficients, y, loss, regularization, power):
    """sum l(F, y) + regularization / 2 sum_p w_p^power |f_p|^2, F = sum_p w_p f_p, f_p = K_p c_p."""
    values = sum(w * (K @ c) for w, K, c in zip(weights, MATRICES, coefficients, strict=True))
    norms = [c @ K @ c for K, c in zip(MATRICES, coefficients, strict=True)]
    penalty = sum(w**power * norm for w, norm in zip(weights, norms, strict=True))
    return kb.losses.as_loss(loss).value(values, y).sum() + regularization / 2 * penalty


@pytest.mark.parametrize("norm", ["direct sum", "convex hull"])
@pytest.mark.parametrize("loss", LOSSES)
def test_solution_is_certified_and_has_the_cost_of_its_functions(loss, norm):
    y = LOSSES[loss]
    solution = kb.batch_solution(KERNELS, X, y, loss, 0.2, norm)
    assert 0 <= solution.gap <= 1e-9 * solution.cost * 12
    c, direct = solution.coefficients, norm == "direct sum"
    # f_p = g_p / w_p with g_p = scale_p K_p c.
    alone = [scale / w * c for scale, w in zip(solution.scales, solution.weights, strict=True)]
    cost = joint_cost(solution.weights, alone, y, loss, 0.2, 2 if direct else 1)
    assert cost == pytest.approx(solution.cost, rel=1e-9)
    assert solution.predict(X) == pytest.approx(solution.values, abs=1e-12)
    assert solution.weights.sum() == pytest.approx(1)
    assert solution.weights.min() > 0


@pytest.mark.parametrize("norm", ["direct sum", "convex hull"])
@pytest.mark.parametrize("loss", LOSSES)
def test_solution_meets_its_optimality_conditions(loss, norm):
    """-l' = regularization c; in the hull kernels with weight have the largest c'K_p c."""
    y = LOSSES[loss]
    solution = kb.batch_solution(KERNELS, X, y, loss, 0.2, norm)
    slopes = kb.losses.as_loss(loss).derivative(solution.values, y)
    assert slopes + 0.2 * solution.coefficients == pytest.approx(np.zeros(12), abs=1e-9)
    squares = np.array([solution.coefficients @ K @ solution.coefficients for K in MATRICES])
    if norm == "convex hull":
        used = solution.weights > 1e-4
        assert squares[used] == pytest.approx(squares.max(), rel=1e-3)
        assert (solution.weights * (squares.max() - squares)).sum() <= 1e-6 * squares.max()


@pytest.mark.parametrize(("norm", "power"), [("direct sum", 2), ("convex hull", 1)])
@pytest.mark.parametrize("loss", LOSSES)
def test_no_other_functions_and_weights_cost_less(loss, norm, power):
    """Random ones, and small changes of the solution: the certified bound is below all of them."""
    y = LOSSES[loss]
    solution = kb.batch_solution(KERNELS, X, y, loss, 0.2, norm)
    alone = np.array(
        [
            s / w * solution.coefficients
            for s, w in zip(solution.scales, solution.weights, strict=True)
        ]
    )
    least = np.inf
    for trial in range(300):
        weights = DRAW.dirichlet(np.ones(3))
        functions = DRAW.normal(size=(3, 12)) * DRAW.choice([0.01, 0.1, 1])
        if trial % 2:
            weights = solution.weights * np.exp(0.01 * DRAW.normal(size=3))
            weights /= weights.sum()
            functions = alone + 0.01 * functions
        least = min(least, joint_cost(weights, functions, y, loss, 0.2, power))
    assert solution.cost - solution.gap <= least
    assert least <= solution.cost * 1.5  # some come close, so that the claim says something


def test_squared_loss_in_the_direct_sum_is_ridge_regression_with_the_sum_of_kernels():
    solution = kb.batch_solution(KERNELS, X, Y, "squared", 0.2)
    K = sum(MATRICES)
    c = np.linalg.solve(2 * K + 0.2 * np.eye(12), 2 * Y)
    assert solution.coefficients == pytest.approx(c, rel=1e-9)
    assert solution.cost == pytest.approx(((K @ c - Y) ** 2).sum() + 0.1 * c @ K @ c)


MIXED = 2 * X[:, 0] + np.sin(9 * X[:, 1])
"""Targets for which both a narrow and a linear kernel are needed."""


def test_convex_hull_of_two_kernels_is_the_best_of_a_fine_grid_of_kernels():
    solution = kb.batch_solution(KERNELS[::2], X, MIXED, "squared", 0.2, "convex hull")

    def least(weight):
        K = weight * MATRICES[0] + (1 - weight) * MATRICES[2]
        c = np.linalg.solve(2 * K + 0.2 * np.eye(12), 2 * MIXED)
        return ((K @ c - MIXED) ** 2).sum() + 0.1 * c @ K @ c

    grid = np.linspace(0, 1, 2001)
    costs = [least(weight) for weight in grid]
    assert 0 < np.argmin(costs) < 2000
    assert solution.cost == pytest.approx(min(costs), rel=1e-6)
    assert solution.cost - solution.gap <= min(costs)
    assert solution.weights[0] == pytest.approx(grid[int(np.argmin(costs))], abs=1e-3)


def test_one_kernel_has_one_solution_in_both_norms():
    one = kb.batch_solution(kb.kernels.Gaussian(0.3), X, Y, "squared", 0.2)
    other = kb.batch_solution(kb.kernels.Gaussian(0.3), X, Y, "squared", 0.2, "convex hull")
    assert one.cost == pytest.approx(other.cost, rel=1e-9)
    assert other.weights.tolist() == [1.0]


def test_direct_sum_costs_least_and_the_hull_less_than_every_kernel():
    costs = [kb.batch_solution(kernel, X, MIXED, "squared", 0.2).cost for kernel in KERNELS]
    hull = kb.batch_solution(KERNELS, X, MIXED, "squared", 0.2, "convex hull")
    direct = kb.batch_solution(KERNELS, X, MIXED, "squared", 0.2)
    assert direct.cost < hull.cost - hull.gap < min(costs)


@pytest.mark.parametrize(
    "combiner", [kb.combiners.Simplex(), kb.combiners.Joint(), kb.combiners.Hedge()]
)
def test_no_bank_costs_less_on_its_window(combiner):
    x, y = kb.datasets.ar1(seed=2, samples=40)
    kernels = kb.gaussian_grid(0.1, 10, 6)
    bank = kb.KernelBank(kernels, kb.learners.KRLS(), combiner, window=5, regularization=0.3)
    trace = bank.run(x, y)
    for n in range(40):
        rows = slice(max(0, n - 4), n + 1)
        solution = kb.batch_solution(kernels, x[rows], y[rows], "squared", 0.3)
        assert solution.cost - solution.gap <= trace.cost[n]


def barrier(f, y):
    return np.where(f > 0, -np.log(np.maximum(f, 1e-300)), np.inf) + 0 * y


BARRIER = kb.losses.Custom(barrier, lambda f, y: -1 / np.maximum(f, 1e-300), name="barrier")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dictionary": []}, "at least one kernel"),
        ({"dictionary": [kb.kernels.TreeKernel(1.0, 3)]}, "function of two inputs"),
        ({"regularization": 0.0}, "'regularization'"),
        ({"norm": "sum"}, "'norm'"),
        ({"loss": "logistic"}, "-1 or"),
        ({"loss": "absolute"}, "'loss' of batch_solution.*gap"),
        ({"loss": BARRIER}, "finite at the prediction 0"),
        ({"y": Y[:5]}, "as many rows"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    given = {"dictionary": KERNELS, "X": X, "y": Y, "regularization": 0.2} | change
    with pytest.raises(InvalidArgument, match=message):
        kb.batch_solution(**given)


def test_gap_of_any_coefficients_is_the_cost_minus_the_dual_and_above_the_excess():
    """For squared loss l*(u) = u^2 / 4 + u y; far from the solution, where the gap is not rounding."""
    problem = batch._Problem(np.array(MATRICES), Y, kb.losses.Squared(), 0.2)
    least = kb.batch_solution(KERNELS, X, Y, "squared", 0.2)
    hull = kb.batch_solution(KERNELS, X, Y, "squared", 0.2, "convex hull")
    for size in (0.01, 1.0):
        c = least.coefficients + size * DRAW.normal(size=12)
        state = problem._state(sum(MATRICES), c)
        conjugate = (state.slopes**2 / 4 + state.slopes * Y).sum()
        dual = -conjugate - state.slopes @ sum(MATRICES) @ state.slopes / 0.4
        assert state.residual == pytest.approx(state.cost - dual)
        assert state.residual >= state.cost - least.cost > 0
        weights = DRAW.dirichlet(np.ones(3))
        state = problem._state(np.tensordot(weights, MATRICES, 1), c)
        conjugate = (state.slopes**2 / 4 + state.slopes * Y).sum()
        dual = -conjugate - max(state.slopes @ K @ state.slopes for K in MATRICES) / 0.4
        assert problem.hull_gap(state) == pytest.approx(state.cost - dual)
        assert problem.hull_gap(state) >= state.cost - hull.cost > 0
