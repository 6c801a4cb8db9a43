"""How things are timed: side by side in one run, best of several, with the spread beside it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Time:
    """Seconds per unit of work: the best of several runs, and how much worse the worst was."""

    best: float
    spread: float

    def __truediv__(self, other: Time) -> float:
        return self.best / other.best


def interleaved(runs: dict[str, Callable[[], float]], repeats: int) -> dict[str, Time]:
    """Time all runs in turn, several times over, so that a slow minute hits all of them.

    A run builds what it needs, and returns the seconds that the work itself took per unit.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            gc.collect()
            seconds[name].append(run())
    return {name: Time(min(s), max(s) / min(s)) for name, s in seconds.items()}


def timed(work: Callable[[], object], units: int = 1) -> float:
    """Seconds per unit of one call."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) / units
