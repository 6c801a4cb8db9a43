"""The paper's rule: the convex combination of least separable bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..losses.objective import Objective
from ..native.phases import ParallelPhases
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from . import simplex_steps as hot
from .base import Combiner, State, Steps, combiner_phase
from .qp import SCRATCH


@dataclass(frozen=True)
class Simplex(Combiner):
    """Weights that minimise sum_p a_p w_p^2 + b_p w_p over the simplex (see `kb.simplex_qp`).

    a_p = regularization / 2 * norm^2 of slot p. b_p depends on the evidence:

    - "window", the paper's: the loss of the slot on the window that it has just learned from;
    - "prequential": the sum of its losses on the last `horizon` samples, each before the slot
      learned it. Not in the paper, and often better on real data, because it is out of sample.

    Parameters
    ----------
    evidence : "window" or "prequential".
    horizon : how many samples prequential evidence looks back.

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
        remedy = "Give how many samples to look back."
        horizon = check.count("horizon", self.horizon, "Simplex", remedy)
        object.__setattr__(self, "horizon", horizon)

    @property
    def supports_distributed_qp(self) -> bool:
        return self.evidence == "window"

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        if self.evidence == "window":
            return {"figures": (2, slots)}
        table = (self.horizon, slots)
        return {
            "figures": (2, slots),
            "segment": table,
            "suffixes": table,
            "prefix": (slots,),
        }

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> Steps:
        slots = len(weights)
        phases: Steps = []
        linear = workspace.window_loss
        if self.evidence == "prequential":
            linear = np.zeros_like(workspace.slot_loss)
            sums = combiner_phase(
                hot.sliding_sums,
                hot.SLIDE,
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
                hot.simplex,
                hot.SIMPLEX,
                workspace,
                weights,
                worker=worker,
                workers=workspace.workers,
                linear=linear,
                scratch=np.zeros((4, slots + SCRATCH)),
                places=np.zeros((2, slots + SCRATCH), dtype=np.int64),
            )
            for worker in range(workspace.workers)
        ]
        figures = state["figures"]
        note = combiner_phase(
            hot.note, hot.NOTE, workspace, weights, linear=linear, figures=figures
        )
        return [*phases, note, ParallelPhases(solvers)]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """curvature: a; linear: b, the losses on the window or one step ahead."""
        curvature, linear = state["figures"]
        return {"curvature": curvature.copy(), "linear": linear.copy()}
