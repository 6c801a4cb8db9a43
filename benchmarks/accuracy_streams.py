"""The streams of `make accuracy`: files of a folder, named benchmarks, data of packages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import kernelbank as kb
from kernelbank.research.datasets.benchmarks import BENCHMARKS, find_file, is_installed
from kernelbank.research.datasets.tables import CLASSIFICATION, REGRESSION, Stream

LAGS = 3
"""Regression streams are run as they are, and with this many of the last targets as inputs."""

LONG_STREAM = 10_000
"""Rows from which on a stream is long. Where more rows than this are used, shorter streams are left
out, and refitted rivals are fitted less often."""


@dataclass(frozen=True)
class RowRange:
    """Which rows of each stream are used: `start` are left out, `skip` are learned, not scored."""

    start: int = 0
    rows: int = 4000
    skip: int = 100

    @property
    def long(self) -> bool:
        """Whether only long streams are used."""
        return self.rows > LONG_STREAM


def from_folder(folder: Path, used: RowRange, only: list[str]) -> dict[str, Stream]:
    """Every *.csv.gz of a folder, and of the folder `long` inside it if long streams are used.

    A file has a header and numbers, the target last. Targets that are all 0 or 1 are labels. A file
    that has the name of a benchmark must have its numbers.
    """
    places = (folder, folder / "long") if used.long else (folder,)
    found = sorted((path.name, path) for place in places for path in place.glob("*.csv.gz"))
    files = {name.removesuffix(".csv.gz"): path for name, path in found}
    if not files:
        raise SystemExit(f"{folder}: there is no .csv.gz file. Give a folder that holds some.")
    streams: dict[str, Stream] = {}
    for name in _chosen(list(files), only):
        if name in BENCHMARKS:
            streams |= _streams(name, _load(name, folder), used)
            continue
        X, y = kb.datasets.read_csv(files[name], samples=used.start + used.rows)
        task = CLASSIFICATION if np.isin(y, (0.0, 1.0)).all() else REGRESSION
        streams |= _streams(name, Stream(X, y, task), used)
    return streams


def bundled(used: RowRange, only: list[str]) -> dict[str, Stream]:
    """The benchmarks in River's and scikit-learn's own packages."""
    names = [name for name, one in BENCHMARKS.items() if one.package in ("river", "sklearn")]
    streams: dict[str, Stream] = {}
    for name in _chosen(names, only):
        streams |= _streams(name, _load(name, None), used)
    return streams


def benchmarks(
    seen: bool, folder: Path | None, used: RowRange, only: list[str]
) -> dict[str, Stream]:
    """The named benchmarks with which AutoBank's default slots were chosen, or all others.

    From the folder and from installed packages; a line names those that are in neither.
    """
    streams: dict[str, Stream] = {}
    missing = []
    for name in _chosen([name for name, one in BENCHMARKS.items() if one.seen == seen], only):
        package = BENCHMARKS[name].package
        found = folder is not None and find_file(name, folder) is not None
        if found or (package is not None and is_installed(package)):
            streams |= _streams(name, _load(name, folder), used)
        else:
            missing.append(name)
    if missing:
        print(f"Left out, neither in a folder (DATA) nor in a package: {', '.join(missing)}")
    return streams


def long_ones(streams: dict[str, Stream]) -> dict[str, Stream]:
    """Those of at least LONG_STREAM rows; a line names the others."""
    short = [name for name, stream in streams.items() if len(stream) < LONG_STREAM]
    if short:
        print(f"Left out, fewer than {LONG_STREAM:,} rows: {', '.join(short)}")
    return {name: stream for name, stream in streams.items() if name not in short}


def _load(name: str, folder: Path | None) -> Stream:
    try:
        return kb.datasets.load(name, folder)
    except kb.errors.KernelBankError as error:
        raise SystemExit(str(error)) from None


def _chosen(names: list[str], only: list[str]) -> list[str]:
    for name in only:
        if name not in names:
            raise SystemExit(f"--only: there is no stream {name!r}. There are {', '.join(names)}.")
    return [name for name in names if not only or name in only]


def _streams(name: str, stream: Stream, used: RowRange) -> dict[str, Stream]:
    """By name; "name +3" has lags. Nothing if no row would be scored."""
    part = slice(used.start, used.start + used.rows)
    X, y = np.ascontiguousarray(stream.X[part]), np.ascontiguousarray(stream.y[part])
    if len(y) <= used.skip:
        return {}
    if stream.task == CLASSIFICATION:
        labels = np.unique(y, return_inverse=True)[1].astype(np.float64)
        return {name: Stream(X, labels, CLASSIFICATION)}
    return {name: Stream(X, y), f"{name} +{LAGS}": Stream(X, y, lags=LAGS)}
