"""Bytes of a file, plain or packed by gzip, from any byte on."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import BinaryIO

from ...errors import FileRefused

PIECE = 1 << 18
MAGIC = b"\x1f\x8b"


def plain(file: BinaryIO) -> Iterator[bytes]:
    """The bytes of a file, in pieces."""
    while piece := file.read(PIECE):
        yield piece


def unpacked(file: BinaryIO, name: str) -> Iterator[bytes]:
    """The unpacked bytes of a gzip file, in pieces.

    A file that is cut off or damaged is refused at the point where that shows: all that comes
    before is given. Damage may show late: gzip has one checksum only, at the end, and what is
    unpacked between the damage and there can look like rows.
    """
    machine = zlib.decompressobj(wbits=31)
    begun = False
    while packed := file.read(PIECE):
        while packed:
            if machine.eof:
                packed = packed.lstrip(b"\0")  # padding is allowed between members
                if not packed:
                    break
                machine, begun = zlib.decompressobj(wbits=31), False
            spare = machine.copy()
            try:
                piece = machine.decompress(packed, PIECE)
            except zlib.error:
                yield _until_damage(spare, packed)
                raise _damaged(name) from None
            begun = True
            if piece:
                yield piece
            packed = machine.unused_data if machine.eof else machine.unconsumed_tail
    if begun and not machine.eof:
        raise FileRefused(
            f"{name}: the gzip file ends too early; the rows before that have been read. "
            "Fetch or pack it again."
        )


def skipped(pieces: Iterator[bytes], count: int) -> Iterator[bytes]:
    """The pieces without their first `count` bytes; if there are fewer, nothing."""
    for piece in pieces:
        if count < len(piece):
            yield piece[count:]
            break
        count -= len(piece)
    yield from pieces


def _until_damage(machine: zlib._Decompress, packed: bytes) -> bytes:
    """What can be unpacked, byte by byte, before the damage."""
    found = bytearray()
    try:
        for index in range(len(packed)):
            found += machine.decompress(packed[index : index + 1])
    except zlib.error:
        pass
    return bytes(found)


def _damaged(name: str) -> FileRefused:
    return FileRefused(
        f"{name}: the gzip file is damaged; the rows before that have been read. "
        "Fetch or pack it again."
    )
