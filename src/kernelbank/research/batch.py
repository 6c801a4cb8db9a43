"""The batch solution of the joint problem on a window: the least cost that any bank can reach.

The paper's problem (2) is to choose all functions and all weights at once,

    min over w on the simplex and f_1, ..., f_P of  sum_i l(F(x_i), y_i) + regularization / 2 |F|^2,

with F = sum_p w_p f_p. What it is depends on the norm of F:

- "direct sum", as the paper and a bank charge it: |F|^2 = sum_p w_p^2 |f_p|^2. With g_p = w_p f_p
  the weights drop out, and the problem is the convex one of a single kernel, sum_p k_p. Any weights
  above 0 are optimal, with f_p = g_p / w_p.
- "convex hull", the looser bound of Jensen's inequality: |F|^2 = sum_p w_p |f_p|^2. This is the
  choice of the best kernel sum_p w_p k_p, also known as multiple kernel learning or the group lasso
  (sum_p |g_p|)^2, and its weights are determined.

In both F = sum_p scale_p sum_i c_i k_p(x_i, .), with scales 1 or w. With K_p the matrix of kernel p
and K = sum_p scale_p K_p, any vector u = (l'(z_i, y_i)) bounds the least cost from below,

    sum_i (l(z_i, y_i) - u_i z_i) - S(u) / (2 regularization),

where S(u) is u'Ku, or max_p u'K_p u for the convex hull (Fenchel duality). With z = F(x), the cost
minus this bound is the duality gap: it certifies every solution that is returned here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..kernels import Kernel
from ..kernels.base import kernel_list, require_kernel
from ..losses import Loss, as_loss
from ..utils import validation as check
from ..utils.validation import Floats

TOLERANCE = 1e-9
"""The largest duality gap, as a share of the larger cost of the solution and of the function 0."""

MOST_STEPS = 200
MOST_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class BatchSolution:
    """The minimiser of the cost on some samples. `batch_solution` makes it.

    cost : sum_i l(F(x_i), y_i) + regularization / 2 * norm2.
    gap : the duality gap: the least cost is not below cost - gap.
    norm2 : |F|^2.
    weights : (P,), on the simplex; equal ones for "direct sum", where all are optimal.
    values : (n,), F at the samples.
    coefficients : (n,), of F = sum_p scale_p sum_i coefficients_i k_p(x_i, .).
    scales : (P,), 1 for "direct sum", the weights for "convex hull".
    inputs : (n, d).
    dictionary : the kernels.
    """

    cost: float
    gap: float
    norm2: float
    weights: Floats
    values: Floats
    coefficients: Floats
    scales: Floats
    inputs: Floats
    dictionary: list[Kernel]

    def predict(self, X: object) -> Floats:
        """(m,): F at the rows of an (m, d) array."""
        points = check.samples(X, self.inputs.shape[1])
        out = np.zeros(len(points))
        for scale, kernel in zip(self.scales, self.dictionary, strict=True):
            out += scale * (kernel(points, self.inputs) @ self.coefficients)
        return out


def batch_solution(
    dictionary: Kernel | Iterable[Kernel],
    X: object,
    y: object,
    loss: object = "squared",
    regularization: float = 0.01,
    norm: str = "direct sum",
) -> BatchSolution:
    """The functions and weights of least cost on given samples: the paper's problem (2).

    A reference point: on its window no bank with these kernels has a lower cost, whatever its
    learners and its combiner on the simplex.

    Parameters
    ----------
    dictionary : the kernels, or one.
    X : (n, d) inputs, or (n,). The matrices of all kernels are kept: n^2 P numbers.
    y : (n,) targets.
    loss : a smooth convex loss, or its name.
    regularization : weight of half the squared norm, above 0.
    norm : "direct sum", in which banks are charged, or "convex hull" for the best combined kernel.

    Method: Newton's on the coefficients; for the convex hull inside Newton's on the weights with a
    logarithmic barrier. Cost: O(n^3) per step.

    Reference: Ruiz-Moreno and Beferull-Lozano, An online multiple kernel parallelizable learning
    scheme, IEEE Signal Processing Letters 31, 2024 (arXiv:2308.10101), problem (2). Micchelli and
    Pontil, Learning the kernel function via regularization, JMLR 2005.

    >>> import kernelbank as kb
    >>> x, y = kb.datasets.ar1(seed=0, samples=100)
    >>> kernels = kb.gaussian_grid(0.1, 10, 20, spacing="linear")
    >>> solution = kb.batch_solution(kernels, x[:10], y[:10])
    >>> trace = kb.KernelBank(kernels).run(x, y)
    >>> bool(solution.cost - solution.gap <= trace.cost[9])
    True
    """
    owner = "batch_solution"
    kernels = kernel_list(dictionary, "dictionary", owner)
    for kernel in kernels:
        require_kernel("dictionary", kernel, owner)
    points = check.samples(X, None)
    targets = check.targets(y, len(points))
    measure = as_loss(loss)
    measure.check_targets(targets)
    remedy = "Give a positive number, such as 0.01."
    ridge = check.number("regularization", regularization, owner, remedy, above=0)
    check.choice("norm", norm, owner, ("direct sum", "convex hull"))
    matrices = np.array([kernel(points, points) for kernel in kernels])
    problem = _Problem(matrices, targets, measure, ridge)
    if not np.isfinite(problem.cost_of_zero):
        remedy = (
            "The search begins at the function 0: shift targets and loss so that it is allowed."
        )
        raise check.refuse("loss", "be finite at the prediction 0", measure, remedy, owner)
    equal = np.full(len(kernels), 1 / len(kernels))
    if norm == "direct sum":
        weights, scales = equal, np.ones(len(kernels))
        state = problem.solve(scales, np.zeros(len(points)))
        gap = state.residual
    else:
        weights = scales = equal
        weights = scales = problem.best_weights(equal)
        state = problem.solve(scales, np.zeros(len(points)))
        gap = problem.hull_gap(state)
    if not gap <= TOLERANCE * problem.size(state.cost):
        remedy = (
            "Use a smooth loss, such as squared, huber or logistic, or a larger regularization."
        )
        rule = f"allow a solution with a duality gap of {TOLERANCE:g} of its cost"
        raise check.refuse("loss", rule, f"{measure!r} with a gap of {gap:.3g}", remedy, owner)
    return BatchSolution(
        cost=state.cost,
        gap=gap,
        norm2=float(state.coefficients @ state.values),
        weights=weights,
        values=state.values,
        coefficients=state.coefficients,
        scales=scales,
        inputs=points,
        dictionary=kernels,
    )


@dataclass(frozen=True)
class _State:
    """Coefficients c and what follows from them, for K = sum_p scale_p K_p."""

    coefficients: Floats
    values: Floats  # z = Kc
    slopes: Floats  # u = l'(z, y)
    cost: float  # sum l(z, y) + regularization / 2 c'Kc
    residual: float  # r'Kr / (2 regularization), r = u + regularization c: the gap for K


class _Problem:
    """The cost on n samples, matrices (P, n, n), and its minimisers."""

    def __init__(self, matrices: Floats, y: Floats, loss: Loss, ridge: float) -> None:
        self.matrices, self.y, self.loss, self.ridge = matrices, y, loss, ridge
        self.cost_of_zero = float(loss.value(np.zeros(len(y)), y).sum())

    def size(self, cost: float) -> float:
        """What a gap is compared with."""
        return max(abs(cost), abs(self.cost_of_zero))

    def solve(self, scales: Floats, start: Floats) -> _State:
        """The minimiser for the kernel sum_p scale_p k_p: Newton's method with step halving."""
        K = np.tensordot(scales, self.matrices, 1)
        state = self._state(K, start)
        for _ in range(MOST_STEPS):
            # The gap of the convex hull is linear in r: the gap for K, quadratic, must be tiny.
            if state.residual <= TOLERANCE**2.5 * self.size(state.cost):
                break
            r = state.slopes + self.ridge * state.coefficients
            # The derivative of r in c is DK + ridge I with D = diag l''.
            jacobian = self._curvature(state.values)[:, None] * K
            jacobian[np.diag_indices(len(r))] += self.ridge
            step = np.asarray(-np.linalg.solve(jacobian, r), dtype=np.float64)
            better = self._along(K, state, step, r)
            if better is None:
                break
            state = better
        return state

    def _along(self, K: Floats, state: _State, step: Floats, r: Floats) -> _State | None:
        """The first of step, step / 2, ... that lowers cost or gap enough; None if none does."""
        slope = float(r @ (K @ step))  # the derivative of the cost
        size = 1.0
        for _ in range(MOST_HALVINGS):
            new = self._state(K, state.coefficients + size * step)
            # Near the end the cost no longer changes in its last digit, but the gap does.
            if new.cost <= state.cost + 1e-4 * size * slope < state.cost:
                return new
            if new.residual <= 0.5 * state.residual:
                return new
            if state.residual <= TOLERANCE**1.5 * self.size(state.cost):
                return None  # there is only rounding left
            size /= 2
        return None

    def _state(self, K: Floats, c: Floats) -> _State:
        z = K @ c
        u = np.asarray(self.loss.derivative(z, self.y))
        cost = float(self.loss.value(z, self.y).sum() + 0.5 * self.ridge * (c @ z))
        r = u + self.ridge * c
        return _State(c, z, u, cost, max(0.0, float(r @ (K @ r))) / (2 * self.ridge))

    def _curvature(self, z: Floats) -> Floats:
        """l''(z, y) by differences of l', at least 0."""
        h = 1e-5 * (1 + np.abs(z))
        rise = np.asarray(self.loss.derivative(z + h, self.y) - self.loss.derivative(z - h, self.y))
        return np.maximum(np.nan_to_num(rise / (2 * h)), 0.0)

    # --- the convex hull --------------------------------------------------------------------------

    def hull_gap(self, state: _State) -> float:
        """cost - sum (l - u z) + max_p u'K_p u / (2 regularization)."""
        u, z, c = state.slopes, state.values, state.coefficients
        largest = float(self._squares(u).max())
        gap = float(u @ z) + 0.5 * self.ridge * float(c @ z) + largest / (2 * self.ridge)
        return max(0.0, gap)

    def _squares(self, v: Floats) -> Floats:
        """(P,): v'K_p v."""
        return np.asarray((self.matrices @ v) @ v)

    def best_weights(self, weights: Floats) -> Floats:
        """The weights w of the best kernel sum_p w_p k_p.

        J(w), the least cost for w, is convex, with derivatives -regularization / 2 c'K_p c.
        Newton's method on J(w) - barrier sum_p log w_p with sum_p w_p = 1. Its minimiser is within
        barrier * P of the least cost, and the barrier falls by steps.
        """
        state = self.solve(weights, np.zeros(len(self.y)))
        size = self.size(state.cost)
        barrier = 0.1 * size
        while self.hull_gap(state) > 0.1 * TOLERANCE * size and barrier > 1e-15 * size:
            weights, state = self._minimise_with_barrier(weights, state, barrier)
            barrier /= 10
        return weights

    def _minimise_with_barrier(
        self, weights: Floats, state: _State, barrier: float
    ) -> tuple[Floats, _State]:
        count = len(weights)
        for _ in range(MOST_STEPS):
            rows = self.matrices @ state.coefficients  # (P, n): K_p c
            gradient = -0.5 * self.ridge * (rows @ state.coefficients) - barrier / weights
            K = np.tensordot(weights, self.matrices, 1)
            D = self._curvature(state.values)
            inner = D[:, None] * K
            inner[np.diag_indices(len(D))] += self.ridge
            # J'' = regularization V'(DK + regularization I)^-1 D V with V the columns K_p c.
            hessian = self.ridge * rows @ np.linalg.solve(inner, D[:, None] * rows.T)
            system = np.ones((count + 1, count + 1))
            system[:count, :count] = hessian + np.diag(barrier / weights**2)
            system[count, count] = 0.0
            step = np.linalg.solve(system, np.append(-gradient, 0.0))[:count]
            fall = -float(gradient @ step)
            if fall <= 1e-3 * barrier:
                break
            longest = float(np.min(-weights[step < 0] / step[step < 0], initial=np.inf))
            moved = self._barrier_step(
                weights, state, step, min(1.0, 0.95 * longest), barrier, fall
            )
            if moved is None:
                break
            weights, state = moved
        return weights, state

    def _barrier_step(
        self, weights: Floats, state: _State, step: Floats, size: float, barrier: float, fall: float
    ) -> tuple[Floats, _State] | None:
        now = state.cost - barrier * np.log(weights).sum()
        for _ in range(MOST_HALVINGS):
            new = weights + size * step
            new /= new.sum()
            there = self.solve(new, state.coefficients)
            # A small fall: Newton's method converges by itself, and the cost cannot tell.
            if fall <= 0.1 * barrier or (
                there.cost - barrier * np.log(new).sum() <= now - 1e-4 * size * fall
            ):
                return new, there
            size /= 2
        return None
