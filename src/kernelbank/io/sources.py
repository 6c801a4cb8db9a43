"""Where rows come from: files, standard input and brokers, in order, from any row on.

    source = open_source("sensors.csv")             # or .csv.gz .parquet .jsonl - redis:// kafka://
    for block in source.blocks(position):           # None, or where an earlier run stopped
        parsed = block.parse(numeric=["wind", "load"], text=["station"], allow_missing=["wind"])
        parsed.numbers, parsed.texts                # of the valid rows, parsed.rows of the block
        for row in parsed.rejected: print(row)      # sensors.csv, line 17, column 'load': ...
        position = block.position(len(block) - 1)   # JSON data, after any row of the block

What holds for all of them:

- A *block* is some rows as they came. It may be empty: a stream without new rows yields an empty
  block five times per second, so that its reader can save, draw and stop.
- A rejected row neither hides nor shifts others: it is counted, and is described with its line (or
  row, or id), column and value.
- A *position* says where to continue after a row: a byte in a text file, a row number in a Parquet
  file, an id in Redis, the offsets of all partitions in Kafka. The bytes of a text before it are
  compared by a hash; standard input must be sent again from the start.
- A line is a row when its end has come. If a text that may still grow ends before the end of a row,
  that row comes in a block that is `provisional`.
- The *fingerprint* of a source, with `Source.verify`, keeps a position from being used on another.

A row of a text file: bytes (`text`) -> lines and cells (`lines`) -> a block with line numbers
(`text`, `source`) -> numbers (`cells`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileRefused
from ..utils import validation as check
from ..utils.validation import Floats
from .brokers import kafka_address, redis_address, without_password
from .followed_file import FollowedFile
from .lines import CsvDialect
from .source import ParsedRows, RejectedRow, RowBlock, Source
from .text import StandardInput, TextFile

__all__ = ["ParsedRows", "RejectedRow", "RowBlock", "Source", "open_source", "read_columns"]

_TEXT_KINDS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_KINDS = (
    "Give a file whose name ends with .csv, .jsonl (also .gz) or .parquet, - for standard input, "
    "or an address such as redis://host:6379/stream or kafka://host:9092/topic."
)


def open_source(
    address: str | os.PathLike[str],
    *,
    delimiter: str = ",",
    decimal: str = ".",
    idle: float | None = None,
    patience: float = 30.0,
    complete: bool = True,
    follow: bool = False,
    allow_gaps: bool = False,
) -> Source:
    """The source at an address.

    Parameters
    ----------
    address : a .csv, .jsonl (each also with .gz) or .parquet file; `-` for CSV or JSON lines on
        standard input; redis://host:port/stream-name; kafka://host:port/topic.
    delimiter : between the cells of CSV: a comma, a semicolon, "tab" or another character.
    decimal : before the fraction of a number in CSV: a point or a comma.
    idle : end a stream when nothing has come for this number of seconds; by default never. Files
        end by themselves.
    patience : seconds for which a broken connection to a broker is tried again.
    complete : whether nothing more will be written to a plain file, or sent to standard input: then
        a last line without its end is a row like any other. Otherwise it is yielded in a block that
        is `provisional`.
    follow : wait at the end of a plain .csv or .jsonl file for more rows, also when it is renamed
        and begun again, as `tail -F` does.
    allow_gaps : go on where rows are lost: if a broker has deleted them before they were read
        (`Source.missing_rows` counts them), or a followed file is not found.

    A password that an address has not is in the environment: KERNELBANK_REDIS_PASSWORD,
    KERNELBANK_KAFKA_PASSWORD.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "small.csv")
    ...     _ = path.write_text("hour,load\\n0,1.5\\n1,2.5\\n")
    ...     source = open_source(path)
    ...     [block] = source.blocks()
    >>> source.columns, block.parse(numeric=["load"]).numbers.tolist()
    (('hour', 'load'), [[1.5], [2.5]])
    """
    dialect = CsvDialect.of(delimiter, decimal)
    if idle is not None:
        check.number("idle", idle, "", "Give seconds, or None.", above=0)
    check.number("patience", patience, "", "Give seconds such as 30.", least=0)
    text = os.fspath(address)
    path = Path(text)
    if follow:
        suffix, is_stream = path.suffix.lower(), text == "-" or "://" in text
        if is_stream or suffix not in _TEXT_KINDS:
            reason = "rows that are added later are read by the same command"
            if is_stream:
                reason = "this source is read as its rows come anyway"
            raise FileRefused(
                f"{without_password(text)}: only a plain .csv or .jsonl file can be followed. "
                f"Leave out --follow: {reason}."
            )
        return FollowedFile(path, _TEXT_KINDS[suffix], dialect, idle, allow_gaps)
    if text == "-":
        return StandardInput(dialect, idle, complete=complete)
    waiting: dict[str, Any] = {"idle": idle, "patience": patience, "allow_gaps": allow_gaps}
    if text.startswith(("redis://", "rediss://")):
        from .redis import RedisStream

        return RedisStream(redis_address(text), **waiting)
    if text.startswith("kafka://"):
        from .kafka import KafkaTopic

        return KafkaTopic(kafka_address(text), **waiting)
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if path.name.endswith(".parquet"):
        from .parquet import ParquetFile

        return ParquetFile(path)
    if suffix not in _TEXT_KINDS or "://" in text:
        raise FileRefused(f"{without_password(text)}: this kind of source is not known. {_KINDS}")
    return TextFile(path, _TEXT_KINDS[suffix], dialect, complete)


def read_columns(source: Source, columns: Sequence[str], limit: int | None = None) -> Floats:
    """The numbers of some columns of a whole source: (n, len(columns)), in the order asked.

    Parameters
    ----------
    source : what `open_source` returns; `source.columns` names its columns.
    columns : the numeric columns to read.
    limit : the most rows to read; by default all.

    Raises
    ------
    FileRefused
        At the first row that is not all numbers, with the file, the line, the column and the value.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "small.csv")
    ...     _ = path.write_text("hour,load\\n0,1.5\\n1,2.5\\n2,4.5\\n")
    ...     read_columns(open_source(path), ["load", "hour"], limit=2).tolist()
    [[1.5, 0.0], [2.5, 1.0]]
    """
    parts = [np.empty((0, len(columns)))]
    for block in source.blocks(columns=columns):
        parsed = block.parse(numeric=columns)
        end = len(block) if limit is None else min(limit - block.first, len(block))
        if parsed.rejected and parsed.rejected[0].row < end:
            raise FileRefused(str(parsed.rejected[0]))
        parts.append(parsed.numbers[:end])
        if block.first + end == limit:
            break
    return np.concatenate(parts)
