"""Rows on standard input: CSV or JSON lines, as fast or as slow as they come.

Nothing can be read twice there. To resume, the same rows must be sent again from the start; those
that are done are hashed, compared with the hash in the position, and skipped.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator
from itertools import chain

from ...errors import FileRefused
from ...utils import validation as check
from ..dialect import CsvDialect
from .base import POLL_SECONDS, Source
from .files import GZIP_MAGIC
from .row_block import Position, RowBlock, empty_block
from .text_reader import HeaderReader, TextFormat, TextPosition, TextReader, skip_read

READ_BYTES = 1 << 16
SEND_AGAIN = "Send the same rows from the start, or start a new run."
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
        complete: bool = True,
    ) -> None:
        self._dialect = dialect
        self._idle = idle
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._complete = complete
        self._used = False
        self._ended = False

    def _start_at(self, position: Position | None) -> TextPosition:
        if self._used:
            remedy = "Use the iterator of the first call."
            raise check.refuse("blocks", "be called once", "a second call", remedy, self.name)
        start = TextPosition() if position is None else TextPosition.parse(position, self.name)
        self._used = True
        return start

    def _blocks(self, start: TextPosition, size: int) -> Iterator[RowBlock]:
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
                known = header.feed(head[fed:])
                fed = len(head)
                if known:
                    break
        else:
            if not self._ended:
                return
            if not head.strip(_BLANK):
                raise FileRefused(f"{self.name}: nothing came. Send rows, or give a file.")
            if header is not None:
                header.finish(self._complete)
        if header is not None:
            self.columns = header.columns
            start = header.start if start.sha256 is None else start
        pieces = chain([head], pieces)
        prefix_hash, rest = yield from skip_read(start, pieces, self.name, SEND_AGAIN)
        reader = TextReader(form, self.name, self.columns, start, size, prefix_hash)
        yield from reader.feed(rest)
        self.columns = reader.columns
        for piece in pieces:
            if not piece:
                yield empty_block(reader.rows)
            for block in reader.feed(piece):
                self.columns = reader.columns
                yield block
        if self._ended:  # else the last line may be incomplete
            # A sender that was killed may have stopped in the middle of a line.
            for block in reader.finish(provisional=not self._complete):
                self.columns = reader.columns
                yield block

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
