"""What every sink offers. A sink says how far it is, and can go back there after a crash."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...errors import FileRefused, RunRefused

Row = tuple[Any, ...]
"""The plain values of one prediction, None where there is none."""

CHUNK_BYTES = 1 << 20
"""How many bytes are read at once when a file is compared with its hash."""

RESTORE = "Restore what was there, or start a new run with another --state and other outputs."


class Sink(ABC):
    """Something to which rows are appended.

    A new run calls `check_vacant`, then `start`; a resumed one calls `check`, then `rewind`.
    Neither `check_vacant` nor `check` changes anything.
    """

    address: str
    """Where it is; a resumed run must have the same address."""

    can_rewind = True
    """Whether `rewind` removes what was written after a commit."""

    @abstractmethod
    def check_vacant(self) -> None:
        """Refuse an address at which something is already."""

    @abstractmethod
    def start(self) -> None:
        """Take the address."""

    @abstractmethod
    def write(self, rows: Sequence[Row]) -> None:
        """Append rows; they need not be durable before `commit`."""

    @abstractmethod
    def commit(self) -> dict[str, Any]:
        """Make all rows durable; returns how far the sink is, as JSON data for the checkpoint."""

    @abstractmethod
    def check(self, commit: Mapping[str, Any]) -> None:
        """Refuse to resume if what was there at a commit has changed."""

    @abstractmethod
    def rewind(self, commit: Mapping[str, Any]) -> None:
        """Go back to a commit that was checked: what was written after it is removed."""

    @abstractmethod
    def clear(self) -> None:
        """After a `check`: remove everything, so that a new run may start here."""

    @abstractmethod
    def close(self, *, complete: bool) -> None:
        """Close; with `complete`, rows that are held back are written."""


def committed_count(commit: Mapping[str, Any], key: str) -> int:
    """A number of a commit, checked: it comes from a file that someone may have edited."""
    count = commit[key]
    if type(count) is not int or count < 0:
        raise FileRefused(f"The state of the run claims {count!r} for {key} of an output.")
    return count


def occupied(address: object) -> RunRefused:
    """The error for a sink that exists before its run."""
    return RunRefused(
        f"{address} exists, and belongs to no run with this --state: it is not overwritten. Move "
        "it away, or give another name; to resume the run that wrote it, give its --state."
    )


def cannot_lock(path: object, error: OSError) -> RunRefused:
    """The error for a file that the system does not lock."""
    return RunRefused(
        f"{path} cannot be locked: {error.strerror or error}. Give a file on a disk that has locks."
    )


@contextmanager
def named_os_errors(path: object) -> Iterator[None]:
    """Turn errors of the system into errors that name the file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise RunRefused(f"{path} cannot be written to: {reason}.") from None


def fsync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def cell_text(value: Any) -> str:
    """A value as text: floats with all their digits, nothing for None."""
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)
