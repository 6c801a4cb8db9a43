"""Files that are read: an error tells the file's name, and closing does not fail."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

Opener = Callable[[Any, int], int]
"""How a file is opened, as in `open`: a descriptor from its path and flags."""


def open_for_reading(path: str | os.PathLike[str], opener: Opener = os.open) -> BinaryIO:
    """Open a file as `open(path, "rb", opener=opener)` does."""
    return named_reader(opener(path, os.O_RDONLY | os.O_CLOEXEC), path)


def open_at_once(path: Any, flags: int) -> int:
    """An opener that does not wait for a writer, as the system does for a FIFO."""
    return os.open(path, flags | os.O_NONBLOCK)


def named_reader(descriptor: int, path: str | os.PathLike[str]) -> BinaryIO:
    """The file of an open descriptor, which it closes."""
    try:
        with _named(os.fspath(path)):
            return io.BufferedReader(_NamedFile(descriptor, path))
    except OSError:  # it is a folder
        os.close(descriptor)
        raise


class _NamedFile(io.FileIO):
    """The system tells of a read that failed only why, and not which file it was."""

    def __init__(self, descriptor: int, path: str | os.PathLike[str]) -> None:
        super().__init__(descriptor)
        self.path = os.fspath(path)

    def readinto(self, buffer: Any, /) -> int:  # type: ignore[override]
        with _named(self.path):
            return super().readinto(buffer)  # type: ignore[return-value]

    def readall(self) -> bytes:  # type: ignore[override]
        with _named(self.path):
            return super().readall()  # type: ignore[return-value]

    def close(self) -> None:
        with suppress(OSError):  # everything has been read: nothing can be lost
            super().close()


@contextmanager
def _named(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = path
        raise
