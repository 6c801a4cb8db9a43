"""A plain CSV or JSON-lines file that grows and is rotated, read as `tail -F` does.

At its end the source waits. When the name belongs to another file, the old one is read until it has
not changed for `SETTLE_SECONDS`, then the files that were rotated after it, in the order of their
times of change, then the present one. A position holds the device and inode of its file and the
hash of all its bytes so far: so a resumed run finds a file that was renamed or copied since.

Where rows may be lost, because a file was removed, compressed or rewritten before its end was read,
the source is refused; with `allow_gaps` it goes on at the start of the present file.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
import warnings
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ..errors import FileRefused, KernelBankWarning
from .files import open_file
from .lines import CsvDialect
from .source import POLL_SECONDS, Position, RowBlock, Source, empty_block
from .text import (
    CHANGED,
    CHUNK_BYTES,
    HeaderReader,
    TextPosition,
    TextReader,
    check_encoding,
    read_plain,
    result_of,
    skip_read,
    wait_until_settled,
)

_LAST_BYTES = 256
"""How many bytes before the present place are compared again, to notice a file that was cut."""

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")
_NUMBER = r"[.-]\d[\dT:._-]*"

Identity = tuple[int, int]
"""Device and inode."""


class _FileWasCut(Exception):
    """The file that is being read was emptied or written anew in place."""


class FollowedFile(Source):
    """A plain .csv or .jsonl file to which rows are added."""

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
        self._files = RotatedFiles(path, allow_gaps)
        self._is_idle = False
        if not path.parent.is_dir():
            raise FileRefused(f"{path}: there is no folder {path.parent}. Check its name.")
        if os.path.lexists(path):
            with open_file(path) as file:
                self._check_plain(file.read(2))

    def verify(self, fingerprint: dict[str, Any], position: Position | None = None) -> None:
        super().verify(fingerprint)
        if position is not None:
            match = self._files.find(position)
            if match is not None:
                match[0].file.close()

    def _parsed(self, position: Position | None) -> Position | None:
        if position is not None:
            TextPosition.parse(position, self.name)
        return position

    def _read(
        self, position: Position | None, size: int, columns: Sequence[str] | None
    ) -> Iterator[RowBlock]:
        """The rows of one file after another; `position` is that of the last row so far."""
        match = None if position is None else self._files.find(position)
        opened = None
        while True:
            rows = 0 if position is None else int(position["rows"])
            begin = None
            if match is not None:
                opened, begin = match[0], match[1:]
            if opened is None:
                opened = yield from self._wait_for_file(rows)
            if opened is None:
                return
            following = match = None
            with opened.file:
                try:
                    for block in self._read_file(opened, begin, rows, size):
                        if len(block):
                            position = block.position(len(block) - 1)
                        yield block
                    if self._is_idle:
                        return
                    following = self._files.open_following(opened)
                except _FileWasCut:
                    if position is not None and _identity_in(position) == opened.identity:
                        match = self._files.find(position, was_cut=True)
            opened = following

    # --- one file ---------------------------------------------------------------------------------

    def _read_file(
        self,
        opened: OpenedFile,
        begin: tuple[TextPosition, hashlib._Hash] | None,
        rows: int,
        size: int,
    ) -> Iterator[RowBlock]:
        """The rows of a file from a position on, with the hash of the bytes before it.

        Without a position, from its first row on; `rows` have come before.
        """
        pieces = self._pieces(opened, 0 if begin is None else begin[0].bytes)
        rest = b""
        if begin is None:
            start, head = yield from self._read_header(opened, pieces, rows)
            pieces = chain([head], pieces)
            prefix_hash, rest = yield from skip_read(start, pieces, opened.name, CHANGED)
        else:
            start, prefix_hash = begin
            if self.columns is None:
                yield from self._read_header(opened, self._pieces(opened, 0), rows)
        more = dict(zip(("device", "inode"), opened.identity, strict=True))
        reader = TextReader(self, opened.name, self._dialect, start, size, prefix_hash, more)
        if reader.start is not None:
            self.start = reader.start  # also if no row comes from it
        for piece in chain([rest], pieces):
            yield from reader.feed(piece)
        if not self._is_idle:  # else the last line may be incomplete
            yield from reader.feed(b"", last=True)

    def _read_header(
        self, opened: OpenedFile, pieces: Iterator[bytes], rows: int
    ) -> Generator[RowBlock, None, tuple[TextPosition, bytes]]:
        """Where the rows of a file begin, and the bytes that were read to know it.

        In CSV, the first line of the first file is the header; the first line of a later one only
        if it is the same.
        """
        head, start = b"", TextPosition(rows)
        if not self.is_csv:
            return start, head
        header = HeaderReader(self._dialect, opened.name)
        try:
            for piece in pieces:
                head += piece
                if not piece:
                    yield empty_block(rows)
                elif header.feed(piece):
                    break
            else:
                if self._is_idle or not head.strip():
                    return start, head
                header.finish(complete=True)
        except FileRefused:
            if self.columns is None:
                raise
        if self.columns is None:
            self.columns = header.columns
        if header.columns == self.columns:
            start = replace(header.start, rows=rows)
        return start, head

    def _pieces(self, opened: OpenedFile, begin: int) -> Iterator[bytes]:
        """The bytes of a file until it is rotated and settled; b"" while none comes."""
        done, last = begin, opened.read_at(max(begin - _LAST_BYTES, 0), min(begin, _LAST_BYTES))
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
                continue
            if self._files.following(opened) is not None:
                for _ in wait_until_settled(opened.file, done):
                    yield b""
                if opened.status.st_size == done:
                    return
                continue
            if self._idle is not None and time.monotonic() - last_read > self._idle:
                self._is_idle = True
                return
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
            try:
                return OpenedFile(self.name, open_file(self._path))
            except FileRefused:
                if os.path.lexists(self._path):
                    raise
            if self._idle is not None and time.monotonic() - since > self._idle:
                return None
            time.sleep(POLL_SECONDS)
            yield empty_block(rows)


# --- which file follows which, and in which a position is -----------------------------------------
# By name and time of change the order is clear; by inode and by a hash of what was read, a file
# that was renamed or copied since.


class RotatedFile(NamedTuple):
    """A file that is, or was, the file that is followed. They are ordered as they were written."""

    mtime_ns: int
    """When it was changed last: a file that is rotated later is changed later."""
    number: int
    """For equal times: minus the number in the name, of which the largest is the oldest."""
    name: str
    identity: Identity
    is_compressed: bool


class OpenedFile(NamedTuple):
    """A file that is open; its name may have changed since."""

    name: str
    file: BinaryIO

    @property
    def status(self) -> os.stat_result:
        """What the system knows of it."""
        return os.fstat(self.file.fileno())

    @property
    def identity(self) -> Identity:
        """Device and inode."""
        return _identity_of(self.status)

    def read_at(self, begin: int, count: int) -> bytes:
        """At most `count` bytes from byte `begin` on."""
        return os.pread(self.file.fileno(), count, begin)


class RotatedFiles:
    """The file with a name, and those in its folder that had the name before."""

    def __init__(self, path: Path, allow_gaps: bool) -> None:
        self._path = path
        self._allow_gaps = allow_gaps
        self._verified: tuple[Identity, TextPosition, hashlib._Hash] | None = None
        """The file that `find` returned last, for which position, and the hash before it."""

    def following(self, opened: OpenedFile) -> RotatedFile | None:
        """The file that comes after the open one; None while that one is not rotated."""
        status, present = opened.status, self._present()
        mine = _identity_of(status)
        if present is not None and present.identity == mine:
            return None
        others = self._rotated()
        me = next((other for other in others if other.identity == mine), None)
        # log.2.csv comes after log.1.csv, but next to log.csv.1 it is another file.
        how = (me is not None and numbering(me.name, self._path)) or "after"
        others = [other for other in others if numbering(other.name, self._path) == how]
        names = {other.name for other in others}
        later = []
        for other in others:
            if other.identity in (mine, present and present.identity):
                continue
            if not other.is_compressed:
                if other > me if me is not None else other.mtime_ns >= status.st_mtime_ns:
                    later.append(other)
            elif other.mtime_ns > status.st_mtime_ns and other.name.rpartition(".")[0] not in names:
                self._report_gap(f"{other.name} was compressed before it was read.")
        return later[0] if later else present

    def open_following(self, opened: OpenedFile) -> OpenedFile | None:
        """The same, opened."""
        while True:
            entry = self.following(opened)
            if entry is None:
                return None
            path = self._path.with_name(entry.name)
            try:
                following = OpenedFile(entry.name, open_file(path))
            except FileRefused:
                if os.path.lexists(path):
                    raise
                continue  # it was renamed meanwhile
            if following.identity == entry.identity:
                return following
            following.file.close()

    def find(
        self, position: Position, was_cut: bool = False
    ) -> tuple[OpenedFile, TextPosition, hashlib._Hash] | None:
        """The file of a position: that with the same bytes before it, whose hash is returned too.

        If there is none it is refused; None with `allow_gaps`, or if the file was cut just now.
        """
        start = TextPosition.parse(position, self._path.name)
        if was_cut:
            self._verified = None
        present = self._present()
        candidates = [file for file in self._rotated() if not file.is_compressed]
        candidates += [present] if present is not None else []
        candidates.sort(key=lambda file: file.identity != _identity_in(position))
        for candidate in candidates:
            try:
                file = open_file(self._path.with_name(candidate.name))
            except FileRefused:
                continue
            opened = OpenedFile(candidate.name, file)
            prefix_hash = self._matching_hash(opened, start)
            if prefix_hash is not None:
                return opened, start, prefix_hash
            file.close()
        if was_cut:
            warnings.warn(
                f"{self._path.name}: the file was emptied or rewritten while it was being read, "
                "and there is no copy of it: rows may be lost. Going on at its start.",
                KernelBankWarning,
                stacklevel=2,
            )
            return None
        read = f"row {start.rows} was" if start.witness is None else "the first rows were"
        self._report_gap(
            f"{self._path.name}: no file of this name, or beside it with a name that begins with "
            f"it, has the same first {start.end} bytes as that in which {read} read. It was "
            "removed, compressed or rewritten, so rows may be lost."
        )
        return None

    def _matching_hash(self, opened: OpenedFile, start: TextPosition) -> hashlib._Hash | None:
        """The hash of the bytes of a file before a position; None if they are others."""
        if opened.status.st_size < start.end:
            return None
        if self._verified is None or self._verified[:2] != (opened.identity, start):
            pieces = read_plain(opened.file)
            try:
                prefix_hash, _ = result_of(skip_read(start, pieces, opened.name, CHANGED))
            except FileRefused:
                return None
            self._verified = opened.identity, start, prefix_hash
        return self._verified[2].copy()

    def _present(self) -> RotatedFile | None:
        """The file that has the name now; None if there is none."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        return RotatedFile(status.st_mtime_ns, 0, self._path.name, _identity_of(status), False)

    def _rotated(self) -> list[RotatedFile]:
        """The other regular files in the folder whose names begin with that of the file."""
        path, files = self._path, []
        with os.scandir(path.parent) as entries:
            for entry in entries:
                name = entry.name
                belongs = name.startswith(path.name) or numbering(name, path) == "inside"
                if name == path.name or not belongs:
                    continue
                try:
                    status = entry.stat()
                except FileNotFoundError:
                    continue  # renamed or removed meanwhile
                if stat.S_ISREG(status.st_mode):
                    match = re.search(r"[.-](\d{1,6})(?!\d)", name[len(path.stem) :])
                    number = -int(match[1]) if match else 0
                    is_compressed = name.endswith(_COMPRESSED)
                    identity = _identity_of(status)
                    files.append(
                        RotatedFile(status.st_mtime_ns, number, name, identity, is_compressed)
                    )
        return sorted(files)

    def _report_gap(self, text: str) -> None:
        """Refuse, or with `allow_gaps` warn."""
        if not self._allow_gaps:
            raise FileRefused(
                f"{text} Decompress or restore it beside {self._path.name}, or go on without its "
                "rows with --allow-gaps."
            )
        warnings.warn(f"{text} Going on without its rows.", KernelBankWarning, stacklevel=2)


def _identity_in(position: Position) -> tuple[object, object]:
    """The device and inode of the file of a position; a file that was not followed has none."""
    return position.get("device"), position.get("inode")


def _identity_of(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def numbering(name: str, path: Path) -> str:
    """How a name is made of that of the file by a number or a date: "after" it or "inside"; or "".

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
