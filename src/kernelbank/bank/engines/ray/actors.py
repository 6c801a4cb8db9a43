"""Processes of the cluster: the actor that holds a shard, and the driver's handle of it.

An `Actor` runs in a process of the cluster. An `ActorHandle` is the driver's side: it starts the
process, calls it, and brings the shard back in another process when that one is lost. Processes of
banks that are gone are kept for the next banks.
"""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from ....errors import KernelBankError, KernelBankWarning, ShardLost
from ....utils.validation import Floats
from . import cluster
from .shard_worker import OutOfOrder, ShardWorker, Snapshot
from .wire import Traffic, array_bytes

_WARN_AFTER = 5.0  # seconds of waiting for a process
_MAX_IDLE = 16


class Actor:
    """A process of the cluster that holds a `ShardWorker`. It can be given another one."""

    def check_build(self, expected: str) -> int:
        """Return the process id, if the packages here are the driver's."""
        found = cluster.build_fingerprint()
        if found != expected:
            raise KernelBankError(
                f"A node of the cluster has {found}, and the driver {expected}. "
                "Install the same versions on all nodes, so that all compute the same bits."
            )
        return os.getpid()

    def open(
        self, epoch: int, shared: tuple[Any, ...], leaves: list[int], first_input: Floats
    ) -> None:
        """Make a new worker. Concurrent calls for the one before are refused from now on."""
        objective, layout, size, needs = shared
        self._epoch = epoch
        self._worker = ShardWorker(objective, layout, leaves, size, first_input, needs=needs)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the worker, in the order of the calls."""
        return getattr(self._worker, method)(*arguments)

    def call_concurrently(self, epoch: int, method: str, *arguments: Any) -> Any:
        """Call a method that only uses pending blocks, while another block is learned."""
        if epoch != self._epoch:
            raise OutOfOrder("this call was meant for a worker that is gone")
        return getattr(self._worker, method)(*arguments)


@cache
def _remote_class() -> Any:
    ray = cluster.import_ray()

    class Remote(Actor):
        call_concurrently = ray.method(concurrency_group="pending")(Actor.call_concurrently)

    Remote.__name__ = Remote.__qualname__ = "kernelbank.Actor"
    return ray.remote(concurrency_groups={"pending": 1})(Remote)


def start_actor(cpus: float) -> Any:
    """Start a process on the node with most room; it starts in the background."""
    options = {"num_cpus": cpus, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
    return _remote_class().options(**options).remote()


_idle: list[tuple[str, Any]] = []  # cluster, actor


def take_idle_actor(cluster_id: str, cpus: float) -> Any:
    """A process of a bank that is gone, or None."""
    while _idle and cpus == 0:
        known, actor = _idle.pop()
        if known == cluster_id:
            return actor
    return None


def release_actors(cluster_id: str, cpus: float, handles: list[ActorHandle]) -> None:
    """Keep the processes of a bank that is gone for the next one, or let them end.

    Called by the garbage collector, so nothing is asked of Ray here. Ray ends a process when
    nobody holds a reference to it.
    """
    if cpus == 0:
        actors = [handle.actor for handle in handles if handle.actor is not None]
        _idle.extend((cluster_id, actor) for actor in actors[: _MAX_IDLE - len(_idle)])
    handles.clear()


def lost_errors(ray: Any) -> tuple[type[Exception], ...]:
    """What is raised when a process, a node, or a result on it is lost."""
    errors = ray.exceptions
    return (
        errors.RayActorError,
        errors.ObjectLostError,
        errors.WorkerCrashedError,
        errors.NodeDiedError,
        errors.OutOfMemoryError,
        OutOfOrder,
    )


@dataclass
class SentBlock:
    """A block of samples that was sent to the shards."""

    first: int
    points: Floats
    targets: Floats
    reference: Any
    """Inputs and targets as they are sent: in Ray's object store, or as they are if small."""
    with_snapshot: bool
    by_sums: bool
    replies: dict[int, Any] = field(default_factory=dict)
    """By shard: references to the reply and the snapshot of `ShardWorker.learn`."""


