"""A plain CSV or JSON-lines file that grows and is rotated, read as `tail -F` does.

At its end the source waits. When the name belongs to another file, the old one is read until it has
not changed for `SETTLE_SECONDS`, then the files that were rotated after it, in the order of their
times of change, then the present one. A position holds the device and inode of its file and the
hash of all its bytes so far: so a resumed run finds a file that was renamed or copied since.

Where rows may be lost, because a file was removed, compressed or rewritten before its end was read,
the source is refused; with `allow_gaps` it goes on at the start of the present file.
"""

from __future__ import annotations

import os
import re
import stat
import time
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ..errors import FileRefused, KernelBankWarning
from .files import open_file
from .lines import CsvDialect
from .source import POLL_SECONDS, Position, RowBlock, Source, empty_block
from .text import (
    CHANGED,
    CHUNK_BYTES,
    TextPosition,
    TextReader,
    check_encoding,
    read_plain,
    result_of,
    skip_read,
    wait_until_settled,
)

_LAST_BYTES = 256  # before the present place are compared again, to notice a file that was cut
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")
_NUMBER = r"[.-]\d[\dT:._-]*"

Identity = tuple[int, int]  # device and inode


class _FileWasCut(Exception):
    """The file that is being read was emptied or written anew in place."""


class RotatedFile(NamedTuple):
    """A file that is, or was, the file that is followed. They are ordered as they were written."""

    mtime_ns: int
    """When it was changed last: a file that is rotated later is changed later."""
    number: int
    """For equal times: minus the number in the name, of which the largest is the oldest."""
    name: str
    identity: Identity


class OpenedFile(NamedTuple):
    """A file that is open, as it was called then."""

    name: str
    file: BinaryIO
    identity: Identity

    def read_at(self, begin: int, count: int) -> bytes:
        """At most `count` bytes from byte `begin` on."""
        return os.pread(self.file.fileno(), count, begin)


