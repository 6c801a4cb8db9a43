"""What rows know of the targets before them: lagged ones, and those of earlier periods.

A row is predicted, and learned later, with what was known at its prediction. So these numbers, the
*past* of a row, are kept with predictions that wait, with rows that are held back, and in the
replay buffer.
"""

from __future__ import annotations

import numpy as np

from ..utils.validation import Floats
from .config import AutoConfig
from .prediction import lagged_rows


class PastTargets:
    """The part of a model that counts rows and remembers their targets."""

    target_count = 1
    """How many targets a row has."""

    def __init__(self, config: AutoConfig) -> None:
        self.config = config
        self.row_count = np.zeros(1, dtype=np.int64)
        """How many rows have been learned, where compiled code counts them."""
        self.seasons = config.make_history()
        """The targets of earlier periods; None without seasons."""
        self.past = self.past_size(config)
        """How many numbers a row knows of the past. With several targets they are all targets of
        the last row, then all of the row before it, and so on."""
        self.lagged = np.full(self.past, np.nan)
        """The last targets, the newest first; after them what `past_row` has written last."""

    def past_size(self, config: AutoConfig) -> int:
        """How many numbers a row knows of the past."""
        return self.target_count * config.lags if self.target_count > 1 else config.past

    @property
    def rows(self) -> int:
        """How many rows have been learned."""
        return self.row_count.item()

    @rows.setter
    def rows(self, count: int) -> None:
        self.row_count[0] = count

    def add_targets(self, targets: Floats) -> None:
        """Remember the targets of the newest rows, which have been counted."""
        lags = self.config.lags * self.target_count
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
            own = self.lagged[self.config.lags :]
            self.seasons.recall_one(self.rows, self.rows + waiting, own)
        return self.lagged[None]

    def past_rows(self, targets: Floats) -> Floats:
        """(n, past): what each of the next n rows knows, if these are their targets."""
        if self.target_count > 1:
            return lagged_rows(targets, self.lagged)
        lagged = lagged_rows(targets, self.lagged[: self.config.lags])
        if self.seasons is None:
            return lagged
        numbers = self.rows + np.arange(len(targets))
        return np.hstack([lagged, self.seasons.recall(self.rows, numbers, numbers, targets)])

    def forecast_rows(self, count: int, waiting: int) -> Floats:
        """(n, past): what the next n rows know if none of their targets comes."""
        rows = np.tile(self.lagged, (count, 1))
        if self.seasons is not None:
            numbers = self.rows + waiting + np.arange(count)
            known = np.full(count, self.rows)
            rows[:, self.config.lags :] = self.seasons.recall(self.rows, numbers, known)
        return rows
