"""One of several targets: its running statistics, and the calibration of its predictions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ..utils.validation import Floats
from . import change_detection as detection
from .calibration import calibration
from .calibration.normal_tails import normal_quantiles_of_tails
from .regression_batch import RegressionBatch
from .scaling.running_stats import COUNT
from .scaling.scaling import Scaling
from .scaling.scaling_batch import CHUNK
from .slots.slot_pool import SlotPool

_SIGNALS = {1: "error grew", -1: "error fell"}


class TargetTrack:
    """What an AutoBank keeps of one target of several, beside what its bank has learned.

    Parameters
    ----------
    pool : the slots that may run.
    bounds : (2,), of the targets.
    """

    def __init__(self, pool: SlotPool, bounds: Floats) -> None:
        self.bounds = bounds
        self.error_stats = np.zeros(calibration.ERROR_STATS)
        self.quantiles = np.tile(normal_quantiles_of_tails(), (2, 1))
        """(2, tails): quantiles of the errors below and above, in their root mean squares."""
        self.detection_stats = np.zeros(detection.STATS)
        self.recent_errors = np.zeros(detection.RECENT_ERRORS)
        self.mean_weights = np.zeros((2, len(pool)))
        """(2, slots of the pool): a short and a long running mean of the weights."""
        self.unscored = np.zeros(1)
        """How many predictions were made before the first target was known: they do not count."""
        self.pool = pool

    def use_pool(self, pool: SlotPool) -> None:
        """Go on with another pool; the means of weights start anew if it has other slots."""
        if len(pool) != self.mean_weights.shape[1]:
            self.mean_weights = np.zeros((2, len(pool)))
        self.pool = pool
        self.__dict__.pop("batch", None)

    @cached_property
    def batch(self) -> RegressionBatch:
        """Arrays for up to CHUNK rows, and the compiled steps on them."""
        return RegressionBatch(self)

    def __getstate__(self) -> dict[str, Any]:
        """For copy and pickle: everything but what holds the addresses of arrays."""
        return {name: value for name, value in self.__dict__.items() if name != "batch"}

    @property
    def scored(self) -> int:
        """How many predictions were scored."""
        return int(self.error_stats[calibration.ROWS] - self.unscored[0])

    def predict(self, scores: Floats, spreads: Floats, scale: Floats, tail: float) -> Floats:
        """(n, 3): predictions and the ends of their intervals, in the target's units.

        scores, spreads : (n,), scaled predictions and the spread of the slots around them.
        scale : (n, 2), the target's center and scale; NaN where none is known, as the prediction.
        """
        batch, out = self.batch, np.empty((len(scores), 3))
        batch.tail[0] = tail
        for start in range(0, len(scores), CHUNK):
            count = self._fill(slice(start, start + CHUNK), scores, spreads, scale)
            batch.predict_rows.run(0, count)
            out[start : start + count] = batch.output[:count]
        out[np.isnan(scale[:, 0])] = np.nan
        return out

    def _fill(self, part: slice, scores: Floats, spreads: Floats, scale: Floats) -> int:
        some = scores[part]
        self.batch.scores[: len(some)] = some
        self.batch.spreads[: len(some)] = spreads[part]
        self.batch.scale[: len(some)] = scale[part]
        return len(some)

    def predict_and_score(
        self,
        scores: Floats,
        spreads: Floats,
        scale: Floats,
        weights: Floats,
        y: Floats,
        tail: float,
    ) -> tuple[Floats, list[tuple[int, str]]]:
        """Predictions (n, 3) of at most CHUNK rows, each scored before the next is made.

        Returns also the signals of change: row and what. Rows whose target is NaN are predicted
        only. Before the first target is known, predictions are NaN.
        """
        batch, count = self.batch, len(scores)
        batch.tail[0] = tail
        self._fill(slice(0, count), scores, spreads, scale)
        batch.targets[:count] = y
        batch.weights[:count] = weights
        signals: list[tuple[int, str]] = []
        unknown = np.isnan(scale[:, 0])
        for start, end, first in _parts(np.where(np.isnan(y), np.nan, unknown)):
            if first == 1:  # there is one such row at most
                self.score_unpredicted(float(y[start]))
            elif first == 0:
                batch.predict_score_and_detect.run(start, end - start)
                signals += self._signals(start, end)
            else:
                batch.predict_rows.run(start, end - start)
        batch.output[:count][unknown] = np.nan
        return batch.output[:count].copy(), signals

    def score(self, output: float, y: float, scale: Floats, weights: Floats | None) -> list[str]:
        """Score a prediction that was made before; the signals of change.

        weights : None before there is a bank: there are no signals then.
        """
        batch = self.batch
        batch.output[0, 0] = output
        batch.scale[0] = scale
        batch.targets[0] = y
        if weights is None:
            batch.score_rows.run(0, 1)
            return []
        batch.weights[0] = weights
        batch.score_and_detect.run(0, 1)
        return [what for _, what in self._signals(0, 1)]

    def score_unpredicted(self, y: float) -> None:
        """Take a target for which there was no prediction; its error does not count."""
        batch, loss = self.batch, self.error_stats[calibration.LOSS]
        kept = batch.output[0].copy(), batch.scale[0].copy(), batch.targets[0]
        self.score(0.0, y, np.zeros(2), None)
        batch.output[0], batch.scale[0], batch.targets[0] = kept
        self.error_stats[calibration.LOSS] = loss
        self.unscored[0] += 1

    def _signals(self, start: int, end: int) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        for t in range(start, end):
            if error := int(self.batch.error_signals[t]):
                found.append((t, _SIGNALS[error]))
            if self.batch.weight_signals[t]:
                found.append((t, "weights"))
        return found

    def state(self) -> dict[str, Floats]:
        """The arrays, by their names in a file."""
        return {
            "error_stats": self.error_stats,
            "quantiles": self.quantiles,
            "detection_stats": self.detection_stats,
            "recent_errors": self.recent_errors,
            "mean_weights": self.mean_weights,
            "unscored": self.unscored,
        }


class ScaledTarget(TargetTrack):
    """A target with running statistics of its own.

    A far target, beyond 10 standard deviations, is not learned; after five in a row the statistics
    start anew from them. So do those of a target that is first known late in the stream.
    """

    def __init__(self, pool: SlotPool, bounds: Floats) -> None:
        super().__init__(pool, bounds)
        self.scaling = Scaling(1, 0, ("standard",), target=True)  # its input is not used

    def fit(self, y: Floats) -> None:
        """Start the statistics from some first targets, of which NaN are missing."""
        known = y[~np.isnan(y)]
        if len(known):
            self.scaling.fit(np.zeros((len(known), 1)), known)

    @property
    def scale(self) -> tuple[float, float]:
        """The target's center and scale; NaN before the first target is known."""
        if not self.scaling.target[COUNT]:
            return float("nan"), float("nan")
        return self.scaling.target_scale

    def scale_known(self, y: Floats) -> Floats:
        """Targets in the present deviations, at most 10 in size; NaN where they are missing."""
        missing = np.isnan(y)
        return np.where(missing, np.nan, self.scaling.scale_targets(np.where(missing, 0.0, y)))

    def scale_and_update(self, y: Floats) -> tuple[Floats, Floats, list[int]]:
        """Scale targets and add each to the statistics.

        Returns (n,) scaled targets, NaN where one is missing or far; (n, 2) center and scale before
        each; and the rows after which the statistics started anew.
        """
        count = len(y)
        scaled, scale = np.full(count, np.nan), np.empty((count, 2))
        restarts: list[int] = []
        for start, end, known in _parts(~np.isnan(y)):
            done = start
            if not known:
                scale[start:end] = self.scale
            elif not self.scaling.target[COUNT]:  # the first one
                scale[start] = np.nan
                self.fit(y[start : start + 1])
                done += 1
            while known and done < end:
                none = np.zeros((end - done, 1))
                _, found, before, _ = self.scaling.scale_and_update(none, none[:, :0], y[done:end])
                usual = done + len(found)
                scaled[done:usual], scale[done:usual] = found, before
                done = usual + 1
                if usual < end:  # a far one
                    scale[usual] = self.scaling.target_scale
                    if self.scaling.update_target(float(y[usual]), hold=True):
                        if self.scaling.target[COUNT] > 1:  # else the first value had no scale yet
                            restarts.append(usual)
                        self.scaling.restart_target()
        return scaled, scale, restarts

    def state(self) -> dict[str, Floats]:
        own = {f"scaling/{name}": array for name, array in self.scaling.state().items()}
        return super().state() | own


def _parts(kinds: np.ndarray) -> list[tuple[int, int, Any]]:
    """The longest parts in which all entries are equal: start, end, entry; NaN equals NaN."""
    new = (kinds[1:] != kinds[:-1]) & ~((kinds[1:] != kinds[1:]) & (kinds[:-1] != kinds[:-1]))
    ends = [0, *(np.flatnonzero(new) + 1).tolist(), len(kinds)]
    return [(start, end, kinds[start]) for start, end in pairwise(ends) if end > start]


def states(tracks: list[Any]) -> dict[str, Floats]:
    """The arrays of all tracks, by their names in a file."""
    return {
        f"target{k}/{name}": array
        for k, track in enumerate(tracks)
        for name, array in track.state().items()
    }


def restore(tracks: list[Any], state: Mapping[str, Floats]) -> None:
    """Continue from what `states` returned; shapes have been checked."""
    for name, array in states(tracks).items():
        array[...] = state[name]
