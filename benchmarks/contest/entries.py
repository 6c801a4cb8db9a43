"""What is played: a stretch of a stream in one view, and where the streams come from."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

import kernelbank as kb

REGRESSION, CLASSIFICATION = "regression", "classification"
LAGS = 3
VIEWS = {"given": 0, f"lags{LAGS}": LAGS}
"""How many of the last targets everybody is told as further inputs."""

_NUMBERS = ["TrumpApproval", "ChickWeights", "SP500Stocks", "WaterFlow", "AirlinePassengers"]
_LABELS = ["Phishing", "Bananas", "Shuttle", "ImageSegments"]
_SHUFFLED = {
    "diabetes": REGRESSION,
    "breast_cancer": CLASSIFICATION,
    "wine": CLASSIFICATION,
    "iris": CLASSIFICATION,
    "digits": CLASSIFICATION,
}


@dataclass(frozen=True)
class Stretch:
    """Which rows of each stream are played, and how many of them are not scored."""

    start: int = 0
    rows: int = 4000
    skip: int = 100


@dataclass(frozen=True)
class Entry:
    """One row of the table: inputs (n, d) as they are given, targets (n,), a task and a view.

    Labels are whole numbers from 0 on.
    """

    stream: str
    view: str
    task: str
    X: np.ndarray
    y: np.ndarray
    skip: int

    @property
    def name(self) -> str:
        return f"{self.stream}/{self.view}"

    @property
    def lags(self) -> int:
        return VIEWS[self.view]

    @property
    def classes(self) -> int:
        return int(self.y.max()) + 1 if self.task == CLASSIFICATION else 0

    @cached_property
    def inputs(self) -> np.ndarray:
        """What a player without lags of its own is given: y[t-1], y[t-2], ... stand behind the
        inputs, 0 where there is no such row yet."""
        columns = [self.X]
        for lag in range(1, self.lags + 1):
            late = np.zeros((len(self.y), 1))
            late[lag:, 0] = self.y[:-lag]
            columns.append(late)
        return np.ascontiguousarray(np.hstack(columns))

    @cached_property
    def digest(self) -> str:
        """Changes with everything that a player is given."""
        content = hashlib.sha256(f"{self.task} {self.view} {self.X.shape}".encode())
        content.update(np.ascontiguousarray(self.X).tobytes())
        content.update(np.ascontiguousarray(self.y).tobytes())
        return content.hexdigest()


def from_folder(folder: Path, stretch: Stretch, only: list[str]) -> list[Entry]:
    """Every *.csv.gz of a folder: header, numbers, the target last. Targets that are all 0 or 1
    are labels."""
    files = {path.name.removesuffix(".csv.gz"): path for path in sorted(folder.glob("*.csv.gz"))}
    if not files:
        raise SystemExit(f"{folder}: there is no .csv.gz file. Give a folder that holds some.")
    entries = []
    for name in _chosen(list(files), only):
        X, y = kb.datasets.read_csv(files[name], samples=stretch.start + stretch.rows)
        task = CLASSIFICATION if np.isin(y, (0.0, 1.0)).all() else REGRESSION
        entries += _entries(name, task, X, y, stretch)
    return entries


def bundled(stretch: Stretch, only: list[str]) -> list[Entry]:
    """The numeric streams that lie in River's and scikit-learn's own packages: no download.

    Those of scikit-learn are no streams (some are sorted by class): they are shuffled, seed 0.
    """
    entries = []
    for name in _chosen([*_NUMBERS, *_LABELS, *_SHUFFLED], only):
        if name in _SHUFFLED:
            task = _SHUFFLED[name]
            X, y = _of_sklearn(name)
        else:
            task = CLASSIFICATION if name in _LABELS else REGRESSION
            X, y = _of_river(name, stretch.start + stretch.rows)
        entries += _entries(name, task, X, y, stretch)
    return entries


def _chosen(names: list[str], only: list[str]) -> list[str]:
    for name in only:
        if name not in names:
            raise SystemExit(f"--only: there is no stream {name!r}. There are {', '.join(names)}.")
    return [name for name in names if not only or name in only]


def _entries(
    name: str, task: str, X: np.ndarray, y: np.ndarray, stretch: Stretch
) -> Iterator[Entry]:
    """Nothing where the stretch has no row to score. Labels are counted from 0 on."""
    part = slice(stretch.start, stretch.start + stretch.rows)
    X, y = np.ascontiguousarray(X[part]), np.ascontiguousarray(y[part])
    if len(y) <= stretch.skip:
        return
    if task == CLASSIFICATION:
        y = np.unique(y, return_inverse=True)[1].astype(np.float64)
        yield Entry(name, "given", task, X, y, stretch.skip)
        return
    for view in VIEWS:
        yield Entry(name, view, task, X, y, stretch.skip)


def _of_sklearn(name: str) -> tuple[np.ndarray, np.ndarray]:
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order].astype(np.float64), y[order].astype(np.float64)


def _of_river(name: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A date becomes the days since 1970; labels become their places in sorted order."""
    from river import datasets

    pairs = list(getattr(datasets, name)())[:rows]  # River closes a file at its end only
    X = np.array([[_number(value) for value in x.values()] for x, _ in pairs])
    targets = [y for _, y in pairs]
    if name in _LABELS:
        places = {label: place for place, label in enumerate(sorted(set(targets)))}
        targets = [places[label] for label in targets]
    return X, np.array(targets, dtype=np.float64)


def _number(value: object) -> float:
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=value.tzinfo or datetime.UTC).timestamp() / 86400
    return float(value)
