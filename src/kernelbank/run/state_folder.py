"""The folder of a run (`--state`): the checkpoint in one file, the bad rows, and a lock."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

import numpy as np

from ..auto.loading import RUN
from ..errors import FileRefused, RunRefused
from ..io import checkpoint
from ..io.files import check_regular, fsync_folder, lock, named_os_errors, open_regular
from ..utils.validation import Floats
from . import Saved

STATE = "state.kb"
BAD_ROWS = "bad-rows.jsonl"
LOCK = "lock"


class CheckpointDir:
    """The folder, locked by this process until `close`."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            if not self.folder.is_dir():
                self.folder.mkdir(parents=True, exist_ok=True)
                fsync_folder(self.folder.parent)
            for name in (STATE, BAD_ROWS):
                check_regular(self.folder / name)
            self._lock = open_regular(self.folder / LOCK, os.O_RDWR | os.O_CREAT)
        except (FileExistsError, NotADirectoryError):
            raise RunRefused(f"{folder} is a file. Give a folder for the state.") from None
        except OSError as error:
            raise RunRefused(f"{folder} cannot be written to: {error.strerror}.") from None
        try:
            lock(self._lock, self.folder / LOCK, self._taken)
        except RunRefused:
            os.close(self._lock)
            raise
        # The process id, for the message above. The lock holds without it, so errors are ignored.
        with suppress(OSError):
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)
        self._remove_temporary_files()

    def _taken(self) -> str:
        owner = os.pread(self._lock, 100, 0).decode(errors="replace").strip() or "unknown"
        return (
            f"{self.folder} is in use by another process ({owner}). Wait for it, stop it, or use "
            "another --state."
        )

    @property
    def path(self) -> Path:
        """The checkpoint file."""
        return self.folder / STATE

    def read(self) -> tuple[Saved, dict[str, Floats]] | None:
        """The last checkpoint, or None if there is none."""
        return read_checkpoint(self.path) if check_regular(self.path) else None

    def write(self, header: Mapping[str, object], arrays: dict[str, Floats]) -> None:
        """Replace the checkpoint atomically: at any moment the old or the new one is there."""
        with named_os_errors(self.path):
            check_regular(self.path)
            checkpoint.write(self.path, {"kind": RUN, **header}, arrays)

    def _remove_temporary_files(self) -> None:
        """Remove what a process that was killed while writing has left behind."""
        for file in self.folder.glob(f".{STATE}.*"):
            with suppress(OSError):  # a folder, which no run has made
                file.unlink()

    def close(self) -> None:
        """Release the lock."""
        with suppress(OSError):  # it is released in any case
            os.close(self._lock)


def read_checkpoint(path: Path) -> tuple[Saved, dict[str, Floats]]:
    """The header and the arrays of a run's checkpoint; any other file is refused."""
    header, arrays = checkpoint.read(path, open_regular)
    if header.get("kind") != RUN:
        raise FileRefused(f"{path} is not the state of a run.")
    return header, arrays


def require(holds: object, problem: str) -> None:
    """Refuse a file of which something does not hold; its name is added where it was read."""
    if not holds:
        raise FileRefused(problem)


def saved_count(value: object, what: str) -> int:
    """A number from the state of a run, checked."""
    require(type(value) is int and 0 <= value < 2**53, f"it claims {value!r} {what}.")
    return cast(int, value)


Shapes = dict[str, tuple[int | range, ...]]
"""By the name of an array, the length of each dimension, or a range of allowed lengths."""


def checked_arrays(state: Mapping[str, np.ndarray], shapes: Shapes, what: str) -> dict[str, Floats]:
    """Copies of the arrays of a state, which must have these shapes."""
    for name, shape in shapes.items():
        lengths = [size if isinstance(size, range) else (size,) for size in shape]
        actual = state[name].shape
        fits = len(actual) == len(lengths) and all(map(operator.contains, lengths, actual))
        require(fits, f"{what}: the array {name!r} has the impossible shape {actual}.")
    return {name: state[name].copy() for name in shapes}
