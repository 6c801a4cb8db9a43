"""When a run was active, and how long each of its activities took."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TypeVar

from .. import __version__
from ..errors import FileRefused
from . import Saved

T = TypeVar("T")

READING = "reading, and waiting for rows"
ENCODING = "turning cells into numbers"
MODEL = "the model"
SNAPSHOTS = "snapshots for charts"
WRITING = "writing predictions"
CHECKPOINTS = "checkpoints"
PAGE = "the live page"

ACTIVITIES = (READING, ENCODING, MODEL, SNAPSHOTS, WRITING, CHECKPOINTS, PAGE)

_LIMIT = 10**12


class Timings:
    """Seconds by activity, summed over all processes of a run up to its last checkpoint."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.started = _now()
        """When the first process started."""
        self.starts = 1
        """How many processes have worked on the run."""
        self.seconds = dict.fromkeys(ACTIVITIES, 0.0)
        self.versions = {
            "kernelbank": __version__,
            "Python": platform.python_version(),
            "numpy": version("numpy"),
            "system": f"{platform.system()} {platform.machine()}",
        }
        self._clock = clock

    @contextmanager
    def measure(self, activity: str) -> Iterator[None]:
        """Add the time of the `with` block to an activity."""
        begin = self._clock()
        try:
            yield
        finally:
            self.seconds[activity] += self._clock() - begin

    def measure_each(self, activity: str, items: Iterator[T]) -> Iterator[T]:
        """Yield the items; the time to get each one is added to an activity."""
        while True:
            with self.measure(activity):
                item = next(items, None)
            if item is None:
                return
            yield item

    def to_json(self) -> dict[str, object]:
        """The state as JSON data, for the checkpoint and the page."""
        return {
            "started": self.started,
            "starts": self.starts,
            "updated": _now(),
            "seconds": {name: round(spent, 6) for name, spent in self.seconds.items()},
            "versions": self.versions,
        }

    def restore(self, saved: Saved) -> None:
        """Continue from what an earlier process saved; the versions are those of this process."""
        earlier = check_timings(saved)
        self.started, self.starts = earlier["started"], earlier["starts"] + 1
        for name, seconds in earlier["seconds"].items():
            self.seconds[name] += seconds


def check_timings(saved: Saved) -> Saved:
    """What `Timings.to_json` returned, after checking it."""
    starts = saved["starts"]
    if isinstance(starts, bool) or not isinstance(starts, int) or not 0 < starts < _LIMIT:
        raise FileRefused(f"its timings claim {starts!r} starts.")
    seconds = {name: float(saved["seconds"].get(name, 0.0)) for name in ACTIVITIES}
    if not all(0 <= spent < _LIMIT for spent in seconds.values()):
        raise FileRefused("its timings claim impossible times.")
    return {
        "started": datetime.fromisoformat(saved["started"]).isoformat(),
        "starts": starts,
        "updated": datetime.fromisoformat(saved["updated"]).isoformat(),
        "seconds": dict(seconds),
        "versions": {str(name): str(number) for name, number in saved["versions"].items()},
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
