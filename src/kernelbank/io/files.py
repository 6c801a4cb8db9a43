"""Opening files: an error names the file, and what is written is a regular file.

Somebody who may write to the folder of a run's state could put a link there, and so let the run
write to another file; a FIFO would let it wait for ever. So files of a run's state and predictions
are opened by `open_regular`, never through a link. The folder itself may be a link.
"""

from __future__ import annotations

import fcntl
import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import FileRefused, RunRefused

PathName = str | os.PathLike[str]

Opener = Callable[[PathName, int], int]
"""How a file is opened, as in `open`: a descriptor from its path and flags."""


def open_for_reading(path: PathName, opener: Opener = os.open) -> io.BufferedReader:
    """Open a file as `open(path, "rb", opener=opener)` does; failed reads name it."""
    return io.BufferedReader(_NamedFile(os.fspath(path), opener=opener))


def open_at_once(path: PathName, flags: int) -> int:
    """An opener that does not wait for a writer, as the system does for a FIFO."""
    return os.open(path, flags | os.O_NONBLOCK)


class _NamedFile(io.FileIO):
    """The system tells of a read that failed only why, and not which file it was."""

    def readinto(self, buffer: Any, /) -> int:  # type: ignore[override]
        with self._named():
            return super().readinto(buffer)  # type: ignore[return-value]

    def readall(self) -> bytes:  # type: ignore[override]
        with self._named():
            return super().readall()  # type: ignore[return-value]

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            error.filename = self.name
            raise

    def close(self) -> None:
        with suppress(OSError):  # everything has been read: nothing can be lost
            super().close()


_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def open_regular(path: PathName, flags: int) -> int:
    """As an `opener` of `open`: a descriptor of a regular file; anything else is refused.

    Nothing is waited for, and nothing that a link points to is opened.
    """
    try:
        # O_TRUNC changes regular files only, and none that a link points to.
        safe = flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, safe, 0o666)
    except OSError:
        check_regular(path)  # says what is there if it is a link, a FIFO, a folder, ...
        raise
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise _refusal(path, mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check_regular(path: PathName) -> bool:
    """Refuse what is there unless it is a regular file; False if nothing is there."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        raise _refusal(path, mode)
    return True


def _refusal(path: PathName, mode: int) -> RunRefused:
    kind = _KINDS.get(stat.S_IFMT(mode), "no file")
    remedy = "Move it away, or give another name"
    if stat.S_ISLNK(mode):
        target = os.readlink(path) if os.path.islink(path) else "another file"
        remedy = f"It points to {Path(target)}, which is not changed. Remove it, or give that name"
    return RunRefused(f"{path} is {kind}, not a file. {remedy}.")


_NOT_OPENED = {
    FileNotFoundError: "there is no such file. Check its name and folder.",
    IsADirectoryError: "this is a folder. Give one of the files in it.",
    PermissionError: "this file may not be read. Change its permissions.",
}


def open_file(path: Path) -> io.BufferedReader:
    """The file, opened for reading; the error says why it cannot be."""
    try:
        file = open_for_reading(path, open_at_once)
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise FileRefused(f"{path}: {_NOT_OPENED[type(error)]}") from None
    except (OSError, ValueError) as error:
        raise FileRefused(f"{path}: this file cannot be read ({error}).") from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise FileRefused(
            f"{path}: this is not a regular file. Give one, or send rows to standard input ('-')."
        )
    return file


def lock(descriptor: int, path: object, taken: Callable[[], str]) -> None:
    """Lock a file for this process; `taken` says what to do if another one has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RunRefused(taken()) from None
    except OSError as error:
        raise RunRefused(
            f"{path} cannot be locked: {error.strerror or error}. Give a file on a disk that has "
            "locks."
        ) from None


@contextmanager
def named_os_errors(path: object) -> Iterator[None]:
    """Turn errors of the system into errors that name the file."""
    try:
        yield
    except OSError as error:
        folder = Path(str(path)).parent
        if isinstance(error, FileNotFoundError) and not folder.is_dir():
            raise RunRefused(
                f"{path} cannot be written to: there is no folder {folder}. Create it, or give "
                "another name."
            ) from None
        reason = error.strerror or error
        raise RunRefused(f"{path} cannot be written to: {reason}.") from None


def fsync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
