"""OMKR, the method that the paper compares with: gradient descent on the weights."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..losses.base import loss_on_window
from ..losses.objective import Objective
from ..native.arguments import Arguments, floats
from ..native.functions import native
from ..native.jit import inline
from ..native.scalar_math import power
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

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        return {"gradient": (slots,), "rate": (1,)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> PhaseList:
        rows = -(-objective.window // WIDTH) * WIDTH
        phase = combiner_phase(
            _omkr,
            workspace,
            weights,
            window=objective.window,
            first_rate=self.learning_rate,
            halve_every=self.halve_every,
            least_rate=self.least_rate,
            loss_curvature=objective.loss.curvature or 0.0,
            ridge=2.0 if self.gradient == "exact" else objective.regularization,
            derivative=objective.loss.derivative_address,
            parameters=objective.loss.parameters,
            **state,
            steepest=workspace.combiner_step,
            scratch=np.ones((4, rows)),
        )
        return [phase]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """gradient: of the cost, at the weights before the last step; rate: of that step."""
        return {"gradient": state["gradient"].copy(), "rate": np.reshape(state["rate"], 1)}


_OMKR = Arguments(
    "omkr",
    slots=int,
    window=int,
    first_rate=float,
    halve_every=int,
    least_rate=float,
    loss_curvature=float,  # 0 if it has no bound
    ridge=float,
    derivative=int,  # address of the loss's derivative
    parameters=floats(None),  # of the loss
    recent=floats(None),  # (window - 1 + n,): recent[t + i] is the target of values[t, i]
    curvature=floats(None, "slots"),
    window_loss=floats(None, "slots"),
    values=floats(None, "window", "slots"),  # f_p on the window after each sample
    weights=floats("slots"),
    gradient=floats("slots"),
    rate=floats(1),
    steepest=floats(2),  # the largest rate g'H g / 2 g'g so far, and the rate in it
    scratch=floats(4, None),  # the window, padded to rows of four
    chosen=floats(None, "slots"),
)


@inline
def _watch_step(a, t, values, seen, rate):
    """Keep the largest rate g'H g / 2 g'g, H = loss_curvature F'F + ridge diag(a)."""
    if a.loss_curvature == 0.0:
        return
    g_g, g_h_g = 0.0, 0.0
    for p in range(a.slots):
        g = a.gradient[p]
        g_g += g * g
        g_h_g += a.ridge * a.curvature[t, p] * g * g
    for i in range(seen):
        product = 0.0  # f(x_i)'g
        for p in range(a.slots):
            product += values[i, p] * a.gradient[p]
        g_h_g += a.loss_curvature * product * product
    ratio = 0.5 * rate * (g_h_g / g_g) if g_g > 0.0 else 0.0
    if a.steepest[0] < ratio < np.inf:
        a.steepest[0] = ratio
        a.steepest[1] = rate


@native(_OMKR)
def _omkr(a, first, count):
    """chosen[t] = the weights after sample t, one gradient step from the weights before it.

    The step after sample number n (from 0) makes the weights of round n + 2 in the paper's count.
    """
    mixed, f, y, slope = a.scratch[0], a.scratch[1], a.scratch[2], a.scratch[3]
    for t in range(count):
        seen = min(first + t + 1, a.window)
        values = a.values[t][a.window - seen :]  # (seen, P)
        targets = a.recent[t + a.window - seen :]
        before = a.chosen[t - 1] if t > 0 else a.weights
        for i in range(seen):  # mixed_i = w'f(x_i)
            total = 0.0
            for p in range(a.slots):
                total += before[p] * values[i, p]
            mixed[i] = total
        # slope_i = l'(w'f(x_i), y_i)
        loss_on_window(a.derivative, a.parameters, mixed, targets, seen, f, y, slope)
        # rate = max(first_rate 2^-halvings, least_rate)
        halvings = (first + t + 1) // a.halve_every
        rate = max(a.first_rate * power(2.0, -halvings), a.least_rate)
        a.rate[0] = rate
        for p in range(a.slots):
            # gradient_p = ridge a_p w_p + sum_i slope_i f_p(x_i)
            gradient = a.ridge * a.curvature[t, p] * before[p]
            for i in range(seen):
                gradient += slope[i] * values[i, p]
            a.gradient[p] = gradient
            # A slot that has failed has weight 0; a weight that overflows starts again from 0.
            moved = before[p] - rate * gradient
            failed = a.window_loss[t, p] == np.inf
            a.chosen[t, p] = 0.0 if failed or not np.isfinite(moved) else moved
        _watch_step(a, t, values, seen, rate)
