"""OMKR, the method that the paper compares with: gradient descent on the weights."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..losses.base import loss_on_window
from ..losses.objective import Objective
from ..native.formulas import pointer
from ..native.phases import argument_fields, float_array, read_float, read_int
from ..native.simd import WIDTH
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Combiner, PhaseList, State, combiner_phase


@dataclass(frozen=True)
class OMKR(Combiner):
    """Online multiple kernel regression, the gradient variant on a budget.

    w <- w - rate * gradient in w of [sum over the window of l(w'f(x_i), y_i) + sum_p a_p w_p^2],
    starting from w = 0; the weights are not on the simplex. The rate of round n is
    max(learning_rate * 2^-floor((n - 1) / halve_every), least_rate).

    The paper prints the regularization part of the gradient as regularization * a_p w_p. Since a_p
    already holds regularization / 2, the gradient of the stated cost is 2 a_p w_p.

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

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        return {"gradient": (slots,), "rate": (1,)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> PhaseList:
        rows = -(-objective.window // WIDTH) * WIDTH
        phase = combiner_phase(
            _omkr,
            _OMKR,
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
        return [phase]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """gradient: of the cost, at the weights before the last step; rate: of that step."""
        return {name: state[name].copy() for name in ("gradient", "rate")}


_OMKR = argument_fields(
    "slots", "window", "first_rate", "halve_every", "least_rate", "ridge", "derivative",
    "parameters", "recent", "curvature", "window_loss", "values", "weights", "gradient", "rate",
    "scratch", "chosen",
)  # fmt: skip


def _omkr(args, first, count):
    """chosen[t] = the weights after sample t, one gradient step from the weights before it.

    values: (n, window, P), f_p on the window after each sample; recent: (window - 1 + n,), the
    targets, so that recent[t + i] belongs to values[t, i]; curvature, window_loss, chosen: (n, P).
    The step after sample number n (from 0) makes the weights of round n + 2 in the paper's count.
    """
    slots = read_int(args, _OMKR.slots)
    window = read_int(args, _OMKR.window)
    values = float_array(args, _OMKR.values)
    chosen = float_array(args, _OMKR.chosen)
    rows = (window + WIDTH - 1) // WIDTH * WIDTH
    mixed = float_array(args, _OMKR.scratch)  # scratch: (4, rows)
    f = pointer(mixed, rows)
    y = pointer(f, rows)
    slope = pointer(y, rows)
    for t in range(count):
        seen = min(first + t + 1, window)
        unseen = window - seen
        before = float_array(args, _OMKR.weights)
        if t > 0:
            before = pointer(chosen, (t - 1) * slots)
        for i in range(seen):  # mixed_i = w'f(x_i)
            total = 0.0
            for p in range(slots):
                total += before[p] * values[(t * window + unseen + i) * slots + p]
            mixed[i] = total
        loss_on_window(  # slope_i = l'(w'f(x_i), y_i)
            read_int(args, _OMKR.derivative),
            float_array(args, _OMKR.parameters),
            mixed,
            pointer(float_array(args, _OMKR.recent), t + unseen),
            seen,
            f,
            y,
            slope,
        )
        halvings = (first + t + 1) // read_int(args, _OMKR.halve_every)
        rate = read_float(args, _OMKR.first_rate) * 2.0**-halvings
        rate = max(rate, read_float(args, _OMKR.least_rate))
        float_array(args, _OMKR.rate)[0] = rate
        ridge = read_float(args, _OMKR.ridge)
        for p in range(slots):
            # gradient_p = ridge a_p w_p + sum_i slope_i f_p(x_i)
            gradient = ridge * float_array(args, _OMKR.curvature)[t * slots + p] * before[p]
            for i in range(seen):
                gradient += slope[i] * values[(t * window + unseen + i) * slots + p]
            float_array(args, _OMKR.gradient)[p] = gradient
            moved = before[p] - rate * gradient
            # A slot that has failed has weight 0; a weight that overflows starts again from 0.
            failed = float_array(args, _OMKR.window_loss)[t * slots + p] == np.inf
            chosen[t * slots + p] = 0.0 if failed or not np.isfinite(moved) else moved
