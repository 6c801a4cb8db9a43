"""Data sets: synthetic streams, and tables in files.

A data set is a pair (X, y): (n, d) inputs and (n,) targets, in the order in which they arrive; or
a `Stream`, which also says the task and the number of lags. Synthetic streams with the same seed
and length have the same bits.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from ..errors import FileRefused
from ..io.sources import open_source, read_columns
from ..utils import validation as check
from ..utils.validation import Floats

__all__ = ["Stream", "ar1", "read_csv", "sine", "standardised"]

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
    with open_source(file, delimiter=delimiter, decimal=decimal) as source:
        assert source.columns is not None  # a file has a header
        columns = _columns(file, source.columns, target, inputs)
        table = read_columns(source, columns, limit=samples)
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
            listed = ", ".join(map(repr, names))
            raise FileRefused(f"{path}: there is no column {name!r}. It has {listed}.")
    if wanted in others:
        raise FileRefused(f"{path}: column {wanted!r} cannot be the target and an input.")
    if not others:
        raise FileRefused(f"{path}: there is no input column beside the target {wanted!r}.")
    return [*others, wanted]


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
    target_scale = float(targets[:first].std()) or 1.0
    scaled_targets = (targets - targets[:first].mean()) / target_scale
    return np.clip(centred / scale, -10.0, 10.0), scaled_targets


# --- synthetic streams ----------------------------------------------------------------------------

FEEDBACK = 0.5488135
NOISE = 0.71519837


def ar1(seed: int = 0, samples: int = 1000, noise: str = "variance") -> tuple[Floats, Floats]:
    """The signal of the paper's experiment: x_n = n and y_n = 0.5488135 y_{n-1} + u_n.

    Parameters
    ----------
    seed : of the noise u ~ N(0, 0.71519837).
    samples : how many.
    noise : whether 0.71519837 is the "variance" of u, as the notation N(mean, variance) says, or
        its standard deviation, "std".

    >>> x, y = ar1(seed=0, samples=3)
    >>> x.tolist(), y.round(2).tolist()
    ([1.0, 2.0, 3.0], [1.49, 1.16, 1.46])
    """
    _check("ar1", seed, samples)
    check.choice("noise", noise, "ar1", ("variance", "std"))
    deviation = math.sqrt(NOISE) if noise == "variance" else NOISE
    innovations = np.random.RandomState(seed).normal(0, deviation, samples)
    return np.arange(1.0, samples + 1), autoregressive(FEEDBACK, innovations)


def autoregressive(feedback: float, innovations: Floats) -> Floats:
    """y_n = feedback y_{n-1} + u_n from y_0 = 0, for the innovations u."""
    targets = np.empty(len(innovations))
    last = 0.0
    for n, innovation in enumerate(innovations):
        last = feedback * last + innovation
        targets[n] = last
    return targets


def sine(
    seed: int = 0, samples: int = 1000, noise: float = 0.1, periods: float = 1.0
) -> tuple[Floats, Floats]:
    """A sine whose phase drifts: y_n = sin(2 pi (x_n + periods * n / samples)) + noise.

    x is uniform in [0, 1], so that only the drift changes: a learner that never forgets averages
    over all phases, which gives 0 after a full period.

    Parameters
    ----------
    seed : of the inputs and of the noise.
    samples : how many; the drift is spread over all of them.
    noise : standard deviation of the noise, at least 0.
    periods : how far the curve moves over the stream.

    >>> X, y = sine(seed=0, samples=100)
    >>> X.shape, y.shape
    ((100, 1), (100,))
    """
    _check("sine", seed, samples)
    remedy = "Give a standard deviation, such as 0.1."
    deviation = check.number("noise", noise, "sine", remedy, least=0)
    moved = check.number("periods", periods, "sine", "Give a number such as 1.")
    draw = np.random.default_rng(seed)
    x = draw.uniform(0, 1, samples)
    shift = moved * np.arange(samples) / samples
    return x[:, None], np.sin(2 * np.pi * (x + shift)) + deviation * draw.normal(size=samples)


def _check(owner: str, seed: int, samples: int) -> None:
    remedy = "Give a seed such as 0, 1, 2, ..."
    check.count("seed", seed, owner, remedy, least=0, most=2**32 - 1)
    check.count("samples", samples, owner, "Give how many samples you want.")


BUILT_IN: dict[str, Callable[[int, int], tuple[Floats, Floats]]] = {
    "ar1": ar1,
    "sine": sine,
}
"""The synthetic streams by name; each takes a seed and a number of samples."""
