"""The crew on Ray: what the driver sends to the shards, what comes back, and how nothing is lost.

Everything that a shard learns is known by the numbers of its samples. The driver keeps, for every
shard, a state from some blocks ago, and the blocks since. A shard that is lost gets another
process, that state, and these blocks; so does every shard when a block has to be undone.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._validate import Floats
from ..errors import ShardLost
from ..interrupts import held_interrupts
from ..layout import Layout
from ..setting import Board, Setting
from ..trace import BY_SLOT
from . import ray_link, sums
from .base import Coming, Crew, Driver, dealt
from .packing import pack, weight_of
from .ray_post import Post, Sent, Traffic
from .station import FIELDS, Kept

_SMALL = 16_384  # bytes that travel quicker with the question than through the object store
_SUMS_PAY = 2000  # slots from which on `exchange="auto"` sends sums
_AHEAD = 2  # blocks that shards may be ahead: one to learn, one that is on its way


class RayCrew(Crew):
    """Shards in processes of Ray's, on this machine or others."""

    guarded = True

    def __init__(
        self, settings: Any, setting: Setting, layout: Layout, board: Board, first_input: Floats
    ) -> None:
        self._ray = ray = ray_link.connected(settings.address)
        self._settings = settings
        self._layout = layout
        self._board = board
        self._first_input = first_input
        self._lost = ray_link.lost(ray)
        self.traffic = Traffic()
        shards = settings.shards or ray_link.processors(ray)
        hands = dealt(layout.families(layout.leaves), shards)
        size = settings.piece(layout, setting, len(first_input), len(hands))
        recipe = ray.put((setting, layout, size, bool(board.values.size)))
        self._posts = [
            Post(ray, number, sorted(leaf.number for leaf in hand), recipe, settings)
            for number, hand in enumerate(hands)
        ]
        cluster = ray_link.cluster_name(ray)
        for post, hand in zip(self._posts, hands, strict=True):
            post.places = np.array(sorted(place for leaf in hand for place in leaf.slots))
            idle = ray_link.idle_seat(cluster, settings.cpus)
            post.start(first_input, len(hands), idle)
            weakref.finalize(self, ray_link.release, cluster, settings.cpus, post.seats)
        self._models = any(not learner.saveable for learner in layout.learners)
        self._coming: deque[Coming] = deque()
        self._pending: deque[Sent] = deque()  # sent and not played; the first is being played
        self._played: list[Sent] = []  # since the states that are kept
        self._unkept = 0  # samples sent since a state was asked for
        self._astray = False  # shards have learned what was not played
        self._light = False
        self._excess: Floats | None = None
        for post in self._posts:
            self._guarded(post, post.finish)

    def prepare(self, driver: Driver) -> None:
        self._driver = driver
        self._weigh = driver.weigh
        wish, slots = self._settings.exchange, len(self._layout.slots)
        may = driver.figures is not None and wish != "gathered"
        self._may_sum = may and (wish == "sums" or slots >= _SUMS_PAY)

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
        answers = []
        for post in self._posts:

            def answer(post: Post = post) -> Any:
                if post.number not in asked:
                    if block is not None:  # it is aside there only when it has been learned
                        self._ray.get(block.replies[post.number][0])
                    asked[post.number] = ask(post)
                return self._ray.get(asked.pop(post.number))

            answers.append(self._guarded(post, answer))
            self.traffic.received += weight_of(answers[-1])
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

    def expect(self, blocks: Sequence[Coming], recorded: Sequence[str]) -> None:
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
        """The block on the board, sent."""
        points, targets = self._board.points[:count], self._board.new_targets[:count]
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
            self._coming = deque([Coming(first, points.copy(), targets.copy())])
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
            by_sums = self._light and self._may_sum
            sent = Sent(block.first, *content, reference, keep, by_sums)
            self.traffic.sent += weight_of(content)
            self._pending.append(sent)
            for post in self._posts:
                post.learn(self.traffic, sent)

    def play(self, first: int, count: int) -> None:
        block = self._present(first, count)
        self._send(1 + _AHEAD)
        if block.by_sums:
            self._weigh_by_sums(block, first, count)
        else:
            self._gather(block, count)
            self._weigh.run(first, count)
            self._mix(block, first, count)
            self._driver.tally.run(first, count)
        self._driver.charge_whole.run(first, count)
        self._pending.popleft()
        block.replies = {n: (None, state) for n, (_, state) in block.replies.items() if block.keep}
        self._played.append(block)
        self.traffic.samples += count
        self.traffic.blocks += 1
        self._rest()

    def _evidence(self, post: Post, block: Sent) -> Any:
        reply = self._guarded(post, lambda: self._ray.get(block.replies[post.number][0]))
        self.traffic.received += weight_of(reply)
        return reply

    def _gather(self, block: Sent, count: int) -> None:
        """Phase 1: the evidence of all slots, to the board."""
        excess = np.zeros(len(self._layout.slots))
        for post in self._posts:
            evidence, values, own = self._evidence(post, block)
            for rows, name in zip(evidence, FIELDS, strict=True):
                getattr(self._board, name)[:count, post.places] = rows
            if len(values):
                self._board.values[:count, :, post.places] = values
            excess[post.places] = own
        self._excess = excess

    def _mix(self, block: Sent, first: int, count: int) -> None:
        """Phase 2: the weights out, the leaves' sums to the board."""
        proposed = self._board.proposed[:count]
        answers = self._answers(
            "mix", lambda post: (first, pack(proposed[:, post.places], singly=True)), block
        )
        self._add(answers, count)

    def _add(self, answers: list[Any], count: int) -> None:
        sums.added(answers, [post.leaves for post in self._posts], self._driver.whole[:count])

    def _weigh_by_sums(self, block: Sent, first: int, count: int) -> None:
        """Both phases without a number a slot and sample; see `sums`."""
        driver = self._driver
        owned = [post.places for post in self._posts]
        replies = [self._evidence(post, block) for post in self._posts]
        self._excess = self._together([own for *_, own in replies], np.zeros(len(driver.weights)))
        driver.prepare.run(first, count)

        def ask(name: str, level: Floats) -> list[Any]:
            return self._answers(name, lambda _: (first, level), block)

        chosen = sums.solved(ask, [outline for outline, *_ in replies], owned, count)
        spoiled = [
            (samples, own[places])
            for own, (_, (samples, places), _) in zip(owned, replies, strict=True)
        ]
        rows, last = sums.proposed(chosen, driver.weights, spoiled, count)
        cost, loss = driver.totals
        answers = self._answers(
            "mix_and_tally",
            lambda post: (
                first,
                sums.of_shard(rows, post.places, count),
                cost[post.places],
                loss[post.places],
            ),
            block,
        )
        self._add([parts for parts, *_ in answers], count)
        self._board.best[:count] = np.min([best for _, best, *_ in answers], axis=0)
        driver.weights[:] = last
        assert driver.figures is not None
        for own, (_, _, costs, losses, figures) in zip(owned, answers, strict=True):
            cost[own], loss[own] = costs, losses
            driver.figures[:, own] = figures

    def keep(self, *, models: bool) -> int:  # noqa: ARG002
        self._commit()
        return len(self._played)

    def undo(self, kept: int) -> None:
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
        with held_interrupts():  # states and blocks fit together, always
            for post, state in zip(self._posts, states, strict=True):
                post.kept = state
            self._played.clear()

    # --- looking ----------------------------------------------------------------------------------

    def look(self, seen: int) -> None:
        point = self._board.look_point.copy()
        for post, values in zip(self._posts, self._each("look", seen, point), strict=True):
            self._board.slot_values[post.places] = values
        self._driver.blend.run(seen, 1)

    def forget_look(self) -> None:
        self._each("forget_look")

    def evaluate(self, seen: int, points: Floats, wanted: Floats) -> Floats:
        self._call_off()
        shared = self._ray.put(points)
        out = np.zeros((len(points), len(self._layout.slots)))
        answers = self._answers("evaluate", lambda post: (seen, shared, wanted[post.places]))
        self._rest()
        return self._together(answers, out)

    def variance(self, points: Floats) -> Floats:
        out = np.full((len(points), len(self._layout.slots)), np.nan)
        return self._together(self._each("variance", points), out)

    def _together(self, answers: list[Any], out: Floats) -> Floats:
        for post, values in zip(self._posts, answers, strict=True):
            out[..., post.places] = values
        return out

    def excess(self) -> Floats:
        if self._excess is None:
            self._excess = self._together(self._each("excess"), np.zeros(len(self._layout.slots)))
        return self._excess

    def dropped(self) -> Floats:
        return self._together(self._each("dropped"), np.zeros(len(self._layout.slots)))

    # --- state ------------------------------------------------------------------------------------

    def state(self) -> dict[str, Floats]:
        parts = self._states()
        result = {name: parts[0][name].copy() for name in ("inputs", "targets")}
        pieces: dict[str, list[tuple[Any, Floats]]] = {}
        for post, part in zip(self._posts, parts, strict=True):
            for name, array in part.items():
                if name not in result:
                    pieces.setdefault(name, []).append((self._numbers(post, name), array))
        for name, some in pieces.items():
            order = np.argsort(np.concatenate([numbers for numbers, _ in some]))
            result[name] = np.concatenate([array for _, array in some])[order]
        return result

    def _states(self) -> list[dict[str, Floats]]:
        """The state of every shard; of one that was given up, from what the driver has kept."""
        if not any(post.given_up for post in self._posts):
            try:
                return self._each("state")
            except ShardLost:
                pass
        return [post.local(self._first_input, self._played).state() for post in self._posts]

    def _numbers(self, post: Post, name: str) -> Any:
        """The numbers of the leaves in a shard's array: those of the group in its name."""
        group = int(name.partition("/")[0].removeprefix("group"))
        return np.array([n for n in post.leaves if self._layout.leaves[n].group == group])

    def restore(self, state: Mapping[str, Floats]) -> None:
        models = self.remember() if self._models else {}
        self._go_on_from(state, models)

    def recall(self, kept: Mapping[int, Any]) -> None:
        if self._models:
            self._go_on_from(self.state(), kept)

    def remember(self) -> dict[int, Any]:
        if not self._models:
            return {leaf.number: None for leaf in self._layout.leaves}
        return {n: kept for part in self._each("remember") for n, kept in part.items()}

    def _go_on_from(self, state: Mapping[str, Floats], models: Mapping[int, Any]) -> None:
        firsts = self._layout.first_leaves
        names = [name for name in state if name not in ("inputs", "targets")]
        kept = []
        for post in self._posts:
            own = {name: np.array(state[name]) for name in ("inputs", "targets")}
            for name in names:
                numbers = self._numbers(post, name)
                if len(numbers):
                    group = self._layout.leaves[int(numbers[0])].group
                    own[name] = np.array(state[name][numbers - firsts[group]])
            kept.append((own, {number: models.get(number) for number in post.leaves}))
        self._forget(kept)
        self._rest()

    def _forget(self, kept: Sequence[Kept | None]) -> None:
        """Let every shard go on from its state, None for nothing learned."""
        with held_interrupts():
            for post, state in zip(self._posts, kept, strict=True):
                post.kept = state
            self._played.clear()
            self._unkept = 0
            self._astray, self._excess = True, None
        self._call_off()

    def reset(self) -> None:
        self._first_input = np.zeros_like(self._first_input)
        self._forget([None] * len(self._posts))

    def begin(self, first_input: Floats) -> None:
        self._first_input = first_input.copy()
        self._each("begin", first_input)
