"""Settings of the Ray engine: shards in processes on this machine and on others."""

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
from .evidence import EVIDENCE

_DRIVER_BYTES = 2**30  # most memory of a block in the driver, if all evidence is gathered
_SHARD_BYTES = 256 * 2**20  # most memory of a block in a shard, which has up to four of them
_LONGEST = 1024  # samples


@dataclass(frozen=True)
class Ray(Engine):
    """Run the shards in processes of a Ray cluster. Same bits as `Serial`.

    A block of samples is sent once. The shards learn it, and the next ones while the driver
    computes its weights. A process or node that is lost is replaced and learns the lost blocks
    again: the result is that of an undisturbed run. If Ray is already initialised in this process,
    it is used as it is. Else it is started here, with a token and without dashboard and usage
    statistics, or joined at `address`. Your own kernels, losses and learners, and models in
    adapters, are sent to the other processes by pickle. What they import must be installed there.

    The engine pays for `run` with many samples and slots. `learn_one` and `predict_one` take
    several milliseconds longer than on `Serial`.

    Parameters
    ----------
    shards : number of shards; by default the cluster's processors when the bank starts.
    address : of a cluster to join, such as "auto" or "10.0.0.1:6379"; None for this machine.
    block : samples per block; by default up to 1024, fewer where a block would fill the memory.
    retries : how often in a row a shard may be brought back within one block or call.
    patience : seconds that a shard may wait for a process, such as for a node that joins.
    replay : samples after which the driver fetches snapshots of the shards. After a fault at most
        these samples, and the blocks on their way, are learned again.
    cpus : processors that Ray reserves for each shard; 0 lets shards share them.
    exchange : what the shards send to the driver. "gathered": the evidence of every slot. "sums":
        sums over slots, and the few slots that may have weight. This needs
        `Simplex(evidence="window")` and a run that records nothing by slot (`record="light"`);
        other runs are gathered. "auto" chooses by the number of slots. Same bits (docs/ray.md).
    allow_unauthenticated : use a cluster that does not require a token. Whoever reaches such a
        cluster may run code on it and read what is sent to it; by default it is refused.

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
    allow_unauthenticated: bool = False
    slide_aligned: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.shards is not None:
            remedy = "Give 1 or more, or None for one per processor."
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
        if not isinstance(allowed := self.allow_unauthenticated, bool):
            remedy = "Give True if nobody else can reach the cluster."
            rule = "be True or False"
            raise check.refuse("allow_unauthenticated", rule, allowed, remedy, "Ray")

    def check(self, combiner: Combiner) -> None:
        if self.exchange == "sums" and not combiner.supports_distributed_qp:
            rule = f'be "auto" or "gathered" with {combiner!r}'
            remedy = (
                'Only kb.combiners.Simplex(evidence="window", bound="direct sum") supports '
                'exchange="sums".'
            )
            raise check.refuse("exchange", rule, self.exchange, remedy, "Ray")

    def length(self, layout: Layout, objective: Objective, dimension: int) -> int:
        if self.block is not None:
            return self.block
        shards = self.shards or 1
        driver = 8 * (8 * len(layout.slots) + len(layout.leaves) * (objective.window + 3))
        evidence = 8 * len(EVIDENCE) * len(layout.slots)
        shard = (bytes_per_sample(layout, objective, dimension) + evidence) // shards
        return max(8, min(_LONGEST, _DRIVER_BYTES // driver, _SHARD_BYTES // max(1, shard)))

    def step_length(self, layout: Layout, objective: Objective, dimension: int, shards: int) -> int:
        """Samples that a shard learns at a time: a slide period, or fewer."""
        return min(SLIDE_PERIOD, block_length(layout, objective, dimension) * shards)

    shares_outputs: ClassVar[bool] = False  # every output has processes of its own

    def open(
        self,
        objective: Objective,
        layout: Layout,
        workspace: Workspace,
        first_input: Floats,
        leader: Executor | None = None,
    ) -> Executor:
        from .executor import RayExecutor

        return RayExecutor(self, objective, layout, workspace, first_input)
