"""Online scaling: of every input in up to three ways, and of the target."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt

import numpy as np

from .. import _core
from ..transforms import ShiftedLog
from ..utils.validation import Floats
from .seasons import SEASON_INPUTS, SEASON_PAST

(
    COUNT, MEAN, SQUARES, CENTER, SCALE, STREAK, SEEN,
    AGE, LAST_FIXED, LAST_MOVING, LAST_RANK, PRODUCT, POWER,
) = range(13)  # fmt: skip
"""The running statistics of a column: those of its values so far, its center and scale, how many
far values came in a row and how many are in its ring, and what missing values are filled in by."""

CHANGE_AFTER: int = _core.CHANGE_AFTER  # how many far values in a row are a new level or scale
FAR, EXTREME = 1, 2  # outlier levels of a target: beyond 10 standard deviations, beyond 1,000
RING = 1000  # values among which a value is ranked

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
    lags : number of rows whose targets are inputs.
    names : the scalings, in the order of `SCALINGS`.
    targets : how many targets a row has, which have statistics too; 0 for classes, which have none.
    outputs : how many outputs of a bank they are; as many by default.
    core : number of inputs at the start; all by default.
    seasons : number of places for periods.
    periods : how many of them are known.
    remembered : number of rows whose targets a row knows, at least `lags`.
    previous : number of inputs of the row before that a row knows. With some there are relevant
        columns.
    """

    def __init__(
        self,
        dimension: int,
        lags: int,
        names: Sequence[str],
        *,
        targets: int = 1,
        outputs: int | None = None,
        core: int | None = None,
        seasons: int = 0,
        periods: int = 0,
        remembered: int = 0,
        previous: int = 0,
    ) -> None:
        each = max(targets, 1)
        remembered, lags = max(remembered, lags) * each, lags * each
        seasons *= each
        self.dimension = dimension
        self.core = core = dimension if core is None else core
        self.lags = lags
        self.past = remembered + seasons * SEASON_PAST + previous
        self.seasons = seasons
        self.periods = periods * each
        self.names = tuple(names)
        self.targets = targets
        self.outputs = targets if outputs is None else outputs
        places = np.full((len(SCALINGS), dimension + remembered), -1)
        """The column of a scaled row for each scaling of each input and past target, or -1."""
        self.columns_of: dict[str, tuple[int, ...]] = {}
        """The columns of each scaling: its first inputs, lagged targets, later inputs."""
        self.width = 0
        for name in self.names:
            scaled = [*range(core)]
            if name != "asinh" or len(self.names) == 1:
                scaled += range(dimension, dimension + lags)
            self.columns_of[name] = self._take(len(scaled))
            places[SCALINGS.index(name), scaled] = self.columns_of[name]
        self.season_columns = self._take(seasons * SEASON_INPUTS)
        """The columns of all places for periods."""
        older, previous_column = self._take(remembered - lags), self.width
        first = SCALINGS.index(self.names[0])
        places[first, dimension + lags :] = older
        self.past_columns = (*older, *self._take(previous))
        """The columns of the past beyond lagged targets and seasons."""
        sources = (*self.columns_of[self.names[0]], *self.past_columns) if previous else ()
        self.relevant_columns = self._take(len(sources))
        for column in range(core, dimension):
            for name in self.names:
                later = self._take(1)
                self.columns_of[name] += later
                places[SCALINGS.index(name), column] = later[0]
        self.statistics = _core.Scaling(
            inputs=dimension,
            width=self.width,
            outputs=self.outputs,
            each=each,
            targets=remembered,
            shown=lags,
            seasons=seasons,
            season_column=self.season_columns[0] if seasons else 0,
            previous=previous,
            previous_column=previous_column,
            ring=RING if "rank" in names else CHANGE_AFTER,
            target_ring=RING if lags and targets and "rank" in names else CHANGE_AFTER,
            places=places,
            relevant_column=self.relevant_columns[0] if previous else 0,
            relevant_sources=sources,
        )
        """The statistics, and the loops over rows."""

    def _take(self, count: int) -> tuple[int, ...]:
        """The next columns of a scaled row."""
        self.width += count
        return tuple(range(self.width - count, self.width))

    def split_columns(self, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The columns of a scaling: those from the start, and those of inputs added later."""
        columns = self.columns_of[name]
        first = len(columns) - (self.dimension - self.core)
        return columns[:first], columns[first:]

    @property
    def columns(self) -> Floats:
        """(d, 13): the statistics of every input; a copy."""
        columns: Floats = self.statistics["columns"]
        return columns

    @property
    def relevance(self) -> Floats:
        """The factor of each relevant column; a copy."""
        return self.statistics["relevance"] if self.relevant_columns else np.zeros(0)

    @relevance.setter
    def relevance(self, relevance: Floats) -> None:
        self.statistics.set_relevance(relevance)

    def fit(self, X: Floats, targets: Floats | None) -> None:
        """Start all statistics from some first rows (n, d), and their targets (n, K)."""
        self.statistics.fit_inputs(X)
        for k, column in enumerate(() if targets is None else targets.T):
            numbers: Floats = column[~np.isnan(column)].copy()
            if len(numbers):
                self.statistics.fit_target(numbers, k)
                if self.relevant_columns:
                    shift = log_shift(self.statistics.scale_targets(numbers, k))
                    self.statistics.set_target_shift(shift, k)

    def input_ranges(self) -> Floats:
        """(inputs, 3): median, minimum and maximum of the last values of every input.

        Where too few are kept or all are equal, the ends are 2.5 standard deviations of all values
        so far to both sides of their mean.
        """
        ranges = np.empty((self.dimension, 3))
        rings = self.statistics["rings"]
        for column, ring, out in zip(self.columns, rings, ranges, strict=True):
            last = ring[: int(min(column[SEEN], len(ring)))]
            out[:] = column[CENTER] + column[SCALE] * np.array([0.0, -2.5, 2.5])
            if len(last) > CHANGE_AFTER:
                out[0] = np.median(last)
                if last.min() < last.max():
                    out[1:] = last.min(), last.max()
        return ranges

    @property
    def target_transform(self) -> ShiftedLog | None:
        """The transform of the scaled target for slots on ranks and relevant columns.

        None unless the target is skewed.
        """
        if self.outputs != 1 or not self.relevant_columns:
            return None
        shift = self.statistics.target_shift()
        return ShiftedLog(shift) if shift else None


# --- skewed targets -------------------------------------------------------------------------------

LEAST_ROWS = 30  # with fewer rows nothing is said about skewness
SKEWED = 0.5  # skewness beyond which a target is transformed

LEAST_SHIFT: float = _core.LEAST_SHIFT
"""In standard deviations: with a pole nearer to the mean, small differences at the lower end of a
heavy-tailed target would count more than all others."""

LARGEST_DEVIATION = 10.0  # deviations beyond this count as this

_LOW_END = 0.02


def log_shift(deviations: Floats) -> float:
    """The shift of a ShiftedLog for targets (n,), in deviations from their mean; 0 for none.

    Counts, concentrations and loads have a lower end and a long upper tail; effects on them
    multiply, and errors grow with their level. Some slots then learn a shifted logarithm of the
    target (`kb.transforms.ShiftedLog`), and see past targets by the same logarithm.

    With z as the targets, mirrored if they are skewed to the left, q their 2 % quantile and m
    their median, the shift is -q + (m - q): the pole of the logarithm is as far below the low end
    as the median is above it.
    """
    z = np.clip(deviations, -LARGEST_DEVIATION, LARGEST_DEVIATION)
    if len(z) < LEAST_ROWS:
        return 0.0
    centered = z - fsum(z) / len(z)  # sums and powers that are the same on every machine
    squares = centered * centered
    variance = fsum(squares) / len(z)
    if not variance > 0.0:
        return 0.0
    skewness = fsum(squares * centered) / len(z) / (variance * sqrt(variance))
    if abs(skewness) < SKEWED:
        return 0.0
    side = 1.0 if skewness > 0.0 else -1.0
    low, middle = np.quantile(side * z, (_LOW_END, 0.5))
    return side * max(float(middle - 2.0 * low), LEAST_SHIFT)
