"""The posts of one executor on Ray: questions to all of them, blocks on their way, and the way back.

Everything that a shard learns is known by the numbers of its samples. The driver keeps, for every
shard, a state from some blocks ago, and the blocks since. A shard that is lost gets another
process, that state, and these blocks; so does every shard when a block has to be undone.
"""

from __future__ import annotations

import gc
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ....kernels.sample_buffer import SampleBlock
from ....losses.objective import Objective
from ....native.workspace import Workspace
from ....utils.interrupts import defer_sigint
from ....utils.validation import Floats
from ...layout import Layout
from ...trace import BY_SLOT
from ..base import Executor, partition
from . import cluster as ray_link
from .actor_handle import Post, Sent, Traffic
from .shard_worker import Kept
from .wire import weight_of

_SMALL = 16_384  # bytes that travel quicker with the question than through the object store
AHEAD = 2  # blocks that shards may be ahead: one to learn, one that is on its way


class PostedCrew(Executor):
    """Shards in processes of Ray's: how they are reached, and how nothing is lost."""

    fallible = True

    def __init__(
        self,
        settings: Any,
        objective: Objective,
        layout: Layout,
        workspace: Workspace,
        first_input: Floats,
    ) -> None:
        self._ray = ray = ray_link.connected(settings.address)
        self._settings = settings
        self._layout = layout
        self._workspace = workspace
        self._first_input = first_input
        self._lost = ray_link.lost(ray)
        self.traffic = Traffic()
        shards = settings.shards or ray_link.processors(ray)
        hands = partition(layout.dependency_groups(layout.leaves), shards)
        size = settings.piece(layout, objective, len(first_input), len(hands))
        recipe = ray.put((objective, layout, size, bool(workspace.values.size)))
        self._posts = [
            Post(ray, number, sorted(leaf.number for leaf in hand), recipe, settings)
            for number, hand in enumerate(hands)
        ]
        cluster = ray_link.cluster_name(ray)
        gc.collect()  # banks that are gone give their processes back: cheaper than new ones
        for post, hand in zip(self._posts, hands, strict=True):
            post.places = np.array(sorted(place for leaf in hand for place in leaf.slots))
            idle = ray_link.idle_seat(cluster, settings.cpus)
            post.start(first_input, len(hands), idle)
            weakref.finalize(self, ray_link.release, cluster, settings.cpus, post.seats)
        self._models = any(not learner.saveable for learner in layout.learners)
        self._coming: deque[SampleBlock] = deque()
        self._pending: deque[Sent] = deque()  # sent and not played; the first is being played
        self._played: list[Sent] = []  # since the states that are kept
        self._unkept = 0  # samples sent since a state was asked for
        self._astray = False  # shards have learned what was not played
        self._light = False  # nothing by slot is recorded of what is expected
        self._may_sum = False
        self._excess: Floats | None = None
        for post in self._posts:
            self._guarded(post, post.finish)

    @property
    def processes(self) -> list[int]:
        """The numbers of the shards' processes on their machines."""
        return [post.process for post in self._posts]

    # --- asking, and what is done when nobody answers ---------------------------------------------

    def _guarded(self, post: Post, act: Callable[[], Any]) -> Any:
        """Do it; a post that is lost is brought back, and it is done again."""
        while True:
            try:
                return act()
            except self._lost as error:
                self._revive(post, error)
            except self._ray.exceptions.RayTaskError as error:  # a user's own function has failed
                raise error.cause from None

    def _revive(self, post: Post, error: Exception) -> None:
        def again(found: Post) -> None:
            found.load(self._played, list(self._pending), self.traffic)

        post.revive(error, self._first_input, again)

    def _answers(
        self, name: str, arguments: Callable[[Post], tuple[Any, ...]], block: Sent | None = None
    ) -> list[Any]:
        """The answers of all posts to a question; about a block, if it waits for its weights."""
        aside = block is not None

        def ask(post: Post) -> Any:
            return post.ask(self.traffic, name, *arguments(post), aside=aside)

        asked = {post.number: ask(post) for post in self._posts}

        def answer(post: Post) -> Any:
            if post.number not in asked:
                if block is not None:  # it is aside there only when it has been learned
                    self._ray.get(block.replies[post.number][0])
                asked[post.number] = ask(post)
            return self._ray.get(asked.pop(post.number))

        return self._heard(list(asked.values()), answer)

    def _heard(self, replies: list[Any], again: Callable[[Post], Any]) -> list[Any]:
        """The replies of all posts. If one is lost they are heard one by one, by `again`."""
        try:
            answers = self._ray.get(replies)  # one wait for all costs less
        except (*self._lost, self._ray.exceptions.RayTaskError):
            answers = [self._guarded(post, partial(again, post)) for post in self._posts]
        self.traffic.received += weight_of(answers)
        return answers

    def _each(self, name: str, *arguments: Any) -> list[Any]:
        """The answers of all posts, which stand where the driver stands."""
        self._call_off()
        answers = self._answers(name, lambda _: arguments)
        self._rest()
        return answers

    def _rest(self) -> None:
        for post in self._posts:
            post.tries, post.given_up = 0, False

    # --- blocks -----------------------------------------------------------------------------------

    def prefetch(self, blocks: Sequence[SampleBlock], recorded: Sequence[str]) -> None:
        self._call_off()
        self._coming = deque(blocks)
        self._light = not set(recorded) & set(BY_SLOT)

    def _call_off(self) -> None:
        """Nothing more is expected, and all shards stand where the driver stands."""
        self._coming.clear()
        self._light = False
        self._astray = self._astray or bool(self._pending)
        self._pending.clear()
        if not self._astray:
            return
        for post in self._posts:

            def reload(post: Post = post) -> None:
                self._ray.get(post.open(self._first_input))
                post.load(self._played, [], self.traffic)

            self._guarded(post, reload)
        self._astray = False

    def _present(self, first: int, count: int) -> Sent:
        """The block on the workspace, sent."""
        points, targets = self._workspace.points[:count], self._workspace.new_targets[:count]
        if self._pending:
            now: Any = self._pending[0]
        else:
            now = self._coming[0] if self._coming else None
        if now is None or not (
            now.first == first
            and np.array_equal(now.points, points)
            and np.array_equal(now.targets, targets)
        ):
            self._call_off()
            self._coming = deque([SampleBlock(first, points.copy(), targets.copy())])
        self._send(1)
        return self._pending[0]

    def _send(self, ahead: int) -> None:
        """Let so many blocks be under way."""
        while self._coming and len(self._pending) < ahead:
            block = self._coming.popleft()
            self._unkept += len(block.points)
            keep = self._unkept >= self._settings.replay
            if keep:
                self._unkept = 0
            content = (block.points.copy(), block.targets.copy())  # a caller may change his own
            small = weight_of(content) < _SMALL
            reference = content if small else self._ray.put(content)
            supports_distributed_qp = self._light and self._may_sum
            sent = Sent(block.first, *content, reference, keep, supports_distributed_qp)
            self.traffic.sent += weight_of(content)
            self._pending.append(sent)
            for post in self._posts:
                post.learn(self.traffic, sent)

    def _learned(self, block: Sent) -> list[Any]:
        """What all posts say when they have learned a block."""
        return self._heard(
            [block.replies[post.number][0] for post in self._posts],
            lambda post: self._ray.get(block.replies[post.number][0]),
        )

    def _done(self, block: Sent) -> None:
        """The first block under way has been played."""
        self._pending.popleft()
        block.replies = {n: (None, state) for n, (_, state) in block.replies.items() if block.keep}
        self._played.append(block)
        self.traffic.samples += len(block.points)
        self.traffic.blocks += 1
        self._rest()

    def snapshot(self, *, models: bool) -> int:
        self._commit()
        return len(self._played)

    def rollback(self, kept: int) -> None:
        del self._played[kept:]
        self._coming.clear()
        self._pending.clear()
        self._astray = True
        self._excess = None
        self._unkept = sum(len(block.points) for block in self._played)

    def _commit(self) -> None:
        """Keep the states after the last block, if they were asked for; earlier blocks can go."""
        if not (self._played and self._played[-1].keep):
            return
        block = self._played[-1]
        block.keep = False
        try:
            states = [self._ray.get(block.replies[post.number][1]) for post in self._posts]
        except self._lost:
            self._unkept = self._settings.replay  # one of them is gone: at the next block, then
            return
        self.traffic.received += weight_of(states)
        with defer_sigint():  # states and blocks fit together, always
            for post, state in zip(self._posts, states, strict=True):
                post.kept = state
            self._played.clear()

    def _forget(self, kept: Sequence[Kept | None]) -> None:
        """Let every shard go on from its state, None for nothing learned."""
        with defer_sigint():
            for post, state in zip(self._posts, kept, strict=True):
                post.kept = state
            self._played.clear()
            self._unkept = 0
            self._astray, self._excess = True, None
        self._call_off()
