"""Simplex, the rule of the paper: the convex combination with the least separable bound."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..losses.objective import Objective
from ..native.arguments import Arguments, floats, ints
from ..native.functions import native
from ..native.phases import ParallelPhases
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Combiner, PhaseList, State, combiner_phase
from .simplex_qp import AUTO, solve, solve_scratch


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

    Reference: Ruiz-Moreno and Beferull-Lozano, An online multiple kernel parallelizable learning
    scheme, IEEE Signal Processing Letters 31, 2024 (arXiv:2308.10101), equations (3) to (5). The
    looser bound: Shen, Chen and Giannakis, Random feature-based online multi-kernel learning in
    environments with unknown dynamics, JMLR 2019.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(combiner=kb.combiners.Simplex(evidence="prequential", horizon=50))
    >>> bank.learn_one(0.0, 1.0)
    >>> round(float(bank.weights.sum()), 6)
    1.0
    """

    core_name: ClassVar[str] = "Simplex"
    evidence: str = "window"
    horizon: int = 100
    bound: str = "direct sum"

    def __post_init__(self) -> None:
        check.choice("evidence", self.evidence, "Simplex", ("window", "prequential"))
        check.choice("bound", self.bound, "Simplex", ("direct sum", "jensen"))
        remedy = "Give the number of past samples to use."
        horizon = check.count("horizon", self.horizon, "Simplex", remedy)
        object.__setattr__(self, "horizon", horizon)

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
        phases: PhaseList = []
        curvature, linear = workspace.curvature, workspace.window_loss
        if self.evidence == "prequential":
            linear = np.zeros_like(workspace.slot_loss)
            sums = combiner_phase(
                _sliding_sums,
                workspace,
                weights,
                horizon=self.horizon,
                segment=state["segment"],
                suffixes=state["suffixes"],
                prefix=state["prefix"],
                out=linear,
            )
            phases.append(sums)
        if self.bound == "jensen":
            both = np.zeros_like(linear)
            phases.append(
                combiner_phase(_add_curvature, workspace, weights, linear=linear, out=both)
            )
            curvature, linear = np.zeros_like(both), both
        solvers = [
            combiner_phase(
                _solve,
                workspace,
                weights,
                worker=worker,
                workers=workspace.workers,
                curvature=curvature,
                linear=linear,
                **solve_scratch(len(weights)),
            )
            for worker in range(workspace.workers)
        ]
        copy = combiner_phase(
            _copy_terms,
            workspace,
            weights,
            curvature=curvature,
            linear=linear,
            qp_terms=state["qp_terms"],
        )
        return [*phases, copy, ParallelPhases(solvers)]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """The terms of the program that was solved.

        curvature: a; linear: b, the losses on the window or of the last predictions. With
        bound="jensen" curvature is 0 and linear is a + b.
        """
        curvature, linear = state["qp_terms"]
        return {"curvature": curvature.copy(), "linear": linear.copy()}


_SOLVE = Arguments(
    "simplex_solve",
    worker=int,
    workers=int,
    slots=int,
    curvature=floats(None, "slots"),
    linear=floats(None, "slots"),
    chosen=floats(None, "slots"),
    scratch=floats(4, None),
    indices=ints(2, None),
)


@native(_SOLVE)
def _solve(a, first, count):
    """chosen[t] = the minimiser of sum_p curvature[t, p] w_p^2 + linear[t, p] w_p.

    The programs of different samples are independent: a worker solves every `workers`-th.
    """
    for t in range(a.worker, count, a.workers):
        for p in range(a.slots):
            a.chosen[t, p] = 0.0
        solve(a.curvature[t], a.linear[t], AUTO, a.chosen[t], a.scratch, a.indices)


_COPY = Arguments(
    "simplex_copy",
    slots=int,
    curvature=floats(None, "slots"),
    linear=floats(None, "slots"),
    qp_terms=floats(2, "slots"),
)


@native(_COPY)
def _copy_terms(a, first, count):
    """qp_terms = (curvature, linear) after the block's last sample."""
    for p in range(a.slots):
        a.qp_terms[0, p] = a.curvature[count - 1, p]
        a.qp_terms[1, p] = a.linear[count - 1, p]


_ADD_CURVATURE = Arguments(
    "simplex_add_curvature",
    slots=int,
    curvature=floats(None, "slots"),
    linear=floats(None, "slots"),
    out=floats(None, "slots"),
)


@native(_ADD_CURVATURE)
def _add_curvature(a, first, count):
    """out[t, p] = curvature[t, p] + linear[t, p], so that Jensen's bound is w'out[t]."""
    for t in range(count):
        for p in range(a.slots):
            a.out[t, p] = a.curvature[t, p] + a.linear[t, p]


_SLIDING_SUMS = Arguments(
    "simplex_sliding_sums",
    slots=int,
    horizon=int,
    slot_loss=floats(None, "slots"),
    segment=floats("horizon", "slots"),
    suffixes=floats("horizon", "slots"),
    prefix=floats("slots"),
    out=floats(None, "slots"),
)


@native(_SLIDING_SUMS)
def _sliding_sums(a, first, count):
    """out[t, p] = the sum of the last `horizon` losses of slot p, without subtraction.

    Time is divided into segments of `horizon` samples by the absolute sample number. The sum has
    two parts: the end of the last segment (`suffixes`, summed from its back when it was full) and
    the present segment so far (`prefix`). So a huge loss that has left the horizon leaves no
    rounding behind.
    """
    horizon, segment, suffixes, prefix = a.horizon, a.segment, a.suffixes, a.prefix
    for t in range(count):
        row = (first + t) % horizon
        for p in range(a.slots):
            loss = a.slot_loss[t, p]
            if row == 0:
                prefix[p] = 0.0
            segment[row, p] = loss
            prefix[p] += loss
            rest = suffixes[row + 1, p] if row + 1 < horizon else 0.0
            a.out[t, p] = rest + prefix[p]
            if row == horizon - 1:  # the segment is full
                total = 0.0
                for i in range(horizon - 1, -1, -1):
                    total = segment[i, p] + total
                    suffixes[i, p] = total
