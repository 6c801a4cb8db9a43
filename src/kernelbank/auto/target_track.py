"""One of several targets: its running statistics, and the calibration of its predictions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from .. import _core
from ..utils.validation import Floats
from .change_detection import new_detector
from .scaling.scaling import Scaling


class ScaledTarget:
    """What an AutoBank keeps of one target of several, beside what its bank has learned.

    The target has running statistics of its own. A far one, beyond 10 standard deviations, is not
    learned; after five in a row the statistics start anew from them. So do those of a target that
    is first known late in the stream.

    Parameters
    ----------
    slots : how many may run.
    bounds : (2,), of the targets.
    """

    def __init__(self, slots: int, bounds: Floats) -> None:
        self.intervals = _core.Intervals(lower=bounds[0], upper=bounds[1])
        self.detector = new_detector(slots)
        self.scaling = Scaling(1, 0, ("standard",), target=True)  # its input is not used
        self.unscored = np.zeros(1)
        """How many predictions were made before the first target was known: they do not count."""

    @property
    def scored(self) -> int:
        """How many predictions were scored."""
        return int(self.intervals.rows - self.unscored[0])

    def mean_error(self) -> float:
        """The mean squared error of the predictions; NaN before the first."""
        return self.intervals.loss / self.scored if self.scored > 0 else float("nan")

    def baseline_error(self) -> float:
        """The same of the last target as a prediction."""
        count = self.intervals.rows - 1
        return self.intervals.baseline_loss / count if count > 0 else float("nan")

    def parts(self) -> dict[str, Any]:
        """The parts that the core keeps, by name."""
        scaling = self.scaling.statistics
        return {"intervals": self.intervals, "changes": self.detector, "scaling": scaling}

    # --- predictions ------------------------------------------------------------------------------

    def predict(self, scores: Floats, spreads: Floats, scale: Floats, tail: float) -> Floats:
        """(n, 3): predictions and the ends of their intervals, in the target's units.

        scores, spreads : (n,), scaled predictions and the spread of the slots around them.
        scale : (n, 2), the target's center and scale; NaN where none is known, as the prediction.
        """
        out = self.intervals.predict(scores, spreads, scale, tail)
        out[np.isnan(scale[:, 0])] = np.nan
        return out

    def predict_and_score(
        self,
        scores: Floats,
        spreads: Floats,
        scale: Floats,
        weights: Floats,
        y: Floats,
        tail: float,
    ) -> tuple[Floats, list[tuple[int, str]]]:
        """Predictions (n, 3) of rows, each scored before the next is made.

        Returns also the signals of change: row and what. Rows whose target is NaN are predicted
        only. Before the first target is known, predictions are NaN.
        """
        out, signals = np.full((len(scores), 3), np.nan), []
        unknown = np.isnan(scale[:, 0])
        for start, end, first in _parts(np.where(np.isnan(y), np.nan, unknown)):
            some = slice(start, end)
            if first == 1:  # there is one such row at most
                self.score_unpredicted(float(y[start]))
            elif first == 0:
                rows = (scores[some], spreads[some], scale[some], y[some])
                out[some], errors = self.intervals.predict_and_score(*rows, tail)
                found = self.detector.detect(errors, weights[some])
                signals += [(start + row, what) for row, what in found]
            else:
                out[some] = self.predict(scores[some], spreads[some], scale[some], tail)
        return out, signals

    def score(self, output: float, y: float, scale: Floats, weights: Floats | None) -> list[str]:
        """Score a prediction that was made before; the signals of change.

        weights : None before there is a bank: there are no signals then.
        """
        error = self.intervals.score(output, y, *scale)
        if weights is None:
            return []
        return [what for _, what in self.detector.detect(np.array([error]), weights[None])]

    def score_unpredicted(self, y: float) -> None:
        """Take a target for which there was no prediction; its error does not count."""
        self.intervals.skip(y, 0.0, 0.0)
        self.unscored[0] += 1

    # --- scaling ----------------------------------------------------------------------------------

    def fit(self, y: Floats) -> None:
        """Start the statistics from some first targets, of which NaN are missing."""
        known = y[~np.isnan(y)]
        if len(known):
            self.scaling.fit(np.zeros((len(known), 1)), known)

    @property
    def scale(self) -> tuple[float, float]:
        """The target's center and scale; NaN before the first target is known."""
        if not self.scaling.target_count:
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
            elif not self.scaling.target_count:  # the first one
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
                        if self.scaling.target_count > 1:  # else the first value had no scale yet
                            restarts.append(usual)
                        self.scaling.restart_target()
        return scaled, scale, restarts


def _parts(kinds: np.ndarray) -> list[tuple[int, int, Any]]:
    """The longest parts in which all entries are equal: start, end, entry; NaN equals NaN."""
    new = (kinds[1:] != kinds[:-1]) & ~((kinds[1:] != kinds[1:]) & (kinds[:-1] != kinds[:-1]))
    ends = [0, *(np.flatnonzero(new) + 1).tolist(), len(kinds)]
    return [(start, end, kinds[start]) for start, end in pairwise(ends) if end > start]
