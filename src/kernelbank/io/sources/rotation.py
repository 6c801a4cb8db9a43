"""Which file follows which when a file is rotated: by name, time of change and inode."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")
_NUMBER = r"[.-]\d[\dT:._-]*"


class RotatedFile(NamedTuple):
    """A file that is, or was, the file that is followed. They are ordered as they were written."""

    mtime_ns: int
    """When it was changed last: a file that is rotated later is changed later."""
    number: int
    """For equal times: minus the number in the name, of which the largest is the oldest."""
    name: str
    identity: tuple[int, int]
    """Device and inode."""
    is_compressed: bool


def identity_of(status: os.stat_result) -> tuple[int, int]:
    """The device and the inode of a file."""
    return status.st_dev, status.st_ino


def present_file(path: Path) -> RotatedFile | None:
    """The file that has the name now; None if there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return RotatedFile(status.st_mtime_ns, 0, path.name, identity_of(status), False)


def beside(path: Path) -> list[RotatedFile]:
    """The other regular files in the folder whose names begin with that of the file."""
    found = []
    with os.scandir(path.parent) as entries:
        for entry in entries:
            if entry.name == path.name or not _belongs(entry.name, path):
                continue
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue  # renamed or removed meanwhile
            if stat.S_ISREG(status.st_mode):
                number = re.search(r"[.-](\d{1,6})(?!\d)", entry.name[len(path.stem) :])
                found.append(
                    RotatedFile(
                        status.st_mtime_ns,
                        -int(number[1]) if number else 0,
                        entry.name,
                        identity_of(status),
                        entry.name.endswith(_COMPRESSED),
                    )
                )
    return sorted(found)


def numbering(name: str, path: Path) -> str:
    """How a name is made of that of the file by a number or a date: "after" it or "inside"; or "".

    >>> path = Path("log.csv")
    >>> [numbering(n, path) for n in ("log.csv.1", "log.csv-20240131.gz", "log.1.csv", "log.csv.old")]
    ['after', 'after', 'inside', '']
    """
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    whole, stem, end = map(re.escape, (path.name, path.stem, path.suffix))
    if re.fullmatch(f"{whole}{_NUMBER}", name):
        return "after"
    return "inside" if re.fullmatch(f"{stem}{_NUMBER}{end}", name) else ""


def _belongs(name: str, path: Path) -> bool:
    return name.startswith(path.name) or numbering(name, path) == "inside"
