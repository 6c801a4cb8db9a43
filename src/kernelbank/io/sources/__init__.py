"""Where rows come from: files, standard input and brokers, in order, from any row on.

    source = open_source("sensors.csv")             # or .csv.gz .parquet .jsonl - redis:// kafka://
    for block in source.blocks(position):           # None, or where an earlier run stopped
        table = block.parse(numeric=["wind", "load"], text=["station"], allow_missing=["wind"])
        table.numbers, table.texts                  # of the good rows: block rows table.rows
        for bad in table.rejected: print(bad)            # sensors.csv, line 17, column 'load': ...
        position = block.position(len(block) - 1)   # plain JSON data, after any row of the block

Ideas that hold for all of them:

- A *block* is some rows as they came. It may be empty: streams that wait yield an empty block five
  times a second, so that whoever reads them can save, draw and stop.
- A row is good or *bad*, and a bad row neither hides nor shifts others: it is counted, has a place
  and a position, and is told with its place, column and value.
- A *position* says how to go on after a row. Blocks from there on are the rows that would have
  followed. Files go on by byte, Parquet by row number, Redis by id, Kafka by the offsets of all
  partitions; standard input must be sent again and is compared by a hash.
- The *fingerprint* of a source, with `Source.verify`, keeps a position from being used on another.

What a cell means is in `cells`, CSV in `delimited`, JSON in `objects`, lines and bytes in `lines`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...errors import FileRefused
from ...utils import validation as check
from ...utils.validation import Floats
from .addresses import kafka_address, redis_address
from .base import Source
from .files import TextFile
from .rows import ParsedRows, RejectedRow, RowBlock
from .standard_input import StandardInput

__all__ = ["ParsedRows", "RejectedRow", "RowBlock", "Source", "open_source", "read_columns"]

TEXTS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
FORMS = ".csv, .csv.gz, .jsonl, .jsonl.gz, .parquet, -, redis:// or kafka://"


def open_source(
    address: str | os.PathLike[str],
    *,
    delimiter: str = ",",
    idle: float | None = None,
    patience: float = 30.0,
) -> Source:
    """The source at an address.

    Parameters
    ----------
    address : a .csv, .jsonl (each also with .gz) or .parquet file; `-` for CSV or JSON lines on
        standard input; redis://host:port/stream-name; kafka://host:port/topic.
    delimiter : between the cells of CSV: a comma, a semicolon, a tab or another character.
    idle : end a stream when nothing has come for so many seconds; by default never. Files end
        by themselves.
    patience : seconds for which a broken connection to a broker is tried again.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "small.csv")
    ...     _ = path.write_text("hour,load\\n0,1.5\\n1,2.5\\n")
    ...     source = open_source(path)
    ...     [block] = source.blocks()
    >>> source.columns, block.parse(numeric=["load"]).numbers.tolist()
    (('hour', 'load'), [[1.5], [2.5]])
    """
    owner = "open_source"
    if not (isinstance(delimiter, str) and len(delimiter) == 1 and delimiter not in '"\r\n {'):
        remedy = "Give the character between the cells, such as ',' or ';'."
        raise check.refuse("delimiter", "be one character", delimiter, remedy, owner)
    if idle is not None:
        check.number("idle", idle, owner, "Give seconds, or None.", above=0)
    check.number("patience", patience, owner, "Give seconds such as 30.", least=0)
    said = os.fspath(address)
    if said == "-":
        return StandardInput(delimiter, idle)
    if said.startswith(("redis://", "rediss://")):
        from .redis import RedisStream

        return RedisStream(redis_address(said), idle, patience)
    if said.startswith("kafka://"):
        from .kafka import KafkaTopic

        return KafkaTopic(kafka_address(said), idle, patience)
    path = Path(said)
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if path.name.endswith(".parquet"):
        from .parquet import ParquetFile

        return ParquetFile(path)
    if suffix not in TEXTS or "://" in said:
        raise check.refuse("address", f"be {FORMS}", said, "Give a source of these kinds.", owner)
    return TextFile(path, TEXTS[suffix], delimiter)


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
        table = block.parse(numeric=columns)
        end = len(block) if limit is None else min(limit - block.first, len(block))
        if table.rejected and table.rejected[0].row < end:
            raise FileRefused(str(table.rejected[0]))
        parts.append(table.numbers[:end])
        if block.first + end == limit:
            break
    return np.concatenate(parts)
