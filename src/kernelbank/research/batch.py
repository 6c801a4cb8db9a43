"""The batch solution of the joint problem on a window: the least cost that any bank can reach.

The paper's problem (2) is to choose all functions and all weights at once,

    min over f_1, ..., f_P and w on the simplex  sum_i (F(x_i) - y_i)^2 + regularization / 2 |F|^2,

with F = sum_p w_p f_p and the norm in which a bank is charged, |F|^2 = sum_p w_p^2 |f_p|^2. With
g_p = w_p f_p the weights drop out, and the problem is the convex one of a single kernel,
k = sum_p k_p. Any weights above 0 are optimal, with f_p = g_p / w_p.

So F = sum_i c_i k(x_i, .), and with K the matrix of k, (2 K + regularization I) c = 2 y. Any c has
the duality gap r'Kr / (2 regularization) with r = 2 (Kc - y) + regularization c (Fenchel duality):
the least cost is not below the cost of c minus this gap, which certifies the solution.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..kernels import Kernel, kernel_list, require_kernel
from ..utils import validation as check
from ..utils.validation import Floats


@dataclass(frozen=True, eq=False)
class BatchSolution:
    """The minimiser of the cost on some samples. `batch_solution` makes it.

    cost : sum_i (F(x_i) - y_i)^2 + regularization / 2 * |F|^2.
    gap : the duality gap: the least cost is not below cost - gap.
    values : (n,), F at the samples.
    coefficients : (n,), of F = sum_p sum_i coefficients_i k_p(x_i, .).
    """

    cost: float
    gap: float
    values: Floats
    coefficients: Floats


def batch_solution(
    dictionary: Kernel | Iterable[Kernel], X: object, y: object, regularization: float = 0.01
) -> BatchSolution:
    """The functions and weights of least cost on given samples, for squared loss: problem (2).

    A reference point: on its window no bank with these kernels has a lower cost, whatever its
    learners and its combiner on the simplex.

    Parameters
    ----------
    dictionary : the kernels, or one.
    X : (n, d) inputs, or (n,). A matrix of n^2 numbers is kept.
    y : (n,) targets.
    regularization : weight of half the squared norm, above 0.

    Cost: O(n^3).

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
    remedy = "Give a positive number, such as 0.01."
    ridge = check.number("regularization", regularization, owner, remedy, above=0)
    K = np.asarray(sum(kernel(points, points) for kernel in kernels))
    # The second step removes what rounding left of the residual r.
    c = np.zeros(len(targets))
    system = 2 * K + ridge * np.eye(len(targets))
    for _ in range(2):
        c -= np.linalg.solve(system, 2 * (K @ c - targets) + ridge * c)
    values = K @ c
    cost = float(((values - targets) ** 2).sum()) + ridge / 2 * float(c @ values)
    r = 2 * (values - targets) + ridge * c
    gap = max(0.0, float(r @ K @ r)) / (2 * ridge)
    return BatchSolution(cost, gap, values, c)
