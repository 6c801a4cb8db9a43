"""Rows on standard input: CSV or JSON lines, as fast or as slow as they come.

Nothing can be read twice there. To resume, the same rows must be sent again from the start; those
that are done are hashed, compared with the hash in the position, and skipped.
"""

from __future__ import annotations

import hashlib
import os
import select
import sys
import time
from collections.abc import Iterator, Sequence

from ...errors import FileRefused
from ...utils import validation as check
from ..dialect import CsvDialect
from .base import DEFAULT_BLOCK_ROWS, POLL_SECONDS, Source, check_block_rows, foreign_position
from .files import GZIP_MAGIC
from .row_block import Position, RowBlock, empty_block
from .text_reader import HeaderReader, PrefixHash, TextFormat, TextPosition, TextReader

READ_BYTES = 1 << 16
_BLANK = b" \t\r\n\xef\xbb\xbf"


class StandardInput(Source):
    """Standard input, or another pipe of which `descriptor` is the number."""

    kind = "standard input"
    name = "standard input"
    address = "-"

    def __init__(
        self,
        dialect: CsvDialect = CsvDialect(),  # noqa: B008  (frozen)
        idle: float | None = None,
        descriptor: int | None = None,
    ) -> None:
        self._dialect = dialect
        self._idle = idle
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._used = False
        self._unread = b""
        """Bytes after the start that came while the start was looked for."""
        self._ended = False

    def blocks(
        self,
        position: Position | None = None,
        size: int = DEFAULT_BLOCK_ROWS,
        columns: Sequence[str] | None = None,
    ) -> Iterator[RowBlock]:
        del columns
        if self._used:
            remedy = "Use the iterator of the first call."
            raise check.refuse("blocks", "be called once", "a second call", remedy, self.name)
        start, expected_hash = TextPosition(), None
        if position is not None:
            start, expected_hash = TextPosition.parse(position, self.name), position.get("sha256")
            if not isinstance(expected_hash, str):
                raise foreign_position(position, self.name)
        check_block_rows(size)
        self._used = True
        return self._blocks(start, expected_hash, size)

    def _blocks(
        self, start: TextPosition, expected_hash: str | None, size: int
    ) -> Iterator[RowBlock]:
        pieces = self._pieces()
        # Read the beginning until the format and the columns are known. It is kept to be hashed.
        head = b""
        header: HeaderReader | None = None
        form = TextFormat("jsonl")
        fed = 0
        for piece in pieces:
            if not piece:
                yield empty_block(start.rows)
                continue
            head += piece
            if head.startswith(GZIP_MAGIC):
                raise FileRefused(
                    f"{self.name}: these bytes are compressed. Send them uncompressed."
                )
            if header is None and head.strip(_BLANK):
                if head.strip(_BLANK)[:1] == b"{":
                    break
                form = TextFormat("csv", self._dialect)
                self.is_csv = True
                header = HeaderReader(form, self.name)
            if header is not None:
                known = header.feed(head[fed:], last=False)
                fed = len(head)
                if known:
                    break
        else:
            if not self._ended:
                return
            if not head.strip(_BLANK):
                raise FileRefused(f"{self.name}: nothing came. Send rows, or give a file.")
            if header is not None:
                header.feed(b"", last=True)
        if header is not None:
            self.columns = header.columns
        if expected_hash is None and header is not None:
            start = header.start
        digest = hashlib.sha256()
        yield from self._skip_done(head, pieces, start, digest, expected_hash)
        reader = TextReader(form, self.name, self.columns, start, size, PrefixHash(digest))
        yield from reader.feed(self._unread, last=False)
        self.columns = reader.columns
        for piece in pieces:
            if not piece:
                yield empty_block(reader.rows)
            for block in reader.feed(piece, last=False):
                self.columns = reader.columns
                yield block
        if self._ended:  # else the last line may be incomplete
            yield from reader.feed(b"", last=True)
            self.columns = reader.columns

    def _skip_done(
        self,
        head: bytes,
        pieces: Iterator[bytes],
        start: TextPosition,
        digest: hashlib._Hash,
        expected_hash: str | None,
    ) -> Iterator[RowBlock]:
        """Hash and skip the bytes before `start`; later bytes that came with them are `_unread`."""
        left = start.bytes
        while True:
            digest.update(head[:left])
            self._unread = head[left:]
            left -= min(left, len(head))
            if not left:
                break
            following = next(pieces, None)
            if following is None:
                raise FileRefused(
                    f"{self.name}: only {start.bytes - left} of the {start.bytes} bytes came "
                    "again that had been read before. Send the same rows from the start, or "
                    "start a new run."
                )
            head = following
            if not following:
                yield empty_block(start.rows)
        if expected_hash is not None and digest.hexdigest() != expected_hash:
            raise FileRefused(
                f"{self.name}: the first {start.rows} rows are not those that were read before. "
                "Send the same rows from the start, or start a new run."
            )

    def _pieces(self) -> Iterator[bytes]:
        """Bytes as soon as they come; no bytes when none has come for a while."""
        last_read = time.monotonic()
        while True:
            ready, _, _ = select.select([self._descriptor], [], [], POLL_SECONDS)
            if ready:
                piece = os.read(self._descriptor, READ_BYTES)
                if not piece:
                    self._ended = True
                    return
                yield piece
                last_read = time.monotonic()  # the time in which the rows were used is not idle
            else:
                if self._idle is not None and time.monotonic() - last_read > self._idle:
                    return
                yield b""
