"""The Ray engine: shards in processes on this machine and on others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....combiners import Combiner
from ....losses.objective import Objective
from ....native.workspace import SLIDE_PERIOD, Workspace
from ....utils import validation as check
from ....utils.validation import Floats
from ...layout import Layout
from ..base import Engine, Executor, block_length, bytes_per_sample
from .pending_blocks import EVIDENCE

_DRIVER_BYTES = 2**30  # what a block may take on the driver, if all evidence is gathered
_SHARD_BYTES = 256 * 2**20  # and in a shard, which has up to four of them
_LONGEST = 1024


@dataclass(frozen=True)
class Ray(Engine):
    """Work in processes of Ray's, one for each shard of the slots. Same bits as `Serial`.

    A block of samples goes out once; the shards learn it, and the next ones while the driver weighs
    it. A process or node that is lost is replaced, and learns again what it knew: the result is the
    one of a run that was never disturbed. If Ray runs already in this process, it is used as it is;
    else it is started here, without dashboard and usage statistics and with a token, or joined at
    `address`. Kernels, losses and learners of your own, and models behind adapters, go to the other
    processes by pickle: it is your own cluster. What they import must be installed there.

    Blocks are what pays: `run` with many samples and slots. `learn_one` and `predict_one` cost
    several milliseconds more than the slots' work.

    Parameters
    ----------
    shards : how many; by default as many as the cluster has processors when the bank starts.
    address : of a cluster to join, such as "auto" or "10.0.0.1:6379"; None for this machine.
    block : samples sent at a time; by default up to 1024, fewer where they would fill the memory.
    retries : how often in a row a shard may be brought back within one block or question.
    patience : seconds that a shard may wait for a place, such as a node that joins.
    replay : after so many samples the driver fetches the shards' states. No more than these, and
        the blocks under way, are learned again after a fault.
    cpus : processors reserved for a shard; 0 puts shards side by side wherever there is a node.

    exchange : what travels between driver and shards of a block. "gathered": all evidence of every
        slot. "sums": sums over slots, and the few slots that may have weight; for
        `Simplex(evidence="window")` and runs that record nothing by slot (`record="light"`), others
        are gathered. "auto" chooses by the number of slots. Same bits (docs/ray.md).

    >>> import kernelbank as kb
    >>> engine = kb.engines.Ray(shards=4)  # nothing starts before a bank gets its first sample
    """

    shards: int | None = None
    address: str | None = None
    block: int | None = None
    retries: int = 3
    patience: float = 60.0
    replay: int = 16_384
    cpus: float = 0.0
    exchange: str = "auto"
    pages: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.shards is not None:
            remedy = "Give 1 or more, or None for one a processor."
            check.count("shards", self.shards, "Ray", remedy)
        if self.address is not None and not (isinstance(self.address, str) and self.address):
            remedy = 'Give "auto" or the head node\'s host:port, or None for this machine.'
            raise check.refuse("address", "be a text or None", self.address, remedy, "Ray")
        if self.block is not None:
            remedy = "Give 1 to 65536, or None to let it be chosen."
            check.count("block", self.block, "Ray", remedy, most=65536)
        check.count("retries", self.retries, "Ray", "Give 0 or more.", least=0)
        check.number("patience", self.patience, "Ray", "Give seconds, such as 60.", above=0)
        check.count("replay", self.replay, "Ray", "Give a number of samples, such as 16384.")
        check.number("cpus", self.cpus, "Ray", "Give 0 or more, such as 1.", least=0)
        check.choice("exchange", self.exchange, "Ray", ("auto", "gathered", "sums"))

    def check(self, combiner: Combiner) -> None:
        if self.exchange == "sums" and not combiner.supports_distributed_qp:
            rule = f'be "auto" or "gathered" with {combiner!r}'
            remedy = 'Only kb.combiners.Simplex(evidence="window") can be weighed by sums.'
            raise check.refuse("exchange", rule, self.exchange, remedy, "Ray")

    def length(self, layout: Layout, objective: Objective, dimension: int) -> int:
        if self.block is not None:
            return self.block
        shards = self.shards or 1
        driver = 8 * (8 * len(layout.slots) + len(layout.leaves) * (objective.window + 3))
        evidence = 8 * len(EVIDENCE) * len(layout.slots)
        shard = (bytes_per_sample(layout, objective, dimension) + evidence) // shards
        return max(8, min(_LONGEST, _DRIVER_BYTES // driver, _SHARD_BYTES // max(1, shard)))

    def piece(self, layout: Layout, objective: Objective, dimension: int, shards: int) -> int:
        """Samples that a shard works at a time: those of one slide_period, or fewer."""
        return min(SLIDE_PERIOD, block_length(layout, objective, dimension) * shards)

    def open(
        self, objective: Objective, layout: Layout, workspace: Workspace, first_input: Floats
    ) -> Executor:
        from .executor import RayExecutor

        return RayExecutor(self, objective, layout, workspace, first_input)