class ActorHandle:
    """The process of one shard, what is needed to bring it back, and calls to it."""

    def __init__(
        self,
        ray: Any,
        settings: Any,
        number: int,
        shards: int,
        leaves: list[int],
        slots: np.ndarray,
        shared: Any,
        first_input: Floats,
        traffic: Traffic,
    ) -> None:
        """`shared`: a reference to the arguments that all workers of the bank have in common."""
        self.number = number
        self.leaves = leaves
        self.slots = slots
        self.first_input = first_input
        self.snapshot: Snapshot | None = None  # None: nothing learned
        self.given_up = False
        self.failures = 0
        self.process_id = 0
        self.actor: Any = None
        self._ray = ray
        self._settings = settings
        self._shards = shards
        self._shared = shared
        self._traffic = traffic
        self._lost = lost_errors(ray)
        self._epoch = 0

    # --- the process ------------------------------------------------------------------------------

    def start(self, idle: Any = None) -> None:
        """Take a process, an idle one or a new one; `wait_until_open` waits for it."""
        if self.actor is not None:
            self._ray.kill(self.actor)
        self.actor = idle or start_actor(self._settings.cpus)
        self._started = self.actor.check_build.remote(cluster.build_fingerprint())

    def wait_until_open(self) -> None:
        """Wait until the process runs and has a worker; it may need a node that is yet to join."""
        patience = self._settings.patience
        began = time.monotonic()
        ready, _ = self._ray.wait([self._started], timeout=min(_WARN_AFTER, patience))
        if not ready:
            warnings.warn(
                f"shard {self.number} of {self._shards} waits for a process in the Ray cluster, "
                f"{patience:g} seconds at most. If no node has room for it, another one may join.",
                KernelBankWarning,
                stacklevel=2,
            )
            left = max(0.0, patience - _WARN_AFTER)
            ready, _ = self._ray.wait([self._started], timeout=left)
            if not ready:
                waited = time.monotonic() - began
                raise self._give_up(f"it got no process within {waited:.0f} seconds")
        self.process_id = self._ray.get(self._started)
        self._open()

    def _open(self) -> None:
        """Make a worker that has learned nothing."""
        self._epoch += 1
        opened = self.actor.open.remote(self._epoch, self._shared, self.leaves, self.first_input)
        self._ray.get(opened)

    def reload(self, learned: list[SentBlock], in_flight: list[SentBlock]) -> None:
        """Make a worker that has learned these blocks after the snapshot; send it the others."""
        self._open()
        self._load(learned, in_flight)

    def _load(self, learned: list[SentBlock], in_flight: list[SentBlock]) -> None:
        replies = []
        if self.snapshot is not None:
            replies.append(self.call("restore", self.snapshot))
        for block in learned:
            replies.append(self.call("replay", block.first, block.reference))
        for block in in_flight:
            self.learn(block)
        self._ray.get(replies)

    def revive(
        self, error: Exception, learned: list[SentBlock], in_flight: list[SentBlock]
    ) -> None:
        """Start other processes until one has learned what the lost one had learned."""
        while True:
            if getattr(error, "actor_init_failed", False):
                raise KernelBankError(
                    "A process of the cluster could not load kernelbank. Install it, with the "
                    f"versions that the driver has, on every node: {cluster.build_fingerprint()}."
                ) from error
            self.failures += 1
            if self.failures > self._settings.retries:
                reason = str(error).strip().splitlines() or [type(error).__name__]
                raise self._give_up(f"its process ended ({reason[0]})") from error
            try:
                self.start()
                self.wait_until_open()
                self._load(learned, in_flight)
                return
            except self._lost as further:
                error = further

    def _give_up(self, reason: str) -> ShardLost:
        """Return the error to raise when the shard cannot be brought back."""
        self.given_up = True
        tries, self.failures = self.failures, 0  # the next call may try again
        remedy = (
            "The bank stands after its last whole block: save it, or repair the cluster and "
            "continue with the next samples."
            if self.process_id
            else "No process has ever answered: do all nodes and this program have the same "
            "RAY_AUTH_MODE and token, and does a node have room for it? See docs/ray.md."
        )
        return ShardLost(
            f"Shard {self.number} of {self._shards} is lost: {reason}, after {tries} tries "
            f"(retries={self._settings.retries}, patience={self._settings.patience:g}). {remedy}"
        )

    def rebuild_locally(self, learned: list[SentBlock]) -> ShardWorker:
        """The same worker in this process: from the snapshot, and the blocks since."""
        objective, layout, size, needs = self._ray.get(self._shared)
        worker = ShardWorker(objective, layout, self.leaves, size, self.first_input, needs=needs)
        if self.snapshot is not None:
            worker.restore(self.snapshot)
        for block in learned:
            worker.replay(block.first, (block.points, block.targets))
        return worker

    # --- calls ------------------------------------------------------------------------------------

    def call(self, method: str, *arguments: Any, concurrently: bool = False) -> Any:
        """Call a method of the worker; return a reference to its answer."""
        self._traffic.calls += 1
        self._traffic.sent += array_bytes(arguments)
        if concurrently:
            return self.actor.call_concurrently.remote(self._epoch, method, *arguments)
        return self.actor.call.remote(method, *arguments)

    def learn(self, block: SentBlock) -> None:
        """Send a block; `block.replies` gets references to the reply and the snapshot."""
        self._traffic.calls += 1
        call = self.actor.call.options(num_returns=2)
        arguments = (block.first, block.reference, block.with_snapshot, block.by_sums)
        block.replies[self.number] = call.remote("learn", *arguments)
