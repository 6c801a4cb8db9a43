"""How speed is measured: data with a seed, and timers.

Things are timed in turn within one run; the best of several repeats counts, with the spread.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import kernelbank as kb

WIDTHS = np.linspace(0.1, 10, 20)


@dataclass(frozen=True)
class BestTime:
    """Seconds per unit of work: the best of several runs, and how much worse the worst was."""

    best: float
    spread: float

    def __truediv__(self, other: BestTime) -> float:
        return self.best / other.best


def interleaved(runs: dict[str, Callable[[], float]], repeats: int) -> dict[str, BestTime]:
    """Time all runs in turn, several times, so that a slow minute affects all of them.

    A run prepares what it needs, and returns the seconds per unit of the work itself.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            gc.collect()
            seconds[name].append(run())
    return {name: BestTime(min(s), max(s) / min(s)) for name, s in seconds.items()}


def timed(work: Callable[[], object], units: int = 1) -> float:
    """Seconds per unit of one call."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) / units


def ar1(samples):
    """The paper's signal, on a regular and on an irregular grid."""
    x, y = kb.datasets.ar1(0, samples)
    irregular = np.cumsum(np.random.default_rng(1).uniform(0.5, 1.5, samples))
    return x, irregular, y


def paper_bank(slots=20, budget=100, engine="serial", spacing="linear"):
    """A bank with the paper's settings, and another dictionary, budget or engine."""
    return kb.KernelBank(
        kb.gaussian_grid(0.1, 10, slots, spacing=spacing),
        kb.learners.Norma(0.05, budget),
        window=10,
        regularization=0.01,
        engine=engine,
    )


@dataclass(frozen=True)
class Measurement:
    """One figure. `goal` is what it should reach, `stretch_goal` what would be better still."""

    name: str
    value: float
    unit: str
    goal: float | None = None
    stretch_goal: float | None = None
    larger_is_better: bool = False
    detail: str = ""
    noise: float = 1.0
    curve: dict[str, list[float]] = field(default_factory=dict)

    def reached(self) -> str:
        """ "beyond", "yes", "no", or "" where there is no goal."""
        if self.goal is None:
            return ""
        for limit, word in ((self.stretch_goal, "beyond"), (self.goal, "yes")):
            if limit is not None and (
                self.value >= limit if self.larger_is_better else self.value <= limit
            ):
                return word
        return "no"


def noise(times: dict[str, BestTime]) -> float:
    return max(time.spread for time in times.values())


def microseconds(time: BestTime) -> str:
    return f"{time.best * 1e6:.2f} us"


def run_seconds(x, y, warm=300, **options) -> float:
    """Seconds per sample of `run` after a warm-up that fills the budget."""
    own = paper_bank(**options)
    own.run(x[:warm], y[:warm], record=())
    return timed(lambda: own.run(x[warm:], y[warm:], record=()), len(x) - warm)
