"""The hash of all bytes of a text up to a row: a position holds it, so that changes are noticed.

A row that was read and then rewritten would leave a model that no run over the source can give. So
when a text is read again from a position on, the bytes before it are hashed and compared.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator

from .lines import TextChunk
from .row_block import RowBlock, empty_block

HashUpTo = Callable[[int], str]
"""The hash of all bytes of a text up to a byte."""

_PIECES_PER_SIGN = 64
"""So many pieces are skipped between two empty blocks, at which a reader can stop."""


class PrefixHash:
    """The SHA-256 of a text from its first byte on."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def copy(self) -> PrefixHash:
        """The same hash, to be continued by itself."""
        copied = PrefixHash()
        copied._hash = self._hash.copy()
        return copied

    @property
    def hexdigest(self) -> str:
        """The hash of the bytes so far."""
        return self._hash.hexdigest()

    def skip(
        self, pieces: Iterator[bytes], count: int, rows: int
    ) -> Generator[RowBlock, None, bytes | None]:
        """Take in the first `count` bytes; yields empty blocks now and then.

        Returns the bytes that came with the last of them, or None if there are fewer than `count`.
        """
        number = 0
        data = b""
        while count > len(data):
            self._hash.update(data)
            count -= len(data)
            piece = next(pieces, None)
            if piece is None:
                return None
            data = piece
            number += 1
            if not data or number % _PIECES_PER_SIGN == 0:
                yield empty_block(rows)
        self._hash.update(data[:count])
        return data[count:]

    def extend(self, chunk: TextChunk) -> HashUpTo:
        """Take in a chunk; returns the hash up to any byte of it."""
        before, raw, offset = self._hash.copy(), chunk.raw, chunk.offset
        self._hash.update(raw)
        reached, done = before.copy(), 0

        def hash_up_to(end: int) -> str:
            nonlocal reached, done
            if end - offset < done:
                reached, done = before.copy(), 0
            reached.update(raw[done : end - offset])  # positions are mostly asked for in order
            done = end - offset
            return reached.hexdigest()

        return hash_up_to
