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
from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from ...errors import FileRefused
from ..dialect import CsvDialect
from .base import POLL_SECONDS, Source
from .files import CHANGED, CHUNK_BYTES, check_encoding, open_file, wait_until_settled
from .prefix_hash import PrefixHash
from .rotation import OpenedFile, RotatedFiles, identity_in
from .row_block import Position, RowBlock, empty_block
from .text_reader import HeaderReader, TextFormat, TextPosition, TextReader, skip_read

_LAST_BYTES = 256
"""So many bytes before the present place are compared again, to notice a file that was cut."""


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
            found = self._files.find(position)
            if found is not None:
                found[0].file.close()

    def _start_at(self, position: Position | None) -> Position | None:
        if position is not None:
            TextPosition.parse(position, self.name)
        return position

    def _blocks(self, start: Position | None, size: int) -> Iterator[RowBlock]:
        """The rows of one file after another."""
        position = start  # of the last row so far
        found = None if position is None else self._files.find(position)
        opened = None
        while True:
            rows = 0 if position is None else int(position["rows"])
            begin = None
            if found is not None:
                opened, begin = found[0], found[1:]
            if opened is None:
                opened = yield from self._wait_for_file(rows)
            if opened is None:
                return
            following = found = None
            with opened.file:
                try:
                    for block in self._read(opened, begin, rows, size):
                        if len(block):
                            position = block.position(len(block) - 1)
                        yield block
                    if self._is_idle:
                        return
                    following = self._files.open_following(opened)
                except _FileWasCut:
                    if position is not None and identity_in(position) == opened.identity:
                        found = self._files.find(position, was_cut=True)
            opened = following

    # --- one file ---------------------------------------------------------------------------------

    def _read(
        self,
        opened: OpenedFile,
        begin: tuple[TextPosition, PrefixHash] | None,
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
        self, opened: OpenedFile, pieces: Iterator[bytes], rows: int
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

    def _pieces(self, opened: OpenedFile, begin: int) -> Iterator[bytes]:
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
            if self._files.following(opened) is not None:
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

    def _wait_for_file(self, rows: int) -> Generator[RowBlock, None, OpenedFile | None]:
        """The file that has the name, when there is one; None if it did not come in time."""
        begun = time.monotonic()
        while True:
            try:
                return OpenedFile(self.name, open_file(self._path))
            except FileRefused:
                if os.path.lexists(self._path):
                    raise
            if self._idle is not None and time.monotonic() - begun > self._idle:
                return None
            time.sleep(POLL_SECONDS)
            yield empty_block(rows)
