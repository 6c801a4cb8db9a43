"""Engines and executors: where shards run and how blocks reach them. No mathematics here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...kernels.program import distinct_structures, number_statistics
from ...kernels.sample_buffer import SampleBlock
from ...losses.objective import Objective
from ...native.callbacks import Callback
from ...native.formulas import CONSTANTS
from ...native.phases import Phases
from ...native.workspace import SLIDE_PERIOD, Workspace
from ...utils import validation as check
from ...utils.validation import Floats
from ..layout import Layout, Leaf

_BLOCK_BYTES = 64 * 2**20
_SHORTEST = 8
_MOST_INSTRUCTIONS = 10**6
_OUTPUT_SAMPLES = 8 * SLIDE_PERIOD
"""Samples of a block times outputs, at most: with more than eight outputs blocks are shorter."""
_KEPT_BYTES = 2**22
"""Bytes that slots keep of a block for other outputs, at most: it stays in the cache."""


def bytes_per_sample(layout: Layout, objective: Objective, dimension: int) -> int:
    """Bytes per sample of a block: the slots' values on the window, and kernel statistics."""
    values = len(layout.leaves) * 4 * (objective.window + 5)
    sources = number_statistics(layout.row_kernels, dimension)
    return 8 * (values + len(sources) * (layout.history_length(objective) + 1))


