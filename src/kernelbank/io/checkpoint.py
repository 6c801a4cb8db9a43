"""One file: a JSON header and raw arrays, versioned, checksummed, written atomically.

    magic, 11 bytes | version, 4 | length of the file, 8 | length of the header, 8
    header: JSON with an "arrays" list of [name, dtype, shape] | the arrays, in that order
    SHA-256 of everything before, 32 bytes

Numbers are little-endian. Nothing is compressed and nothing is pickled: a file cannot run code,
and cannot claim more memory than it is long.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FileRefused
from .reading import Opener, open_for_reading

MAGIC = b"KERNELBANK\n"
VERSION = 3
_PREFIX = struct.Struct("<IQQ")
_DIGEST = 32
_DTYPES: dict[str, np.dtype[Any]] = {"<f8": np.dtype("<f8"), "<f4": np.dtype("<f4")}

Arrays = dict[str, NDArray[Any]]


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write the file atomically: at any moment the old or the new one is there, complete.

    The arrays are in the order of their names, so equal states are equal files.
    """
    arrays = dict(sorted(arrays.items()))
    table = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    text = json.dumps({**header, "arrays": table}, allow_nan=False).encode()
    pieces = [text, *(np.ascontiguousarray(array).tobytes() for array in arrays.values())]
    total = len(MAGIC) + _PREFIX.size + sum(map(len, pieces)) + _DIGEST
    pieces.insert(0, MAGIC + _PREFIX.pack(VERSION, total, len(text)))
    digest = hashlib.sha256()
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    try:
        with open(temporary, "xb") as file:
            for piece in pieces:
                digest.update(piece)
                file.write(piece)
            file.write(digest.digest())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):  # of a failed write the system tells no name
            error.filename, error.filename2 = str(target), None  # the name that the user gave
        raise


def read(path: str | os.PathLike[str], opener: Opener = os.open) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays; `FileRefused` says what is wrong with the file.

    opener : how the file is opened, as in `open`.
    """
    start = len(MAGIC) + _PREFIX.size
    with open_for_reading(path, opener) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(start)
        total, length = _check_prefix(path, data, size)
        data += file.read(total - start)
    if len(data) < total:
        raise FileRefused(f"{path} is truncated: it has {len(data)} of {total} bytes.")
    body = memoryview(data)[:-_DIGEST]
    if hashlib.sha256(body).digest() != data[-_DIGEST:]:
        raise FileRefused(f"{path} is damaged: its checksum does not match.")
    if start + length + _DIGEST > total:
        raise FileRefused(f"{path} is damaged: its header is longer than the file.")
    try:
        header = json.loads(bytes(body[start : start + length]))
        table = header.pop("arrays")
        arrays = _read_arrays(body[start + length :], table)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FileRefused(f"{path} is damaged: {error}.") from None
    return header, arrays


def _check_prefix(path: Any, data: bytes, size: int) -> tuple[int, int]:
    """The lengths of the file and of its header, checked before the rest is read."""
    if not data.startswith(MAGIC):
        if MAGIC.startswith(data):
            raise FileRefused(f"{path} is truncated: it has {size} bytes.")
        raise FileRefused(f"{path} is not a kernelbank file.")
    if len(data) < len(MAGIC) + _PREFIX.size:
        raise FileRefused(f"{path} is truncated: it has {size} bytes.")
    version, total, length = _PREFIX.unpack_from(data, len(MAGIC))
    if version > VERSION:
        raise FileRefused(
            f"{path} has format version {version}; this kernelbank reads up to {VERSION}. "
            "Upgrade kernelbank to read it."
        )
    if version < VERSION:
        raise FileRefused(
            f"{path} has format version {version}, from before the first release; this kernelbank "
            f"reads version {VERSION}. Read the file with the kernelbank that wrote it, or learn "
            "the stream again."
        )
    if size < total:
        raise FileRefused(f"{path} is truncated: it has {size} of {total} bytes.")
    if size > total:
        raise FileRefused(f"{path} is damaged: it has {size} bytes instead of {total}.")
    return total, length


def _read_arrays(body: memoryview, table: Any) -> Arrays:
    arrays: Arrays = {}
    offset = 0
    for name, kind, shape in table:
        dtype = _DTYPES[kind]
        if not all(isinstance(n, int) and n >= 0 for n in shape) or len(shape) > 8:
            raise ValueError("an array has an impossible shape")
        size = math.prod(shape) * dtype.itemsize
        if offset + size > len(body):
            raise ValueError("an array is longer than the file")
        flat = np.frombuffer(body[offset : offset + size], dtype=dtype)
        arrays[str(name)] = flat.reshape(shape).copy()
        offset += size
    if offset != len(body):
        raise ValueError("there are bytes after the last array")
    return arrays
