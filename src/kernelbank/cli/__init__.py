"""The command `kernelbank`. Heavy imports wait until a command needs them."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def main() -> None:
    """Run the command line, or say what is missing."""
    secure_standard_streams()
    try:
        from .commands import run

        run()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("click", "rich"):
            raise
        sys.exit("The command kernelbank needs click and rich: pip install 'kernelbank[cli]'")


def error_text(error: BaseException) -> str:
    """An error and its notes, which say where it came and what to do, as one line."""
    text = str(error) or ("not enough memory" if isinstance(error, MemoryError) else repr(error))
    notes = [str(note) for note in getattr(error, "__notes__", ())]
    end = "" if text.endswith((".", "!", "?")) or not notes else "."
    return " ".join(" ".join([text + end, *notes]).split())


# --- standard error that never stops the program ---
# A full disk behind it, a reader that went away, a terminal that hung up, or none at all: what
# cannot be written is dropped. A run goes on, and its exit code says how it ended.


class _DroppingFile(io.RawIOBase):
    """A descriptor to which bytes are written if that is possible, and dropped if not."""

    name = "<stderr>"

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: ReadableBuffer) -> int:
        try:
            return os.write(self._descriptor, data)
        except OSError:
            return memoryview(data).nbytes


def secure_standard_streams() -> None:
    """To be called when the program starts, before it opens a file."""
    _occupy_closed_descriptors()
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    file = io.BufferedWriter(_DroppingFile(2))
    sys.stderr = io.TextIOWrapper(file, encoding, "backslashreplace", line_buffering=True)


def _occupy_closed_descriptors() -> None:
    """Else the next file would get number 0, 1 or 2, and messages might be written into it."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            assert opened == descriptor
            os.set_inheritable(opened, True)  # as the standard streams are
