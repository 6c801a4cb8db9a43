"""When a run was at work, how long and on what: of the machine, not of the rows."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from ... import __version__
from ...errors import FileRefused

READING = "reading, and waiting for rows"
COLUMNS = "turning cells into numbers"
BANK = "the bank"
SNAPSHOTS = "snapshots for pictures"
WRITING = "writing predictions"
CHECKPOINTS = "checkpoints"
PAGE = "the live page"

PARTS = (READING, COLUMNS, BANK, SNAPSHOTS, WRITING, CHECKPOINTS, PAGE)

_LONG = 10**12


class Diary:
    """Seconds by part over all processes of a run, as far as their work was kept."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.started = _now()
        """When the first process began."""
        self.starts = 1
        """How many processes there were."""
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.versions = {
            "kernelbank": __version__,
            "Python": platform.python_version(),
            "numpy": version("numpy"),
            "numba": version("numba"),
            "system": f"{platform.system()} {platform.machine()}",
        }
        self._clock = clock

    @contextmanager
    def during(self, part: str) -> Iterator[None]:
        """What happens inside belongs to this part."""
        begin = self._clock()
        try:
            yield
        finally:
            self.seconds[part] += self._clock() - begin

    def each(self, part: str, items: Iterator[Any]) -> Iterator[Any]:
        """The items; what it takes to get each belongs to this part."""
        while True:
            with self.during(part):
                item = next(items, None)
            if item is None:
                return
            yield item

    def plain(self) -> dict[str, Any]:
        """As what JSON can hold."""
        return {
            "started": self.started,
            "starts": self.starts,
            "updated": _now(),
            "seconds": {part: round(spent, 6) for part, spent in self.seconds.items()},
            "versions": self.versions,
        }

    def go_on(self, before: Mapping[str, Any]) -> None:
        """This process goes on with what another has written. Versions are those of now."""
        then = looked_at(before)
        self.started, self.starts = then["started"], then["starts"] + 1
        self.seconds = {part: self.seconds[part] + then["seconds"][part] for part in PARTS}


def looked_at(told: Mapping[str, Any]) -> dict[str, Any]:
    """What `Diary.plain` said. Nothing of it is believed before it is looked at."""
    starts = told["starts"]
    if isinstance(starts, bool) or not isinstance(starts, int) or not 0 < starts < _LONG:
        raise FileRefused(f"its diary claims {starts!r} starts.")
    spent = {part: float(told["seconds"].get(part, 0.0)) for part in PARTS}
    if not all(0 <= seconds < _LONG for seconds in spent.values()):
        raise FileRefused("its diary claims impossible times.")
    return {
        "started": datetime.fromisoformat(told["started"]).isoformat(),
        "starts": starts,
        "updated": datetime.fromisoformat(told["updated"]).isoformat(),
        "seconds": spent,
        "versions": {str(name): str(number) for name, number in told["versions"].items()},
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
