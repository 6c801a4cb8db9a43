"""The threads engine: shards side by side on the cores of this machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from .. import _validate as check
from .._hot.table import Phases
from .._validate import Floats
from ..interrupts import held_interrupts
from ..layout import Layout
from ..setting import Board, Setting
from ..shard import Shard
from .base import Crew, Engine, LocalCrew, checked_block

_WORTH_IT = 512  # leaves times samples, a microsecond each: fewer are done before a thread wakes


@dataclass(frozen=True)
class Threads(Engine):
    """Work in several threads, without the interpreter's lock. Same bits as `Serial`.

    Each thread takes its leaves through a whole block before the threads meet, so the gain begins
    with `run` on blocks and dictionaries of some size; `learn_one` works in the calling thread.

    Parameters
    ----------
    threads : how many; by default one per core that this process may use.
    block : samples worked between two meetings, at most 256; by default chosen. Changes no bit.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(engine=kb.engines.Threads(2))
    """

    threads: int | None = None
    block: int | None = None

    def __post_init__(self) -> None:
        if self.threads is not None:
            remedy = "Give 1 or more, or None for all cores."
            check.count("threads", self.threads, "Threads", remedy)
        checked_block(self.block, "Threads")

    def open(self, setting: Setting, layout: Layout, board: Board, first_input: Floats) -> Crew:
        return ThreadCrew(setting, layout, board, first_input, self.threads or _cores())


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ThreadCrew(LocalCrew):
    """Shards in threads: the calling one and a pool that is made at the first long block."""

    def __init__(
        self, setting: Setting, layout: Layout, board: Board, first_input: Floats, threads: int
    ) -> None:
        super().__init__(setting, layout, board, first_input, threads)
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0

    def prepare(self, weigh: Phases, charge: Phases, blend: Phases) -> None:
        super().prepare(weigh, charge, blend)
        self._weigh, self._charge = weigh, charge

    def play(self, first: int, count: int) -> None:
        if not self._worth_it(count):
            super().play(first, count)
            return
        self._start_threads()
        with held_interrupts():  # the threads meet twice in a block: nothing may come between
            self._each(lambda shard: shard.learning.run(first, count))
            self._weigh.run(first, count)
            self._each(lambda shard: shard.mixing.run(first, count))
            self._charge.run(first, count)

    def single(self) -> tuple[Phases, Phases] | None:
        return None if self._worth_it(1) else super().single()

    def _worth_it(self, count: int) -> bool:
        return count * len(self._layout.leaves) >= _WORTH_IT and len(self._shards) > 1

    def _start_threads(self) -> None:
        """Make the pool with all its threads, before anything is learned: a start may fail."""
        if self._pool is not None and self._process == os.getpid():
            return  # (threads do not survive a fork)
        number = len(self._shards) - 1
        pool = ThreadPoolExecutor(number, "kernelbank")
        go = threading.Event()
        try:
            for _ in range(number):
                pool.submit(go.wait)
        except BaseException:
            go.set()
            pool.shutdown(wait=False)
            raise
        go.set()
        self._pool, self._process = pool, os.getpid()

    def _each(self, work: Callable[[Shard], None]) -> None:
        """Have every shard do its part; the parts write to different places."""
        assert self._pool is not None
        others = [self._pool.submit(work, shard) for shard in self._shards[1:]]
        work(self._shards[0])
        for other in others:
            other.result()
