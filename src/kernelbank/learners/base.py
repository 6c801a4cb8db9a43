"""What a learner is: frozen settings, and two functions on arrays.

A learner never sees the weights and never another group's state. It runs a *group* of slots
(kernels of one shape with equal settings) through a block of samples and leaves behind, for every
slot and sample, its prediction, its values on the window and its norm^2. All else (losses, costs,
evidence, mixtures) is computed from these by code that knows no learner.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..kernels.base import Kernel, Program
from ..kernels.sample_buffer import SampleBlock, SampleBuffer
from ..losses.objective import Objective
from ..native.phases import Phase
from ..native.simd import WIDTH
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats


class SlotGroup:
    """The slots of a shard that run side by side, and everything that changes as they learn.

    Every array has the leaf as its first axis (see `_hot.score` for the meaning of the common
    ones), so a group is cut into shards, and put together again, along that axis. `size` is the
    longest block, `dimension` the width of the inputs.
    """

    def __init__(
        self,
        objective: Objective,
        kernels: list[list[Kernel]],
        program: Program,
        columns: np.ndarray,
        numbers: np.ndarray,
        shapes: dict[str, tuple[int, ...]],
        float32_arrays: frozenset[str],
        size: int,
        dimension: int,
    ) -> None:
        count = len(kernels)
        self.objective = objective
        self.kernels = kernels
        self.program = program
        self.columns = columns
        self.numbers = numbers
        self.workspace_columns = columns
        self.workspace_numbers = numbers
        """Columns of the slots, and rows of the leaves, on a workspace that has not those of all."""
        self.size = size
        self.dimension = dimension
        self.state = {
            name: np.zeros(shape, dtype=objective.dtype if name in float32_arrays else "float64")
            for name, shape in shapes.items()
        }
        self.values = np.zeros((count, size + 1, objective.window, WIDTH))
        self.norms = np.zeros((count, size + 1, WIDTH))
        self.predictions = np.zeros((count, size, WIDTH))
        self.effects = np.zeros((count, size, WIDTH))
        self.losses_before = np.zeros((count, size, WIDTH))
        self.alive = np.ones((count, WIDTH))
        self.query_values = np.zeros((count, WIDTH))
        self.scratch: dict[str, Floats] = {}
        self.parts: dict[str, Any] = {}
        self.base: tuple[Learner, SlotGroup, int, int] | None = None
        """For learners on another slot: its learner and group, leaf and lane there."""

    @property
    def leaves(self) -> int:
        return len(self.kernels)

    def common(self) -> dict[str, Any]:
        """What the tables of most phases need."""
        return {
            "leaves": self.leaves,
            "steps": self.size + 1,
            "window": self.objective.window,
            "values": self.values,
            "norms": self.norms,
            "predictions": self.predictions,
        }


class Learner:
    """A single-kernel online method. Subclasses are frozen dataclasses of their settings."""

    leaf_width: ClassVar[int] = WIDTH
    """Slots of a leaf: four where they run side by side, one where a slot is a matrix itself."""

    float32_arrays: ClassVar[frozenset[str]] = frozenset()
    """The arrays of the state that `dtype="float32"` keeps in single precision."""

    uses_kernel_rows: ClassVar[bool] = True
    """Whether the method works on kernel values between samples (not on features of its own)."""

    saveable: ClassVar[bool] = True
    """Whether the state is arrays, so that a file can keep it."""

    accepts_new_inputs: ClassVar[bool] = False
    """Whether slots can take up columns that are added later (see `widen`)."""

    cost: ClassVar[str] = ""
    """How the time of a step accepts_new_inputs."""

    def told(self, objective: Objective) -> Objective:
        """The rules of the game as the method follows them; by default they are the bank's."""
        return objective

    def check(self, objective: Objective) -> None:
        """Refuse a window, regularisation or loss that the method cannot work with."""

    def check_kernel(self, kernel: Kernel) -> None:
        """Refuse a kernel that the method cannot work with."""
        if not kernel.pairwise:
            owner = type(self).__name__
            remedy = "Use another kernel, or kb.learners.PartitionTree with this one."
            raise check.refuse("kernel", "be a function of two inputs", kernel, remedy, owner)

    def history_length(self, objective: Objective) -> int:
        """How many past inputs the method needs, at least the window."""
        return objective.window

    def shapes(
        self, objective: Objective, leaves: int, dimension: int, kernel: Kernel, history_length: int
    ) -> dict[str, tuple[int, ...]]:
        """The arrays of the state for so many leaves, the leaf first; they start at zero.

        `kernel` is one of the group's: they have one shape. `history_length`: how many past inputs the bank
        keeps.
        """
        raise NotImplementedError

    def scratch_size(self, objective: Objective, dimension: int, kernel: Kernel) -> int:
        """About how many numbers a group works with beside its state and the block's arrays."""
        return 0

    def prepare(self, group: SlotGroup) -> None:
        """Set what must not start at zero; may depend on the slots' kernels and places only."""

    def phases(self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        """The work on a block; by default `learn`, called back in Python."""

        def learn(first: int, count: int) -> None:
            points, targets = workspace.points[:count], workspace.new_targets[:count]
            self.learn(group, SampleBlock(first, points, targets), buffer)

        return [Phase.from_python(learn)]

    def predict_phases(
        self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        """The work on one point to predict: group.query_values at workspace.query_point.

        By default `evaluate`, called back in Python.
        """
        everyone = np.ones(group.leaves, dtype=np.bool_)

        def glance(seen: int, _: int) -> None:
            statistics = np.repeat(buffer.memo_statistics[:, None, :], 2, axis=1)
            point = workspace.query_point[None, :].copy()
            group.query_values[...] = self.evaluate(group, seen, point, statistics, everyone)[:, 0]

        return [Phase.from_python(glance)]

    def learn(self, group: SlotGroup, block: SampleBlock, buffer: SampleBuffer) -> None:
        """Take the group through the block: fill values, norms, predictions and effects."""
        raise NotImplementedError

    def evaluate(
        self, group: SlotGroup, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray
    ) -> Floats:
        """(leaves, n, 4): values at the points, for the wanted leaves; changes nothing.

        statistics[s, t + 1] compares point t with the last `history_length` inputs, oldest first, and
        with itself.
        """
        raise NotImplementedError

    def widen(self, old: Mapping[str, Floats], new: dict[str, Floats]) -> None:
        """Write a group's arrays to those of one on inputs with more columns, 0 until now.

        `new` holds the arrays of a start. By default they must be of the same shapes: the slots
        see no new column, or keep nothing of the inputs.
        """
        for name, array in old.items():
            if new[name].shape != array.shape:
                rule = f"be one that can take up new columns (its {name} depend on their number)"
                remedy = "Give all columns from the start, with NaN or 0 where one is not known."
                raise check.refuse("learner", rule, self, remedy)
            new[name][...] = array

    def remember(self, group: SlotGroup) -> list[Any]:
        """For every leaf a copy of what is not in the arrays, in case a block has to be undone."""
        return [None] * group.leaves

    def recall(self, group: SlotGroup, kept: list[Any]) -> None:
        """Go back to what `remember` returned."""

    def variance(self, group: SlotGroup, points: Floats) -> Floats:
        """(leaves, n, 4): predictive variance of f at the points; NaN where there is none."""
        return np.full((group.leaves, len(points), WIDTH), np.nan)

    def dropped(self, group: SlotGroup) -> Floats:
        """(leaves, 4): norm^2 of all terms that the method has thrown away so far."""
        return np.zeros((group.leaves, WIDTH))

    def step_ratio(self, group: SlotGroup) -> Floats:
        """(leaves, 4): learning rate over the largest stable one on the windows seen so far."""
        return np.zeros((group.leaves, WIDTH))
