"""The actors of one bank: calls to all of them, blocks that are sent ahead, and recovery.

The driver keeps a snapshot of every shard from some blocks ago, and the blocks since. A shard that
is lost gets another process, the snapshot, and these blocks. So does every shard when a block has
to be undone. Sample numbers make sure that nothing is learned twice or left out.
"""

from __future__ import annotations

import gc
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ....errors import ShardLost
from ....kernels.sample_buffer import SampleBlock
from ....losses.objective import Objective
from ....utils.interrupts import defer_signals
from ....utils.validation import Floats
from ...layout import Layout
from ..base import partition
from . import cluster
from .actors import ActorHandle, SentBlock, lost_errors, release_actors, take_idle_actor
from .shard_worker import Snapshot
from .wire import Traffic, array_bytes

BLOCKS_AHEAD = 2  # blocks that shards may be ahead of the driver: one being learned, one on its way
_SMALL = 16_384  # bytes that travel faster with the call than through the object store


def _no_arguments(_: ActorHandle) -> tuple[Any, ...]:
    return ()


class ActorPool:
    """The shards of a bank in processes of a Ray cluster."""

    def __init__(
        self,
        settings: Any,
        objective: Objective,
        layout: Layout,
        first_input: Floats,
        *,
        needs: frozenset[str],
    ) -> None:
        self._ray = ray = cluster.connect(
            settings.address, allow_unauthenticated=settings.allow_unauthenticated
        )
        self._settings = settings
        self._lost = lost_errors(ray)
        self.traffic = Traffic()
        number = settings.shards or cluster.cpu_count(ray)
        shards = partition(layout.dependency_groups(layout.leaves), number)
        size = settings.step_length(layout, objective, len(first_input), len(shards))
        shared = ray.put((objective, layout, size, needs))
        self.handles = [
            ActorHandle(
                ray,
                settings,
                number,
                len(shards),
                sorted(leaf.number for leaf in leaves),
                np.array(sorted(slot for leaf in leaves for slot in leaf.slots)),
                shared,
                first_input,
                self.traffic,
            )
            for number, leaves in enumerate(shards)
        ]
        self._upcoming: deque[SampleBlock] = deque()  # not sent yet
        self._in_flight: deque[SentBlock] = deque()  # sent; the first is the driver's block
        self._learned: list[SentBlock] = []  # finished since the snapshots
        self._unsaved = 0  # samples sent since a snapshot was asked for
        self._ahead = False  # shards have learned blocks that the driver will not finish
        self._by_sums = False
        cluster_id = cluster.cluster_id(ray)
        gc.collect()  # banks that are gone release their processes: cheaper than new ones
        weakref.finalize(self, release_actors, cluster_id, settings.cpus, self.handles)
        for handle in self.handles:
            handle.start(take_idle_actor(cluster_id, settings.cpus))
        for handle in self.handles:
            self._retry(handle, handle.wait_until_open)

    # --- calls ------------------------------------------------------------------------------------

    def ask(
        self,
        method: str,
        *arguments: Any,
        of_shard: Callable[[ActorHandle], tuple[Any, ...]] = _no_arguments,
    ) -> list[Any]:
        """Call a method of all workers when they are where the driver is; return their answers.

        of_shard : further arguments for each shard.
        """
        self.synchronize()
        answers = self._call(method, lambda handle: (*arguments, *of_shard(handle)), None)
        self._clear_failures()
        return answers

    def ask_pending(
        self, block: SentBlock, method: str, of_shard: Callable[[ActorHandle], tuple[Any, ...]]
    ) -> list[Any]:
        """Call a method about a pending block, while the workers learn later ones."""
        return self._call(method, lambda handle: (block.first, *of_shard(handle)), block)

    def _call(
        self,
        method: str,
        arguments: Callable[[ActorHandle], tuple[Any, ...]],
        pending: SentBlock | None,
    ) -> list[Any]:
        def call(handle: ActorHandle) -> Any:
            return handle.call(method, *arguments(handle), concurrently=pending is not None)

        replies = {handle.number: call(handle) for handle in self.handles}

        def answer(handle: ActorHandle) -> Any:
            if handle.number not in replies:  # it was revived
                if pending is not None:  # the block is pending only when it has been learned again
                    self._ray.get(pending.replies[handle.number][0])
                replies[handle.number] = call(handle)
            return self._ray.get(replies.pop(handle.number))

        return self._answers(list(replies.values()), answer)

    def _answers(self, replies: list[Any], one: Callable[[ActorHandle], Any]) -> list[Any]:
        """Wait for all replies. If one is lost, get them one by one, and revive its shard."""
        try:
            answers = self._ray.get(replies)  # one wait for all costs less
        except (*self._lost, self._ray.exceptions.RayTaskError):
            answers = [self._retry(handle, partial(one, handle)) for handle in self.handles]
        self.traffic.received += array_bytes(answers)
        return answers

    def _retry(self, handle: ActorHandle, act: Callable[[], Any]) -> Any:
        """Call `act`; if the shard is lost, revive it and call again."""
        while True:
            try:
                return act()
            except self._lost as error:
                handle.revive(error, self._learned, list(self._in_flight))
            except self._ray.exceptions.RayTaskError as error:  # raised by the user's function
                raise error.cause from None

    def _clear_failures(self) -> None:
        """All shards have answered: their retries count from zero again."""
        for handle in self.handles:
            handle.failures, handle.given_up = 0, False

    def share(self, value: Any) -> Any:
        """`value` if it is small, else a reference to it in Ray's object store."""
        return value if array_bytes(value) < _SMALL else self._ray.put(value)

    # --- blocks -----------------------------------------------------------------------------------

    def prefetch(self, blocks: Sequence[SampleBlock], *, by_sums: bool) -> None:
        """Expect these blocks next; they are sent ahead."""
        self.synchronize()
        self._upcoming = deque(blocks)
        self._by_sums = by_sums

    def synchronize(self) -> None:
        """Expect no blocks, and let all shards go back to where the driver is."""
        self._upcoming.clear()
        self._by_sums = False
        self._ahead = self._ahead or bool(self._in_flight)
        self._in_flight.clear()
        if not self._ahead:
            return
        for handle in self.handles:
            self._retry(handle, partial(handle.reload, self._learned, []))
        self._ahead = False

    def begin_block(self, first: int, points: Floats, targets: Floats) -> SentBlock:
        """Return the driver's block: it was sent ahead as expected, or is sent now."""
        expected: Any = next(iter(self._in_flight or self._upcoming), None)
        if expected is None or not (
            expected.first == first
            and np.array_equal(expected.points, points)
            and np.array_equal(expected.targets, targets)
        ):
            self.synchronize()
            self._upcoming.append(SampleBlock(first, points.copy(), targets.copy()))
        self._send_blocks()
        return self._in_flight[0]

    def _send_blocks(self) -> None:
        """Send the driver's block, and up to `BLOCKS_AHEAD` later ones."""
        while self._upcoming and len(self._in_flight) <= BLOCKS_AHEAD:
            block = self._upcoming.popleft()
            self._unsaved += len(block.points)
            with_snapshot = self._unsaved >= self._settings.replay
            if with_snapshot:
                self._unsaved = 0
            samples = (
                block.points.copy(),
                block.targets.copy(),
            )  # the caller may change his arrays
            reference = self.share(samples)
            sent = SentBlock(block.first, *samples, reference, with_snapshot, self._by_sums)
            self.traffic.sent += array_bytes(samples)
            self._in_flight.append(sent)
            for handle in self.handles:
                handle.learn(sent)

    def learned(self, block: SentBlock) -> list[Any]:
        """Wait until all shards have learned a block; return the replies of `ShardWorker.learn`."""
        return self._answers(
            [block.replies[handle.number][0] for handle in self.handles],
            lambda handle: self._ray.get(block.replies[handle.number][0]),
        )

    def finish_block(self) -> None:
        """The driver has finished its block."""
        block = self._in_flight.popleft()
        snapshots = {n: (None, snapshot) for n, (_, snapshot) in block.replies.items()}
        block.replies = snapshots if block.with_snapshot else {}
        self._learned.append(block)
        self.traffic.samples += len(block.points)
        self._clear_failures()

    # --- recovery ---------------------------------------------------------------------------------

    def commit(self) -> int:
        """Store snapshots that are ready; return the number of blocks since, for `rollback`."""
        self._store_snapshots()
        return len(self._learned)

    def rollback(self, blocks: int) -> None:
        """Keep the first `blocks` since the snapshots, undo the others at the next call."""
        del self._learned[blocks:]
        self._upcoming.clear()
        self._in_flight.clear()
        self._ahead = True
        self._unsaved = sum(len(block.points) for block in self._learned)

    def _store_snapshots(self) -> None:
        """Fetch the snapshots after the last block, if it has some; drop the blocks until then."""
        if not (self._learned and self._learned[-1].with_snapshot):
            return
        block = self._learned[-1]
        block.with_snapshot = False
        try:
            snapshots = [self._ray.get(block.replies[handle.number][1]) for handle in self.handles]
        except self._lost:
            self._unsaved = self._settings.replay  # one of them is lost: with the next block, then
            return
        self.traffic.received += array_bytes(snapshots)
        with defer_signals():  # snapshots and blocks must fit together
            for handle, snapshot in zip(self.handles, snapshots, strict=True):
                handle.snapshot = snapshot
            self._learned.clear()

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        """Let every shard continue from its snapshot."""
        with defer_signals():
            for handle, snapshot in zip(self.handles, snapshots, strict=True):
                handle.snapshot = snapshot
            self._learned.clear()
            self._unsaved = 0
            self._ahead = True
        self.synchronize()
        self._clear_failures()

    def states(self) -> list[dict[str, Floats]]:
        """The arrays of every shard; if one was given up, computed from what the driver has."""
        if not any(handle.given_up for handle in self.handles):
            try:
                return self.ask("state")
            except ShardLost:
                pass
        return [handle.rebuild_locally(self._learned).state() for handle in self.handles]
