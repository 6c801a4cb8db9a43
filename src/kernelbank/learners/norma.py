"""NORMA: stochastic gradient descent in the RKHS, with a window and a budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..kernels.base import Kernel
from ..kernels.sample_buffer import SampleBuffer
from ..losses.objective import Objective
from ..native.phases import Phase, Phases, compiled
from ..native.simd import WIDTH
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from . import norma_predict as look
from . import norma_steps as hot
from .base import Learner, SlotGroup


@dataclass(frozen=True)
class Norma(Learner):
    """NORMA with a sliding window, the learner of the paper.

    With S the window of the last L samples, all gradients taken at the present f:

        f <- (1 - learning_rate * regularization) f
             - learning_rate * sum_{i in S} l'(f(x_i), y_i) k(x_i, .)

    and beyond `budget` terms the oldest is dropped. Cost per step and slot: budget kernel values
    and O(budget + L^2) products; memory O(budget * L) numbers (kernel rows of the window are kept).
    The step is a contraction on the window while

        learning_rate (curvature of the loss * largest eigenvalue of the window's Gram matrix
                       + regularization) < 2.

    Parameters
    ----------
    learning_rate : positive number, the step size.
    budget : most terms of the expansion, at least the window.

    Reference: Kivinen, Smola and Williamson, Online learning with kernels, IEEE Transactions on
    Signal Processing 52 (2004); windowed as in the paper of the scheme.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.Norma(learning_rate=0.05, budget=100))
    >>> bank.learn_one(0.0, 1.0)
    >>> round(bank.predict_one(0.0), 3)
    0.1
    """

    learning_rate: float = 0.05
    budget: int = 100
    accepts_new_inputs: ClassVar[bool] = True
    float32_arrays: ClassVar[frozenset[str]] = frozenset(
        ["coefficients", "tails", "diagonals", "rows"]
    )

    def __post_init__(self) -> None:
        remedy = "Give a small positive step, such as 0.05."
        rate = check.number("learning_rate", self.learning_rate, "Norma", remedy, above=0)
        budget = check.count("budget", self.budget, "Norma", "Give how many terms to keep.")
        object.__setattr__(self, "learning_rate", rate)
        object.__setattr__(self, "budget", budget)

    def check(self, objective: Objective) -> None:
        if self.budget < objective.window:
            raise check.refuse(
                "budget",
                f"be >= window ({objective.window})",
                self.budget,
                "Raise budget or shorten window.",
                "Norma",
            )
        if self.learning_rate * objective.regularization >= 1:
            raise check.refuse(
                "learning_rate",
                f"be < 1 / regularization ({1 / objective.regularization:g})",
                self.learning_rate,
                "Lower learning_rate or regularization: their product must stay below 1.",
                "Norma",
            )

    def history_length(self, objective: Objective) -> int:
        return self.budget

    def shapes(
        self, objective: Objective, leaves: int, dimension: int, kernel: Kernel, history_length: int
    ) -> dict[str, tuple[int, ...]]:
        table = (leaves, self.budget + SLIDE_PERIOD, WIDTH)
        return {
            "coefficients": table,
            "tails": table,
            "diagonals": table,
            "rows": (leaves, objective.window + 1, self.budget + 1, WIDTH),
            "dropped": (leaves, WIDTH),
            "steepness": (leaves, WIDTH),
        }

    def phases(self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        objective = group.objective
        learn = Phase(
            compiled(hot.LEARNING[objective.dtype]),
            hot.LEARN,
            **(group.common() | self._expansion(group, buffer.statistics) | group.state),
            learning_rate=self.learning_rate,
            derivative=objective.loss.derivative_address,
            parameters=objective.loss.parameters,
            targets=buffer.targets,
            repeated=buffer.repeated,
            memo=buffer.memo,
            memo_rows=self._memo_rows(group),
            scratch=np.zeros((3, objective.window, WIDTH)),
            effects=group.effects,
        )
        return [learn]

    def predict_phases(
        self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        glance = Phase(
            compiled(look.GLANCING[group.objective.dtype]),
            look.GLANCE,
            **self._expansion(group, buffer.memo_statistics[:, None]),
            window=group.objective.window,
            memo_repeated=buffer.memo_repeated,
            memo_rows=self._memo_rows(group),
            rows=group.state["rows"],
            query_values=group.query_values,
        )
        return [glance]

    def evaluate(
        self, group: SlotGroup, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray
    ) -> Floats:
        out = np.zeros((group.leaves, len(points), WIDTH))
        phase = Phase(
            compiled(look.EVALUATING[group.objective.dtype]),
            look.EVALUATE,
            **self._expansion(group, statistics),
            row=np.empty((self.budget, WIDTH), dtype=group.objective.dtype),
            wanted=wanted.astype(np.int64),
            points=len(points),
            out=out,
        )
        Phases([phase]).run(seen, len(points))
        return out

    def step_ratio(self, group: SlotGroup) -> Floats:
        """From the steepest gradient seen: g'Kg / g'g never exceeds the largest eigenvalue of K."""
        curvature = group.objective.loss.curvature
        if curvature is None:
            return np.zeros((group.leaves, WIDTH))
        slope = curvature * group.state["steepness"] + group.objective.regularization
        return self.learning_rate * slope / 2

    def _expansion(self, group: SlotGroup, statistics: Floats) -> dict[str, Any]:
        """What every table begins with; statistics: (sources, steps, history_length + 1)."""
        return {
            "leaves": group.leaves,
            "slide_period": SLIDE_PERIOD,
            "history_length": statistics.shape[2] - 1,
            "budget": self.budget,
            "period": self._period(group.objective),
            "decays": self._decays(group.objective),
            "instructions": len(group.program.code),
            "program": group.program.code,
            "constants": group.program.constants,
            "statistics": statistics,
            "statistics_steps": statistics.shape[1],
            "stack": np.empty((group.program.depth + 1, self.budget + 1, WIDTH)),  # rows of parts
            "coefficients": group.state["coefficients"],
        }

    def _decay(self, objective: Objective) -> float:
        return 1.0 - self.learning_rate * objective.regularization

    def _period(self, objective: Objective) -> int:
        """How long the common decay is kept aside: never so long that it gets tiny."""
        period = SLIDE_PERIOD
        while period > 1 and self._decay(objective) ** period < 1e-6:
            period //= 2
        return period

    def _decays(self, objective: Objective) -> Floats:
        """decays[n]: what n steps leave of a coefficient."""
        steps = np.full(self._period(objective) + 1, self._decay(objective))
        steps[0] = 1.0
        return np.cumprod(steps)

    def _memo_rows(self, group: SlotGroup) -> Floats:
        """The kernel rows of the last look, shared by the phases that write and read them."""
        shape = (group.leaves, self.budget + 1, WIDTH)
        return group.scratch.setdefault("memo_rows", np.zeros(shape, dtype=group.objective.dtype))
