"""What forecasts in `make forecasts`: the interface of AutoBank and of all rivals.

A forecast *at* t is made when x[0], ..., x[t] and y[0], ..., y[t] are known, and of x[t + h] the
columns that the stream lists as known in advance. It is a forecast of y[t + h], where h is the
horizon.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from forecast_streams import ForecastStream


@dataclass(frozen=True)
class Task:
    """What is to be forecast: a stream, for each of the horizons, at every row from `start` on.

    Forecasts at earlier rows are not scored. A forecaster may leave them NaN.
    """

    stream: ForecastStream
    horizons: tuple[int, ...]
    start: int


@dataclass(frozen=True)
class Forecasts:
    """One pass over a stream of n rows, for H horizons.

    - values: (n, H), forecasts of y[t + h] made at t; NaN where none was made
    - lower, upper: (n, H), intervals meant to hold 90 %; None if there are none
    - seconds: of the whole pass
    - versions: of the libraries that it depends on
    - note: what went otherwise than described, for readers; empty if nothing did
    """

    values: np.ndarray
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None
    seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)
    note: str = ""


def any_stream(stream: ForecastStream) -> bool:
    return True


def has_period(stream: ForecastStream) -> bool:
    return bool(stream.periods)


def has_two_periods(stream: ForecastStream) -> bool:
    return len(stream.periods) > 1


@dataclass(frozen=True)
class Forecaster:
    """A name, and how to forecast one stream from nothing.

    - every_horizon: whether a further horizon costs nothing, so that it is run with all up to the
      largest one
    - description: what it is, for readers; runs are kept by it
    - libraries: those that must be installed and whose versions the forecasts depend on
    - accepts: whether it can forecast a stream
    """

    name: str
    run: Callable[[Task], Forecasts]
    description: str
    every_horizon: bool = True
    libraries: tuple[str, ...] = ()
    accepts: Callable[[ForecastStream], bool] = any_stream

    def task(self, stream: ForecastStream, horizons: tuple[int, ...], start: int) -> Task:
        """The task with the horizons that this forecaster is run with."""
        own = tuple(range(1, max(horizons) + 1)) if self.every_horizon else horizons
        return Task(stream, own, start)


def empty(task: Task) -> np.ndarray:
    """(n, H) of NaN."""
    return np.full((len(task.stream), len(task.horizons)), np.nan)
