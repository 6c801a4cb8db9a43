"""The columns of a row from which forecasts are made, before and after scaling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...utils.validation import Floats
from ..scaling.scaling import Scaling
from ..seasons import INPUTS, PAST


@dataclass(frozen=True)
class ForecastColumns:
    """Where the parts of a scaled row stand.

    width : of a scaled row; inputs, lags : their columns; seasons : for each period the columns of
    the targets one period before those to be forecast, in the order of the horizons; iterated :
    those of forecasts that go on from their own predictions; phases : those of the phases, and of
    what the next row knows of earlier periods; later : those of inputs that were added later.
    """

    width: int
    inputs: tuple[int, ...]
    lags: tuple[int, ...]
    seasons: dict[int, tuple[int, ...]]
    iterated: tuple[int, ...]
    phases: tuple[int, ...]
    later: tuple[int, ...]

    @property
    def everything(self) -> tuple[int, ...]:
        """All columns."""
        own = [column for columns in self.seasons.values() for column in columns]
        return (*self.inputs, *self.lags, *own, *self.phases, *self.later)


def rows_back(horizon: int, period: int) -> int:
    """How many rows before the last one the newest target of the same phase is."""
    return -(-horizon // period) * period - horizon


class ForecastRows:
    """Makes the rows of forecasts, and the scaling for them.

    Parameters
    ----------
    lags : how many of the last targets a row knows, at least 1.
    horizons : in rows, ascending.
    periods : of seasons.
    """

    def __init__(self, lags: int, horizons: Sequence[int], periods: Sequence[int]) -> None:
        self.lags, self.horizons, self.periods = lags, tuple(horizons), tuple(periods)
        self.past = lags + len(self.horizons) * (len(self.periods) + 1)
        """How many targets of the past a row knows."""
        self.history = max([lags, *self.periods])
        """How many of the last targets are needed to make a row."""

    @property
    def width(self) -> int:
        """How many numbers of the past a row has, with the phases."""
        return self.past + len(self.periods) * PAST

    def make_scaling(self, dimension: int, core: int, names: Sequence[str]) -> Scaling:
        """The scaling of such rows; only the first of the names is used."""
        periods = len(self.periods)
        return Scaling(
            dimension,
            self.past,
            names[:1],
            core=core,
            seasons=periods,
            periods=periods,
        )

    def columns(self, scaling: Scaling) -> ForecastColumns:
        """Where the parts of a row stand after scaling."""
        own, core, count = scaling.columns_of[scaling.names[0]], scaling.core, len(self.horizons)
        past = own[core : core + self.past]
        seasons = {
            period: past[self.lags + i * count : self.lags + (i + 1) * count]
            for i, period in enumerate(self.periods)
        }
        iterated = past[len(past) - count :]
        phases = scaling.season_columns[: len(self.periods) * INPUTS]
        return ForecastColumns(
            scaling.width,
            own[:core],
            past[: self.lags],
            seasons,
            iterated,
            phases,
            own[core + self.past :],
        )

    def row(self, targets: Floats, iterated: Floats, recalled: Floats) -> Floats:
        """(width,): what is known at one moment.

        targets : (history,), the last ones, the newest last; NaN before the first.
        iterated : (H,), forecasts that go on from their own predictions.
        recalled : what the next row knows of earlier periods; see `SeasonHistory.recall`.
        """
        out = np.empty(self.width)
        out[: self.lags] = targets[::-1][: self.lags]
        count = len(self.horizons)
        for i, period in enumerate(self.periods):
            for k, horizon in enumerate(self.horizons):
                back = rows_back(horizon, period)
                out[self.lags + i * count + k] = targets[len(targets) - 1 - back]
        out[self.past - count : self.past] = iterated
        out[self.past :] = recalled
        return out
