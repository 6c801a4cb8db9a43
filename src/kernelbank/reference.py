"""The paper's scheme in plain NumPy, to be read beside the paper.

Everything is computed from its definition, for the squared loss. Numbers in parentheses are those
of the paper's equations; docs/reference-scheme.md puts them side by side with the code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .utils.validation import Floats

__all__ = ["FunctionEstimate", "ReferenceRun", "algorithm_1", "gaussian", "omkr_rate", "run"]

Kernel = Callable[[Floats, Floats], Floats]
"""From (m, d) and (n, d) inputs to (m, n) values k(x, t)."""

DELTA = 1e-6
"""In the place of a_p = 0, where Algorithm 1 would divide by 0 (the paper's footnote 3)."""


def gaussian(width: float) -> Kernel:
    """k(x, t) = exp(-|x - t|^2 / (2 width^2))."""
    return lambda X, T: np.exp(-0.5 * ((X[:, None] - T[None]) ** 2).sum(axis=2) / width**2)


def loss(f: Floats, y: Floats) -> Floats:
    """l(f, y), here the squared loss."""
    return (f - y) ** 2


def slope(f: Floats, y: Floats) -> Floats:
    """l'(f, y)."""
    return 2 * (f - y)


@dataclass
class FunctionEstimate:
    """f_p = sum_i alpha_i k_p(x_i, .), which NORMA learns from windows of samples.

    >>> f = FunctionEstimate(gaussian(1.0), dimension=1, learning_rate=0.25, regularization=0.0)
    >>> f.learn(np.array([[0.0]]), np.array([1.0]))
    >>> f(np.array([[0.0]])).tolist()  # 0 + 0.25 * 2 * (1 - 0)
    [0.5]
    """

    kernel: Kernel
    dimension: int
    learning_rate: float = 0.05
    regularization: float = 0.01
    budget: int = 100

    def __post_init__(self) -> None:
        self.points, self.alpha = np.zeros((0, self.dimension)), np.zeros(0)

    def __call__(self, X: Floats) -> Floats:
        """The values f_p(x) at the rows of X."""
        return self.kernel(X, self.points) @ self.alpha

    def norm2(self) -> float:
        """The squared norm alpha' K alpha in the kernel's space."""
        return float(self.alpha @ self.kernel(self.points, self.points) @ self.alpha)

    def learn(self, X: Floats, y: Floats) -> None:
        """One step (6) along the gradient of the cost (1) on the window, the newest sample last."""
        slopes = slope(self(X), y)
        gamma = 1 - self.learning_rate * self.regularization
        alpha = gamma * np.append(self.alpha, 0.0)  # (7), third case; the newest starts from 0
        alpha[-len(y) :] -= self.learning_rate * slopes  # (7), first and second case
        points = np.vstack([self.points, X[-1:]])
        self.alpha, self.points = alpha[-self.budget :], points[-self.budget :]  # truncation


def algorithm_1(a: Floats, b: Floats) -> Floats:
    """The weights (4b): the minimiser of sum_p a_p theta_p^2 + b_p theta_p over the simplex.

    >>> algorithm_1(np.array([1.0, 1.0]), np.array([0.0, 1.0])).tolist()
    [0.75, 0.25]
    """
    a = np.where(a > 0, a, DELTA)
    order = np.argsort(b, kind="stable")  # line 2
    u, v = b[order], a[order]
    level = (np.cumsum(u / v) + 2) / np.cumsum(1 / v)  # the fraction of line 3, for every j
    rho = np.flatnonzero(u - level < 0)[-1]  # line 3
    mu = -level[rho]  # line 4
    return np.asarray(np.maximum(-(b + mu) / (2 * a), 0.0))  # line 5


def omkr_rate(n: int) -> float:
    """OMKR's learning rate of w(n), n = 1, 2, ...: 8e-4, halved every 50 steps, at least 1e-5."""
    return max(8e-4 * 0.5 ** ((n - 1) // 50), 1e-5)


@dataclass(frozen=True)
class ReferenceRun:
    """Row n holds theta(n) or w(n), f(n)(x_n), and what f(n) and every f_p(n) alone were charged.

    weights (n, P), predictions (n,), cost (n,), slot_cost (n, P); next_weights (P,).
    """

    weights: Floats
    predictions: Floats
    cost: Floats
    slot_cost: Floats
    next_weights: Floats


def run(
    X: Floats,
    y: Floats,
    kernels: Sequence[Kernel],
    rule: str = "scheme",
    window: int = 10,
    budget: int = 100,
    learning_rate: float = 0.05,
    regularization: float = 0.01,
) -> ReferenceRun:
    """Play the game of section III-A with the scheme, "omkr", or "omkr printed", its form (9).

    The ridge part of (9) is printed as eta A w; the gradient of the stated cost is 2 A w ("omkr").

    >>> x = np.arange(1.0, 31.0)
    >>> played = run(x, np.sin(x), [gaussian(0.5), gaussian(5.0)])
    >>> print(f"{played.cost.sum():.2f}")  # the cumulative cost
    59.17
    """
    X, eta = np.asarray(X, float).reshape(len(y), -1), regularization
    f = [FunctionEstimate(k, X.shape[1], learning_rate, eta, budget) for k in kernels]
    w = np.full(len(f), 1 / len(f)) if rule == "scheme" else np.zeros(len(f))  # n = 1
    a, rows = np.zeros(len(f)), []
    for n in range(1, len(y) + 1):
        S_X, S_y = X[max(n - window, 0) : n], y[max(n - window, 0) : n]  # S_L(n), revealed
        F = np.column_stack([f_p(S_X) for f_p in f])  # (L, P): f_p(n)(x_i)
        cost = loss(F @ w, S_y).sum() + (w**2 * a).sum()  # (1) with the direct-sum norm
        rows.append((w, F[-1] @ w, cost, loss(F, S_y[:, None]).sum(axis=0) + a))
        for f_p in f:
            f_p.learn(S_X, S_y)  # now f(n+1), every one by itself
        F = np.column_stack([f_p(S_X) for f_p in f])  # (L, P)
        a = np.array([eta / 2 * f_p.norm2() for f_p in f])  # (5a)
        if rule == "scheme":
            b = loss(F, S_y[:, None]).sum(axis=0)  # (5b)
            w = algorithm_1(a, b)
        else:
            ridge = {"omkr": 2.0, "omkr printed": eta}[rule]
            w = w - omkr_rate(n + 1) * (F.T @ slope(F @ w, S_y) + ridge * a * w)  # (8), (9)
    weights, predictions, costs, slot_costs = map(np.array, zip(*rows, strict=True))
    return ReferenceRun(weights, predictions, costs, slot_costs, w)
