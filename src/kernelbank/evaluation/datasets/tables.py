"""Streams from tables: a CSV file read in its order, and scaling without a look ahead."""

from __future__ import annotations

import csv
import gzip
import math
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ...errors import FileRefused
from ...utils import validation as check
from ...utils.validation import LARGEST, Floats

SUFFIXES = (".csv", ".csv.gz")


def read_csv(
    path: str | os.PathLike[str],
    target: str | None = None,
    inputs: Sequence[str] | None = None,
    samples: int | None = None,
) -> tuple[Floats, Floats]:
    """Inputs and targets from a CSV file with a header row, in the order of its lines.

    Parameters
    ----------
    path : a .csv or .csv.gz file.
    target : the target's column; by default the last one.
    inputs : the inputs' columns; by default all others.
    samples : read so many rows at most; by default all.

    What cannot be read is refused with the file, the line, the column and the value.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "small.csv")
    ...     _ = path.write_text("hour,load\\n0,1.5\\n1,2.5\\n")
    ...     X, y = read_csv(path, target="load")
    >>> X.tolist(), y.tolist()
    ([[0.0], [1.0]], [1.5, 2.5])
    """
    file = Path(path)
    if not file.name.endswith(SUFFIXES):
        remedy = "Give a comma-separated table, plain or packed by gzip."
        raise check.refuse("path", "end with .csv or .csv.gz", str(path), remedy, "read_csv")
    if samples is not None:
        check.count("samples", samples, "read_csv", "Give how many rows to read, or None.")
    try:
        with _open(file) as lines:
            rows = _rows(file, lines, target, inputs, samples)
            table = np.array(list(rows), dtype=np.float64)
    except FileNotFoundError:
        raise FileRefused(f"{file}: there is no such file.") from None
    except IsADirectoryError:
        raise FileRefused(f"{file}: this is a folder. Give a .csv or .csv.gz file.") from None
    except (gzip.BadGzipFile, zlib.error, EOFError):
        raise FileRefused(f"{file}: this is no whole gzip file. Fetch or pack it again.") from None
    except UnicodeDecodeError:
        raise FileRefused(f"{file}: this is not text. Save the table as UTF-8.") from None
    except csv.Error as error:
        raise FileRefused(f"{file}: this is no table ({error}).") from None
    if not len(table):
        raise FileRefused(f"{file}: there are no rows below the header.")
    return np.ascontiguousarray(table[:, :-1]), np.ascontiguousarray(table[:, -1])


def standardised(X: Any, y: Any, rows: int = 100) -> tuple[Floats, Floats]:
    """The stream in standard units, without a look ahead beyond its first `rows`.

    Every input is centred and scaled by the mean and standard deviation of its column up to and
    including its own row, and clipped at 10. The targets are shifted and scaled by the mean and
    standard deviation of the first `rows` targets, once for all: errors stay comparable over the
    whole stream, and results on the first `rows` samples should not be counted.

    Parameters
    ----------
    X, y : (n, d) inputs, or (n,) for one column, and (n,) targets.
    rows : how many first targets tell their scale, at least 2.

    >>> X, y = standardised([[1.0], [2.0], [3.0]], [10.0, 20.0, 30.0], rows=3)
    >>> X.round(3).ravel().tolist(), y.round(3).tolist()
    ([0.0, 1.0, 1.225], [-1.225, 0.0, 1.225])
    """
    inputs = check.samples(X, None)
    targets = check.targets(y, len(inputs))
    first = check.count("rows", rows, "standardised", "Give a number such as 100.", least=2)
    shifted = inputs - inputs[0]  # so that the squares below do not cancel far from zero
    number = np.arange(1.0, len(inputs) + 1)[:, None]
    mean = np.cumsum(shifted, axis=0) / number
    variance = np.maximum(np.cumsum(shifted * shifted, axis=0) / number - mean * mean, 0.0)
    floor = 1e-12 * np.maximum.accumulate(np.abs(shifted), axis=0)
    deviation = np.sqrt(variance)
    scale = np.where(deviation > floor, deviation, 1.0)
    centred = np.where(deviation > floor, shifted - mean, 0.0)
    known = targets[:first]
    spread = float(known.std())
    return (
        np.clip(centred / scale, -10.0, 10.0),
        (targets - known.mean()) / (spread if spread > 0 else 1.0),
    )


def _open(path: Path) -> TextIO:
    if path.name.endswith(".gz"):
        return gzip.open(path, "rt", newline="", encoding="utf-8-sig")
    return path.open(newline="", encoding="utf-8-sig")


def _rows(
    path: Path,
    lines: TextIO,
    target: str | None,
    inputs: Sequence[str] | None,
    samples: int | None,
) -> Iterator[list[float]]:
    """The chosen columns of every row, the target last."""
    reader = csv.reader(lines)
    header = next(reader, None)
    if not header:
        raise FileRefused(f"{path}: the file is empty; its first line must name the columns.")
    names = [name.strip() for name in header]
    places = _places(path, names, target, inputs)
    count = 0
    for row in reader:
        if not row:  # a blank line
            continue
        if len(row) != len(names):
            raise FileRefused(
                f"{path}, line {reader.line_num}: {len(row)} values under {len(names)} columns."
            )
        yield [_number(path, reader.line_num, names[place], row[place]) for place in places]
        count += 1
        if count == samples:
            return


def _places(
    path: Path, names: list[str], target: str | None, inputs: Sequence[str] | None
) -> list[int]:
    repeated = sorted({name for name in names if names.count(name) > 1})
    wanted = names[-1] if target is None else target
    others = [name for name in names if name != wanted] if inputs is None else list(inputs)
    for name in (*others, wanted):
        if name not in names:
            raise FileRefused(f"{path}: there is no column {name!r}. It has {_listed(names)}.")
        if name in repeated:
            raise FileRefused(f"{path}, line 1: more than one column is called {name!r}.")
    if wanted in others:
        raise FileRefused(f"{path}: column {wanted!r} cannot be the target and an input.")
    if not others:
        raise FileRefused(f"{path}: there is no input column beside the target {wanted!r}.")
    return [names.index(name) for name in (*others, wanted)]


def _listed(names: list[str], most: int = 12) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def _number(path: Path, line: int, column: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST:
        raise FileRefused(
            f"{path}, line {line}, column {column!r}: {text.strip()!r} is no finite number."
        )
    return value
