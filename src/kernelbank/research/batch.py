"""The batch solution of the joint problem on a window: the least cost that any bank can reach.

The paper's problem (2) is to choose all functions and all weights at once,

    min over w on the simplex and f_1, ..., f_P of  sum_i l(F(x_i), y_i) + regularization / 2 |F|^2,

with F = sum_p w_p f_p and the norm in which a bank is charged, |F|^2 = sum_p w_p^2 |f_p|^2. With
g_p = w_p f_p the weights drop out, and the problem is the convex one of a single kernel,
k = sum_p k_p. Any weights above 0 are optimal, with f_p = g_p / w_p.

So F = sum_i c_i k(x_i, .). With K the matrix of k, any vector u = (l'(z_i, y_i)) bounds the least
cost from below,

    sum_i (l(z_i, y_i) - u_i z_i) - u'Ku / (2 regularization)

(Fenchel duality). With z = F(x), the cost minus this bound is the duality gap: it certifies every
solution that is returned here.
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
    values : (n,), F at the samples.
    coefficients : (n,), of F = sum_p sum_i coefficients_i k_p(x_i, .).
    inputs : (n, d).
    dictionary : the kernels.
    """

    cost: float
    gap: float
    norm2: float
    values: Floats
    coefficients: Floats
    inputs: Floats
    dictionary: list[Kernel]

    def predict(self, X: object) -> Floats:
        """(m,): F at the rows of an (m, d) array."""
        points = check.samples(X, self.inputs.shape[1])
        return np.asarray(_matrix(self.dictionary, points, self.inputs) @ self.coefficients)


def _matrix(dictionary: list[Kernel], points: Floats, inputs: Floats) -> Floats:
    """(m, n): the sum of all kernels."""
    total = np.zeros((len(points), len(inputs)))
    for kernel in dictionary:
        total += kernel(points, inputs)
    return total


def batch_solution(
    dictionary: Kernel | Iterable[Kernel],
    X: object,
    y: object,
    loss: object = "squared",
    regularization: float = 0.01,
) -> BatchSolution:
    """The functions and weights of least cost on given samples: the paper's problem (2).

    A reference point: on its window no bank with these kernels has a lower cost, whatever its
    learners and its combiner on the simplex.

    Parameters
    ----------
    dictionary : the kernels, or one.
    X : (n, d) inputs, or (n,). A matrix of n^2 numbers is kept.
    y : (n,) targets.
    loss : a smooth convex loss, or its name.
    regularization : weight of half the squared norm, above 0.

    Method: Newton's on the coefficients. Cost: O(n^3) per step.

    Reference: Ruiz-Moreno and Beferull-Lozano, An online multiple kernel parallelizable learning
    scheme, IEEE Signal Processing Letters 31, 2024 (arXiv:2308.10101), problem (2).

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
    problem = _Problem(_matrix(kernels, points, points), targets, measure, ridge)
    zero = problem.state(np.zeros(len(targets)))
    if not np.isfinite(zero.cost):
        remedy = (
            "The search starts at the function 0: shift targets and loss so that it is allowed."
        )
        raise check.refuse("loss", "be finite at the prediction 0", measure, remedy, owner)
    state = problem.minimised(zero)
    if not state.gap <= TOLERANCE * max(abs(state.cost), abs(zero.cost)):
        remedy = (
            "Use a smooth loss, such as squared, huber or logistic, or a larger regularization."
        )
        rule = f"allow a solution with a duality gap of {TOLERANCE:g} of its cost"
        value = f"{measure!r} with a gap of {state.gap:.3g}"
        raise check.refuse("loss", rule, value, remedy, owner)
    norm2 = float(state.coefficients @ state.values)
    return BatchSolution(
        state.cost, state.gap, norm2, state.values, state.coefficients, points, kernels
    )


@dataclass(frozen=True)
class _State:
    """Coefficients c and what follows from them."""

    coefficients: Floats
    values: Floats  # z = Kc
    slopes: Floats  # u = l'(z, y)
    cost: float  # sum l(z, y) + regularization / 2 c'Kc
    gap: float  # r'Kr / (2 regularization), r = u + regularization c


@dataclass(frozen=True)
class _Problem:
    """The cost on n samples, with the (n, n) matrix K."""

    K: Floats
    y: Floats
    loss: Loss
    ridge: float

    def state(self, c: Floats) -> _State:
        z = self.K @ c
        u = np.asarray(self.loss.derivative(z, self.y))
        cost = float(self.loss.value(z, self.y).sum() + 0.5 * self.ridge * (c @ z))
        r = u + self.ridge * c
        with np.errstate(over="ignore", invalid="ignore"):  # far from where the loss is finite
            gap = max(0.0, float(r @ (self.K @ r))) / (2 * self.ridge)
        return _State(c, z, u, cost, gap)

    def minimised(self, state: _State) -> _State:
        """The minimiser, from a first state, by Newton's method with step halving."""
        zero = abs(state.cost)
        for _ in range(MOST_STEPS):
            size = max(abs(state.cost), zero)
            if state.gap <= TOLERANCE**2.5 * size:
                break
            r = state.slopes + self.ridge * state.coefficients
            # The derivative of r in c is DK + ridge I with D = diag l'', by differences of l'.
            h = 1e-5 * (1 + np.abs(state.values))
            ends = (self.loss.derivative(state.values + side, self.y) for side in (h, -h))
            curvature = np.nan_to_num(np.subtract(*ends) / (2 * h))
            jacobian = np.maximum(curvature, 0.0)[:, None] * self.K
            jacobian[np.diag_indices(len(r))] += self.ridge
            step = -np.linalg.solve(jacobian, r)
            slope = float(r @ (self.K @ step))  # the derivative of the cost
            if state.gap <= TOLERANCE**1.5 * size:
                sizes = [1.0]  # there is only rounding left
            else:
                sizes = [0.5**halvings for halvings in range(MOST_HALVINGS)]
            for length in sizes:
                new = self.state(state.coefficients + length * step)
                # Near the end the cost no longer changes in its last digit, but the gap does.
                lower = new.cost <= state.cost + 1e-4 * length * slope < state.cost
                if lower or new.gap <= 0.5 * state.gap:
                    break
            else:
                break
            state = new
        return state
