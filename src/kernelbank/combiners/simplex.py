"""Simplex, the rule of the paper: the convex combination with the least separable bound."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..losses.objective import Objective
from ..native.formulas import pointer
from ..native.phases import ParallelPhases, argument_fields, float_array, int_array, read_int
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Combiner, PhaseList, State, combiner_phase
from .simplex_qp import AUTO, SCRATCH, solve


@dataclass(frozen=True)
class Simplex(Combiner):
    """Weights that minimise sum_p a_p w_p^2 + b_p w_p over the simplex (see `kb.simplex_qp`).

    a_p = regularization / 2 * norm^2 of slot p. b_p depends on the evidence:

    - "window", as in the paper: the loss of the slot on the window that it has just learned from;
    - "prequential": the sum of the losses of its last `horizon` predictions, each made before the
      slot learned the sample. Not in the paper; often better on real data, as it is out of sample.

    Parameters
    ----------
    evidence : "window" or "prequential".
    horizon : number of samples in prequential evidence.

    Reference: Ruiz-Moreno and Beferull-Lozano, An online multiple kernel parallelizable learning
    scheme, equations (4) and (5).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(combiner=kb.combiners.Simplex(evidence="prequential", horizon=50))
    >>> bank.learn_one(0.0, 1.0)
    >>> round(float(bank.weights.sum()), 6)
    1.0
    """

    evidence: str = "window"
    horizon: int = 100

    def __post_init__(self) -> None:
        check.choice("evidence", self.evidence, "Simplex", ("window", "prequential"))
        remedy = "Give the number of past samples to use."
        horizon = check.count("horizon", self.horizon, "Simplex", remedy)
        object.__setattr__(self, "horizon", horizon)

    @property
    def supports_distributed_qp(self) -> bool:
        return self.evidence == "window"

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        if self.evidence == "window":
            return {"qp_terms": (2, slots)}
        return {
            "qp_terms": (2, slots),
            "segment": (self.horizon, slots),
            "suffixes": (self.horizon, slots),
            "prefix": (slots,),
        }

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> PhaseList:
        slots = len(weights)
        phases: PhaseList = []
        linear = workspace.window_loss
        if self.evidence == "prequential":
            linear = np.zeros_like(workspace.slot_loss)
            sums = combiner_phase(
                _sliding_sums,
                _SLIDING_SUMS,
                workspace,
                weights,
                horizon=self.horizon,
                segment=state["segment"],
                suffixes=state["suffixes"],
                prefix=state["prefix"],
                out=linear,
            )
            phases.append(sums)
        solvers = [
            combiner_phase(
                _solve,
                _SOLVE,
                workspace,
                weights,
                worker=worker,
                workers=workspace.workers,
                linear=linear,
                scratch=np.zeros((4, slots + SCRATCH)),
                indices=np.zeros((2, slots + SCRATCH), dtype=np.int64),
            )
            for worker in range(workspace.workers)
        ]
        copy = combiner_phase(
            _copy_terms, _COPY, workspace, weights, linear=linear, qp_terms=state["qp_terms"]
        )
        return [*phases, copy, ParallelPhases(solvers)]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """curvature: a; linear: b, the losses on the window or of the last predictions."""
        curvature, linear = state["qp_terms"]
        return {"curvature": curvature.copy(), "linear": linear.copy()}


_SOLVE = argument_fields(
    "worker", "workers", "slots", "curvature", "linear", "chosen", "scratch", "indices"
)


def _solve(args, first, count):
    """chosen[t] = the minimiser with a = curvature[t] and b = linear[t]; all are (n, P).

    The programs of different samples are independent: a worker solves every `workers`-th.
    """
    slots = read_int(args, _SOLVE.slots)
    for t in range(read_int(args, _SOLVE.worker), count, read_int(args, _SOLVE.workers)):
        chosen = pointer(float_array(args, _SOLVE.chosen), t * slots)
        for p in range(slots):
            chosen[p] = 0.0
        solve(
            pointer(float_array(args, _SOLVE.curvature), t * slots),
            pointer(float_array(args, _SOLVE.linear), t * slots),
            slots,
            AUTO,
            chosen,
            float_array(args, _SOLVE.scratch),
            int_array(args, _SOLVE.indices),
        )


_COPY = argument_fields("slots", "curvature", "linear", "qp_terms")


def _copy_terms(args, first, count):
    """qp_terms = (a, b) after the block's last sample. curvature, linear: (n, P)."""
    slots = read_int(args, _COPY.slots)
    qp_terms = float_array(args, _COPY.qp_terms)
    for p in range(slots):
        last = (count - 1) * slots + p
        qp_terms[p] = float_array(args, _COPY.curvature)[last]
        qp_terms[slots + p] = float_array(args, _COPY.linear)[last]


_SLIDING_SUMS = argument_fields(
    "slots", "horizon", "slot_loss", "segment", "suffixes", "prefix", "out"
)


def _sliding_sums(args, first, count):
    """out[t, p] = the sum of the last `horizon` losses of slot p, without subtraction.

    slot_loss, out: (n, P); segment, suffixes: (horizon, P); prefix: (P,). Time is divided into
    segments of `horizon` samples by the absolute sample number. The sum has two parts: the end of
    the last segment (`suffixes`, summed from its back when it was full) and the present segment so
    far (`prefix`). So a huge loss that has left the horizon leaves no rounding behind.
    """
    slots = read_int(args, _SLIDING_SUMS.slots)
    horizon = read_int(args, _SLIDING_SUMS.horizon)
    segment = float_array(args, _SLIDING_SUMS.segment)
    suffixes = float_array(args, _SLIDING_SUMS.suffixes)
    prefix = float_array(args, _SLIDING_SUMS.prefix)
    for t in range(count):
        row = (first + t) % horizon
        for p in range(slots):
            loss = float_array(args, _SLIDING_SUMS.slot_loss)[t * slots + p]
            if row == 0:
                prefix[p] = 0.0
            segment[row * slots + p] = loss
            prefix[p] += loss
            rest = suffixes[(row + 1) * slots + p] if row + 1 < horizon else 0.0
            float_array(args, _SLIDING_SUMS.out)[t * slots + p] = rest + prefix[p]
            if row == horizon - 1:  # the segment is full
                total = 0.0
                for i in range(horizon - 1, -1, -1):
                    total = segment[i * slots + p] + total
                    suffixes[i * slots + p] = total
