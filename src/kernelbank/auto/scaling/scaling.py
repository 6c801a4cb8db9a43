"""Online scaling: of every input in up to three ways, and of the target."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import _core
from ...transforms import ShiftedLog
from ...utils.validation import Floats
from ..seasons import INPUTS, PAST
from .target_skewness import is_plausible_shift, log_shift

(
    COUNT, MEAN, SQUARES, CENTER, SCALE, STREAK, SEEN,
    AGE, LAST_FIXED, LAST_MOVING, LAST_RANK, PRODUCT, POWER,
) = range(13)  # fmt: skip
"""The running statistics of a column: those of its values so far, its center and scale, how many
far values came in a row and how many are in its ring, and what missing values are filled in by."""

CHANGE_AFTER: int = _core.CHANGE_AFTER
"""How many far values in a row are a new level or scale."""

FAR, EXTREME = 1, 2
"""Outlier levels of a target: beyond 10 standard deviations, beyond 1,000."""

RING = 1000
"""Values among which a value is ranked."""

SCALINGS = ("standard", "asinh", "rank", "none")


class Scaling:
    """Scales rows by running statistics of the inputs and of the target.

    - "standard": (x - center) / scale, at most 8 in size. Center and scale are the mean and
      standard deviation of some time ago, which follow once these have moved by a tenth;
    - "asinh": asinh((x - mean) / sd) by the rows so far, for heavy tails;
    - "rank": the normal quantile of the rank among the last 1,000 values;
    - "none": the inputs as they are, for kernels that know their units.

    A scaled row has `width` columns: the scalings side by side. Lagged targets follow the inputs,
    normalized by the target's statistics, in all scalings but asinh (unless it is the only one):
    some slots should not see them, since on a stream whose targets do not depend on the last ones
    they are noise. After all scalings come the columns of seasons (`seasons`), and for slots
    that see more of the past the *past columns*, in the first scaling: targets before the lagged
    ones, and the inputs of the row before. The *relevant columns* are those of the first scaling
    and the past columns again, each multiplied by its relevance (`relevance`). Inputs beyond the
    first `core` were added later: they are at the end, one after the other in all their scalings,
    so that all other columns keep their index.

    Parameters
    ----------
    dimension : number of inputs.
    lags : number of lagged targets.
    names : the scalings, in the order of `SCALINGS`.
    target : whether the target is a number, which has statistics too.
    core : number of inputs at the start; all by default.
    seasons : number of places for periods.
    periods : how many of them are known.
    remembered : number of targets that a row knows, at least `lags`.
    previous : number of inputs of the row before that a row knows.
    relevant : whether there are relevant columns.
    """

    def __init__(
        self,
        dimension: int,
        lags: int,
        names: Sequence[str],
        *,
        target: bool,
        core: int | None = None,
        seasons: int = 0,
        periods: int = 0,
        remembered: int = 0,
        previous: int = 0,
        relevant: bool = False,
    ) -> None:
        remembered = max(remembered, lags)
        self.dimension = dimension
        self.core = core = dimension if core is None else core
        self.lags = lags
        self.past = remembered + seasons * PAST + previous
        self.seasons = seasons
        self.periods = periods
        self.names = tuple(names)
        self.has_target = target
        places = np.full((len(SCALINGS), dimension + remembered), -1)
        """The column of a scaled row for each scaling of each input and past target, or -1."""
        self.columns_of: dict[str, tuple[int, ...]] = {}
        """The columns of each scaling: its first inputs, lagged targets, later inputs."""
        self.lag_columns: list[int] = []
        width = 0
        for name in self.names:
            own = [*range(core)]
            if name != "asinh" or len(self.names) == 1:
                own += range(dimension, dimension + lags)
            self.columns_of[name] = tuple(range(width, width + len(own)))
            places[SCALINGS.index(name), own] = self.columns_of[name]
            self.lag_columns += self.columns_of[name][core:]
            width += len(own)
        self.season_columns = tuple(range(width, width + seasons * INPUTS))
        """The columns of all places for periods."""
        width += len(self.season_columns)
        older = tuple(range(width, width + remembered - lags))
        places[SCALINGS.index(self.names[0]), dimension + lags :] = older
        width += len(older)
        previous_columns = range(width, width + previous)
        width += previous
        self.past_columns = (*older, *previous_columns)
        """The columns of the past beyond lagged targets and seasons."""
        first = self.columns_of[self.names[0]]
        sources = (*first, *self.past_columns) if relevant else ()
        self.relevant_columns = tuple(range(width, width + len(sources)))
        width += len(sources)
        for column in range(core, dimension):
            for name in self.names:
                self.columns_of[name] += (width,)
                places[SCALINGS.index(name), column] = width
                width += 1
        self.width = width
        self.statistics = _core.Scaling(
            inputs=dimension,
            width=width,
            targets=remembered,
            shown=lags,
            seasons=seasons,
            season_column=self.season_columns[0] if seasons else 0,
            previous=previous,
            previous_column=previous_columns.start,
            has_target=target,
            ring=RING if "rank" in names else CHANGE_AFTER,
            target_ring=RING if lags and target and "rank" in names else CHANGE_AFTER,
            places=places,
            relevant_column=self.relevant_columns[0] if relevant else 0,
            relevant_sources=sources,
        )
        """The statistics, and the loops over rows."""

    # --- inputs ---------------------------------------------------------------------------------

    @property
    def columns(self) -> Floats:
        """(d, 13): the statistics of every input; a copy."""
        return self.statistics["columns"]

    @property
    def relevance(self) -> Floats:
        """The factor of each relevant column; a copy."""
        return self.statistics["relevance"] if self.relevant_columns else np.zeros(0)

    @relevance.setter
    def relevance(self, relevance: Floats) -> None:
        self.statistics.set_relevance(relevance)

    def fit(self, X: Floats, targets: Floats | None) -> None:
        """Start all statistics from some first rows."""
        self.statistics.fit(X, targets)
        if targets is not None and self.relevant_columns:
            self.statistics.target_shift = log_shift(self.scale_targets(targets))

    def scale_rows(self, X: Floats, lagged: Floats) -> Floats:
        """(n, width): scaled inputs (n, d) and past targets (n, past); changes nothing."""
        return self.statistics.scale_rows(X, lagged)

    def update_inputs(self, x: Floats) -> list[int]:
        """Add one input (d,) to the statistics; the columns that have a new level."""
        return self.statistics.add_inputs(x)

    def scale_and_update(
        self, X: Floats, lagged: Floats, y: Floats | None
    ) -> tuple[Floats, Floats, Floats, list[tuple[int, int]]]:
        """Scale rows and add each to the statistics, up to the first far target.

        Returns the scaled rows (m, width), the scaled targets (m,), the target's center and scale
        before each row (m, 2), and the (row, column) of new levels, for the m rows that were done.
        Without targets `y`, the second and third are empty.
        """
        done, rows, scaled, scale, levels = self.statistics.scale_and_add(X, lagged, y)
        return rows[:done], scaled[:done], scale[:done], levels

    def input_ranges(self) -> Floats:
        """(inputs, 3): median, minimum and maximum of the last values of every input.

        Where too few are kept or all are equal, the ends are 2.5 standard deviations of all values
        so far to both sides of their mean.
        """
        found = np.empty((self.dimension, 3))
        rings = self.statistics["rings"]
        for column, ring, out in zip(self.columns, rings, found, strict=True):
            last = ring[: int(min(column[SEEN], len(ring)))]
            out[:] = column[CENTER] + column[SCALE] * np.array([0.0, -2.5, 2.5])
            if len(last) > CHANGE_AFTER:
                out[0] = np.median(last)
                if last.min() < last.max():
                    out[1:] = last.min(), last.max()
        return found

    def input_deviations(self, row: Floats) -> Floats:
        """(d,): the deviations of the inputs of a scaled row (width,), without lagged targets."""
        own = self.columns_of[self.names[0]]
        added = self.dimension - self.core
        inputs = row[[*own[: self.core], *own[len(own) - added :]]]
        if self.names[0] != "none":
            return inputs
        centers, scales = self.columns[:, [CENTER, SCALE]].T
        away = inputs - centers
        return np.divide(away, scales, out=np.zeros_like(away), where=scales > 0.0)

    # --- the target -----------------------------------------------------------------------------

    @property
    def target_scale(self) -> tuple[float, float]:
        """The target's center and scale."""
        return self.statistics.target_scale

    @property
    def target_count(self) -> float:
        """How many targets the statistics are of; old ones count less."""
        return float(self.statistics["target"][COUNT])

    @property
    def held(self) -> int:
        """How many targets are held back."""
        return int(self.statistics["target"][STREAK])

    @property
    def target_transform(self) -> ShiftedLog | None:
        """The transform of the scaled target for slots on ranks and relevant columns.

        None unless the target is skewed.
        """
        if not (self.has_target and self.relevant_columns):
            return None
        shift = self.statistics.target_shift
        return ShiftedLog(shift) if shift and is_plausible_shift(shift) else None

    @property
    def target_correlation(self) -> float:
        """The correlation of a target with the next one, at least 0."""
        product, power = self.statistics["target"][[PRODUCT, POWER]].tolist()
        return min(max(product / power, 0.0), 1.0) if power > 0.0 else 0.0

    def scale_targets(self, y: Floats) -> Floats:
        """Targets in their present deviations, at most 10 in size."""
        mean, sd = self.target_scale
        if sd == 0.0:
            return np.zeros(len(y))
        return np.clip((y - mean) / sd, -_core.FAR_DEVIATIONS, _core.FAR_DEVIATIONS)

    def outlier_level(self, y: float) -> int:
        """0 for a usual target; FAR beyond 10 deviations, EXTREME beyond 1,000."""
        return self.statistics.outlier_level(y)

    def update_target(self, y: float, *, hold: bool) -> bool:
        """Add a target to its statistics, or hold it back; True if it is the fifth held in a row.

        Then one of `widen_target`, `shift_target` and `restart_target` has to follow.
        """
        if hold:
            return self.statistics.hold_target(y)
        self.statistics.add_target(y)
        return False

    def widen_target(self) -> None:
        """Add the last five targets to the statistics as they are."""
        self.statistics.widen_target()

    def shift_target(self, shift: float) -> None:
        """Shift the target's level."""
        self.statistics.shift_target(shift)

    def restart_target(self) -> None:
        """Start the target's statistics anew from the last five."""
        self.statistics.restart_target()

    # --- saving and restarting ------------------------------------------------------------------

    def is_plausible(self, held: int) -> bool:
        """Whether statistics from a file can be those of a stream with `held` targets held back."""
        return self.held == held and is_plausible_shift(self.statistics.target_shift)

    def continue_from(self, before: Scaling) -> None:
        """Take over the statistics of a scaling that had fewer inputs."""
        self.statistics.continue_from(before.statistics)
