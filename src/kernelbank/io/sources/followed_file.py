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
import time
import warnings
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ...errors import FileRefused, KernelBankWarning
from ..dialect import CsvDialect
from .base import DEFAULT_BLOCK_ROWS, POLL_SECONDS, Source, check_block_rows
from .files import CHANGED, CHUNK_BYTES, check_encoding, open_file, read_plain, wait_until_settled
from .prefix_hash import PrefixHash
from .rotation import RotatedFile, beside, identity_of, numbering, present_file
from .row_block import Position, RowBlock, empty_block
from .text_reader import HeaderReader, TextFormat, TextPosition, TextReader, skip_read

_LAST_BYTES = 256
"""So many bytes before the present place are compared again, to notice a file that was cut."""


class _Opened(NamedTuple):
    """A file that is open; its name may have changed since."""

    name: str
    file: BinaryIO

    @property
    def status(self) -> os.stat_result:
        return os.fstat(self.file.fileno())

    @property
    def identity(self) -> tuple[int, int]:
        return identity_of(self.status)

    def read_at(self, begin: int, count: int) -> bytes:
        return os.pread(self.file.fileno(), count, begin)


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
        self._form = TextFormat(kind, dialect)
        self._idle = idle
        self._allow_gaps = allow_gaps
        self._is_idle = False
        self._verified: tuple[tuple[int, int], TextPosition, PrefixHash] | None = None
        if not path.parent.is_dir():
            raise FileRefused(f"{path}: there is no folder {path.parent}. Check its name.")
        if os.path.lexists(path):
            with open_file(path) as file:
                self._check_plain(file.read(2))

    def verify(self, fingerprint: dict[str, Any], position: Position | None = None) -> None:
        super().verify(fingerprint)
        if position is not None:
            found = self._find(position)
            if found is not None:
                found.file.close()

    def blocks(
        self,
        position: Position | None = None,
        size: int = DEFAULT_BLOCK_ROWS,
        columns: Sequence[str] | None = None,
    ) -> Iterator[RowBlock]:
        del columns  # a row of text is always read as a whole
        if position is not None:
            TextPosition.parse(position, self.name)
        return self._blocks(position, check_block_rows(size))

    def _blocks(self, position: Position | None, size: int) -> Iterator[RowBlock]:
        """The rows of one file after another; `position` is that of the last row so far."""
        opened = None if position is None else self._find(position)
        resumed = opened is not None
        while True:
            rows = 0 if position is None else int(position["rows"])
            if opened is None:
                opened = yield from self._wait_for_file(rows)
            if opened is None:
                return
            start = TextPosition.parse(position, self.name) if resumed and position else None
            following, resumed = None, False
            with opened.file:
                try:
                    for block in self._read(opened, start, rows, size):
                        if len(block):
                            position = block.position(len(block) - 1)
                        yield block
                    if self._is_idle:
                        return
                    following = self._open_following(opened)
                except _FileWasCut:
                    self._verified = None
                    if position is not None and _identity_in(position) == opened.identity:
                        following = self._find(position, was_cut=True)
                        resumed = following is not None
            opened = following

    # --- one file ---------------------------------------------------------------------------------

    def _read(
        self, opened: _Opened, start: TextPosition | None, rows: int, size: int
    ) -> Iterator[RowBlock]:
        """The rows of a file from `start` on; None for its first row, after `rows` others."""
        pieces = self._pieces(opened, 0 if start is None else start.bytes)
        rest = b""
        if start is None:
            start, head = yield from self._read_header(opened, pieces, rows)
            pieces = chain([head], pieces)
            prefix_hash, rest = yield from skip_read(start, pieces, opened.name, CHANGED)
        else:
            assert self._verified is not None  # `_find` has compared the bytes before `start`
            prefix_hash = self._verified[2].copy()
            if self.columns is None:
                yield from self._read_header(opened, self._pieces(opened, 0), rows)
        more = dict(zip(("device", "inode"), opened.identity, strict=True))
        if not start.rows:
            counts = {"rows": 0, "bytes": start.bytes, "lines": start.lines}
            self.start = {**counts, "sha256": prefix_hash.hexdigest, **more}
        reader = TextReader(self._form, opened.name, self.columns, start, size, prefix_hash, more)
        for piece in chain([rest], pieces):
            if not piece:
                yield empty_block(reader.rows)
            for block in reader.feed(piece):
                self.columns = reader.columns
                yield block
        if not self._is_idle:  # else the last line may be incomplete
            for block in reader.finish():
                self.columns = reader.columns
                yield block

    def _read_header(
        self, opened: _Opened, pieces: Iterator[bytes], rows: int
    ) -> Generator[RowBlock, None, tuple[TextPosition, bytes]]:
        """Where the rows of a file begin, and the bytes that were read to know it.

        In CSV, the first line of the first file is the header; the first line of a later one only
        if it is the same.
        """
        head, start = b"", TextPosition(rows)
        if not self.is_csv:
            return start, head
        header = HeaderReader(self._form, opened.name)
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

    def _pieces(self, opened: _Opened, begin: int) -> Iterator[bytes]:
        """The bytes of a file until it is rotated and settled; b"" while none comes."""
        done, last = begin, opened.read_at(max(begin - _LAST_BYTES, 0), min(begin, _LAST_BYTES))
        news = time.monotonic()
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
                news = time.monotonic()  # the time in which the rows were used is not idle
                continue
            if self._following(opened) is not None:
                for _ in wait_until_settled(opened.file, done):
                    yield b""
                if opened.status.st_size == done:
                    return
                continue
            if self._idle is not None and time.monotonic() - news > self._idle:
                self._is_idle = True
                return
            time.sleep(POLL_SECONDS)
            yield b""

    def _check_plain(self, first: bytes) -> None:
        if check_encoding(self._path, first):
            raise FileRefused(
                f"{self._path}: a compressed file cannot be followed. Leave out --follow."
            )

    # --- which file -------------------------------------------------------------------------------

    def _wait_for_file(self, rows: int) -> Generator[RowBlock, None, _Opened | None]:
        """The file that has the name, when there is one; None if it did not come in time."""
        begun = time.monotonic()
        while True:
            try:
                return _Opened(self.name, open_file(self._path))
            except FileRefused:
                if os.path.lexists(self._path):
                    raise
            if self._idle is not None and time.monotonic() - begun > self._idle:
                return None
            time.sleep(POLL_SECONDS)
            yield empty_block(rows)

    def _following(self, opened: _Opened) -> RotatedFile | None:
        """The file that comes after the open one; None while that one is not rotated."""
        status, present = opened.status, present_file(self._path)
        mine = identity_of(status)
        if present is not None and present.identity == mine:
            return None
        others = beside(self._path)
        me = next((one for one in others if one.identity == mine), None)
        # log.2.csv comes after log.1.csv, but beside log.csv.1 it is another file.
        how = (me is not None and numbering(me.name, self._path)) or "after"
        others = [one for one in others if numbering(one.name, self._path) == how]
        known = {mine, None if present is None else present.identity}
        later = [
            one
            for one in others
            if one.identity not in known
            and not one.is_compressed
            and (one > me if me is not None else one.mtime_ns >= status.st_mtime_ns)
        ]
        names = {one.name for one in others}
        for one in others:
            is_later = one.is_compressed and one.mtime_ns > status.st_mtime_ns
            if is_later and one.name.rpartition(".")[0] not in names:
                self._report_gap(f"{one.name} was compressed before it was read.")
        return later[0] if later else present

    def _open_following(self, opened: _Opened) -> _Opened | None:
        while True:
            entry = self._following(opened)
            if entry is None:
                return None
            try:
                following = _Opened(entry.name, open_file(self._path.with_name(entry.name)))
            except FileRefused:
                continue  # it was renamed meanwhile
            if following.identity == entry.identity:
                return following
            following.file.close()

    def _find(self, position: Position, was_cut: bool = False) -> _Opened | None:
        """The file of a position: that with the same bytes before it. None where that may be."""
        start = TextPosition.parse(position, self.name)
        present = present_file(self._path)
        candidates = [one for one in beside(self._path) if not one.is_compressed]
        candidates += [present] if present is not None else []
        candidates.sort(key=lambda one: one.identity != _identity_in(position))
        for one in candidates:
            try:
                opened = _Opened(one.name, open_file(self._path.with_name(one.name)))
            except FileRefused:
                continue
            if self._matches(opened, start):
                return opened
            opened.file.close()
        text = (
            f"{self.name}: no file of this name, or beside it with a name that begins with it, has "
            f"the same first {start.bytes} bytes as that in which row {start.rows} was read. It "
            "was removed, compressed or rewritten"
        )
        if was_cut:
            text = f"{self.name}: the file was emptied or rewritten while it was being read"
            warnings.warn(
                f"{text}, and there is no copy of it: rows may be lost. Going on at its start.",
                KernelBankWarning,
                stacklevel=2,
            )
            return None
        self._report_gap(f"{text}, so rows may be lost.")
        return None

    def _matches(self, opened: _Opened, start: TextPosition) -> bool:
        """Whether a file has the bytes before a position; their hash is kept."""
        if opened.status.st_size < start.bytes:
            return False
        if self._verified is not None and self._verified[:2] == (opened.identity, start):
            return True
        prefix_hash = PrefixHash()
        for _ in prefix_hash.skip(read_plain(opened.file), start.bytes, start.rows):
            pass
        if prefix_hash.hexdigest != start.sha256:
            return False
        self._verified = opened.identity, start, prefix_hash
        return True

    def _report_gap(self, text: str) -> None:
        """Refuse, or with `allow_gaps` warn."""
        if not self._allow_gaps:
            raise FileRefused(
                f"{text} Decompress or restore it beside {self.name}, or go on without its rows "
                "with --allow-gaps."
            )
        warnings.warn(f"{text} Going on without its rows.", KernelBankWarning, stacklevel=2)


def _identity_in(position: Position) -> tuple[Any, Any]:
    """The device and inode of the file of a position; a file that was not followed has none."""
    return position.get("device"), position.get("inode")
