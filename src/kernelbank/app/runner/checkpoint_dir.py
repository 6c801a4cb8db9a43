"""The folder of a run: one file that says how far everything is, and a lock."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...auto.serialization import RUN
from ...errors import FileRefused, RunRefused
from ...io import checkpoint
from ...io.sinks.base import fsync_folder, told
from ...utils.validation import Floats

STATE = "state.kb"
BAD_ROWS = "bad-rows.jsonl"
LOCK = "lock"


class Journal:
    """The folder, held by this process until `close`."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            if not self.folder.is_dir():
                self.folder.mkdir(parents=True, exist_ok=True)
                fsync_folder(self.folder.parent)
            self._lock = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except (FileExistsError, NotADirectoryError):
            raise RunRefused(f"{folder} is a file. Give a folder for the state.") from None
        except OSError as error:
            raise RunRefused(f"{folder} cannot be written to: {error.strerror}.") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(self._lock, 100, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._lock)
            raise RunRefused(
                f"{folder} is in use by another process ({owner}). Wait for it, stop it, or use "
                "another --state."
            ) from None
        # Who it is, for the message above. Not worth a failure: the lock holds without it.
        with suppress(OSError):
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)
        self._sweep()

    @property
    def path(self) -> Path:
        """The file with the state."""
        return self.folder / STATE

    def read(self) -> tuple[dict[str, Any], dict[str, Floats]] | None:
        """What was written last, or None if nothing was."""
        if not self.path.exists():
            return None
        header, arrays = checkpoint.read(self.path)
        if header.get("kind") != RUN:
            raise FileRefused(f"{self.path} is not the state of a run.")
        return header, arrays

    def write(self, header: dict[str, Any], arrays: dict[str, Floats]) -> None:
        """Replace the state; at any moment the old or the new one is there, whole."""
        with told(self.path):
            checkpoint.write(self.path, {"kind": RUN, **header}, arrays)

    def _sweep(self) -> None:
        """Remove what a process that was killed while writing has left behind."""
        for file in self.folder.glob(f".{STATE}.*"):
            file.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self._lock)
