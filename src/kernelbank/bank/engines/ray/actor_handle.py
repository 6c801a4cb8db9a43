"""A post: one shard of a bank on Ray, as the driver sees it. It is brought back when it is lost."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....errors import KernelBankError, KernelBankWarning, ShardLost
from ....utils.validation import Floats
from . import cluster as ray_link
from .shard_worker import Kept, Station
from .wire import weight_of

_SAY_AFTER = 5.0  # seconds of waiting for a place


@dataclass
class Traffic:
    """Bytes of arrays between the driver and the shards, and how many samples they were for.

    A block of samples counts once, although every node fetches its own copy.
    """

    samples: int = 0
    blocks: int = 0
    calls: int = 0
    sent: int = 0
    received: int = 0

    @property
    def per_sample(self) -> float:
        """Bytes a sample, both ways."""
        return (self.sent + self.received) / max(1, self.samples)


@dataclass
class Sent:
    """A block that the shards have got."""

    first: int
    points: Floats
    targets: Floats
    reference: Any
    keep: bool
    supports_distributed_qp: bool
    replies: dict[int, Any] = field(default_factory=dict)


class Post:
    """The process of one shard, what is needed to bring it back, and questions to it."""

    def __init__(self, ray: Any, number: int, leaves: list[int], recipe: Any, settings: Any):
        self.number = number
        self.leaves = leaves
        self.places = np.zeros(0, dtype=np.int64)
        self.kept: Kept | None = None
        self.tries = 0
        self.given_up = False
        self.seats: list[Any] = []  # one, or none: a list, so that whoever cleans up shares it
        self.process = 0
        self._epoch = 0
        self._ray = ray
        self._recipe = recipe
        self._settings = settings
        self._lost = ray_link.lost(ray)

    # --- bringing it to life ----------------------------------------------------------------------

    def start(self, first_input: Floats, shards: int, idle: Any = None) -> None:
        """Take a process, an idle one or a new one, for the station; `finish` waits for it."""
        for seat in self.seats:
            self._ray.kill(seat)
        self.seats[:] = [idle or ray_link.new_seat(self._settings.cpus)]
        self._shards = shards
        self._first_input = first_input
        self._placed = self.seats[0].process.remote(ray_link.edition())

    def open(self, first_input: Floats) -> Any:
        """Make the station anew, with nothing learned."""
        self._epoch += 1
        return self.seats[0].open.remote(self._epoch, self._recipe, self.leaves, first_input)

    def finish(self) -> None:
        """Wait until the process has a place; it may need a node that is still to join."""
        patience = self._settings.patience
        ready, _ = self._ray.wait([self._placed], timeout=min(_SAY_AFTER, patience))
        if not ready:
            began = time.monotonic()
            warnings.warn(
                f"shard {self.number} of {self._shards} waits for a process in the Ray cluster, "
                f"{patience:g} seconds at most. If no node has room for it, another one may join.",
                KernelBankWarning,
                stacklevel=2,
            )
            left = max(0.0, patience - _SAY_AFTER)
            ready, _ = self._ray.wait([self._placed], timeout=left)
            if not ready:
                waited = time.monotonic() - began + min(_SAY_AFTER, patience)
                raise self.gone(f"it got no process within {waited:.0f} seconds")
        self.process = self._ray.get(self._placed)
        self._ray.get(self.open(self._first_input))

    def gone(self, why: str) -> ShardLost:
        """The error to raise when it cannot be brought back."""
        self.given_up = True
        tries, self.tries = self.tries, 0  # whoever asks again may try again
        remedy = (
            "The bank stands after its last whole block: save it, or repair the cluster and go on "
            "with the samples from there."
            if self.process
            else "None has ever answered: do all nodes and this program have the same "
            "RAY_AUTH_MODE and token, and has a node room for it? See docs/ray.md."
        )
        return ShardLost(
            f"Shard {self.number} of {self._shards} is lost: {why}, after {tries} tries "
            f"(retries={self._settings.retries}, patience={self._settings.patience:g}). {remedy}"
        )

    def revive(self, error: Exception, first_input: Floats, again: Callable[[Post], None]) -> None:
        """Start anew until `again`, which gives it back what it knew, succeeds."""
        while True:
            if getattr(error, "actor_init_failed", False):
                raise KernelBankError(
                    "A process of the cluster could not load kernelbank. Install it, with the "
                    f"versions that the driver has, on every node: {ray_link.edition()}."
                ) from error
            self.tries += 1
            if self.tries > self._settings.retries:
                reason = str(error).strip().splitlines() or [type(error).__name__]
                raise self.gone(f"its process ended ({reason[0]})") from error
            try:
                self.start(first_input, self._shards)
                self.finish()
                again(self)
                return
            except self._lost as further:
                error = further

    def local(self, first_input: Floats, blocks: list[Sent]) -> Station:
        """The same station in this process: from what was kept, and the blocks since."""
        objective, layout, size, values = self._ray.get(self._recipe)
        station = Station(objective, layout, self.leaves, size, first_input, values=values)
        if self.kept is not None:
            station.restore(self.kept[0])
            station.recall(self.kept[1])
        for block in blocks:
            station.replay(block.first, (block.points, block.targets))
        return station

    # --- questions --------------------------------------------------------------------------------

    def ask(self, traffic: Traffic, name: str, *arguments: Any, aside: bool = False) -> Any:
        """Send a question; the answer comes later."""
        traffic.calls += 1
        traffic.sent += weight_of(arguments)
        if aside:
            return self.seats[0].ask_aside.remote(self._epoch, name, *arguments)
        return self.seats[0].ask.remote(name, *arguments)

    def learn(self, traffic: Traffic, block: Sent) -> None:
        """Send a block; `block.replies` will have the evidence and the state."""
        traffic.calls += 1
        method = self.seats[0].ask.options(num_returns=2)
        question = (block.first, block.reference, block.keep, block.supports_distributed_qp)
        block.replies[self.number] = method.remote("learn", *question)

    def load(self, blocks: list[Sent], pending: list[Sent], traffic: Traffic) -> None:
        """Give a fresh station what was kept and the blocks since, and send those under way."""
        asked = []
        if self.kept is not None:
            asked.append(self.ask(traffic, "restore", self.kept[0]))
            asked.append(self.ask(traffic, "recall", self.kept[1]))
        for block in blocks:
            asked.append(self.ask(traffic, "replay", block.first, block.reference))
        for block in pending:
            self.learn(traffic, block)
        self._ray.get(asked)
