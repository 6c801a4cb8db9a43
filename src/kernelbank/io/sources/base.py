"""What every source offers: its columns, its fingerprint, and its rows in blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import FileRefused
from ...utils import validation as check
from .rows import Position, RowBlock

SIZE = 1024
"""The most rows of a block, unless told otherwise."""

POLL = 0.2
"""Seconds after which a source that waits yields an empty block."""


class Source(ABC):
    """Where rows come from, in order, in blocks, from any row on.

    Memory: a few blocks, whatever the length of the source. `open_source` makes one.

    >>> import pathlib, tempfile
    >>> from kernelbank.io.sources import open_source
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "small.jsonl")
    ...     _ = path.write_text('{"a": 1}\\n{"a": 2}\\n{"a": 3}\\n')
    ...     source = open_source(path)
    ...     first = next(source.blocks(size=2))
    ...     [second] = source.blocks(first.position(1))
    >>> source.columns, first.where(1), second.parse(numeric=["a"]).numbers.tolist()
    (('a',), 'small.jsonl, line 2', [[3.0]])
    """

    kind: str
    """csv, jsonl, parquet, standard input, redis or kafka."""

    name: str
    """What the source is called in messages; never with a password."""

    columns: tuple[str, ...] | None = None
    """The names in order; None until the first row has come from a stream."""

    length: int | None = None
    """How many rows there are, where that is known."""

    @property
    def share(self) -> float | None:
        """How much has been read so far, in [0, 1], where that is known."""
        return None

    @property
    @abstractmethod
    def fingerprint(self) -> dict[str, Any]:
        """Plain JSON data by which a later process recognises the source: see `verify`."""

    def fingerprint_at(self, position: Position | None) -> dict[str, Any]:
        """The fingerprint of what was read up to a position: later rows may be corrected."""
        del position
        return self.fingerprint

    def verify(self, fingerprint: dict[str, Any]) -> None:
        """Refuse a fingerprint of another source; take over its columns if they are unknown."""
        mine = self.fingerprint
        for key, then in fingerprint.items():
            if key == "columns" and self.columns is None:
                self.columns = None if then is None else tuple(then)
            elif key in mine and mine[key] != then and not (key == "columns" and then is None):
                raise FileRefused(
                    f"{self.name}: this is not the source that was read before: its {key} was "
                    f"{_short(then)} and is {_short(mine[key])}. Give the source of then, or begin "
                    "a new run."
                )

    @abstractmethod
    def blocks(
        self,
        position: Position | None = None,
        size: int = SIZE,
        columns: Sequence[str] | None = None,
    ) -> Iterator[RowBlock]:
        """The rows after `position`, in blocks of at most `size`.

        Parameters
        ----------
        position : what `RowBlock.position` said of the last row that is done; None for the start.
        size : the most rows of a block.
        columns : those that will be asked for; a Parquet file reads no others.

        Sources that wait for rows yield an empty block when none has come for a while.
        """

    def close(self) -> None:  # noqa: B027  (files are closed where their iterators end)
        """Let go of connections."""

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def rows_per_block(size: int) -> int:
    """The checked size of blocks."""
    return check.count("size", size, "blocks", "Give a number of rows such as 1024.")


def whole(position: Position, key: str, name: str) -> int:
    """A number out of a position, which may come from a file that someone has edited."""
    value = position.get(key) if isinstance(position, dict) else None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise foreign(position, name)
    return value


def foreign(position: object, name: str) -> Exception:
    """The error for a position that no source of this kind has made."""
    remedy = f"Give what RowBlock.position said of a row of {name}, or None."
    return check.refuse("position", "be a position in this source", position, remedy, "blocks")


def _short(value: object) -> str:
    said = repr(value)
    return said if len(said) <= 80 else said[:77] + "..."
