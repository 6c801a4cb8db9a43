"""A stream of samples: inputs, targets, and what is known about them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from ...errors import FileRefused
from ...io.sources import open_source, read_columns
from ...utils import validation as check
from ...utils.validation import Floats

REGRESSION, CLASSIFICATION = "regression", "classification"


@dataclass(frozen=True, eq=False)
class Stream:
    """Samples in the order in which they arrive.

    Parameters
    ----------
    X, y : (n, d) inputs, or (n,) for one column, and (n,) targets; labels are 0, 1, 2, ...
    task : "regression" or "classification".
    lags : how many of the last targets are inputs too.

    >>> import numpy as np, kernelbank as kb
    >>> stream = kb.datasets.Stream(np.zeros((4, 1)), [1.0, 2.0, 3.0, 4.0], lags=2)
    >>> stream.inputs.tolist()
    [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 2.0, 1.0], [0.0, 3.0, 2.0]]
    """

    X: Floats
    y: Floats
    task: str = REGRESSION
    lags: int = 0

    def __post_init__(self) -> None:
        X = check.samples(self.X, None)
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", check.targets(self.y, len(X)))
        check.choice("task", self.task, "Stream", (REGRESSION, CLASSIFICATION))
        check.count("lags", self.lags, "Stream", "Give 0, 1, 2, ...", least=0)

    def __len__(self) -> int:
        return len(self.y)

    def head(self, rows: int) -> Stream:
        """Its first `rows` samples, or all of them if there are fewer."""
        return replace(self, X=self.X[:rows], y=self.y[:rows]) if rows < len(self) else self

    @property
    def classes(self) -> int:
        """How many labels there are; 0 in regression."""
        return int(self.y.max()) + 1 if self.task == CLASSIFICATION else 0

    @cached_property
    def inputs(self) -> Floats:
        """(n, d + lags): X, then y[t-1], y[t-2], ...; 0 where there is no such target yet."""
        columns = [self.X]
        for lag in range(1, self.lags + 1):
            late = np.zeros((len(self), 1))
            late[lag:, 0] = self.y[:-lag]
            columns.append(late)
        return np.ascontiguousarray(np.hstack(columns))


def read_csv(
    path: str | os.PathLike[str],
    target: str | None = None,
    inputs: Sequence[str] | None = None,
    samples: int | None = None,
    *,
    delimiter: str = ",",
    decimal: str = ".",
) -> tuple[Floats, Floats]:
    """Inputs and targets from a CSV file with a header row, in the order of its lines.

    Parameters
    ----------
    path : a .csv or .csv.gz file.
    target : the target's column; by default the last one.
    inputs : the inputs' columns; by default all others.
    samples : the most rows to read; by default all.
    delimiter : between the cells: a comma, a semicolon, "tab" or another character.
    decimal : before the fraction of a number: a point or a comma.

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
    if not file.name.endswith((".csv", ".csv.gz")):
        remedy = "Give a comma-separated table, plain or packed by gzip."
        raise check.refuse("path", "end with .csv or .csv.gz", str(path), remedy, "read_csv")
    if samples is not None:
        check.count("samples", samples, "read_csv", "Give how many rows to read, or None.")
    try:
        with open_source(file, delimiter=delimiter, decimal=decimal) as source:
            assert source.columns is not None  # a file has a header
            columns = _columns(file, source.columns, target, inputs)
            table = read_columns(source, columns, limit=samples)
    except FileRefused as error:  # a source says its name only: add the folder
        text = str(error)
        whole = text.startswith(str(file))
        raise FileRefused(text if whole else text.replace(file.name, str(file), 1)) from None
    if not len(table):
        raise FileRefused(f"{file}: there are no rows below the header.")
    return np.ascontiguousarray(table[:, :-1]), np.ascontiguousarray(table[:, -1])


def _columns(
    path: Path, names: Sequence[str], target: str | None, inputs: Sequence[str] | None
) -> list[str]:
    """The inputs' columns and, last, the target's."""
    wanted = names[-1] if target is None else target
    others = [name for name in names if name != wanted] if inputs is None else list(inputs)
    for name in (*others, wanted):
        if name not in names:
            raise FileRefused(f"{path}: there is no column {name!r}. It has {_listed(names)}.")
    if wanted in others:
        raise FileRefused(f"{path}: column {wanted!r} cannot be the target and an input.")
    if not others:
        raise FileRefused(f"{path}: there is no input column beside the target {wanted!r}.")
    return [*others, wanted]


def _listed(names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def standardised(X: object, y: object, rows: int = 100) -> tuple[Floats, Floats]:
    """The stream in standard units, without looking ahead beyond its first `rows`.

    Every input is centred and scaled by the mean and standard deviation of its column up to and
    including its own row, and clipped at 10. The targets are shifted and scaled by the mean and
    standard deviation of the first `rows` targets: errors stay comparable over the whole stream,
    and the first `rows` samples should not be scored.

    Parameters
    ----------
    X, y : (n, d) inputs, or (n,) for one column, and (n,) targets.
    rows : how many first targets give their scale, at least 2.

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
    first_targets = targets[:first]
    unit = float(first_targets.std()) or 1.0
    return (
        np.clip(centred / scale, -10.0, 10.0),
        (targets - first_targets.mean()) / unit,
    )
