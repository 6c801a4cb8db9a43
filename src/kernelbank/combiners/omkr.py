"""OMKR, the paper's comparator: gradient descent on the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..losses.objective import Objective
from ..native.simd import WIDTH
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from . import simplex_steps as hot
from .base import Combiner, State, Steps, combiner_phase


@dataclass(frozen=True)
class OMKR(Combiner):
    """Online multiple kernel regression, the gradient variant on a budget.

    w <- w - rate * gradient in w of [sum over the window of l(w'f(x_i), y_i) + sum_p a_p w_p^2],
    starting from w = 0; the weights are not on the simplex. The rate of round n is
    max(learning_rate * 2^-floor((n - 1) / halve_every), least_rate).

    The paper prints the ridge part of the gradient as regularization * a_p w_p. Since a_p already
    holds regularization / 2, the gradient of the stated cost is 2 a_p w_p.

    Parameters
    ----------
    learning_rate, halve_every, least_rate : the schedule; the defaults are the paper's.
    gradient : "exact" (2 a_p w_p) or "printed" (regularization * a_p w_p).

    Reference: Sahoo, Hoi and Li, Online multiple kernel regression, KDD 2014.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(combiner=kb.combiners.OMKR())
    >>> bank.predict_one(0.0)
    0.0
    """

    learning_rate: float = 8e-4
    halve_every: int = 50
    least_rate: float = 1e-5
    gradient: str = "exact"
    on_simplex: ClassVar[bool] = False
    needs_values: ClassVar[bool] = True

    def __post_init__(self) -> None:
        remedy = "Give a small positive step."
        rate = check.number("learning_rate", self.learning_rate, "OMKR", remedy, above=0)
        remedy = "Give how many samples a rate lasts."
        period = check.count("halve_every", self.halve_every, "OMKR", remedy, most=2**62)
        remedy = "Give 0 or a small positive step."
        least = check.number("least_rate", self.least_rate, "OMKR", remedy, least=0)
        check.choice("gradient", self.gradient, "OMKR", ("exact", "printed"))
        object.__setattr__(self, "learning_rate", rate)
        object.__setattr__(self, "halve_every", period)
        object.__setattr__(self, "least_rate", least)

    def first_weights(self, slots: int) -> Floats:
        return np.zeros(slots)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        return {"gradient": (slots,), "rate": (1,)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> Steps:
        rows = -(-objective.window // WIDTH) * WIDTH
        descend = combiner_phase(
            hot.descend,
            hot.DESCEND,
            workspace,
            weights,
            window=objective.window,
            first_rate=self.learning_rate,
            halve_every=self.halve_every,
            least_rate=self.least_rate,
            ridge=2.0 if self.gradient == "exact" else objective.regularization,
            derivative=objective.loss.derivative_address,
            parameters=objective.loss.parameters,
            **state,
            scratch=np.ones((4, rows)),
        )
        return [descend]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """gradient: of the cost, at the weights before the last step; rate: that of the step."""
        return {name: state[name].copy() for name in ("gradient", "rate")}
