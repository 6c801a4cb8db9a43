"""One file: a JSON header and raw arrays, versioned, checksummed, written atomically.

    magic, 11 bytes | version, 4 | length of the file, 8 | length of the header, 8
    header: JSON with an "arrays" list of [name, dtype, shape] | the arrays, in that order
    SHA-256 of everything before, 32 bytes

Numbers are little-endian. Nothing is compressed and nothing is pickled: a file cannot run code,
and reading it takes a multiple of its length in memory, whatever it claims.

From 0.1 on, every minor version reads the files of the one before: `CONVERTERS` is the place where
an older file becomes one of the present version.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import secrets
import stat
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..errors import FileRefused
from .files import Opener, PathName, fsync_folder, open_at_once, open_for_reading

MAGIC = b"KERNELBANK\n"
VERSION = 3
"""Of the files that are written; it grows when the meaning of something in them changes. A key of
the header that was added, and whose absence means the default, is no new version."""
_PREFIX = struct.Struct("<IQQ")
_DIGEST = 32
_KINDS = ("<f8", "<f4", "<i8", "<i4")
_DTYPES: dict[str, np.dtype[np.generic]] = {kind: np.dtype(kind) for kind in _KINDS}

Header = dict[str, Any]  # JSON data

Arrays = dict[str, NDArray[Any]]

Converter = Callable[[Header, Arrays], tuple[Header, Arrays]]

CONVERTERS: dict[int, Converter] = {}
"""By version: turns header and arrays into those of the next version. A version that is neither
here nor the present one is not read. Version 3 is that of kernelbank 0.1; while it is the present
one, there are none. tests/files holds a file of each version that must be read."""


def _pieces(header: Mapping[str, object], arrays: Arrays) -> list[bytes | memoryview]:
    """What a file is made of, in its order, the checksum last.

    The arrays are in the order of their names, so equal states are equal files.
    """
    arrays = dict(sorted(arrays.items()))
    table = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    text = json.dumps({**header, "arrays": table}, allow_nan=False).encode()
    numbers = [
        np.ascontiguousarray(array).reshape(-1).view(np.uint8).data for array in arrays.values()
    ]
    total = len(MAGIC) + _PREFIX.size + len(text) + sum(map(len, numbers)) + _DIGEST
    prefix = MAGIC + _PREFIX.pack(VERSION, total, len(text))
    pieces: list[bytes | memoryview] = [prefix, text, *numbers]
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return [*pieces, digest.digest()]


def to_bytes(header: Mapping[str, object], arrays: Arrays) -> bytes:
    """What `write` would write."""
    return b"".join(_pieces(header, arrays))


def write(path: PathName, header: Mapping[str, object], arrays: Arrays) -> None:
    """Write the file atomically: at any moment the old or the new one is there, complete."""
    pieces, target = _pieces(header, arrays), Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    try:
        with open(temporary, "xb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        fsync_folder(target.parent)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):  # of a failed write the system tells no name
            error.filename, error.filename2 = str(target), None  # the name that the user gave
        raise


def read(path: PathName, opener: Opener = open_at_once) -> tuple[Header, Arrays]:
    """The header and the arrays; `FileRefused` says what is wrong with the file.

    opener : how the file is opened, as in `open`.
    """
    with _open_file(path, opener) as file:
        size = os.fstat(file.fileno()).st_size
        _, total, _ = _check_prefix(path, file.read(len(MAGIC) + _PREFIX.size), size)
        file.seek(0)
        data = file.read(total)
    return from_bytes(data, path)


def from_bytes(data: bytes, path: object = "the state") -> tuple[Header, Arrays]:
    """The same from what `to_bytes` returned; `path` is its name for people."""
    start = len(MAGIC) + _PREFIX.size
    version, total, length = _check_prefix(path, data[:start], len(data))
    body = memoryview(data)[:-_DIGEST]
    if hashlib.sha256(body).digest() != data[-_DIGEST:]:
        raise FileRefused(f"{path} is damaged: its checksum does not match.")
    if start + length + _DIGEST > total:
        raise FileRefused(f"{path} is damaged: its header is longer than the file.")
    try:
        header = _read_header(bytes(body[start : start + length]))
        arrays = _read_arrays(body[start + length :], header.pop("arrays"))
        while version < VERSION:
            header, arrays = CONVERTERS[version](header, arrays)
            version += 1
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FileRefused(f"{path} is damaged: {damage_text(error)}.") from None
    return header, arrays


def damage_text(error: BaseException) -> str:
    """What an error says about a file, in one line, or else its name."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def _open_file(path: PathName, opener: Opener) -> BinaryIO:
    """Open a file; what is none, such as a pipe or a folder, is refused and not waited for."""
    try:
        file = open_for_reading(path, opener)
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        file.close()
    except OSError as error:
        if error.errno not in (errno.ENXIO, errno.EISDIR):  # a socket, a folder
            raise
    raise FileRefused(f"{path} is not a file.")


def _read_header(text: bytes) -> Header:
    """The header; no file that `write` has written has infinite numbers or NaN in it."""

    def finite(word: str) -> float:
        number = float(word)
        if not math.isfinite(number):
            raise ValueError(f"its header has the number {word}")
        return number

    header = json.loads(text, parse_constant=finite, parse_float=finite)
    if not isinstance(header, dict):
        raise ValueError("its header is not an object")
    return header


def _check_prefix(path: object, data: bytes, size: int) -> tuple[int, int, int]:
    """The version and the lengths of file and header, checked before the rest is read."""
    if not data.startswith(MAGIC) and not MAGIC.startswith(data):
        raise FileRefused(f"{path} is not a kernelbank file.")
    if len(data) < len(MAGIC) + _PREFIX.size:
        raise FileRefused(f"{path} is truncated: it has {size} bytes.")
    version, total, length = _PREFIX.unpack_from(data, len(MAGIC))
    if version > VERSION:
        raise FileRefused(
            f"{path} has format version {version}; this kernelbank reads up to {VERSION}. "
            "Upgrade kernelbank to read it."
        )
    if version < VERSION and version not in CONVERTERS:
        raise FileRefused(
            f"{path} has format version {version}; this kernelbank reads from version "
            f"{min([*CONVERTERS, VERSION])} on. Every minor version of kernelbank reads the files "
            "of the one before: load and save the file with those between, one after the other, or "
            "learn the stream again."
        )
    if size < total:
        raise FileRefused(f"{path} is truncated: it has {size} of {total} bytes.")
    if size > total:
        raise FileRefused(f"{path} is damaged: it has {size} bytes instead of {total}.")
    return version, total, length


def _read_arrays(body: memoryview, table: Any) -> Arrays:
    arrays: Arrays = {}
    offset, longest = 0, len(body)
    for name, kind, shape in table:
        dtype = _DTYPES[kind]
        if not isinstance(name, str) or name in arrays:
            raise ValueError("an array has an impossible name")
        # An axis beside one of length 0 must not be long either: others are compared with it.
        if len(shape) > 8 or not all(type(n) is int and 0 <= n <= longest for n in shape):
            raise ValueError("an array has an impossible shape")
        size = math.prod(shape) * dtype.itemsize
        if offset + size > len(body):
            raise ValueError("an array is longer than the file")
        flat = np.frombuffer(body[offset : offset + size], dtype=dtype)
        arrays[name] = flat.reshape(shape).copy()
        offset += size
    if offset != len(body):
        raise ValueError("there are bytes after the last array")
    return arrays
