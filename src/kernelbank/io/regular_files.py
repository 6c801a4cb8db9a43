"""Opening files of a run's state and predictions: regular files only, never through a link.

Somebody who may write to the folder could put a link there, and so let the run write to another
file. A FIFO would let it wait for ever. The folder itself may be a link.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from ..errors import RunRefused

_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}

_NOT_REGULAR = (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.ENODEV, errno.EMLINK)
"""Errors of opening what is no regular file: a link, a FIFO or socket, a folder, a device."""


def open_regular(path: str | os.PathLike[str], flags: int) -> int:
    """As an `opener` of `open`: a descriptor of a regular file; anything else is refused.

    Nothing is waited for, and nothing that a link points to is opened.
    """
    try:
        # Without O_TRUNC: nothing may change before it is clear that this is a regular file.
        safe = (flags & ~os.O_TRUNC) | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, safe, 0o666)
    except OSError as error:
        if error.errno in _NOT_REGULAR:
            check_regular(path)
        raise
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise _refusal(path, mode)
        if flags & os.O_TRUNC:
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check_regular(path: str | os.PathLike[str]) -> bool:
    """Refuse what is there unless it is a regular file; False if nothing is there."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(mode):
        raise _refusal(path, mode)
    return True


def _refusal(path: str | os.PathLike[str], mode: int) -> RunRefused:
    kind = _KINDS.get(stat.S_IFMT(mode), "no file")
    remedy = "Move it away, or give another name"
    if stat.S_ISLNK(mode):
        target = os.readlink(path) if os.path.islink(path) else "another file"
        remedy = f"It points to {Path(target)}, which is not changed. Remove it, or give that name"
    return RunRefused(f"{path} is {kind}, not a file. {remedy}.")
