"""Simplex, the rule of the paper, and its program: the least separable bound over the simplex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import _core
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Combiner, State


@dataclass(frozen=True)
class Simplex(Combiner):
    """Weights that minimise sum_p a_p w_p^2 + b_p w_p over the simplex (see `kb.simplex_qp`).

    a_p = regularization / 2 * norm^2 of slot p. b_p depends on the evidence:

    - "window", as in the paper: the loss of the slot on the window that it has just learned from;
    - "prequential": the sum of the losses of its last `horizon` predictions, each made before the
      slot learned the sample. Not in the paper; often better on real data, as it is out of sample.

    The program is the "direct sum" bound of the paper, equation (3). With Jensen's inequality on
    the norm too, which the paper mentions as looser (w_p >= w_p^2), the bound is linear:
    sum_p (a_p + b_p) w_p. Then all weight is on the least a_p + b_p, shared equally by equals.

    Parameters
    ----------
    evidence : "window" or "prequential".
    horizon : number of samples in prequential evidence.
    bound : "direct sum", or "jensen" for the looser bound.

    Reference: Ruiz-Moreno and Beferull-Lozano, IEEE Signal Processing Letters 31, 2024
    (arXiv:2308.10101), equations (3) to (5). The looser bound: Shen, Chen and Giannakis, JMLR 2019.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(combiner=kb.combiners.Simplex(evidence="prequential", horizon=50))
    >>> bank.learn_one(0.0, 1.0)
    >>> round(float(bank.weights.sum()), 6)
    1.0
    """

    evidence: str = check.choice_field("window", "prequential")
    horizon: int = check.count_field(100, "Give the number of past samples to use.")
    bound: str = check.choice_field("direct sum", "jensen")

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """The terms of the program that was solved.

        curvature: a; linear: b, the losses on the window or of the last predictions. With
        bound="jensen" curvature is 0 and linear is a + b.
        """
        curvature, linear = state["qp_terms"]
        return {"curvature": curvature, "linear": linear}


_METHODS = {"sort": 0, "pivot": 1, "auto": 2}
"""The ways to solve the program, by their numbers in the core."""


def simplex_qp(a: object, b: object, method: str = "auto") -> Floats:
    """Minimise sum_p a_p w_p^2 + b_p w_p subject to w >= 0 and sum_p w_p = 1.

    The solution is right to the last bits over the whole range of floats, also with some a_p = 0.
    Let b0 be the least b_p with a_p = 0. Members with a_p > 0 and b_p < b0 get
    (b0 - b_p) / (2 a_p); if the sum is below 1, the members with a_p = 0 and b_p = b0 share the
    rest equally.

    Parameters
    ----------
    a : (P,) or (B, P), non-negative: the curvatures.
    b : the same shape: the linear part.
    method : "sort" is O(P log P); "pivot" is O(P) on average; "auto" picks the faster one for P.
        All return the same bits.

    Returns
    -------
    The weights, in the shape of a.

    Reference: Ruiz-Moreno and Beferull-Lozano, IEEE Signal Processing Letters 31, 2024
    (arXiv:2308.10101), Algorithm 1; the pivot rule follows Duchi et al. (2008).

    >>> simplex_qp([1.0, 1.0], [0.0, 1.0]).tolist()
    [0.75, 0.25]
    >>> simplex_qp([1.0, 1e-17], [0.0, 0.5]).tolist()
    [0.25, 0.75]
    >>> simplex_qp([0.0, 1.0], [3.0, 2.0]).tolist()
    [0.5, 0.5]
    """
    curvature, linear = _problem(a, b)
    rule = _METHODS[check.choice("method", method, "simplex_qp", _METHODS)]
    weights = _core.simplex_qp(np.atleast_2d(curvature), np.atleast_2d(linear), rule)
    return weights.reshape(curvature.shape)


def kkt_residual(theta: object, a: object, b: object) -> Any:
    """How far `theta` is from the minimiser of `simplex_qp`: 0 is exact, 1e-15 is rounding.

    It is the largest of three numbers without unit:

    - |sum theta - 1|;
    - the most negative weight, -min theta;
    - the duality gap divided by the gradient's mean. With d_p = b_p - min b and the gradient
      g_p = 2 a_p theta_p + d_p, the gap is sum_p theta_p (g_p - min g), which bounds how much the
      objective lies above its minimum; the mean is sum_p |theta_p| g_p. (b is taken relative to its
      least member because adding a constant to b changes nothing. In min g, each theta_p counts one
      unit in the last place larger: a weight below the smallest float cannot be represented.)

    The three vanish together only at the minimiser (the KKT conditions of the paper's supplement).

    Parameters
    ----------
    theta, a, b : (P,), or (B, P) for one residual per row.

    >>> float(kkt_residual([0.75, 0.25], [1.0, 1.0], [0.0, 1.0]))
    0.0
    >>> float(kkt_residual([0.5, 0.5], [1.0, 1.0], [0.0, 1.0])) > 0.1
    True
    """
    curvature, linear = _problem(a, b)
    remedy = "Give one weight for each member of a."
    weights = check.floats("theta", theta, remedy)
    if weights.shape != curvature.shape:
        rule = f"have the shape of a, {curvature.shape}"
        raise check.refuse("theta", rule, weights.shape, remedy)
    if not np.isfinite(weights).all():
        raise check.refuse("theta", "be finite", weights, remedy)
    # Extended precision has a range in which nothing over- or underflows.
    a2, b2 = 2 * curvature.astype(np.longdouble), linear.astype(np.longdouble)
    distance = b2 - b2.min(axis=-1, keepdims=True)
    gradient = a2 * weights + distance
    above = a2 * (weights + np.spacing(np.abs(weights))) + distance
    mean = (np.abs(weights) * gradient).sum(axis=-1)
    gap = (weights * (gradient - above.min(axis=-1, keepdims=True))).sum(axis=-1)
    relative = np.maximum(gap, 0.0) / np.where(mean > 0, mean, 1.0)
    off = np.abs(weights.sum(axis=-1) - 1.0)
    return np.maximum(np.maximum(off, -weights.min(axis=-1)), relative.astype(float))


def _problem(a: object, b: object) -> tuple[Floats, Floats]:
    remedy = "Give two arrays of numbers of the same shape, (P,) or (B, P), with P >= 1."
    curvature = check.floats("a", a, remedy)
    linear = check.floats("b", b, remedy)
    if curvature.ndim not in (1, 2):
        raise check.refuse("a", "have one or two axes", curvature.shape, remedy)
    if curvature.shape != linear.shape:
        raise check.refuse("b", f"have the shape of a, {curvature.shape}", linear.shape, remedy)
    if curvature.shape[-1] == 0:
        raise check.refuse("a", "have at least one member", curvature.shape, remedy)
    for name, array in (("a", curvature), ("b", linear)):
        if not np.isfinite(array).all():
            wrong = float(array[~np.isfinite(array)][0])
            raise check.refuse(name, "be finite", wrong, "Remove kernels that are not finite.")
    if curvature.min() < 0:
        remedy = "A curvature is a squared norm: clamp it."
        raise check.refuse("a", "be non-negative", float(curvature.min()), remedy)
    return curvature, linear


@dataclass(frozen=True)
class OMKR(Combiner):
    """Online multiple kernel regression, the gradient variant on a budget.

    w <- w - rate * gradient in w of [sum over the window of l(w'f(x_i), y_i) + sum_p a_p w_p^2],
    starting from w = 0; the weights are not on the simplex. The rate of round n is
    max(learning_rate * 2^-floor((n - 1) / halve_every), least_rate). A step that raises the cost it
    should lower, because its rate exceeds 2 g'g / g'H g, with g the gradient and
    H = curvature of the loss * F'F + 2 diag(a), F the values of the slots on the window, is warned
    of.

    Parameters
    ----------
    learning_rate, halve_every, least_rate : the schedule; the defaults are the paper's ("halved
        every 50 steps" in the index n of w(n); `kernelbank reproduce` measures other readings).
    gradient : "exact" (2 a_p w_p, the gradient of the stated cost) or "printed" (as in the paper:
        regularization * a_p w_p, although a_p holds regularization / 2).

    Reference: Sahoo, Hoi and Li, Online multiple kernel regression, KDD 2014.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(combiner=kb.combiners.OMKR())
    >>> bank.predict_one(0.0)
    0.0
    """

    learning_rate: float = check.number_field(8e-4, above=0)
    halve_every: int = check.count_field(
        50, "Give the number of samples between two halvings of the rate.", most=2**62
    )
    least_rate: float = check.number_field(1e-5, least=0)
    gradient: str = check.choice_field("exact", "printed")
    on_simplex: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = frozenset(["values"])

    def first_weights(self, slots: int) -> Floats:
        return np.zeros(slots)

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """gradient: of the cost, at the weights before the last step; rate: of that step."""
        return {"gradient": state["gradient"], "rate": np.reshape(state["rate"], 1)}
