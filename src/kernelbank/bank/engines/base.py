"""Engines: where shards live and how blocks reach them. No mathematics here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...combiners import Combiner
from ...kernels.base import of_each_shape, sources_of
from ...losses.objective import Objective
from ...native.formulas import CONSTANTS, Callback
from ...native.phases import Phases
from ...native.workspace import SLIDE_PERIOD, Workspace
from ...utils import validation as check
from ...utils.validation import Floats
from ..layout import Layout, Leaf

_BLOCK_BYTES = 64 * 2**20
_SHORTEST = 8


def bytes_per_sample(layout: Layout, objective: Objective, dimension: int) -> int:
    """What a sample of a block takes: the slots' values on the window, and the statistics."""
    values = len(layout.leaves) * 4 * (objective.window + 4)
    sources = sources_of(layout.row_kernels, dimension)
    return 8 * (values + len(sources) * (layout.history_length(objective) + 1))


def block_length(layout: Layout, objective: Objective, dimension: int) -> int:
    """Samples of a block: a slide_period, or fewer where a block would fill the memory.

    Long blocks are good for the caches: a leaf's terms and kernel rows are fetched once and used
    for the whole block. Only what accepts_new_inputs with the block sets a limit, and that is read once in
    order (`make bench` draws the time over the block's length).
    """
    sample = bytes_per_sample(layout, objective, dimension)
    return int(min(SLIDE_PERIOD, max(_SHORTEST, _BLOCK_BYTES // sample)))


def workspace_bytes(layout: Layout, objective: Objective, dimension: int) -> int:
    """What a bank works with beside its state: about so many bytes."""
    workspace = 8 * 8 * len(layout.slots)
    sample = bytes_per_sample(layout, objective, dimension) + workspace
    length = {k.shape: len(k.at(dimension).program()) for k in of_each_shape(layout.row_kernels)}
    programs = 8 * CONSTANTS * sum(length[kernel.shape] for kernel in layout.row_kernels)
    learners = enumerate(layout.learners)
    own = sum(m.scratch_size(objective, dimension, layout.first_kernel(k)) for k, m in learners)
    return (block_length(layout, objective, dimension) + 1) * sample + programs + 8 * own


def checked_block(block: int | None, owner: str) -> None:
    """Refuse a block length that cannot be."""
    if block is not None:
        remedy = f"Give 1 to {SLIDE_PERIOD}, or None to let it be chosen."
        if check.count("block", block, owner, remedy) > SLIDE_PERIOD:
            raise check.refuse("block", f"be at most {SLIDE_PERIOD}", block, remedy, owner)


def dealt(families: Sequence[Sequence[Leaf]], shards: int) -> list[list[Leaf]]:
    """The leaves of every shard: dealt in turn, since narrow kernels cost less than wide ones.

    Four at a time where there are enough: their columns on the workspace then fill whole cache lines,
    and two threads seldom write to the same one. A family stays together.
    """
    number = min(shards, len(families))
    run = max(1, min(4, len(families) // (4 * number)))
    hands: list[list[Leaf]] = [[] for _ in range(number)]
    for i, family in enumerate(families):
        hands[i // run % number].extend(family)
    return hands


@dataclass(frozen=True)
class CombineStage:
    """What is done in one place for all slots: between the two phases, after them, after a look."""

    prepare: Phases
    """Before the weights are chosen: late answers, the window's targets."""
    choose: Phases
    """The combiner's: the weights after each sample."""
    propose: Phases
    """The weights before each sample."""
    tally: Phases
    """Charge the slots."""
    charge: Phases
    """Charge the proposals."""
    charge_whole: Phases
    """The same from the sums over all leaves, in `whole`, not from those of each."""
    blend: Phases
    """The proposal at a point that is looked at."""
    whole: Floats
    weights: Floats
    """(P,): of the next proposal."""
    totals: tuple[Floats, Floats]
    """What the slots have been charged so far: cost, and loss one step ahead."""
    figures: Floats | None
    """For a rule `supports_distributed_qp`: where it notes what it has weighed last."""

    @property
    def combine(self) -> Phases:
        return self.prepare + self.choose + self.propose

    @property
    def settle(self) -> Phases:
        return self.tally + self.charge


@dataclass(frozen=True)
class Coming:
    """A block that will be played: the number of its first sample, inputs and targets."""

    first: int
    points: Floats
    targets: Floats


class Executor:
    """The shards of one bank at work."""

    guarded = False
    """Whether a block may fail for other reasons than a user's own functions."""

    def prepare(self, driver: CombineStage) -> None:
        """Be told what the driver does."""
        raise NotImplementedError

    def expect(self, blocks: Sequence[Coming], recorded: Sequence[str]) -> None:
        """Be told which blocks will be played next, and what will be read from the workspace of them.

        Work on them may begin early. Whatever is called instead of playing them calls them off.
        """

    def play(self, first: int, count: int) -> None:
        """Work the block on the workspace: all shards learn, `combine`, all shards mix, `settle`."""
        raise NotImplementedError

    def keep(self, *, models: bool) -> Any:
        """What `undo` needs to go back to this moment; `models`: those behind adapters too."""
        return self.state(), self.remember() if models else None

    def undo(self, kept: Any) -> None:
        """Go back to where `keep` was called, after the one block since has failed."""
        arrays, models = kept
        self.restore(arrays)
        if models is not None:
            self.recall(models)

    def single(self) -> tuple[Phases, Phases] | None:
        """The phases of a block of one and of a look, if they run in the calling thread."""
        return None

    def look(self, seen: int) -> None:
        """Write the slots' values at workspace.query_point to workspace.slot_values, then blend them."""
        raise NotImplementedError

    def forget_look(self) -> None:
        """What the last look has left behind is not to be used by the next block."""
        raise NotImplementedError

    def evaluate(self, seen: int, points: Floats, wanted: Floats) -> Floats:
        """(n, P): the slots' values at the points, for leaves with a slot with wanted[p] != 0."""
        raise NotImplementedError

    def variance(self, points: Floats) -> Floats:
        """(n, P): the slots' predictive variances, NaN where there is none."""
        raise NotImplementedError

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        """Python functions among the phases."""
        return ()

    def step_ratio(self) -> Floats:
        """(P,): see `Learner.step_ratio`."""
        raise NotImplementedError

    def dropped(self) -> Floats:
        """(P,): see `Learner.dropped`."""
        raise NotImplementedError

    def state(self) -> dict[str, Floats]:
        """Copies of all arrays, in leaf order, whatever the shards."""
        raise NotImplementedError

    def restore(self, state: Mapping[str, Floats]) -> None:
        """Go on from what `state` returned."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget everything that was learned; `begin` follows before the next sample."""
        raise NotImplementedError

    def begin(self, first_input: Floats) -> None:
        """Be told the first sample, as when the executor was opened."""
        raise NotImplementedError

    def remember(self) -> dict[int, Any]:
        """Copies of what learners keep beside arrays (see `Learner.remember`), by leaf."""
        return {}

    def recall(self, kept: Mapping[int, Any]) -> None:
        """Go back to what `remember` returned."""


class Engine:
    """Where shards live. Subclasses are frozen dataclasses of their settings."""

    block: int | None = None
    """Samples of a block; None for what `length` chooses. Changes no bit."""

    pages: ClassVar[bool] = True
    """Whether blocks must end where pages end."""

    def check(self, combiner: Combiner) -> None:
        """Refuse a rule for the weights that these settings do not allow."""

    def length(self, layout: Layout, objective: Objective, dimension: int) -> int:
        """Samples of the longest block."""
        return self.block or block_length(layout, objective, dimension)

    @property
    def workers(self) -> int:
        """How many threads may share the driver's work."""
        return 1

    def open(
        self, objective: Objective, layout: Layout, workspace: Workspace, first_input: Floats
    ) -> Executor:
        """Make the shards, once the first sample, and so the width of the inputs, is known."""
        raise NotImplementedError
