"""The streams of `make accuracy`: files of a folder, or what River and scikit-learn bring."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import kernelbank as kb
from kernelbank.evaluation.datasets.stream import CLASSIFICATION, REGRESSION, Stream

LAGS = 3
"""Regression streams are run as they are, and with this many of the last targets as inputs."""

_RIVER_REGRESSION = [
    "TrumpApproval",
    "ChickWeights",
    "SP500Stocks",
    "WaterFlow",
    "AirlinePassengers",
]
_RIVER_CLASSIFICATION = ["Phishing", "Bananas", "Shuttle", "ImageSegments"]
_SKLEARN = {
    "diabetes": REGRESSION,
    "breast_cancer": CLASSIFICATION,
    "wine": CLASSIFICATION,
    "iris": CLASSIFICATION,
    "digits": CLASSIFICATION,
}


@dataclass(frozen=True)
class RowRange:
    """Which rows of each stream are used: `start` are left out, `skip` are learned, not scored."""

    start: int = 0
    rows: int = 4000
    skip: int = 100


def from_folder(folder: Path, used: RowRange, only: list[str]) -> dict[str, Stream]:
    """Every *.csv.gz of a folder: header, numbers, the target last. Targets that are all 0 or 1
    are labels."""
    files = {path.name.removesuffix(".csv.gz"): path for path in sorted(folder.glob("*.csv.gz"))}
    if not files:
        raise SystemExit(f"{folder}: there is no .csv.gz file. Give a folder that holds some.")
    streams: dict[str, Stream] = {}
    for name in _chosen(list(files), only):
        X, y = kb.datasets.read_csv(files[name], samples=used.start + used.rows)
        task = CLASSIFICATION if np.isin(y, (0.0, 1.0)).all() else REGRESSION
        streams |= _streams(name, task, X, y, used)
    return streams


def bundled(used: RowRange, only: list[str]) -> dict[str, Stream]:
    """The numeric data in River's and scikit-learn's own packages: no download.

    Those of scikit-learn have no order in time (some are sorted by class): they are shuffled.
    """
    streams: dict[str, Stream] = {}
    for name in _chosen([*_RIVER_REGRESSION, *_RIVER_CLASSIFICATION, *_SKLEARN], only):
        if name in _SKLEARN:
            task = _SKLEARN[name]
            X, y = _from_sklearn(name)
        else:
            task = CLASSIFICATION if name in _RIVER_CLASSIFICATION else REGRESSION
            X, y = _from_river(name, used.start + used.rows)
        streams |= _streams(name, task, X, y, used)
    return streams


def _chosen(names: list[str], only: list[str]) -> list[str]:
    for name in only:
        if name not in names:
            raise SystemExit(f"--only: there is no stream {name!r}. There are {', '.join(names)}.")
    return [name for name in names if not only or name in only]


def _streams(
    name: str, task: str, X: np.ndarray, y: np.ndarray, used: RowRange
) -> dict[str, Stream]:
    """By name; "name +3" has lags. Nothing if no row would be scored."""
    part = slice(used.start, used.start + used.rows)
    X, y = np.ascontiguousarray(X[part]), np.ascontiguousarray(y[part])
    if len(y) <= used.skip:
        return {}
    if task == CLASSIFICATION:
        labels = np.unique(y, return_inverse=True)[1].astype(np.float64)
        return {name: Stream(X, labels, task)}
    return {name: Stream(X, y, task), f"{name} +{LAGS}": Stream(X, y, task, LAGS)}


def _from_sklearn(name: str) -> tuple[np.ndarray, np.ndarray]:
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order].astype(np.float64), y[order].astype(np.float64)


def _from_river(name: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A date becomes the days since 1970; labels become their indices in sorted order."""
    from river import datasets

    pairs = list(getattr(datasets, name)())[:rows]  # River closes a file at its end only
    X = np.array([[_number(value) for value in x.values()] for x, _ in pairs])
    targets = [y for _, y in pairs]
    if name in _RIVER_CLASSIFICATION:
        indices = {label: index for index, label in enumerate(sorted(set(targets)))}
        targets = [indices[label] for label in targets]
    return X, np.array(targets, dtype=np.float64)


def _number(value: object) -> float:
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=value.tzinfo or datetime.UTC).timestamp() / 86400
    return float(value)
