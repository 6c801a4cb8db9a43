"""The threads engine: shards side by side on the cores of this machine."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...losses.objective import Objective
from ...native.phases import Phases
from ...native.workspace import Workspace
from ...utils import validation as check
from ...utils.validation import Floats
from ..layout import Layout
from .base import CombineStage, Engine, Executor, checked_block
from .local import LocalExecutor

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_WORTH_IT = 512  # leaves times samples, a microsecond each; fewer finish before a thread wakes
_SHARDS_EACH = 8  # per thread, so that a slow or busy core delays the others little


@dataclass(frozen=True)
class Threads(Engine):
    """Run in several threads, without the interpreter's lock. Same bits as `Serial`.

    Threads learn their leaves for a whole block before they synchronize. So they help in `run` with
    many slots; `learn_one` runs in the calling thread.

    Parameters
    ----------
    threads : how many; by default one per core that this process may use.
    block : samples per block, at most 256; by default chosen. Changes no bit.

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

    @property
    def workers(self) -> int:
        return self.threads or _cores()

    def open(
        self,
        objective: Objective,
        layout: Layout,
        workspace: Workspace,
        first_input: Floats,
        leader: Executor | None = None,
    ) -> Executor:
        return ThreadExecutor(objective, layout, workspace, first_input, self.workers, leader)


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ThreadExecutor(LocalExecutor):
    """Shards in threads: the calling one and a pool that is made at the first long block."""

    def __init__(
        self,
        objective: Objective,
        layout: Layout,
        workspace: Workspace,
        first_input: Floats,
        threads: int,
        leader: Executor | None = None,
    ) -> None:
        shards = threads * _SHARDS_EACH if threads > 1 else 1
        super().__init__(objective, layout, workspace, first_input, shards, leader)
        self._threads = threads
        self._leader = leader if isinstance(leader, ThreadExecutor) else None
        self._pool: ThreadPoolExecutor | None = None
        self._process = 0

    def connect(self, stage: CombineStage) -> None:
        super().connect(stage)
        learning = [shard.learn_phases for shard in self._shards]
        mixing = [shard.mix_phases for shard in self._shards]
        self._stages = [
            [Phases([self._buffer.add_samples])],
            learning,
            *stage.weight_phases.stages(),
            mixing,
        ]
        self._stages.append([stage.cost_phases])

    def run_block(self, first: int, count: int) -> None:
        if not self._worth_it(count):
            super().run_block(first, count)
            return
        self._start_threads()
        self.is_cut_off = True
        for stage in self._stages:
            self._together(stage, first, count)
        self.is_cut_off = False

    def single_sample_phases(self) -> tuple[Phases, Phases, Phases] | None:
        return None if self._worth_it(1) else super().single_sample_phases()

    def _worth_it(self, count: int) -> bool:
        return count * len(self._layout.leaves) >= _WORTH_IT and len(self._shards) > 1

    def _start_threads(self) -> None:
        """Make the pool with all its threads, before anything is learned: a start may fail.

        All outputs of a bank share one pool.
        """
        if self._leader is not None:
            self._leader._start_threads()
            self._pool, self._process = self._leader._pool, self._leader._process
            return
        if self._pool is not None and self._process == os.getpid():
            return  # (threads do not survive a fork)
        number = self._threads - 1
        from concurrent.futures import ThreadPoolExecutor  # slow to import

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

    def _together(self, stage: list[Phases], first: int, count: int) -> None:
        """Run the members of a stage; whichever thread is free takes the next one."""
        from concurrent.futures import wait

        assert self._pool is not None
        members = iter(stage)

        def work() -> None:
            for member in members:
                member.run(first, count)

        others = [self._pool.submit(work) for _ in range(min(self._threads, len(stage)) - 1)]
        try:
            work()
        finally:  # whatever happens here, no thread goes on
            wait(others)
        for other in others:
            other.result()
