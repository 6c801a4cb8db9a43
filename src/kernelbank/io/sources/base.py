"""What every source offers: its columns, its fingerprint, and its rows in blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import FileRefused
from ...utils import validation as check
from .row_block import Position, RowBlock

DEFAULT_BLOCK_ROWS = 1024
"""The most rows of a block, by default."""

POLL_SECONDS = 0.2
"""Seconds after which a source without new rows yields an empty block."""

GO_ON_WITH_GAPS = "Restore them, or go on without them with --allow-gaps."


class Source(ABC):
    """Rows in order, in blocks, from any row on.

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

    address: str
    """Where it is; never with a password."""

    columns: tuple[str, ...] | None = None
    """The names in order; None until the first row has come from a stream."""

    start: Position | None = None
    """Where the first row begins, once that is known and if it need not be the same later."""

    is_csv = False
    """Whether the rows are CSV, as far as that is known."""

    length: int | None = None
    """The number of rows, where it is known."""

    missing_rows = 0
    """Rows that were deleted before they were read; with `allow_gaps` they may be."""

    @property
    def share(self) -> float | None:
        """The share that has been read so far, in [0, 1], where it is known."""
        return None

    @property
    def fingerprint(self) -> dict[str, Any]:
        """JSON data by which a later process knows that the source is the same: see `verify`."""
        columns = None if self.columns is None else list(self.columns)
        return {"kind": self.kind, "address": self.address, "columns": columns}

    def verify(self, fingerprint: dict[str, Any], position: Position | None = None) -> None:
        """Refuse the fingerprint of another source; take over its columns if they are unknown.

        Files refuse a position too if the rows before it have changed since.
        """
        del position
        mine = self.fingerprint
        for key, saved in fingerprint.items():
            if key == "columns" and self.columns is None:
                self.columns = None if saved is None else tuple(saved)
            elif key in mine and mine[key] != saved and not (key == "columns" and saved is None):
                raise FileRefused(
                    f"{self.name}: this is not the source that was read before: "
                    f"{_difference(key, saved, mine[key])}. Give the earlier source, or start a "
                    "new run."
                )

    def blocks(
        self,
        position: Position | None = None,
        size: int = DEFAULT_BLOCK_ROWS,
        columns: Sequence[str] | None = None,
    ) -> Iterator[RowBlock]:
        """The rows after `position`, in blocks of at most `size`.

        Parameters
        ----------
        position : `RowBlock.position` of the last row that is done; None for the start.
        size : the most rows of a block.
        columns : the columns that will be parsed; a Parquet file reads no others.

        Sources that wait for rows yield an empty block when none has come for a while.
        """
        del columns  # only a Parquet file can leave columns out
        count = check_block_rows(size)
        return self._blocks(self._start_at(position), count)

    @abstractmethod
    def _start_at(self, position: Position | None) -> Any:
        """Where to start, as `_blocks` takes it. A position that is not one of ours is refused."""

    @abstractmethod
    def _blocks(self, start: Any, size: int) -> Iterator[RowBlock]:
        """The rows from `start` on, in blocks of at most `size`."""

    def close(self) -> None:  # noqa: B027  (files are closed where their iterators end)
        """Close connections."""

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_block_rows(size: int) -> int:
    """The checked size of blocks."""
    return check.count("size", size, "blocks", "Give a number of rows such as 1024.")


def position_count(position: Position, key: str, name: str) -> int:
    """A number of a position, checked: it may come from a file that someone has edited."""
    value = position.get(key) if isinstance(position, dict) else None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise foreign_position(position, name)
    return value


def foreign_position(position: object, name: str) -> Exception:
    """The error for a position that no source of this kind has made."""
    remedy = f"Give the result of RowBlock.position for a row of {name}, or None."
    return check.refuse("position", "be a position in this source", position, remedy, "blocks")


def _difference(key: str, saved: object, now: object) -> str:
    """What has changed, in words; hashes are not shown."""
    if key == "sha256":
        return "its rows have changed"
    return f"its {key}: {_shown(saved)} before, {_shown(now)} now"


def _shown(value: object) -> str:
    text = f"({', '.join(map(str, value))})" if isinstance(value, list) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."
