"""Where answers go. Each output can say how far it is, and go back there after a crash."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...errors import RunRefused

Row = tuple[Any, ...]
"""The plain values of one answer, None where there is none."""

PIECE = 1 << 20
"""Bytes that are read at once when a file is compared with what was written."""

PUT_BACK = "Put back what was there, or start anew with another --state and other outputs."


class Output:
    """Something to which rows are appended.

    A new run calls `vacant`, then `begin`; one that goes on calls `check`, then `rewind`. Neither
    `vacant` nor `check` changes anything.
    """

    place: str
    """Where it is, in words that a later process compares."""

    def vacant(self) -> None:
        """Refuse a place where something is already."""
        raise NotImplementedError

    def begin(self) -> None:
        """Take the place."""
        raise NotImplementedError

    def write(self, rows: Sequence[Row]) -> None:
        """Append; the rows need not last before `mark`."""
        raise NotImplementedError

    def mark(self) -> dict[str, Any]:
        """Make everything so far last, and say how far it is, as plain data."""
        raise NotImplementedError

    def check(self, mark: Mapping[str, Any]) -> None:
        """Refuse to go on if what was there at a mark is not there now."""
        raise NotImplementedError

    def rewind(self, mark: Mapping[str, Any]) -> None:
        """Go back to a mark that was checked: what was written after it is taken away."""
        raise NotImplementedError

    def close(self, *, whole: bool) -> None:
        """Let go; `whole` if all is well and what waits should be seen."""


def occupied(place: object) -> RunRefused:
    """The error for an output that is there before its run."""
    return RunRefused(
        f"{place} exists, and belongs to no run with this --state. Remove it, or give another."
    )


@contextmanager
def told(path: object) -> Iterator[None]:
    """What the system refuses is said with the name of the file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise RunRefused(f"{path} cannot be written to: {reason}.") from None


def fsync_folder(path: Path) -> None:
    """Make the names in a folder last."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def worded(value: Any) -> str:
    """A float with all its digits: what is read again is the same number."""
    return repr(value) if isinstance(value, float) else str(value)
