"""What a learner is: frozen settings, and two functions on arrays.

A learner never reads the weights, and never the state of another group. It runs a *group* of slots
(kernels of one structure with equal settings) through a block of samples. For every slot and sample
it writes the prediction, the values on the window and the norm^2. All else (losses, costs,
evidence, mixtures) is computed from these by code that knows no learner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import fsum
from typing import Any, ClassVar

import numpy as np

from ..kernels.base import CoreSpec, Kernel
from ..kernels.program import PackedProgram
from ..kernels.sample_buffer import SampleBlock, SampleBuffer
from ..losses.objective import Objective
from ..native.aligned import aligned_zeros
from ..native.phases import Phase
from ..native.simd import WIDTH
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats


class LeafArrays:
    """The arrays that leaves have whatever their learner: of a whole shard, or of one group.

    Every array has the leaf as its first axis. With n = `size`, the longest block, and L the
    window:

    - values (leaves, n + 1, L, 4): f on the window, oldest sample first; row t + 1 after sample t
    - norms (leaves, n + 1, 4): norm^2 of f, likewise
    - predictions (leaves, n, 4): f(x) before each sample is learned
    - effects (leaves, n, 4): how far dropped terms moved the values, relative to their size
    - losses_before (leaves, n, 4): losses of the predictions
    - alive (leaves, 4): 1 until a slot becomes non-finite
    - query_values (leaves, 4): f at the workspace's query_point
    """

    ARRAYS: ClassVar = (
        "values",
        "norms",
        "predictions",
        "effects",
        "losses_before",
        "alive",
        "query_values",
    )

    def __init__(self, leaves: int, size: int, window: int) -> None:
        self.size = size
        self.values = aligned_zeros((leaves, size + 1, window, WIDTH))
        self.norms = aligned_zeros((leaves, size + 1, WIDTH))
        self.predictions = aligned_zeros((leaves, size, WIDTH))
        self.effects = aligned_zeros((leaves, size, WIDTH))
        self.losses_before = aligned_zeros((leaves, size, WIDTH))
        self.alive = np.ones((leaves, WIDTH))
        self.query_values = aligned_zeros((leaves, WIDTH))

    @property
    def leaves(self) -> int:
        return len(self.alive)

    def common(self) -> dict[str, Any]:
        """The arguments that most phases need."""
        return {
            "leaves": self.leaves,
            "steps": self.size + 1,
            "window": self.values.shape[2],
            "values": self.values,
            "norms": self.norms,
            "predictions": self.predictions,
        }


class SlotGroup(LeafArrays):
    """Slots of a shard with kernels of one structure and equal learners, and all of their state.

    The arrays that all leaves have are part of the shard's. `state` holds the learner's own arrays
    by name: with the leaf as first axis, so that a group is split over shards, and put together
    again, along it. `dimension` is the number of columns of the inputs.
    """

    def __init__(
        self,
        arrays: LeafArrays,
        start: int,
        objective: Objective,
        kernels: list[list[Kernel]],
        program: PackedProgram,
        columns: np.ndarray,
        numbers: np.ndarray,
        learner: Learner,
        shapes: dict[str, tuple[int, ...]],
        dimension: int,
    ) -> None:
        """The group has the leaves of `arrays` from `start` on."""
        self.size = arrays.size
        for name in self.ARRAYS:
            setattr(self, name, getattr(arrays, name)[start : start + len(kernels)])
        self.objective = objective
        self.kernels = kernels
        self.program = program
        self.columns = columns
        self.numbers = numbers
        self.workspace_columns = columns
        self.workspace_numbers = numbers
        """Columns of the slots and rows of the leaves in a workspace that holds only some slots."""
        self.identities = columns
        """(leaves, 4): the numbers that random draws of the slots follow from. They stay the same
        for a slot whose index changes."""
        self.output = 0
        """Of which output of the bank the slots are."""
        self.first_sample = 0
        """Number of the first sample that the slots learn."""
        self.dimension = dimension
        self.state = {
            name: aligned_zeros(shape, learner.dtype_of(name)) for name, shape in shapes.items()
        }
        self.borrowed: frozenset[str] = frozenset()
        """The arrays of the state that belong to the group of the first output."""
        self.scratch: dict[str, Floats] = {}
        self.follow_templates: dict[Any, Phase] = {}
        """Of the group of the first output: phases of another output, of which those of further
        outputs are made with other arrays."""
        self.models: list[Any] = [None] * len(kernels)
        """For every leaf the model behind its slot, where the state is not arrays."""

    def borrow(self, leader: SlotGroup, names: frozenset[str]) -> None:
        """Use these arrays of the group of the first output."""
        self.borrowed = names
        self.state |= {name: leader.state[name] for name in names}

    def start_norm(self, leaf: int, lane: int, coefficients: Floats, gram: Floats) -> None:
        """norm^2 = c' K c before the first sample.

        Added exactly and rounded once: the same bits whatever adds up products elsewhere.
        """
        products = np.outer(coefficients, coefficients) * gram
        self.norms[leaf, 0, lane] = max(fsum(products.ravel()), 0.0)

    def dropped(self) -> Floats:
        """(leaves, 4): norm^2 of all removed terms, for learners with `dropped` in their state."""
        result = np.zeros((self.leaves, WIDTH))
        if "dropped" in self.state:
            dropped = self.state["dropped"].reshape(self.leaves, -1)
            result[:, : dropped.shape[1]] = dropped
        return result


class Learner:
    """A single-kernel online method. Subclasses are frozen dataclasses of their settings.

    A learner in Python writes `shapes`, `learn` and `evaluate`; a compiled one `shapes`, `phases`,
    `predict_phases` and `evaluate`. All else has a default. `PythonLearner` is simpler: three
    functions of one sample.
    """

    core_name: ClassVar[str] = ""
    """Its name in the core; empty for a learner in Python."""

    pack_width: ClassVar[int] = WIDTH
    """Slots per pack: four where they run side by side, one where a slot is a matrix itself."""

    single_arrays: ClassVar[frozenset[str]] = frozenset()
    """The arrays of the state that are in single precision."""

    leaf_arrays: ClassVar[frozenset[str]] = frozenset()
    """The arrays of the state that the slots of a leaf share: without an axis of lanes."""

    uses_kernel_rows: ClassVar[bool] = True
    """Whether the method works on kernel values between samples (not on features of its own)."""

    saveable: ClassVar[bool] = True
    """Whether the state is arrays, so that a file can keep it."""

    learns_window: ClassVar[bool] = False
    """Whether a step changes f by all samples of the window, not only by the newest."""

    shared_arrays: ClassVar[frozenset[str]] = frozenset()
    """The arrays of the state that follow from the inputs alone, for `follows`."""

    accepts_missing: ClassVar[bool] = False
    """Whether a target that is NaN leaves f as it was, with a window of 1."""

    accepts_new_inputs: ClassVar[bool] = False
    """Whether the slots can use columns that are added later (see `extend_inputs`)."""

    @property
    def leaf_width(self) -> int:
        return self.pack_width

    # --- what the core is told ----------------------------------------------------------------

    def core_settings(
        self, kernels: Sequence[Kernel], dimension: int, identity: int
    ) -> dict[str, Any]:
        """Numbers, words and arrays by name, of which the core makes the learner of a pack.

        The fields, and what follows from the kernels of the pack's slots and from the identity of
        the first: the number from which its random draws follow.
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def core_kernels(self, kernels: Sequence[Kernel], dimension: int) -> list[CoreSpec]:
        """What the core makes the kernels of the slots of; empty if the method needs no values."""
        return [kernel.core_spec(dimension) for kernel in kernels]

    def core_model(self, kernel: Kernel, dimension: int, objective: Objective) -> Any:
        """A new model in Python that the core calls for one output of a slot; None: it needs none.

        It has value(x), learn(x, y, slope), norm(), variance(x), copy(), `arrays`, the state by
        name, and `may_fail`, whether an error of it is raised by the bank.
        """
        return None

    def described_numbers(self, kernel: Kernel, dimension: int) -> int:
        """How many numbers `core_settings` makes, about."""
        return 0

    # --- what it accepts ------------------------------------------------------------------------

    def check_initial(self, objective: Objective, terms: int) -> None:
        """Refuse an initial function of that many terms; by default every one."""
        raise check.refuse(
            "initial",
            f"be left out for {type(self).__name__}, which starts at 0",
            f"{terms} terms",
            "Use kb.learners.Norma, KLMS, KNLMS, QKLMS or a learner on random features.",
        )

    def check_terms(self, terms: int, most: int, why: str) -> None:
        """Refuse an initial function of more terms than a budget leaves room for."""
        if terms > most:
            remedy = "Give fewer points, or raise budget."
            rule = f"have at most {most} points for {type(self).__name__} ({why})"
            raise check.refuse("initial", rule, terms, remedy)

    def start_from(self, group: SlotGroup, points: Floats, coefficients: Floats) -> None:
        """Start at f = sum_j coefficients[leaf, j, lane] k(points[j], .) instead of at 0.

        Called after `prepare`, if `check_initial` accepts it: set the arrays of the state, and
        group.norms[:, 0] to norm^2. points: (m, d); coefficients: (leaves, m, 4).
        """
        raise NotImplementedError

    def check(self, objective: Objective) -> None:
        """Refuse a window, regularization or loss that the method cannot work with."""

    def check_kernel(self, kernel: Kernel) -> None:
        """Refuse a kernel that the method cannot work with."""
        if not kernel.pairwise:
            owner = type(self).__name__
            remedy = "Use another kernel, or kb.learners.PartitionTree with this one."
            raise check.refuse("kernel", "be a function of two inputs", kernel, remedy, owner)

    def history_length(self, objective: Objective) -> int:
        """The number of past inputs that the method reads, at least the window."""
        return objective.window

    def shapes(
        self, objective: Objective, leaves: int, dimension: int, kernel: Kernel, history_length: int
    ) -> dict[str, tuple[int, ...]]:
        """The shapes of the state's arrays, the leaf axis first; they start at zero.

        `kernel` is one of the group's: they have one structure. `history_length` is the number of
        past inputs that the bank keeps.
        """
        raise NotImplementedError

    def dtype_of(self, name: str) -> str:
        """The precision of an array of the state."""
        return "float32" if name in self.single_arrays else "float64"

    def scratch_size(self, objective: Objective, dimension: int, kernel: Kernel) -> int:
        """Roughly how many numbers a leaf needs beside its state and the block's arrays."""
        return 0

    def prepare(self, group: SlotGroup) -> None:
        """Set arrays that do not start at zero, from the slots' kernels and identities only.

        A rule that counts samples in cycles also needs group.first_sample.
        """

    def phases(self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        """The phases that learn a block; by default `learn`, called back in Python."""

        def learn(first: int, count: int) -> None:
            points, targets = workspace.points[:count], workspace.new_targets[:count]
            self.learn(group, SampleBlock(first, points, targets), buffer)

        return [Phase.from_python(learn)]

    def predict_phases(
        self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        """The phases that write group.query_values, the values at workspace.query_point.

        By default `evaluate`, called back in Python.
        """
        everyone = np.ones(group.leaves, dtype=np.bool_)

        def predict(seen: int, _: int) -> None:
            statistics = np.repeat(buffer.memo_statistics[:, None, :], 2, axis=1)
            point = workspace.query_point[None, :].copy()
            group.query_values[...] = self.evaluate(group, seen, point, statistics, everyone)[:, 0]

        return [Phase.from_python(predict)]

    def follows(self, objective: Objective, leader: Objective) -> bool:
        """Whether slots of another output can use what those of the first compute from the inputs.

        Such slots keep no `shared_arrays`, and `follow_phases` takes the place of `phases`. What
        `prepare` sets has to be shared: it is not called for them. Their functions have the same
        bits as if they were alone. By default nothing is shared.
        """
        return False

    def follow_phases(
        self, group: SlotGroup, leader: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        """The phases that learn a block which the group of the first output has just learned.

        That group has left what is shared in leader.scratch, since `Workspace.is_followed`. By
        default `follow`, called back in Python.
        """

        def follow(first: int, count: int) -> None:
            points, targets = workspace.points[:count], workspace.new_targets[:count]
            self.follow(group, leader, SampleBlock(first, points, targets), buffer)

        return [Phase.from_python(follow)]

    def follow_predict_phases(
        self, group: SlotGroup, leader: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        """The phases that write group.query_values, after those of the first output."""
        return self.predict_phases(group, buffer, workspace)

    def follow(
        self, group: SlotGroup, leader: SlotGroup, block: SampleBlock, buffer: SampleBuffer
    ) -> None:
        """Learn a block, as `learn` does, which the group of the first output has just learned.

        What `learn` has put into leader.scratch is there; `shared_arrays` are those after the
        block.
        """
        raise NotImplementedError

    def fit_to_shared(
        self, state: Mapping[str, Floats], leader: Mapping[str, Floats], past_target: float
    ) -> None:
        """Change the arrays of an output that has learned only the newest samples, alone.

        From now on it uses the `shared_arrays` of the first output, which has learned them all and
        whose arrays are `leader`. past_target : that of the samples before, NaN if it is not known.
        """

    def kept_size(self, objective: Objective, dimension: int, kernel: Kernel) -> int:
        """Roughly how many numbers a leaf of the first output keeps of a sample for the others.

        Blocks are so short that what is kept stays in the cache.
        """
        return 0

    def learn(self, group: SlotGroup, block: SampleBlock, buffer: SampleBuffer) -> None:
        """Learn a block: fill group.values, norms, predictions and effects."""
        raise NotImplementedError

    def evaluate(
        self, group: SlotGroup, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray
    ) -> Floats:
        """(leaves, n, 4): f at the points (n, d) after `seen` samples; changes nothing.

        Only the leaves with wanted[leaf] are read. statistics[s, t + 1] compares point t with the
        last `history_length` inputs, oldest first, and with itself.
        """
        raise NotImplementedError

    def extend_inputs(self, old: Mapping[str, Floats], new: dict[str, Floats]) -> None:
        """Copy a group's arrays to a group on inputs with more columns.

        The new columns were 0 until now. `new` holds the arrays at the start. By default they must
        have the same shapes: the slots do not use the new columns, or keep nothing of the inputs.
        """
        for name, array in old.items():
            if new[name].shape != array.shape:
                rule = f"be one that can take up new columns (its {name} depend on their number)"
                remedy = "Give all columns from the start, with NaN or 0 where one is not known."
                raise check.refuse("learner", rule, self, remedy)
            new[name][...] = array

    def variance(self, group: SlotGroup, seen: int, points: Floats) -> Floats:
        """(leaves, n, 4): predictive variance of f at the points after `seen` samples.

        Without the noise, and in units of the noise's variance. NaN where there is none.
        """
        return np.full((group.leaves, len(points), WIDTH), np.nan)

    def step_ratio(self, group: SlotGroup) -> Floats:
        """(leaves, 4): learning rate over the largest stable one on the windows seen so far."""
        return np.zeros((group.leaves, WIDTH))


def check_decay(learner: Any, objective: Objective) -> None:
    """Refuse a learning rate at which regularization would flip the sign of f."""
    if learner.learning_rate * objective.regularization >= 1:
        raise check.refuse(
            "learning_rate",
            f"be < 1 / regularization ({1 / objective.regularization:g})",
            learner.learning_rate,
            "Lower learning_rate or regularization: their product must stay below 1.",
            type(learner).__name__,
        )


def check_labels(learner: Learner, objective: Objective) -> None:
    """Refuse a loss for regression."""
    if not objective.loss.labels:
        raise check.refuse(
            "loss",
            f"be one for labels -1 and +1 for {type(learner).__name__}",
            objective.loss,
            'Use "hinge", "squared_hinge" or "logistic", or another learner.',
        )
