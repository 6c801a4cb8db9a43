"""The streams of `make accuracy`: files of a folder, named benchmarks, data of packages.

streams.toml lists the named benchmarks. Their numbers are compared with a checksum: figures on
other numbers could not be compared. Nothing is downloaded.
"""

from __future__ import annotations

import datetime
import hashlib
import tomllib
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import kernelbank as kb
from kernelbank.research.datasets import CLASSIFICATION, REGRESSION, Stream

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


# --- named benchmarks -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Benchmark:
    """A public stream; see streams.toml."""

    about: str
    source: str
    sha256: str
    task: str = REGRESSION
    seen: bool = False
    package: str | None = None


_TABLE = tomllib.loads(Path(__file__).with_name("streams.toml").read_text(encoding="utf-8"))
BENCHMARKS = {name: Benchmark(**facts) for name, facts in _TABLE.items()}


def load(name: str, folder: Path | None) -> Stream | None:
    """A benchmark from name.csv.gz in the folder or in a folder inside it, or from its package.

    None if there is neither.
    """
    benchmark = BENCHMARKS[name]
    file = f"{name}.csv.gz"
    paths = [] if folder is None else [folder / file, *sorted(folder.glob(f"*/{file}"))]
    path = next((path for path in paths if path.is_file()), None)
    if path is not None:
        stream = Stream(*kb.datasets.read_csv(path), benchmark.task)
        if checksum(stream) != benchmark.sha256:
            raise SystemExit(f"{path} has other numbers than {name!r}, from {benchmark.source}.")
        return stream
    if benchmark.package is None or find_spec(benchmark.package) is None:
        return None
    table = _from_river(name) if benchmark.package == "river" else _from_sklearn(name)
    stream = Stream(table[:, :-1], table[:, -1], benchmark.task)
    if checksum(stream) != benchmark.sha256:
        message = f"{name}: the installed {benchmark.package} has other numbers than"
        warnings.warn(f"{message} {benchmark.source}", kb.errors.KernelBankWarning, stacklevel=2)
    return stream


def checksum(stream: Stream) -> str:
    """SHA-256 of the numbers of a stream, which does not depend on how they were written."""
    table = np.column_stack([stream.X, stream.y]).astype("<f8") + 0.0  # -0 is 0
    return hashlib.sha256(np.ascontiguousarray(table).tobytes()).hexdigest()


def _from_river(name: str) -> np.ndarray:
    """A date becomes the days since 1970; labels become their indices in sorted order."""
    from river import datasets

    pairs = list(getattr(datasets, name)())
    targets = [y for _, y in pairs]
    if not isinstance(targets[0], (int, float)) or isinstance(targets[0], bool):
        indices = {label: index for index, label in enumerate(sorted(set(targets)))}
        targets = [indices[label] for label in targets]
    rows = zip(pairs, targets)
    return np.array([[*map(_number, x.values()), float(y)] for (x, _), y in rows])


def _number(value: float | str | datetime.datetime) -> float:
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=value.tzinfo or datetime.UTC).timestamp() / 86400
    return float(value)


def _from_sklearn(name: str) -> np.ndarray:
    """It has no order in time (some are sorted by class): shuffled."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    table = np.column_stack([X, y]).astype(np.float64)
    return table[np.random.default_rng(0).permutation(len(table))]


# --- what is run ----------------------------------------------------------------------------------


def from_folder(folder: Path, used: RowRange, only: list[str]) -> dict[str, Stream]:
    """Every *.csv.gz of a folder, and of the folder `long` inside it if long streams are used.

    A file has a header and numbers, the target last. Targets that are all 0 or 1 are labels. A file
    that has the name of a benchmark must have its numbers.
    """
    places = (folder, folder / "long") if used.long else (folder,)
    paths = sorted((path.name, path) for place in places for path in place.glob("*.csv.gz"))
    files = {name.removesuffix(".csv.gz"): path for name, path in paths}
    if not files:
        raise SystemExit(f"{folder}: there is no .csv.gz file. Give a folder that holds some.")
    streams: dict[str, Stream] = {}
    for name in chosen_names(list(files), only, "--only"):
        stream = load(name, folder) if name in BENCHMARKS else None
        if stream is None:
            X, y = kb.datasets.read_csv(files[name], samples=used.start + used.rows)
            stream = Stream(X, y, CLASSIFICATION if np.isin(y, (0.0, 1.0)).all() else REGRESSION)
        streams |= _views(name, stream, used)
    return streams


def bundled(used: RowRange, only: list[str]) -> dict[str, Stream]:
    """The benchmarks in River's and scikit-learn's own packages."""
    return _benchmarks([name for name, one in BENCHMARKS.items() if one.package], None, used, only)


def benchmarks(
    seen: bool, folder: Path | None, used: RowRange, only: list[str]
) -> dict[str, Stream]:
    """The named benchmarks with which AutoBank's default slots were chosen, or all others."""
    names = [name for name, one in BENCHMARKS.items() if one.seen == seen]
    return _benchmarks(names, folder, used, only)


def _benchmarks(
    names: list[str], folder: Path | None, used: RowRange, only: list[str]
) -> dict[str, Stream]:
    """From the folder and from installed packages; a line names those that are in neither."""
    streams = {name: load(name, folder) for name in chosen_names(names, only, "--only")}
    missing = [name for name, stream in streams.items() if stream is None]
    if missing:
        print(f"Left out, neither in a folder (DATA) nor in a package: {', '.join(missing)}")
    views = [_views(name, stream, used) for name, stream in streams.items() if stream is not None]
    return {name: stream for view in views for name, stream in view.items()}


def long_ones(streams: dict[str, Stream]) -> dict[str, Stream]:
    """Those of at least LONG_STREAM rows; a line names the others."""
    short = [name for name, stream in streams.items() if len(stream) < LONG_STREAM]
    if short:
        print(f"Left out, fewer than {LONG_STREAM:,} rows: {', '.join(short)}")
    return {name: stream for name, stream in streams.items() if name not in short}


def chosen_names(names: list[str], wanted: list[str], option: str) -> list[str]:
    """Those that are wanted, or all if none is."""
    for name in wanted:
        if name not in names:
            raise SystemExit(f"{option}: there is no {name!r}. There are {', '.join(names)}.")
    return [name for name in names if not wanted or name in wanted]


def _views(name: str, stream: Stream, used: RowRange) -> dict[str, Stream]:
    """By name; "name +3" has lags. Nothing if no row would be scored."""
    part = slice(used.start, used.start + used.rows)
    X, y = np.ascontiguousarray(stream.X[part]), np.ascontiguousarray(stream.y[part])
    if len(y) <= used.skip:
        return {}
    if stream.task == CLASSIFICATION:
        labels = np.unique(y, return_inverse=True)[1].astype(np.float64)
        return {name: Stream(X, labels, CLASSIFICATION)}
    return {name: Stream(X, y), f"{name} +{LAGS}": Stream(X, y, lags=LAGS)}