def block_length(layout: Layout, objective: Objective, dimension: int) -> int:
    """Samples per block: a slide period, or fewer where a block would need too much memory.

    Long blocks are good for the caches: a leaf's terms and kernel rows are loaded once and used for
    the whole block. Only the arrays that grow with the block set a limit, and these are read once,
    in order.
    """
    sample = bytes_per_sample(layout, objective, dimension)
    return int(min(SLIDE_PERIOD, max(_SHORTEST, _BLOCK_BYTES // sample)))


def output_block_length(layout: Layout, objective: Objective, dimension: int, outputs: int) -> int:
    """Samples per block of a bank with several outputs, at most.

    Each output has arrays of the length of a block; and what the first one keeps for the others
    is to be still in the cache when they read it.
    """
    count = Counter(leaf.group for leaf in layout.leaves)
    kept = sum(
        count[number]
        * group.learner.kept_size(
            group.objective(objective), dimension, layout.first_kernel(number)
        )
        for number, group in enumerate(layout.groups)
    )
    short = max(_SHORTEST, _OUTPUT_SAMPLES // outputs)
    longest = max(1, min(short, _KEPT_BYTES // (8 * kept + 1)))
    blocks = max(1, round(SLIDE_PERIOD / longest))  # of a slide period, about equally long
    # One more: columns of arrays with a power of two of rows are in the same lines of the cache.
    return -(-SLIDE_PERIOD // blocks) + 1


def workspace_bytes(layout: Layout, objective: Objective, dimension: int) -> int:
    """About how many bytes a bank needs beside its state; computed without making any array."""
    slots, leaves, window = len(layout.slots), len(layout.leaves), objective.window
    instructions = sum(kernel.instruction_count(dimension) for kernel in layout.row_kernels)
    if instructions > _MOST_INSTRUCTIONS:  # so many are not even listed
        return 8 * CONSTANTS * instructions * _SHORTEST * (window + 1)
    own_targets = sum(layout.groups[leaf.group].has_own_targets for leaf in layout.leaves)
    workspace = slots * (9 + window) + leaves * (window + 3) + dimension
    workspace += own_targets * 4 * (window + 3)  # what their learners write
    sample = bytes_per_sample(layout, objective, dimension) + 8 * workspace
    length = {
        k.structure_key: len(k.for_dimension(dimension).program())
        for k in distinct_structures(layout.row_kernels)
    }
    programs = 8 * CONSTANTS * sum(length[kernel.structure_key] for kernel in layout.row_kernels)
    count = Counter(leaf.group for leaf in layout.leaves)
    own = sum(
        count[number]
        * group.learner.scratch_size(
            group.objective(objective), dimension, layout.first_kernel(number)
        )
        for number, group in enumerate(layout.groups)
    )
    return (block_length(layout, objective, dimension) + 1) * sample + programs + 8 * own


def checked_block(block: int | None, owner: str) -> None:
    """Refuse an impossible block length."""
    if block is not None:
        remedy = f"Give 1 to {SLIDE_PERIOD}, or None for a default."
        if check.count("block", block, owner, remedy) > SLIDE_PERIOD:
            raise check.refuse("block", f"be at most {SLIDE_PERIOD}", block, remedy, owner)


def partition(groups: Sequence[Sequence[Leaf]], shards: int) -> list[list[Leaf]]:
    """The leaves of every shard, dealt in turn, since narrow kernels cost less than wide ones.

    Four groups at a time where there are enough: their columns on the workspace then fill whole
    cache lines, and two threads seldom write to the same one. A group (see
    `Layout.dependency_groups`) stays together.
    """
    number = min(shards, len(groups))
    run = max(1, min(4, len(groups) // (4 * number)))
    parts: list[list[Leaf]] = [[] for _ in range(number)]
    for i, group in enumerate(groups):
        parts[i // run % number].extend(group)
    return parts


@dataclass(frozen=True)
class CombineStage:
    """The phases that run once for all slots."""

    weight_phases: Phases
    """From the evidence of the slots to the weights before each sample."""
    cost_phases: Phases
    """Costs and losses of the slots, and of the bank from the mixtures of all leaves."""
    combine_query: Phases
    """The bank's prediction at workspace.query_point, from the slots' values there."""


class Executor:
    """Runs the shards of one bank. Made by `Engine.open` with the first sample."""

    fallible = False
    """Whether a block may fail for other reasons than a user's own functions."""

    is_cut_off = False
    """Whether a block has ended in its middle, and was not undone."""

    def connect(self, stage: CombineStage) -> None:
        """Take the phases that run for all slots; called once, before the first block."""
        raise NotImplementedError

    # --- blocks -----------------------------------------------------------------------------------

    def prefetch(self, blocks: Sequence[SampleBlock]) -> None:
        """Expect these blocks next: work on them may begin early.

        Any other call before they are run cancels them.
        """

    def run_block(self, first: int, count: int) -> None:
        """Learn the block on the workspace, choose weights, mix the leaves, add up the costs."""
        raise NotImplementedError

    def skip_sample(self, number: int) -> None:
        """Take the sample on the workspace, whose target is missing: no slot learns a target."""
        raise NotImplementedError

    def snapshot(self, *, models: bool) -> Any:
        """What `rollback` needs to return to this moment; `models`: also those behind adapters."""
        return self.state(), self.copy_models() if models else None

    def rollback(self, snapshot: Any) -> None:
        """Return to the moment of `snapshot`, after the one block since then has failed."""
        arrays, models = snapshot
        self.restore(arrays)
        if models is not None:
            self.restore_models(models)
        self.is_cut_off = False

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        """The Python functions among the phases."""
        return ()

    # --- predictions ------------------------------------------------------------------------------

    def single_sample_phases(self) -> tuple[Phases, Phases, Phases] | None:
        """The phases of a block of one and of a query, if they run in the calling thread."""
        return None

    def predict_query(self, seen: int) -> None:
        """Fill workspace.slot_values at workspace.query_point, then combine them."""
        raise NotImplementedError

    def forget_query(self) -> None:
        """Drop what the last query has cached for the next block."""
        raise NotImplementedError

    def evaluate(self, seen: int, points: Floats, wanted: Floats) -> Floats:
        """(n, P): the slots' values at the points, for leaves with a slot with wanted[p] != 0."""
        raise NotImplementedError

    def variance(self, seen: int, points: Floats) -> Floats:
        """(n, P): the slots' predictive variances, NaN where there is none."""
        raise NotImplementedError

    # --- state ------------------------------------------------------------------------------------

    def step_ratio(self) -> Floats:
        """(P,): see `Learner.step_ratio`."""
        raise NotImplementedError

    def dropped(self) -> Floats:
        """(P,): see `Learner.dropped`."""
        raise NotImplementedError

    def state(self) -> dict[str, Floats]:
        """Copies of all arrays, in leaf order, whatever the shards."""
        raise NotImplementedError

    def group_state(self, group: int) -> dict[str, Floats]:
        """Those of the slots of one group, by their own names."""
        prefix = f"group{group}/"
        every = self.state().items()
        return {name[len(prefix) :]: array for name, array in every if name.startswith(prefix)}

    def restore(self, state: Mapping[str, Floats]) -> None:
        """Continue from what `state` returned."""
        raise NotImplementedError

    def copy_models(self) -> dict[int, Any]:
        """Copies of the models behind slots whose state is not arrays, by leaf number."""
        return {}

    def restore_models(self, models: Mapping[int, Any]) -> None:
        """Return to what `copy_models` returned."""


class Engine:
    """Where shards run. Subclasses are frozen dataclasses of their settings."""

    block: int | None = None
    """Samples per block; None for a default. Changes no bit."""

    slide_aligned: ClassVar[bool] = True
    """Whether no block may go beyond the end of a slide period."""

    def length(self, layout: Layout, objective: Objective, dimension: int) -> int:
        """Samples of the longest block."""
        return self.block or block_length(layout, objective, dimension)

    @property
    def workers(self) -> int:
        """How many threads may share the combiner's work."""
        return 1

    shares_outputs: ClassVar[bool] = True
    """Whether the executors of several outputs can share what follows from the inputs alone."""

    def open(
        self,
        objective: Objective,
        layout: Layout,
        workspace: Workspace,
        first_input: Floats,
        leader: Executor | None = None,
    ) -> Executor:
        """Make the shards, with the first sample, which says how many columns the inputs have.

        leader : the executor of the bank's first output, for another output.
        """
        raise NotImplementedError
