"""Which file follows which when a file is rotated, and in which of them a position is.

By name and time of change the order is known; by inode and by a hash of what was read, a file that
was renamed or copied since.
"""

from __future__ import annotations

import os
import re
import stat
import warnings
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ...errors import FileRefused, KernelBankWarning
from .files import open_file, read_plain
from .prefix_hash import PrefixHash
from .row_block import Position
from .text_reader import TextPosition

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


class OpenedFile(NamedTuple):
    """A file that is open; its name may have changed since."""

    name: str
    file: BinaryIO

    @property
    def status(self) -> os.stat_result:
        """What the system knows of it."""
        return os.fstat(self.file.fileno())

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        return identity_of(self.status)

    def read_at(self, begin: int, count: int) -> bytes:
        """At most `count` bytes from byte `begin` on."""
        return os.pread(self.file.fileno(), count, begin)


class RotatedFiles:
    """The file with a name, and those beside it that had the name before."""

    def __init__(self, path: Path, allow_gaps: bool) -> None:
        self._path = path
        self._allow_gaps = allow_gaps
        self._verified: tuple[tuple[int, int], TextPosition, PrefixHash] | None = None
        """The last file that was found, for which position, and the hash of the bytes before it."""

    def following(self, opened: OpenedFile) -> RotatedFile | None:
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

    def open_following(self, opened: OpenedFile) -> OpenedFile | None:
        """The same, opened."""
        while True:
            entry = self.following(opened)
            if entry is None:
                return None
            path = self._path.with_name(entry.name)
            try:
                following = OpenedFile(entry.name, open_file(path))
            except FileRefused:
                if os.path.lexists(path):
                    raise
                continue  # it was renamed meanwhile
            if following.identity == entry.identity:
                return following
            following.file.close()

    def find(
        self, position: Position, was_cut: bool = False
    ) -> tuple[OpenedFile, TextPosition, PrefixHash] | None:
        """The file of a position: that with the same bytes before it, whose hash is returned too.

        If there is none it is refused; None with `allow_gaps`, or if the file was cut just now.
        """
        start = TextPosition.parse(position, self._path.name)
        if was_cut:
            self._verified = None
        present = present_file(self._path)
        candidates = [one for one in beside(self._path) if not one.is_compressed]
        candidates += [present] if present is not None else []
        candidates.sort(key=lambda one: one.identity != identity_in(position))
        for one in candidates:
            try:
                opened = OpenedFile(one.name, open_file(self._path.with_name(one.name)))
            except FileRefused:
                continue
            prefix_hash = self._matching_hash(opened, start)
            if prefix_hash is not None:
                return opened, start, prefix_hash
            opened.file.close()
        if was_cut:
            warnings.warn(
                f"{self._path.name}: the file was emptied or rewritten while it was being read, "
                "and there is no copy of it: rows may be lost. Going on at its start.",
                KernelBankWarning,
                stacklevel=2,
            )
            return None
        self._report_gap(
            f"{self._path.name}: no file of this name, or beside it with a name that begins with "
            f"it, has the same first {start.bytes} bytes as that in which row {start.rows} was "
            "read. It was removed, compressed or rewritten, so rows may be lost."
        )
        return None

    def _matching_hash(self, opened: OpenedFile, start: TextPosition) -> PrefixHash | None:
        """The hash of the bytes of a file before a position; None if they are others."""
        if opened.status.st_size < start.bytes:
            return None
        if self._verified is None or self._verified[:2] != (opened.identity, start):
            prefix_hash = PrefixHash()
            for _ in prefix_hash.skip(read_plain(opened.file), start.bytes, start.rows):
                pass
            if prefix_hash.hexdigest != start.sha256:
                return None
            self._verified = opened.identity, start, prefix_hash
        return self._verified[2].copy()

    def _report_gap(self, text: str) -> None:
        """Refuse, or with `allow_gaps` warn."""
        if not self._allow_gaps:
            raise FileRefused(
                f"{text} Decompress or restore it beside {self._path.name}, or go on without its "
                "rows with --allow-gaps."
            )
        warnings.warn(f"{text} Going on without its rows.", KernelBankWarning, stacklevel=2)


def identity_in(position: Position) -> tuple[Any, Any]:
    """The device and inode of the file of a position; a file that was not followed has none."""
    return position.get("device"), position.get("inode")


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
    >>> [numbering(name, path) for name in ("log.csv.1", "log.csv-20240131.gz", "log.1.csv")]
    ['after', 'after', 'inside']
    >>> numbering("log.csv.old", path)
    ''
    """
    for suffix in _COMPRESSED:
        name = name.removesuffix(suffix)
    whole, stem, end = map(re.escape, (path.name, path.stem, path.suffix))
    if re.fullmatch(f"{whole}{_NUMBER}", name):
        return "after"
    return "inside" if re.fullmatch(f"{stem}{_NUMBER}{end}", name) else ""


def _belongs(name: str, path: Path) -> bool:
    return name.startswith(path.name) or numbering(name, path) == "inside"
