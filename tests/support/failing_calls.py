"""Calls of the system that fail, in whatever code makes them (see failing_calls.c): in our own, in
pyarrow, in the client of Redis, in the interpreter itself."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).with_suffix(".c")

ERRORS = {
    "open": (errno.EMFILE, errno.EIO, errno.EROFS),
    "read": (errno.EIO, errno.EINTR),
    "write": (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG, errno.EINTR),
    "fsync": (errno.EIO, errno.ENOSPC, errno.EDQUOT),
    "rename": (errno.EIO, errno.ENOSPC, errno.EROFS),
    "ftruncate": (errno.EIO, errno.EROFS),
    "unlink": (errno.EIO, errno.EROFS),
    "mkdir": (errno.ENOSPC, errno.EROFS, errno.EDQUOT),
    "flock": (errno.EIO, errno.ENOLCK),
    "close": (errno.EIO, errno.ENOSPC, errno.EDQUOT),
    "connect": (errno.ECONNREFUSED, errno.ETIMEDOUT),
    "send": (errno.ECONNRESET, errno.EPIPE, errno.EAGAIN),
    "recv": (errno.ECONNRESET, errno.ETIMEDOUT, errno.EAGAIN),
}
"""The calls that can fail, and with what."""


class CallFault(NamedTuple):
    """What happens at the n-th such call (from 1) whose file has this part of a path, or end with $.

    how : fail (with the errno `number`); short, half of a read or write; before, half or after: a
    kill; signal, with this `number`, after the call. lasting : all later calls fail too.
    """

    call: str
    path: str
    nth: int = 1
    how: str = "fail"
    number: int = errno.ENOSPC
    lasting: bool = False

    @property
    def environment(self) -> str:
        """The fault for a process that is started with it, in FAILING_CALLS."""
        return "\t".join(map(str, [*self[:5], int(self.lasting)]))


def compile_failing_calls(folder: Path) -> Path:
    """The library for LD_PRELOAD, compiled in `folder`; the test is skipped where that cannot be."""
    compiler = ["cc"] if shutil.which("cc") else [sys.executable, "-m", "ziglang", "cc"]
    if sys.platform != "linux" or (compiler != ["cc"] and find_spec("ziglang") is None):
        if os.environ.get("KERNELBANK_NO_SKIP"):
            pytest.fail("there is no C compiler for Linux")
        pytest.skip("there is no C compiler for Linux")
    path = folder / "failing_calls.so"
    subprocess.run([*compiler, "-shared", "-fPIC", "-O1", "-o", path, SOURCE, "-ldl"], check=True)
    return path


# --- in a process that was started with the library ----------------------------------------------


def set_fault(fault: CallFault) -> None:
    """From now on this process has the fault."""
    call, path, nth, how, number, lasting = fault
    ctypes.CDLL(None).failing_calls_set(
        call.encode(), path.encode(), nth, how.encode(), number, int(lasting)
    )


def log_calls(file: str, folder: str) -> None:
    """From now on calls on files in `folder` and on sockets are written to `file`."""
    ctypes.CDLL(None).failing_calls_log(os.fsencode(file), os.fsencode(folder))
