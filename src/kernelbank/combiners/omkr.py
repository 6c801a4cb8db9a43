"""OMKR, the method that the paper compares with: gradient descent on the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..utils import validation as check
from ..utils.validation import Floats
from .base import Combiner, State


@dataclass(frozen=True)
class OMKR(Combiner):
    """Online multiple kernel regression, the gradient variant on a budget.

    w <- w - rate * gradient in w of [sum over the window of l(w'f(x_i), y_i) + sum_p a_p w_p^2],
    starting from w = 0; the weights are not on the simplex. The rate of round n is
    max(learning_rate * 2^-floor((n - 1) / halve_every), least_rate).

    The paper prints the regularization part of the gradient as regularization * a_p w_p. Since a_p
    already holds regularization / 2, the gradient of the stated cost is 2 a_p w_p.

    A step raises the cost that it should lower if its rate exceeds 2 g'g / g'H g, with g the
    gradient and H = curvature of the loss * F'F + 2 diag(a) the matrix of the quadratic, F the
    values of the slots on the window. If that happens, the bank warns and says by how much.

    Parameters
    ----------
    learning_rate, halve_every, least_rate : the schedule; the defaults are the paper's ("halved
        every 50 steps" in the index n of w(n); `kernelbank reproduce` measures other readings).
    gradient : "exact" (2 a_p w_p) or "printed" (regularization * a_p w_p).

    Reference: Sahoo, Hoi and Li, Online multiple kernel regression, KDD 2014.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(combiner=kb.combiners.OMKR())
    >>> bank.predict_one(0.0)
    0.0
    """

    core_name: ClassVar[str] = "OMKR"
    learning_rate: float = 8e-4
    halve_every: int = 50
    least_rate: float = 1e-5
    gradient: str = "exact"
    on_simplex: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = frozenset(["values"])

    def __post_init__(self) -> None:
        remedy = "Give a small positive step."
        rate = check.number("learning_rate", self.learning_rate, "OMKR", remedy, above=0)
        remedy = "Give the number of samples between two halvings of the rate."
        period = check.count("halve_every", self.halve_every, "OMKR", remedy, most=2**62)
        remedy = "Give 0 or a small positive step."
        least = check.number("least_rate", self.least_rate, "OMKR", remedy, least=0)
        check.choice("gradient", self.gradient, "OMKR", ("exact", "printed"))
        object.__setattr__(self, "learning_rate", rate)
        object.__setattr__(self, "halve_every", period)
        object.__setattr__(self, "least_rate", least)

    def first_weights(self, slots: int) -> Floats:
        return np.zeros(slots)

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """gradient: of the cost, at the weights before the last step; rate: of that step."""
        return {"gradient": state["gradient"], "rate": np.reshape(state["rate"], 1)}
