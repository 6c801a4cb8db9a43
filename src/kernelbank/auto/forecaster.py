"""Direct forecasts of a series at several horizons, scored and learned as their targets come."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..utils.validation import Floats
from .calibration import VARIANCE
from .config import AutoConfig
from .forecast_columns import rows_back
from .horizon_intervals import HorizonIntervals
from .horizons import HorizonsModel
from .iterated_line import IteratedLine
from .known_inputs import KnownInputs
from .prediction import Prediction
from .replay_buffer import with_missing
from .seasons import AUTO, SeasonHistory

RECENT = 1000
"""How many of the last rows are kept where periods are to be found."""


MEMORY = 1000.0
"""Rows of the mean squares by which forecasts with and without known inputs are compared."""


class Forecaster:
    """Makes forecasts after every row.

    They are scored when their targets come. A row is learned when the targets of all horizons are
    known, so that all horizons share it. Moments that wait are in rings: moment n in row n % (the
    longest horizon).

    Parameters
    ----------
    config : the settings of the AutoBank.
    dimension : number of inputs.
    horizons : in rows, ascending.
    periods : of seasons.
    known : the model of the inputs that are known in advance, if there are any. Forecasts are then
        of what it leaves, or without it, whatever had the smaller errors at a horizon.
    """

    def __init__(
        self,
        config: AutoConfig,
        dimension: int,
        horizons: Sequence[int],
        periods: Sequence[int],
        known: KnownInputs | None = None,
    ) -> None:
        self.known = known
        self._config, self._bounds = config, config.bounds
        kept = RECENT if config.seasons == AUTO else 0
        self._recent = deque[tuple[Floats, float, float]](maxlen=kept)
        """Rows from which the forecasts start anew when periods are found."""
        self.plain: Forecaster | None = None
        """The forecasts without known inputs, which are better where these explain little."""
        if known is not None:
            self.plain = Forecaster(config, dimension, horizons, periods)
            # Bounds are of the targets, not of residuals.
            config = replace(config, lower=None, upper=None)
        self.model = HorizonsModel(config, dimension, horizons, periods)
        self.horizons, self.periods = self.model.horizons, tuple(periods)
        rows, longest = self.model.forecast_rows_of, self.horizons[-1]
        self.line = IteratedLine(rows.lags, periods, longest)
        self.intervals = HorizonIntervals(self.horizons, config.bounds)
        self.samples = 0
        """How many rows have come."""
        self.begun = 0
        """The first moment whose forecasts count: before it there was no model."""
        self.targets = np.full(max(rows.history, self.line.history, longest) + 1, np.nan)
        """The last targets, the newest last; with known inputs, what these leave of them."""
        self.observed = self.targets.copy()
        """The last targets as they were, the newest last."""
        outputs, slots = len(self.horizons), len(self.model.names)
        self.late_errors = np.zeros((outputs, 2))
        """Running mean squares of the errors of forecasts with known inputs, and their weights."""
        self._inputs = np.zeros((longest, dimension))
        self._past = np.zeros((longest, rows.width))
        self._scores = np.zeros((longest, outputs))
        self._slots = np.zeros((longest, outputs, slots))
        self._season_history = SeasonHistory(self.periods) if periods else None

    @property
    def dimension(self) -> int:
        """Number of inputs."""
        return self.model.dimension

    def learn(self, x: Floats, y: float, tail: float, future: Floats | None = None) -> Floats:
        """Take the newest row (d,) with its target; (H, 3): the forecasts made after it.

        Parameters
        ----------
        tail : probability beyond each end of the intervals.
        future : (H, known), the inputs that are known in advance; NaN where they are not known.
        """
        if self.known is None or self.plain is None:
            return self._learn(x, y, y, tail)
        without = self.plain.learn(x, y, tail)
        left, left_late = self.known.residuals(x, y)
        self._judge(left_late)
        found = self._learn(x, left, y, tail)
        return without if future is None else self._better(found, without, future)

    @property
    def uses_known(self) -> np.ndarray:
        """(H,): whether the forecasts with known inputs had smaller errors lately than without."""
        if self.plain is None:
            return np.zeros(len(self.horizons), dtype=np.bool_)
        errors, counts = self.late_errors.T
        return (counts > 0.0) & (errors < self.plain.intervals.stats[:, VARIANCE])

    def _judge(self, left: float) -> None:
        """Add the errors of forecasts with known inputs to their running mean squares.

        left : what the late model leaves of the newest target.
        """
        moments = self.horizons[-1]
        waiting = min(self.samples - self.begun, moments) if self.model.banks else 0
        for k, horizon in enumerate(self.horizons):
            if horizon <= waiting:
                error = left - self.intervals.points[(self.samples - horizon) % moments, k]
                count = min(self.late_errors[k, 1] + 1.0, MEMORY)
                self.late_errors[k, 0] += (error * error - self.late_errors[k, 0]) / count
                self.late_errors[k, 1] = count

    def _better(self, output: Floats, without: Floats, future: Floats) -> Floats:
        """(H, ...): forecasts with what the known inputs (H, known) add, where they are better.

        output : of what the known inputs leave. without : those of the targets themselves, which
        are also taken where the known inputs of a horizon are missing.
        """
        assert self.known is not None
        added = self.known.predict(future)[:, None]
        found = np.clip(output + added, *self._bounds)
        return np.where(self.uses_known[:, None] & ~np.isnan(added), found, without)

    def with_periods(self, periods: tuple[int, ...], tail: float) -> Forecaster:
        """Forecasts that start anew from the last rows, with other periods.

        tail : probability beyond each end of their intervals.
        """
        if periods == self.periods:
            return self
        new = Forecaster(self._config, self.dimension, self.horizons, periods, self.known)
        if self.plain is not None:
            new.plain = self.plain.with_periods(periods, tail)
        for x, y, observed in self._recent:
            new._learn(x, y, observed, tail)
        return new

    def _learn(self, x: Floats, y: float, observed: float, tail: float) -> Floats:
        self._recent.append((x.copy(), y, observed))
        model, scale = self.model, np.array(self.model.scaling.target_scale)
        waiting = min(self.samples - self.begun, self.horizons[-1]) if model.banks else 0
        self.intervals.score(self.samples, y, observed, waiting, scale)
        for ring, newest in ((self.targets, y), (self.observed, observed)):
            ring[:-1] = ring[1:]
            ring[-1] = newest
        self.samples += 1
        if self._season_history is not None:
            self._season_history.append_one(self.samples, y)
        model.observe(x, y)
        if model.banks:
            scaled = float(model.scaling.scale_targets(np.array([y]))[0])
            self.line.learn(self.targets[:-1], scaled, model.scaling.target_scale)
        if self.samples > self.horizons[-1]:
            self._learn_oldest()
        return self._issue(x, tail)

    def _learn_oldest(self) -> None:
        """Learn the oldest row that waits: all its targets are known now."""
        longest, model = self.horizons[-1], self.model
        row = (self.samples - 1) % longest
        last = len(self.targets) - 1
        target = self.targets[[last - longest + horizon for horizon in self.horizons]]
        started = bool(model.banks)
        known = started and self.samples - 1 - longest >= self.begun
        slots = self._slots[row][:, None] if known else np.zeros((len(self.horizons), 0, 0))
        past = Prediction(
            max(model.rows - longest, 0),
            self._past[row : row + 1].copy(),
            self._scores[row : row + 1].copy(),
            slots,
            np.zeros((1, 0)),
        )
        model.update(self._inputs[row : row + 1].copy(), target[None], 0.05, past=past)
        if not started and model.banks:
            self.begun = self.samples - 1  # the moment whose forecasts follow

    def _issue(self, x: Floats, tail: float) -> Floats:
        """Make the forecasts of this moment, and keep them until their targets come."""
        moment, past = self.samples - 1, self._row()
        row = moment % self.horizons[-1]
        output, scores, slots = self._forecast(x, past, tail)
        self._inputs[row], self._past[row] = x, past
        self._scores[row], self._slots[row] = scores, slots
        self.intervals.issue(moment, output, self._baselines())
        return output

    def _forecast(self, x: Floats, past: Floats, tail: float) -> tuple[Floats, Floats, Floats]:
        """Forecasts and intervals (H, 3), scaled forecasts (H,), those of the slots (H, slots)."""
        model = self.model
        scores, spreads, slots = model.predict_scores(x[None], past[None])
        if not model.banks:
            nothing = np.zeros((len(self.horizons), len(model.names)))
            return np.full((len(self.horizons), 3), self.targets[-1]), scores[0], nothing
        scale = np.array(model.scaling.target_scale)
        return self.intervals.forecast(scores[0], spreads[0], scale, tail), scores[0], slots[:, 0]

    def forecast(self, tail: float, future: Floats | None = None) -> Floats:
        """(H, 3): the forecasts from the newest row; changes nothing. See `learn`."""
        row = (self.samples - 1) % self.horizons[-1]
        own = self._forecast(self._inputs[row], self._past[row], tail)[0]
        if self.plain is None:
            return own
        without = self.plain.forecast(tail)
        return without if future is None else self._better(own, without, future)

    def quantile(self, level: float, future: Floats | None = None) -> Floats:
        """(H,): the quantile of the forecasts at a level; changes nothing."""
        below = self.forecast(min(level, 0.5), future)[:, 1]
        if level < 0.5:
            return below
        above = self.forecast(min(1.0 - level, 0.5), future)[:, 2]
        return above if level > 0.5 else 0.5 * (below + above)

    def weights(self) -> Floats:
        """(H, slots): of the forecasts at every horizon."""
        own = self.model.weights()
        if self.plain is None:
            return own
        return np.where(self.uses_known[:, None], own, self.plain.model.weights())

    def scores(self) -> tuple[Floats, Floats]:
        """Statistics and totals of the errors of every horizon; see `HorizonIntervals`."""
        own = self.intervals
        if self.plain is None:
            return own.stats, own.totals
        known, other = self.uses_known[:, None], self.plain.intervals
        stats = np.where(known, own.stats, other.stats)
        return stats, np.where(known, own.totals, other.totals)

    def add_inputs(self, count: int) -> None:
        """Add `count` inputs behind the others, as if they had been missing so far."""
        self.model.add_inputs(count)
        if self.plain is not None:
            self.plain.add_inputs(count)
        self._inputs = with_missing(self._inputs, count)
        wider = [(with_missing(x[None], count)[0], *rest) for x, *rest in self._recent]
        self._recent.clear()
        self._recent.extend(wider)

    def _row(self) -> Floats:
        """What is known after the newest row."""
        recalled, count = np.zeros(0), len(self.horizons)
        if self._season_history is not None:
            recalled = np.empty(self._season_history.width)
            self._season_history.recall_one(self.samples, self.samples, recalled)
        iterated = np.full(count, self.targets[-1])
        if self.model.banks:
            ahead = self.line.forecast(self.targets, self.model.scaling.target_scale)
            iterated = ahead[np.array(self.horizons) - 1]
        return self.model.forecast_rows_of.row(self.targets, iterated, recalled)

    def _baselines(self) -> Floats:
        """(H, 2): the last value, and that of the same phase in the longest period."""
        found = np.full((len(self.horizons), 2), self.observed[-1])
        if self.periods:
            back = [rows_back(horizon, self.periods[-1]) for horizon in self.horizons]
            season = self.observed[len(self.observed) - 1 - np.array(back)]
            found[:, 1] = np.where(np.isnan(season), found[:, 1], season)
        return found

    # --- saving ---------------------------------------------------------------------------------

    def state(self) -> dict[str, Floats]:
        """The arrays without those of banks, by their names in a file."""
        own = {
            "recent_inputs": np.array([one[0] for one in self._recent]).reshape(-1, self.dimension),
            "recent_values": np.array([one[1:] for one in self._recent]).reshape(-1, 2),
            "targets": self.targets,
            "observed": self.observed,
            "inputs": self._inputs,
            "past": self._past,
            "scores": self._scores,
            "slots": self._slots,
        }
        if self._season_history is not None:
            own |= self._season_history.state()
        if self.known is not None:
            own |= {"known_waiting": self.known.waiting, "late_errors": self.late_errors}
        own |= {f"intervals/{name}": a for name, a in self.intervals.state().items()}
        return own | {f"model/{name}": a for name, a in self.model.state().items()}

    def counters(self) -> dict[str, Any]:
        """The rest of the state, as plain data."""
        return {
            "samples": self.samples,
            "begun": self.begun,
            "core": self.model.core,
            "periods": list(self.periods),
            "series": self.model.series.tolist(),
            "model": self.model.counters(),
        }

    def restore(self, state: Mapping[str, Floats], counters: Mapping[str, Any]) -> None:
        """Continue from what `state` and `counters` returned, without the banks."""
        own = {n.removeprefix("model/"): a for n, a in state.items() if n.startswith("model/")}
        self.model.restore(own, counters["model"])
        rows = zip(state["recent_inputs"], state["recent_values"].tolist(), strict=True)
        self._recent.extend((x.copy(), *values) for x, values in rows)
        for name, array in self.state().items():
            if not name.startswith(("model/", "recent_")):
                array[...] = state[name]
        self.samples, self.begun = int(counters["samples"]), int(counters["begun"])
        if self.known is not None:
            self.known.rows = self.samples
        self.model.series = np.array(counters["series"], dtype=np.float64)
