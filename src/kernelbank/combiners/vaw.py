"""VAW: the forecaster of Vovk, Azoury and Warmuth on the slots' predictions."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..losses.objective import Objective
from ..native.arguments import Arguments, floats
from ..native.dense import add_outer, dot, quadratic_form, symmetric_matvec
from ..native.functions import native
from ..native.jit import inline
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Combiner, PhaseList, State, combiner_phase


@dataclass(frozen=True)
class VAW(Combiner):
    """Least squares on the slots' predictions z = (f_1(x), ..., f_P(x)), shrunk where uncertain.

    With A = ridge I + sum_i z_i z_i' and b = sum_i y_i z_i over the past, the bank predicts

        z'(A + z z')^-1 b = w'z / (1 + z'A^-1 z),  w = A^-1 b.

    The weights are those of this prediction: w / (1 + z'A^-1 z) in a trace, w in `bank.weights`.
    They may be negative, and are 0 at first. The target is the mean, whatever the loss of the bank.
    With all |y| <= Y and all |z| <= R, for any n and any stream,

        sum_i (prediction_i - y_i)^2 <= min_w (sum_i (w'z_i - y_i)^2 + ridge |w|^2)
                                        + Y^2 P log(1 + n R^2 / (ridge P)).

    With w = e_p: no worse than the best slot, up to ridge + the last term. With slots of
    `FourierVAW` this is VAW^2 (`kb.presets.vaw`), whose regret against the functions of a ball in
    the RKHS of any of the kernels is O(sqrt(n) log n) if the features number sqrt(n). A slot that
    fails is left out from then on.

    The cost that the ledger charges on a window of several samples is that of the function with the
    weights of the newest: with window=1 it is that of the prediction.

    Parameters
    ----------
    ridge : positive number, in squared units of the target.

    Cost per sample: O(P^2). Memory: P^2 numbers.

    Reference: Rokhlin and Gurtovaya, Random feature-based double Vovk-Azoury-Warmuth algorithm for
    online multi-kernel learning, arXiv:2503.20087 (2025); Vovk (2001), Azoury and Warmuth (2001),
    see `kb.learners.FourierVAW`.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 4), combiner=kb.combiners.VAW())
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> bank.evidence()["inverse"].shape
    (4, 4)
    """

    ridge: float = 1.0
    on_simplex: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check.settings(self, ridge=check.positive(1.0))

    def first_weights(self, slots: int) -> Floats:
        return np.zeros(slots)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        return {"inverse": (slots, slots)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> PhaseList:
        slots = len(weights)
        phase = combiner_phase(
            _vaw,
            workspace,
            weights,
            ridge=self.ridge,
            **state,
            z=np.zeros(slots),
            u=np.zeros(slots),
        )
        return [phase]

    def shrinkage(self, state: State) -> Floats | None:
        return state["inverse"]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """inverse: (P, P), A^-1."""
        return {"inverse": state["inverse"].copy()}


_VAW = Arguments(
    "vaw",
    slots=int,
    ridge=float,
    slot_predictions=floats(None, "slots"),
    window_loss=floats(None, "slots"),
    new_targets=floats(None),
    weights=floats("slots"),
    inverse=floats("slots", "slots"),
    z=floats("slots"),
    u=floats("slots"),
    factors=floats(None),
    chosen=floats(None, "slots"),
)


@inline
def shrinkage_factor(matrix, predictions, z, slots):
    """1 / (1 + z'M z), with z = predictions, and 0 for those that are not finite. All are (P,)."""
    for p in range(slots):
        z[p] = predictions[p] if abs(predictions[p]) < np.inf else 0.0
    return 1.0 / (1.0 + max(quadratic_form(matrix, z, slots), 0.0))


@native(_VAW)
def _vaw(a, first, count):
    """factors[t] = 1 / (1 + z'A^-1 z) before sample t; chosen[t] = w after it."""
    inverse, z, u = a.inverse, a.z, a.u  # A^-1 (P, P); (P,)
    if first == 0:
        for p in range(a.slots):
            for q in range(a.slots):
                inverse[p, q] = 1.0 / a.ridge if p == q else 0.0
    for t in range(count):
        chosen = a.chosen[t]
        before = a.chosen[t - 1] if t > 0 else a.weights
        a.factors[t] = shrinkage_factor(inverse, a.slot_predictions[t], z, a.slots)
        for p in range(a.slots):
            chosen[p] = before[p]
            if not a.window_loss[t, p] < np.inf:  # out for good: as if it were 0 from now on
                z[p] = chosen[p] = 0.0
                for q in range(a.slots):
                    inverse[p, q] = inverse[q, p] = 0.0
        # u = A^-1 z, s = 1 + z'u, w += u (y - w'z) / s, A^-1 -= u u' / s.
        symmetric_matvec(inverse, z, a.slots, u)
        s = 1.0 + max(dot(z, u, a.slots), 0.0)
        change = (a.new_targets[t] - dot(chosen, z, a.slots)) / s
        for p in range(a.slots):
            chosen[p] += change * u[p]
        add_outer(inverse, u, a.slots, -1.0 / s)
