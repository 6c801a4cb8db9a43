"""The streams of `make forecasts`: a target, inputs, its periods, and what is known in advance.

| stream | rows | periods | known in advance | why it is here |
|---|---|---|---|---|
| random_walk | simulated | none | | the last value is the best forecast: nothing can be won |
| ar_0.9 | simulated | none | | the forecast must go to the mean with the horizon |
| bike_hour | hours | 24, 168 | calendar | people: two periods, holidays, growth, inputs |
| elec2_demand | half hours | 48, 336 | time of day | demand of a grid: smooth, two strong periods |
| zurich_nox | hours | 24, 168 | hour, day of year | traffic and wind: a period and much noise |
| air_quality_co | hours | 24 | hour, weekday | hours are absent, so the period slips |
| gas_turbine_nox | hours | none | | a machine: jumps of the load, nine inputs |
| glucose | 5 minutes | none | time of day | smooth, its slope tells the next half hour |
| elnino_sst | months | 12 | month | short, two years ahead, a period and slow waves |
| santafe_laser | ticks | none | | deterministic chaos: no linear model forecasts it |

Periods are counted in rows. Among real streams these have an order in time and no labels as
targets; adaraker_air is left out because it has the same measurements as air_quality_co. The
target of elec2_demand is the column nswdemand of elec2, that of glucose the column g_lag0min of
glucose_30min, their last known values. Inputs that are earlier values of the target are left out:
every forecaster has the past targets anyway.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np


@dataclass(frozen=True, eq=False)
class ForecastStream:
    """Rows in the order of time.

    - X, y: (n, d) inputs, d may be 0, and (n,) targets
    - known: columns of X whose values at t + h are known at t
    - periods: in rows, the shortest first
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    known: tuple[int, ...] = ()
    periods: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that a forecaster is given."""
        facts = f"{self.X.shape} {self.known} {self.periods}"
        content = hashlib.sha256(facts.encode())
        content.update(np.ascontiguousarray(self.X).tobytes())
        content.update(np.ascontiguousarray(self.y).tobytes())
        return content.hexdigest()


@dataclass(frozen=True)
class _File:
    """Where a stream comes from: a file, its target, inputs, and which are known in advance."""

    file: str
    target: str = "y"
    known: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    periods: tuple[int, ...] = ()


_HOUR = ("hour_sin", "hour_cos")
_CALENDAR = ("season", "yr", "mnth", "holiday", "weekday", "workingday", "hr_sin", "hr_cos", "hr")
_SENSORS = ("PT08_S1_CO", "PT08_S2_NMHC", "PT08_S3_NOx", "PT08_S4_NO2", "PT08_S5_O3")
_TURBINE = ("AT", "AP", "AH", "AFDP", "GTEP", "TIT", "TAT", "CDP", "TEY")

FILES = {
    "bike_hour": _File(
        "bike_hour",
        known=_CALENDAR,
        inputs=("weathersit", "temp", "atemp", "hum", "windspeed"),
        periods=(24, 168),
    ),
    "elec2_demand": _File(
        "elec2", target="nswdemand", known=("period",), inputs=("nswprice",), periods=(48, 336)
    ),
    "zurich_nox": _File(
        "zurich_nox",
        known=(*_HOUR, "year_sin", "year_cos"),
        inputs=("LNOxEm", "sqrtWS"),
        periods=(24, 168),
    ),
    "air_quality_co": _File(
        "air_quality_co",
        known=(*_HOUR, "dow"),
        inputs=(*_SENSORS, "T", "RH", "AH"),
        periods=(24,),
    ),
    "gas_turbine_nox": _File("gas_turbine_nox", inputs=_TURBINE),
    "glucose": _File("glucose_30min", target="g_lag0min", known=_HOUR),
    "elnino_sst": _File("elnino_sst", known=("mon_sin", "mon_cos"), periods=(12,)),
    "santafe_laser": _File("santafe_laser"),
}


# --- simulated ------------------------------------------------------------------------------------


def _random_walk(rows: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=rows).cumsum()


def _autoregressive(rows: int) -> np.ndarray:
    values = np.random.default_rng(2).normal(size=rows)
    for t in range(1, rows):
        values[t] += 0.9 * values[t - 1]
    return values


SIMULATED: dict[str, Callable[[int], np.ndarray]] = {
    "random_walk": _random_walk,
    "ar_0.9": _autoregressive,
}
"""From a number of rows to the targets; the seeds are 1 and 2."""


# --- reading --------------------------------------------------------------------------------------


def load_streams(folder: Path | None, rows: int, only: list[str]) -> list[ForecastStream]:
    """The first `rows` rows of the streams that are asked for; all that there are if `only` is
    empty. Without a folder these are the simulated ones."""
    names = [*SIMULATED, *(FILES if folder is not None else ())]
    for name in only:
        if name in FILES and folder is None:
            raise SystemExit(f"--streams: {name} is a file. Give its folder (--data).")
        if name not in names:
            listed = ", ".join(names)
            raise SystemExit(f"--streams: there is no stream {name!r}. There are {listed}.")
    chosen = [name for name in names if not only or name in only]
    simulated = [_simulate(name, rows) for name in chosen if name in SIMULATED]
    if folder is None:
        return simulated
    return simulated + [_read(name, folder, rows) for name in chosen if name in FILES]


def _simulate(name: str, rows: int) -> ForecastStream:
    return ForecastStream(name, np.zeros((rows, 0)), SIMULATED[name](rows))


def _read(name: str, folder: Path, rows: int) -> ForecastStream:
    source = FILES[name]
    path = folder / f"{source.file}.csv.gz"
    if not path.is_file():
        raise SystemExit(
            f"--data: {folder} has no file {path.name}, which {name} needs. Give a folder that has "
            "it, or choose other streams (--streams)."
        )
    wanted = (*source.known, *source.inputs, source.target)
    table = _columns(path, wanted, rows)
    known = tuple(range(len(source.known)))
    return ForecastStream(name, table[:, :-1].copy(), table[:, -1].copy(), known, source.periods)


def _columns(path: Path, wanted: tuple[str, ...], rows: int) -> np.ndarray:
    """(rows, columns): the first rows of these columns."""
    with gzip.open(path, "rt", newline="") as file:
        reader = csv.reader(file)
        header = next(reader)
        for name in wanted:
            if name not in header:
                listed = ", ".join(header)
                raise SystemExit(f"--data: {path.name} has no column {name!r}, only {listed}.")
        places = [header.index(name) for name in wanted]
        found = [[float(row[at]) for at in places] for row, _ in zip(reader, range(rows))]
    return np.array(found)
