"""NORMA: stochastic gradient descent in the RKHS, with a window and a budget.

The compiled step is in `norma_steps.py`: term arrays, rows of kernel values, tails, scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import Any, ClassVar

import numpy as np

from ..kernels.base import Kernel
from ..kernels.program import evaluate
from ..kernels.sample_buffer import SampleBuffer
from ..losses.objective import Objective
from ..native.phases import Phase, Phases
from ..native.simd import WIDTH
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Learner, SlotGroup, check_decay
from .norma_steps import learn_block, predict_points, predict_query
from .step_size import STEP_SIZES, largest_rate, step_size_rule


@dataclass(frozen=True)
class Norma(Learner):
    """NORMA with a sliding window, the learner of the paper.

    With S the window, the last L samples, and all gradients at the present f:

        f <- (1 - learning_rate * regularization) f
             - learning_rate * sum_{i in S} l'(f(x_i), y_i) k(x_i, .)

    and beyond `budget` terms the oldest is dropped. Cost per step and slot: budget kernel values
    and O(budget + L^2) products; memory O(budget * L) numbers (the window's kernel rows).
    The step is a contraction on the window while

        learning_rate (curvature of the loss * largest eigenvalue of the window's Gram matrix
                       + regularization) < 2.

    Parameters
    ----------
    learning_rate : positive number, the step size.
    budget : largest number of terms, at least the window.
    step_size : "constant", "inverse_sqrt" or "adagrad": how the rate of a sample follows from
        learning_rate (see docs/learners.md); g is the gradient of the loss on the window.

    Reference: Kivinen, Smola and Williamson, Online learning with kernels, IEEE Transactions on
    Signal Processing 52 (2004); windowed as in the paper of the scheme.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.Norma(learning_rate=0.05, budget=100))
    >>> bank.learn_one(0.0, 1.0)
    >>> round(bank.predict_one(0.0), 3)
    0.1
    """

    core_name: ClassVar[str] = "Norma"
    learning_rate: float = 0.05
    budget: int = 100
    step_size: str = "constant"
    learns_window: ClassVar[bool] = True
    accepts_new_inputs: ClassVar[bool] = True
    accepts_missing: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check.settings(
            self,
            learning_rate=check.positive(0.05),
            budget=check.whole("Give how many terms to keep, 1 or more."),
            step_size=step_size_rule,
        )

    def check(self, objective: Objective) -> None:
        if self.budget < objective.window:
            rule = f"be >= window ({objective.window})"
            remedy = "Raise budget or shorten window."
            raise check.refuse("budget", rule, self.budget, remedy, "Norma")
        if self.step_size != "adagrad":
            check_decay(self, objective)

    def history_length(self, objective: Objective) -> int:
        return self.budget

    def shapes(
        self, objective: Objective, leaves: int, dimension: int, kernel: Kernel, history_length: int
    ) -> dict[str, tuple[int, ...]]:
        terms = (leaves, self.budget + SLIDE_PERIOD, WIDTH)
        own = {"scales": (leaves, WIDTH)} if self.step_size != "constant" else {}
        if self.step_size == "adagrad":
            own["squares"] = (leaves, WIDTH)
        return {
            **own,
            "coefficients": terms,
            "tails": terms,
            "diagonals": terms,
            "rows": (leaves, objective.window + 1, self.budget + 1, WIDTH),
            "dropped": (leaves, WIDTH),
            "steepness": (leaves, WIDTH),
        }

    def prepare(self, group: SlotGroup) -> None:
        if "scales" in group.state:
            group.state["scales"][...] = 1.0

    def phases(self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        return [self._learn(group, buffer, self._kept(group) if workspace.is_followed else {})]

    def predict_phases(
        self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        return [self._predict(group, buffer, {})]

    def follows(self, objective: Objective, leader: Objective) -> bool:
        """Kernel rows follow from the inputs, whatever the loss."""
        return True

    def follow_phases(
        self, group: SlotGroup, leader: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        return [self._learn(group, buffer, self._kept(leader) | {"followed": 2})]

    def follow_predict_phases(
        self, group: SlotGroup, leader: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        return [self._predict(group, buffer, {"memo_rows": self._memo_rows(leader), "followed": 2})]

    def kept_size(self, objective: Objective, dimension: int, kernel: Kernel) -> int:
        return (self.budget + 1) * WIDTH

    def _kept(self, leader: SlotGroup) -> dict[str, Any]:
        """The kernel rows of a block, which the slots of the first output keep for the others."""
        shape = (leader.leaves, leader.size, self.budget + 1, WIDTH)
        if "kept_rows" not in leader.scratch:
            leader.scratch["kept_rows"] = np.zeros(shape)
        return {"kept_rows": leader.scratch["kept_rows"], "followed": 1}

    def _learn(self, group: SlotGroup, buffer: SampleBuffer, kept: dict[str, Any]) -> Phase:
        objective = group.objective
        unused = {"squares": np.zeros((group.leaves, WIDTH)), "kept_rows": None}
        expansion = self._expansion(group, buffer.statistics)
        return Phase(
            learn_block,
            **(unused | group.common() | expansion | group.state | kept),
            first_sample=group.first_sample,
            learning_rate=self.learning_rate,
            largest_rate=largest_rate(self.step_size, objective.regularization),
            regularization=objective.regularization,
            derivative=objective.loss.derivative_address,
            parameters=objective.loss.parameters,
            targets=buffer.targets,
            repeated=buffer.repeated,
            memo=buffer.memo,
            memo_rows=self._memo_rows(group),
            scratch=np.zeros((3, objective.window, WIDTH)),
            effects=group.effects,
        )

    def _predict(self, group: SlotGroup, buffer: SampleBuffer, kept: dict[str, Any]) -> Phase:
        own = {"memo_rows": self._memo_rows(group), "rows": group.state["rows"]}
        return Phase(
            predict_query,
            **self._expansion(group, buffer.memo_statistics[:, None]) | own | kept,
            window=group.objective.window,
            memo_repeated=buffer.memo_repeated,
            query_values=group.query_values,
        )

    def evaluate(
        self, group: SlotGroup, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray
    ) -> Floats:
        out = np.zeros((group.leaves, len(points), WIDTH))
        phase = Phase(
            predict_points,
            **self._expansion(group, statistics),
            row=np.empty((self.budget, WIDTH)),
            wanted=wanted.astype(np.int64),
            points=len(points),
            out=out,
        )
        Phases([phase]).run(seen, len(points))
        return out

    def step_ratio(self, group: SlotGroup) -> Floats:
        """From the largest g'Kg / g'g seen, a lower bound of the largest eigenvalue of K.

        A rate that decays or adapts gets below the bound by itself.
        """
        curvature = group.objective.loss.curvature
        if curvature is None or self.step_size != "constant":
            return np.zeros((group.leaves, WIDTH))
        eigenvalue = curvature * group.state["steepness"] + group.objective.regularization
        return self.learning_rate * eigenvalue / 2

    def _expansion(self, group: SlotGroup, statistics: Floats) -> dict[str, Any]:
        """The values of EXPANSION; statistics: (sources, steps, history_length + 1)."""
        return {
            "leaves": group.leaves,
            "slide_period": SLIDE_PERIOD,
            "history_length": statistics.shape[2] - 1,
            "budget": self.budget,
            "period": self._period(group.objective),
            "decays": self._decays(group.objective),
            "step_rule": STEP_SIZES.index(self.step_size),
            "scales": group.state.get("scales", np.ones((group.leaves, WIDTH))),
            "program": group.program.code,
            "constants": group.program.constants,
            "statistics": statistics,
            "stack": np.empty((group.program.depth, self.budget + 1, WIDTH)),
            "followed": 0,
            "coefficients": group.state["coefficients"],
        }

    def _decay(self, objective: Objective) -> float:
        """The decay of a constant rate, and the least one of a rate that varies."""
        if self.step_size == "adagrad":
            return 0.5 if objective.regularization > 0 else 1.0
        return 1.0 - self.learning_rate * objective.regularization

    def _period(self, objective: Objective) -> int:
        """Samples between two multiplications by the common decay, which stays >= 1e-6."""
        period = SLIDE_PERIOD
        while period > 1 and self._decay(objective) ** period < 1e-6:
            period //= 2
        return period

    def _decays(self, objective: Objective) -> Floats:
        """decays[n] = decay^n, by repeated products."""
        steps = np.full(self._period(objective) + 1, self._decay(objective))
        steps[0] = 1.0
        return np.cumprod(steps)

    def _memo_rows(self, group: SlotGroup) -> Floats:
        """The kernel rows of the last query, shared by the phases that write and read them."""
        shape = (group.leaves, self.budget + 1, WIDTH)
        return group.scratch.setdefault("memo_rows", np.zeros(shape))

    def check_initial(self, objective: Objective, terms: int) -> None:
        self.check_terms(terms, self.budget - objective.window, "budget - window")

    def start_from(self, group: SlotGroup, points: Floats, coefficients: Floats) -> None:
        """The points are the newest samples before the stream: the state is as if they had passed.

        Positions are those of the term arrays. Point j stands at first + j. Terms from
        budget - window on are still in the window, and have their rows in the ring.
        """
        state, window, budget = group.state, group.objective.window, self.budget
        first = budget - len(points)
        for leaf, kernels in enumerate(group.kernels):
            for lane, kernel in enumerate(kernels):
                gram = evaluate(kernel, points, points)
                state["coefficients"][leaf, first:budget, lane] = coefficients[leaf, :, lane]
                state["diagonals"][leaf, first:budget, lane] = np.diag(gram)
                alpha = state["coefficients"][leaf, first:budget, lane]
                group.start_norm(leaf, lane, alpha, gram)
                passed = max(budget - window - first, 0)  # points that have left the window
                for j in range(passed):  # tail_j = sum of alpha_i k(x_i, x_j), j <= i < passed
                    tail = fsum(alpha[j:passed] * gram[j:passed, j])
                    state["tails"][leaf, first + j, lane] = tail
                for i in range(passed, len(points)):  # the row of sample number i - m, in the ring
                    row = state["rows"][leaf, (i - len(points)) % (window + 1)]
                    row[budget - i : budget + 1, lane] = gram[i, : i + 1]
