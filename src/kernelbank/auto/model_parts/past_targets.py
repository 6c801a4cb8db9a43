"""What rows know of those before them: last targets, those of earlier periods, the last inputs.

A row is predicted, and learned later, with what was known at its prediction. So these numbers, the
*past* of a row, are kept with predictions that wait, with rows that are held back, and in the
replay buffer.
"""

from __future__ import annotations

import numpy as np

from ...utils.validation import Floats
from ..config import AutoConfig
from ..prediction import lagged_rows


class PastTargets:
    """The part of a model that counts rows and remembers their targets."""

    target_count = 1
    """How many targets a row has."""

    def __init__(self, config: AutoConfig, dimension: int) -> None:
        self.config = config
        self.rows = 0
        """How many rows have been learned."""
        self.seasons = config.make_history()
        """The targets of earlier periods; None without seasons."""
        self.previous = self.previous_inputs(dimension)
        """How many inputs of the last row a row knows: the first ones, or none."""
        self.remembered = self.remembered_targets()
        """How many of the last targets a row knows: `lags`, or more."""
        self.past = self.past_size(config)
        """How many numbers a row knows of the past. With several targets they are all targets of
        the last row, then all of the row before it, and so on."""
        self.lagged = np.full(self.past, np.nan)
        """The last targets, the newest first; then what `past_row` has written last, for seasons;
        then inputs of the last row."""

    def past_size(self, config: AutoConfig) -> int:
        """How many numbers a row knows of the past."""
        if self.target_count > 1:
            return self.target_count * config.lags
        return self.remembered + config.past - config.lags + self.previous

    def remembered_targets(self) -> int:
        """How many of the last targets a row knows."""
        return self.config.lags

    def previous_inputs(self, dimension: int) -> int:
        """How many inputs of the last row a row knows, of this many inputs."""
        return 0

    @property
    def _season_part(self) -> slice:
        """Where the targets of earlier periods are."""
        return slice(self.remembered, self.past - self.previous)

    @property
    def last_inputs(self) -> Floats:
        """(previous,): a view of the inputs of the last row."""
        return self.lagged[self.past - self.previous :]

    def add_rows(self, X: Floats, targets: Floats) -> None:
        """Remember the newest rows, which have been counted."""
        self.add_targets(targets)
        if self.previous:
            self.last_inputs[:] = X[-1, : self.previous]

    def add_targets(self, targets: Floats) -> None:
        """Remember the targets of the newest rows."""
        lags = self.remembered * self.target_count
        if lags:
            newest = targets[::-1].ravel()
            self.lagged[:lags] = np.concatenate([newest, self.lagged[:lags]])[:lags]
        if self.seasons is not None:
            self.seasons.append(self.rows, targets)

    def past_row(self, waiting: int = 0) -> Floats:
        """(1, past): what the next row knows.

        waiting : how many rows before it were predicted and still wait for their targets.
        """
        if self.seasons is not None and self.seasons.is_known:
            recalled = self.seasons.recall_one(self.rows, self.rows + waiting)
            self.lagged[self._season_part] = recalled
        return self.lagged[None]

    def past_rows(self, X: Floats, targets: Floats) -> Floats:
        """(n, past): what each of the next n rows knows, if these are their inputs and targets."""
        if self.target_count > 1:
            return lagged_rows(targets, self.lagged)
        parts = [lagged_rows(targets, self.lagged[: self.remembered])]
        if self.seasons is not None:
            numbers = self.rows + np.arange(len(targets))
            parts.append(self.seasons.recall(self.rows, numbers, numbers, targets))
        if self.previous:
            parts.append(np.vstack([self.last_inputs, X[:-1, : self.previous]]))
        return np.hstack(parts) if len(parts) > 1 else parts[0]

    def forecast_rows(self, count: int, waiting: int) -> Floats:
        """(n, past): what the next n rows know if none of their targets comes."""
        rows = np.tile(self.lagged, (count, 1))
        if self.seasons is not None:
            numbers = self.rows + waiting + np.arange(count)
            known = np.full(count, self.rows)
            rows[:, self._season_part] = self.seasons.recall(self.rows, numbers, known)
        return rows
