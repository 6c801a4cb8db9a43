"""The Ray engine."""

from __future__ import annotations

from dataclasses import dataclass

from ...utils import validation as check
from .base import Engine


@dataclass(frozen=True)
class Ray(Engine):
    """Run the shards in processes of a Ray cluster. Same bits as `Serial`.

    The shards learn the next blocks while the driver computes the weights of this one. A process
    or node that is lost is replaced and learns the lost blocks again: the result is that of an
    undisturbed run. If Ray is already initialised in this process, it is used as it is. Else it is
    started here, with a token and without dashboard and usage statistics, or joined at `address`.
    Your own kernels, losses, learners and models are sent to the other processes by pickle.

    The engine is for `run` with many samples and slots. `learn_one` and `predict_one` take several
    milliseconds longer than on `Serial`.

    Parameters
    ----------
    shards : number of shards; by default the cluster's processors when the bank starts.
    address : of a cluster to join, such as "auto" or "10.0.0.1:6379"; None for this machine.
    block : samples per block; by default up to 1024, fewer where a block would fill the memory.
    retries : how often in a row a shard may be brought back within one call.
    patience : seconds that a shard may wait for a process, such as for a node that joins.
    replay : samples after which the driver fetches snapshots of the shards. After a fault at most
        these samples, and the blocks on their way, are learned again.
    cpus : processors that Ray reserves for each shard; 0 lets shards share them.
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
    allow_unauthenticated: bool = False

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
        if not isinstance(allowed := self.allow_unauthenticated, bool):
            remedy, rule = "Give True if nobody else can reach the cluster.", "be True or False"
            raise check.refuse("allow_unauthenticated", rule, allowed, remedy, "Ray")