class FollowedFile(Source):
    """A plain .csv or .jsonl file to which rows are added.

    By name and time of change it is clear which file follows which; by inode and by a hash of what
    was read, a file is found that was renamed or copied since.
    """

    def __init__(
        self,
        path: Path,
        kind: str,
        dialect: CsvDialect,
        idle: float | None = None,
        allow_gaps: bool = False,
    ) -> None:
        self.kind = kind
        self.is_csv = kind == "csv"
        self.name = path.name
        self.address = str(path.parent.resolve() / path.name)
        self._path = path
        self._dialect = dialect if self.is_csv else None
        self._idle = idle
        self.allow_gaps = allow_gaps
        self._is_idle = False
        if not path.parent.is_dir():
            raise FileRefused(f"{path}: there is no folder {path.parent}. Check its name.")
        if os.path.lexists(path):
            with open_file(path) as file:
                self._check_plain(file.read(2))

    def _parsed(self, position: Position | None) -> Position | None:
        if position is not None:
            TextPosition.parse(position, self.name)
        return position

    def _read(
        self, position: Position | None, size: int, columns: Sequence[str] | None
    ) -> Iterator[RowBlock]:
        """The rows of one file after another; `position` is where the last row ended."""
        opened = None if position is None else self._find(position)
        start = None if opened is None else TextPosition.parse(position or {}, self.name)
        while True:
            rows = 0 if position is None else int(position["rows"])
            if opened is None:
                opened = yield from self._wait_for_file(rows)
            if opened is None:
                return
            following = None
            with opened.file:
                try:
                    for block in self._read_file(opened, start, rows, size):
                        if len(block):
                            position = block.position(len(block) - 1)
                        yield block
                    if self._is_idle:
                        return
                    following, start = self._open_following(opened), None
                except _FileWasCut:
                    start = None
                    if position is not None and _identity_in(position) == opened.identity:
                        following = self._find(position, was_cut=True)
                    if following is not None:
                        start = TextPosition.parse(position or {}, self.name)
            opened = following

    # --- one file ---------------------------------------------------------------------------------

    def _read_file(
        self, opened: OpenedFile, start: TextPosition | None, rows: int, size: int
    ) -> Iterator[RowBlock]:
        """The rows of a file, from its first one or from a position on; `rows` came before."""
        more = dict(zip(("device", "inode"), opened.identity, strict=True))
        reader = TextReader(self, opened.name, self._dialect, start, size, rows, more)
        yield from reader.read(self._pieces(opened), CHANGED)
        if not self._is_idle:  # else the last line may be incomplete
            yield from reader.feed(b"", last=True)

    def _pieces(self, opened: OpenedFile) -> Iterator[bytes]:
        """The bytes of a file until it is rotated and settled; b"" while none comes."""
        done, last = 0, b""
        last_read = time.monotonic()
        while True:
            if opened.read_at(done - len(last), len(last)) != last:
                raise _FileWasCut
            data = opened.read_at(done, CHUNK_BYTES)
            if data:
                if not done:
                    self._check_plain(data[:2])
                done += len(data)
                last = (last + data)[-_LAST_BYTES:]
                yield data
                last_read = time.monotonic()  # the time in which the rows were used is not idle
            elif self._following(opened) is not None:
                for _ in wait_until_settled(opened.file, done):
                    yield b""
                if os.fstat(opened.file.fileno()).st_size == done:
                    return
            elif self._idle is not None and time.monotonic() - last_read > self._idle:
                self._is_idle = True
                return
            else:
                time.sleep(POLL_SECONDS)
                yield b""

    def _check_plain(self, first: bytes) -> None:
        if check_encoding(self._path, first):
            raise FileRefused(
                f"{self._path}: a compressed file cannot be followed. Leave out --follow."
            )

    def _wait_for_file(self, rows: int) -> Generator[RowBlock, None, OpenedFile | None]:
        """The file that has the name, when there is one; None if it did not come in time."""
        since = time.monotonic()
        while True:
            opened = self._open(self.name)
            if opened is not None:
                return opened
            if self._idle is not None and time.monotonic() - since > self._idle:
                return None
            time.sleep(POLL_SECONDS)
            yield empty_block(rows)

    def _open(self, name: str) -> OpenedFile | None:
        """A file of the folder, opened; None if it is not there any more."""
        path = self._path.with_name(name)
        try:
            file = open_file(path)
        except FileRefused:
            if os.path.lexists(path):
                raise
            return None
        return OpenedFile(name, file, _identity_of(os.fstat(file.fileno())))

    # --- which file follows which, and in which a position is -------------------------------------

    def _following(self, opened: OpenedFile) -> RotatedFile | None:
        """The file that comes after the open one; None while that one is not rotated."""
        changed, present = os.fstat(opened.file.fileno()).st_mtime_ns, self._present()
        if present is not None and present.identity == opened.identity:
            return None
        others = self._rotated()
        me = next((other for other in others if other.identity == opened.identity), None)
        # log.2.csv comes after log.1.csv, but next to log.csv.1 it is another file.
        how = (me is not None and numbering(me.name, self._path)) or "after"
        others = [other for other in others if numbering(other.name, self._path) == how]
        names = {other.name for other in others}
        later = []
        for other in others:
            if other.identity in (opened.identity, present and present.identity):
                continue
            if not other.name.endswith(_COMPRESSED):
                if other > me if me is not None else other.mtime_ns >= changed:
                    later.append(other)
            elif other.mtime_ns > changed and other.name.rpartition(".")[0] not in names:
                self.report_gap(f"{other.name} was compressed before it was read.")
        return later[0] if later else present

    def _open_following(self, opened: OpenedFile) -> OpenedFile | None:
        """The same, opened."""
        while True:
            entry = self._following(opened)
            following = None if entry is None else self._open(entry.name)
            if entry is None or (following is not None and following.identity == entry.identity):
                return following
            if following is not None:  # it was renamed meanwhile
                following.file.close()

    def _find(self, position: Position, was_cut: bool = False) -> OpenedFile | None:
        """The file of a position: that with the same bytes before it.

        If there is none it is refused; None with `allow_gaps`, or if the file was cut just now.
        """
        start = TextPosition.parse(position, self.name)
        present = self._present()
        candidates = [file for file in self._rotated() if not file.name.endswith(_COMPRESSED)]
        candidates += [present] if present is not None else []
        candidates.sort(key=lambda file: file.identity != _identity_in(position))
        for candidate in candidates:
            with suppress(FileRefused):
                opened = self._open(candidate.name)
                if opened is None:
                    continue
                try:
                    result_of(skip_read(start, read_plain(opened.file), opened.name, CHANGED))
                except FileRefused:
                    opened.file.close()
                    continue
                return opened
        if was_cut:
            warnings.warn(
                f"{self.name}: the file was emptied or rewritten while it was being read, and "
                "there is no copy of it: rows may be lost. Going on at its start.",
                KernelBankWarning,
                stacklevel=2,
            )
            return None
        read = f"row {start.rows} was" if start.hashed == start.bytes else "the first rows were"
        self.report_gap(
            f"{self.name}: no file whose name begins with this one has the same first "
            f"{start.hashed} bytes as the file in which {read} read. It was removed, compressed or "
            "rewritten, so rows may be lost."
        )
        return None

    def _present(self) -> RotatedFile | None:
        """The file that has the name now; None if there is none."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        return RotatedFile(status.st_mtime_ns, 0, self.name, _identity_of(status))

    def _rotated(self) -> list[RotatedFile]:
        """The other regular files in the folder whose names begin with its name."""
        path, files = self._path, []
        with os.scandir(path.parent) as entries:
            for entry in entries:
                name = entry.name
                belongs = name.startswith(path.name) or numbering(name, path) == "inside"
                if name == path.name or not belongs:
                    continue
                with suppress(FileNotFoundError):  # renamed or removed meanwhile
                    status = entry.stat()
                    if stat.S_ISREG(status.st_mode):
                        match = re.search(r"[.-](\d{1,6})(?!\d)", name[len(path.stem) :])
                        number = -int(match[1]) if match else 0
                        identity = _identity_of(status)
                        files.append(RotatedFile(status.st_mtime_ns, number, name, identity))
        return sorted(files)


def _identity_in(position: Position) -> tuple[object, object]:
    """The device and inode of the file of a position; a file that was not followed has none."""
    return position.get("device"), position.get("inode")


def _identity_of(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def numbering(name: str, path: Path) -> str:
    """How a name is made of the file's name by a number or a date: "after" it or "inside"; or "".

    >>> path = Path("log.csv")
    >>> [numbering(name, path) for name in ("log.csv.1", "log.csv-20240131.gz", "log.1.csv")]
    ['after', 'after', 'inside']
    >>> numbering("log.csv.old", path)
    ''
    """
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    whole, stem, end = map(re.escape, (path.name, path.stem, path.suffix))
    if re.fullmatch(f"{whole}{_NUMBER}", name):
        return "after"
    return "inside" if re.fullmatch(f"{stem}{_NUMBER}{end}", name) else ""
