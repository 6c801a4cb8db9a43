"""VAW: the forecaster of Vovk, Azoury and Warmuth on the slots' predictions."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..losses.objective import Objective
from ..native.arguments import Arguments, floats
from ..native.dense import add_outer, dot, symmetric_matvec
from ..native.functions import native
from ..native.jit import inline
from ..native.phases import Phase
from ..native.workspace import QueryEvidence, Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Combiner, PhaseList, State, combiner_phase


@dataclass(frozen=True)
class VAW(Combiner):
    """Least squares on the slots' predictions z = (f_1(x), ..., f_P(x)), shrunk where uncertain.

    With A = ridge I + sum_i z_i z_i' and b = sum_i y_i z_i over the past, the bank predicts

        z'(A + z z')^-1 b = z'w / (1 + z'A^-1 z),  w = A^-1 b.

    So the weights, (A + z z')^-1 b, depend on the predictions that they are applied to (the rule
    gates). They may be negative, and are 0 at first. The target is the mean, whatever the loss of
    the bank. With all |y| <= Y and all |z| <= R, for any n and any stream,

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
    >>> sorted(bank.evidence())
    ['coefficients', 'inverse']
    """

    ridge: float = 1.0
    on_simplex: ClassVar[bool] = False
    gates: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check.settings(self, ridge=check.positive(1.0))

    def first_weights(self, slots: int) -> Floats:
        return np.zeros(slots)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        return {"inverse": (slots, slots), "coefficients": (slots,)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> PhaseList:
        slots = len(weights)
        scratch = {"z": np.zeros(slots), "u": np.zeros(slots)}
        return [combiner_phase(_vaw, workspace, weights, ridge=self.ridge, **state, **scratch)]

    def query_phase(self, workspace: Workspace, state: State) -> Phase | None:
        values, out = workspace.slot_values, workspace.query_weights
        return Phase(_vaw_at, **self._query(state, values[None], out[None]))

    def weights_at(self, state: State, query: QueryEvidence) -> Floats:
        out = np.zeros_like(query.slot_predictions)
        _vaw_at(len(out), **self._query(state, query.slot_predictions, out))
        return out

    @staticmethod
    def _query(state: State, predictions: Floats, out: Floats) -> dict[str, Any]:
        slots = out.shape[1]
        scratch = {"z": np.zeros(slots), "u": np.zeros(slots)}
        return {"slots": slots, **state, **scratch, "slot_predictions": predictions, "chosen": out}

    def change_slots(
        self, old: State, new: State, kept: Sequence[int | None], elders: Sequence[int]
    ) -> None:
        """A slot that goes is left out, as one that has failed; a new one starts at its prior."""
        known = np.array([i for i, slot in enumerate(kept) if slot is not None], dtype=np.int64)
        before = np.array([slot for slot in kept if slot is not None], dtype=np.int64)
        new["coefficients"][known] = old["coefficients"][before]
        np.fill_diagonal(new["inverse"], 1.0 / self.ridge)
        new["inverse"][np.ix_(known, known)] = old["inverse"][np.ix_(before, before)]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """coefficients: w = A^-1 b; inverse: (P, P), A^-1."""
        return {name: array.copy() for name, array in state.items()}


_QUERY = Arguments(
    "vaw_query",
    slots=int,
    slot_predictions=floats(None, "slots"),
    coefficients=floats("slots"),  # w = A^-1 b
    inverse=floats("slots", "slots"),  # A^-1
    z=floats("slots"),
    u=floats("slots"),
    chosen=floats(None, "slots"),
)


@inline
def _spread(a):
    """s = 1 + z'u, with u = A^-1 z."""
    symmetric_matvec(a.inverse, a.z, a.slots, a.u)
    return 1.0 + max(dot(a.z, a.u, a.slots), 0.0)


@inline
def _predict(a, t):
    """chosen[t] = (A + z z')^-1 b = w - u (z'w) / s; returns s. z is 0 where it is not finite."""
    for p in range(a.slots):
        value = a.slot_predictions[t, p]
        a.z[p] = value if abs(value) < np.inf else 0.0
    s = _spread(a)
    change = dot(a.coefficients, a.z, a.slots) / s
    for p in range(a.slots):
        finite = abs(a.slot_predictions[t, p]) < np.inf
        a.chosen[t, p] = a.coefficients[p] - change * a.u[p] if finite else 0.0
    return s


@inline
def _remove_failed(a, losses):
    """Leave out slots with infinite losses, as if they were 0 from now on. True if one is new."""
    found = False
    for p in range(a.slots):
        if not losses[p] < np.inf and a.inverse[p, p] > 0.0:
            found = True
            a.z[p] = 0.0
            a.coefficients[p] = 0.0
            for q in range(a.slots):
                a.inverse[p, q] = 0.0
                a.inverse[q, p] = 0.0
    return found


@native(_QUERY)
def _vaw_at(a, first, count):
    """chosen[t] = the weights at point t."""
    for t in range(count):
        _predict(a, t)


@native(
    _QUERY.extended("vaw", ridge=float, window_loss=floats(None, "slots"), new_targets=floats(None))
)
def _vaw(a, first, count):
    """chosen[t] = the weights at sample t, before its target."""
    if first == 0:
        for p in range(a.slots):
            for q in range(a.slots):
                a.inverse[p, q] = 1.0 / a.ridge if p == q else 0.0
    for t in range(count):
        s = _predict(a, t)
        if _remove_failed(a, a.window_loss[t]):
            s = _spread(a)
        # w += u (y - w'z) / s, A^-1 -= u u' / s.
        change = (a.new_targets[t] - dot(a.coefficients, a.z, a.slots)) / s
        for p in range(a.slots):
            a.coefficients[p] += change * a.u[p]
        add_outer(a.inverse, a.u, a.slots, -1.0 / s)
