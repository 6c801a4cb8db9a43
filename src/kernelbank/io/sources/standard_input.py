"""Rows on standard input: CSV or JSON lines, as fast or as slow as they come.

Nothing can be read twice there. To go on after a break, the same rows must be sent again from the
start; those that are done are hashed, compared with the hash in the position, and passed over.
"""

from __future__ import annotations

import hashlib
import os
import select
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import FileRefused
from ...utils import validation as check
from .base import POLL, SIZE, Source, foreign, rows_per_block
from .gzip_stream import MAGIC
from .rows import Position, RowBlock, nothing
from .text import Digest, Format, HeaderReader, Rows, Start

PIECE = 1 << 16
_BLANK = b" \t\r\n\xef\xbb\xbf"


class StandardInput(Source):
    """Standard input, or another pipe of which `descriptor` is the number."""

    kind = "standard input"
    name = "standard input"

    def __init__(
        self, delimiter: str = ",", idle: float | None = None, descriptor: int | None = None
    ) -> None:
        self._delimiter = delimiter
        self._idle = idle
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._used = False
        self._left = b""
        self._ended = False

    @property
    def fingerprint(self) -> dict[str, Any]:
        columns = None if self.columns is None else list(self.columns)
        return {"kind": self.kind, "address": "-", "columns": columns}

    def blocks(
        self,
        position: Position | None = None,
        size: int = SIZE,
        columns: Sequence[str] | None = None,
    ) -> Iterator[RowBlock]:
        del columns
        if self._used:
            remedy = "Go on with the iterator of the first call."
            raise check.refuse("blocks", "be called once", "a second call", remedy, self.name)
        start, wanted = Start(), None
        if position is not None:
            start, wanted = Start.of(position, self.name), position.get("sha256")
            if not isinstance(wanted, str):
                raise foreign(position, self.name)
        rows_per_block(size)
        self._used = True
        return self._blocks(start, wanted, size)

    def _blocks(self, start: Start, wanted: str | None, size: int) -> Iterator[RowBlock]:
        pieces = self._pieces()
        # The beginning, until it tells what the rows are. It is kept, to be hashed.
        head = b""
        opening: HeaderReader | None = None
        form = Format("jsonl")
        fed = 0
        for piece in pieces:
            if not piece:
                yield nothing(start.rows)
                continue
            head += piece
            if head.startswith(MAGIC):
                raise FileRefused(f"{self.name}: these bytes are packed. Send them unpacked.")
            if opening is None and head.strip(_BLANK):
                if head.strip(_BLANK)[:1] == b"{":
                    break
                form = Format("csv", self._delimiter)
                opening = HeaderReader(form, self.name)
            if opening is not None:
                known = opening.feed(head[fed:], last=False)
                fed = len(head)
                if known:
                    break
        else:
            if not self._ended:
                return
            if not head.strip(_BLANK):
                raise FileRefused(f"{self.name}: nothing came. Send rows, or give a file.")
            if opening is not None:
                opening.feed(b"", last=True)
        if opening is not None:
            self.columns = opening.columns
        if wanted is None and opening is not None:
            start = opening.start
        digest = hashlib.sha256()
        yield from self._pass_over(head, pieces, start, digest, wanted)
        rows = Rows(form, self.name, self.columns, start, size).sealed(Digest(digest))
        yield from rows.feed(self._left, last=False)
        self.columns = rows.columns
        for piece in pieces:
            if not piece:
                yield nothing(rows.count)
            for block in rows.feed(piece, last=False):
                self.columns = rows.columns
                yield block
        if self._ended:  # else the last line may not be whole
            yield from rows.feed(b"", last=True)
            self.columns = rows.columns

    def _pass_over(
        self,
        head: bytes,
        pieces: Iterator[bytes],
        start: Start,
        digest: hashlib._Hash,
        wanted: str | None,
    ) -> Iterator[RowBlock]:
        """Hash the bytes before `start`; what came after them is left in `_left`."""
        still = start.bytes
        while True:
            digest.update(head[:still])
            self._left = head[still:]
            still -= min(still, len(head))
            if not still:
                break
            following = next(pieces, None)
            if following is None:
                raise FileRefused(
                    f"{self.name}: only {start.bytes - still} of the {start.bytes} bytes came "
                    "again that had been read before. Send the same rows from the start, or "
                    "begin a new run."
                )
            head = following
            if not following:
                yield nothing(start.rows)
        if wanted is not None and digest.hexdigest() != wanted:
            raise FileRefused(
                f"{self.name}: the first {start.rows} rows are not those that were read before. "
                "Send the same rows from the start, or begin a new run."
            )

    def _pieces(self) -> Iterator[bytes]:
        """Bytes as soon as they come; nothing, when none has come for a while."""
        heard = time.monotonic()
        while True:
            ready, _, _ = select.select([self._descriptor], [], [], POLL)
            if ready:
                piece = os.read(self._descriptor, PIECE)
                if not piece:
                    self._ended = True
                    return
                yield piece
                heard = time.monotonic()  # the time in which the rows were used is not idle
            else:
                if self._idle is not None and time.monotonic() - heard > self._idle:
                    return
                yield b""
