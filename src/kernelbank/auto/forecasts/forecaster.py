"""Direct forecasts of a series at several horizons, scored and learned as their targets come."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ... import _core
from ...utils.validation import Floats
from ..config import AutoConfig
from ..seasons import AUTO, history_size
from .forecast_columns import rows_back
from .horizons import HorizonsModel, with_missing
from .iterated_line import IteratedLine
from .known_inputs import KnownInputs

RECENT = 1000
"""How many of the last rows are kept where periods are to be found."""


class Forecaster:
    """Makes forecasts after every row.

    They are scored when their targets come, and then each horizon learns its weights. The slots
    learn a row when the targets of all horizons are known, so that all horizons share it. Moments
    that wait are in rings: moment n in row n % (the longest horizon).

    Parameters
    ----------
    config : the settings of the AutoBank.
    dimension : number of inputs.
    horizons : in rows, ascending.
    periods : of seasons.
    known : the model of the inputs that are known in advance, if there are any. Forecasts of what
        it leaves and forecasts without it are then combined.
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
        self._recent = deque[tuple[Floats, float, float, float]](maxlen=kept)
        """Rows from which the forecasts start anew when periods are found."""
        self.plain: Forecaster | None = None
        """The forecasts without known inputs. Their slots are combined with those of this one."""
        if known is not None:
            self.plain = Forecaster(config, dimension, horizons, periods)
            # Bounds are of the targets, not of residuals.
            config = replace(config, lower=None, upper=None)
        self.model = HorizonsModel(config, dimension, horizons, periods)
        self.horizons, self.periods = self.model.horizons, tuple(periods)
        rows, longest = self.model.forecast_rows_of, self.horizons[-1]
        self.line = IteratedLine(rows.lags, periods, longest)
        prices = [self.model.prices()] * (1 if known is None else 2)
        with_known = 0 if known is None else len(prices[0])
        self.stacking = _core.HorizonStacking(
            horizons=self.horizons, prices=np.concatenate(prices).tolist(), known=with_known
        )
        """The weights of the slots at every horizon."""
        lower, upper = config.bounds
        self.intervals = _core.HorizonIntervals(
            horizons=self.horizons, lower=lower, upper=upper, in_range=known is None
        )
        self._lateness = (np.array(self.horizons) - 1.0) / max(longest - 1.0, 1.0)
        """(H,): how much of the late model is in what known inputs leave; see `_left`."""
        self.samples = 0
        """How many rows have come."""
        self.begun = 0
        """The first moment whose forecasts count: before it there was no model."""
        self.targets = np.full(max(rows.history, self.line.history, longest) + 1, np.nan)
        """The last targets, the newest last; with known inputs, what these leave of them."""
        self.observed = self.targets.copy()
        """The last targets as they were, the newest last."""
        self.late_targets = self.targets.copy()
        """What the late model of known inputs leaves of them."""
        outputs, slots = len(self.horizons), 0 if self.model.stacked else len(self.model.names)
        self._inputs = np.zeros((longest, dimension))
        self._past = np.zeros((longest, rows.width))
        self._scores = np.zeros((longest, outputs))
        self._slots = np.zeros((longest, outputs, slots))
        self._season_history: Any = None
        if periods:
            size = history_size(self.periods)
            self._season_history = _core.SeasonHistory(size=size, places=len(self.periods))
            self._season_history.set_periods(self.periods)

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
            return self._learn(x, y, y, y, tail)
        without = self.plain.learn(x, y, tail)
        found = self._learn(x, *self.known.residuals(x, y), y, tail)
        return without if future is None else self._with_known(found, without, future)

    def _with_known(self, output: Floats, without: Floats, future: Floats) -> Floats:
        """(H, ...): forecasts with the part of the known inputs (H, known).

        output : without that part. without : the forecasts that do not need them, which are taken
        where the known inputs of a horizon are missing.
        """
        assert self.known is not None
        added = self.known.predict(future)[:, None]
        found = np.clip(output + self.stacking.share[:, None] * added, *self._bounds)
        return np.where(np.isnan(added), without, found)

    def with_periods(self, periods: tuple[int, ...], tail: float) -> Forecaster:
        """Forecasts that start anew from the last rows, with other periods.

        tail : probability beyond each end of their intervals.
        """
        if periods == self.periods:
            return self
        new = Forecaster(self._config, self.dimension, self.horizons, periods, self.known)
        for x, y, late, observed in self._recent:
            if new.plain is not None:
                new.plain._learn(x, observed, observed, observed, tail)
            new._learn(x, y, late, observed, tail)
        return new

    def _learn(self, x: Floats, y: float, late: float, observed: float, tail: float) -> Floats:
        """Take the newest row; y and late are what known inputs leave of the observed target."""
        self._recent.append((x.copy(), y, late, observed))
        self._score(y, late, observed)
        rings = ((self.targets, y), (self.late_targets, late), (self.observed, observed))
        for ring, newest in rings:
            ring[:-1] = ring[1:]
            ring[-1] = newest
        self.samples += 1
        if self._season_history is not None:
            self._season_history.append(self.samples, np.array([y]))
        model = self.model
        model.observe(x, y)
        if model.bank is not None:
            scaled = float(model.scaling.scale_targets(np.array([y]))[0])
            self.line.learn(self.targets[:-1], scaled, model.scaling.target_scale())
        if self.samples > self.horizons[-1]:
            self._learn_oldest()
        return self._issue(x, tail)

    def _left(self, y: Any, late: Any) -> Floats:
        """(H,): what known inputs leave of a target, as they were known h rows before it.

        One row before, that is what the model leaves, and at the longest horizon what the late one
        leaves. The horizons between are interpolated.
        """
        return np.asarray(y + self._lateness * (late - y))

    def _score(self, y: float, late: float, observed: float) -> None:
        """Score the forecasts of the newest target, and learn their weights."""
        longest = self.horizons[-1]
        waiting = min(self.samples - self.begun, longest) if self.model.bank is not None else 0
        left = self._left(y, late)
        wanted = observed - self.stacking.shares_due(self.samples) * (observed - left)
        scale = self.model.scaling.target_scale()
        self.intervals.score(self.samples, wanted, observed, waiting, *scale)
        self.stacking.learn(self.samples, waiting, left, observed)

    def _learn_oldest(self) -> None:
        """Learn the oldest row that waits: all its targets are known now."""
        longest, model = self.horizons[-1], self.model
        row = (self.samples - 1) % longest
        last = len(self.targets) - 1
        rows = last - longest + np.array(self.horizons)
        target = self._left(self.targets[rows], self.late_targets[rows])
        started = model.bank is not None
        known = started and not model.stacked and self.samples - 1 - longest >= self.begun
        made = (self._scores[row], self._slots[row]) if known else None
        model.learn(self._inputs[row].copy(), self._past[row].copy(), target, made)
        if not started and model.bank is not None:
            self.begun = self.samples - 1  # the moment whose forecasts follow

    def _issue(self, x: Floats, tail: float) -> Floats:
        """Make the forecasts of this moment, and keep them until their targets come."""
        moment, past = self.samples - 1, self._row()
        row = moment % self.horizons[-1]
        self._inputs[row], self._past[row] = x, past
        if self.model.bank is not None:
            columns, self._scores[row], slots = self.model.forecasts(x, past)
            self._slots[row] = slots[:, : self._slots.shape[2]]
            if self.plain is not None:
                columns = np.hstack([columns, self.plain.stacking.forecasts(moment)])
            known = np.isfinite(columns)
            self.stacking.keep(moment, np.where(known, columns, self.observed[-1]))
        output = self._output(tail)
        self.intervals.issue(moment, output, self._baselines())
        return output

    def _output(self, tail: float) -> Floats:
        """(H, 3): forecasts and intervals from the newest row, without the part of known inputs."""
        if self.model.bank is None:
            return np.full((len(self.horizons), 3), self.targets[-1])
        made = self.stacking.forecasts(self.samples - 1)
        points, deviations = self.stacking.combine(made).T
        return self.intervals.forecast(points, deviations, tail)

    def forecast(self, tail: float, future: Floats | None = None) -> Floats:
        """(H, 3): the forecasts from the newest row; changes nothing. See `learn`."""
        if self.plain is None:
            return self._output(tail)
        without = self.plain.forecast(tail)
        return without if future is None else self._with_known(self._output(tail), without, future)

    def quantile(self, level: float, future: Floats | None = None) -> Floats:
        """(H,): the quantile of the forecasts at a level; changes nothing."""
        below = self.forecast(min(level, 0.5), future)[:, 1]
        if level < 0.5:
            return below
        above = self.forecast(min(1.0 - level, 0.5), future)[:, 2]
        return above if level > 0.5 else 0.5 * (below + above)

    def weights(self) -> Floats:
        """(H, slots): of the forecasts at every horizon, with and without known inputs together."""
        own, count = self.stacking["weights"], len(self.model.prices())
        if self.model.stacked:
            return own if self.plain is None else own[:, :count] + own[:, count:]
        found = own[:, :1] * self.model.weights()
        return found if self.plain is None else found + own[:, 1:] * self.plain.model.weights()

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
            at = np.array([self.samples])
            recalled = self._season_history.recall(self.samples, at, at, None)[0]
        iterated = np.full(count, self.targets[-1])
        if self.model.bank is not None:
            ahead = self.line.forecast(self.targets, self.model.scaling.target_scale())
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

    def _arrays(self) -> dict[str, Floats]:
        """The arrays without those of parts, by their names in a file."""
        own = {
            "targets": self.targets,
            "observed": self.observed,
            "inputs": self._inputs,
            "past": self._past,
            "scores": self._scores,
            "slots": self._slots,
        }
        if self.known is not None:
            own |= {"known_waiting": self.known.waiting, "late_targets": self.late_targets}
        return own

    def _parts(self) -> dict[str, Any]:
        own = {"stacking": self.stacking, "intervals": self.intervals}
        seasons = self._season_history
        return own if seasons is None else own | {"seasons": seasons}

    def state(self) -> dict[str, Floats]:
        """The arrays without those of banks, by their names in a file."""
        recent = {
            "recent_inputs": np.array([one[0] for one in self._recent]).reshape(-1, self.dimension),
            "recent_values": np.array([one[1:] for one in self._recent]).reshape(-1, 3),
        }
        parts = self._parts().items()
        own = recent | self._arrays()
        own |= {f"{name}/{n}": array for name, part in parts for n, array in part.state().items()}
        return own | {f"model/{name}": a for name, a in self.model.state().items()}

    def counters(self) -> dict[str, Any]:
        """The rest of the state, as plain data."""
        return {
            "samples": self.samples,
            "begun": self.begun,
            "first_inputs": self.model.scaling.core,
            "periods": list(self.periods),
            "series": self.model.series.tolist(),
            "rows": self.model.rows,
        }

    def restore(self, state: Mapping[str, Floats], counters: Mapping[str, Any]) -> None:
        """Continue from what `state` and `counters` returned, without the banks."""
        self.model.restore(_under("model/", state), int(counters["rows"]))
        rows = zip(state["recent_inputs"], state["recent_values"].tolist(), strict=True)
        self._recent.extend((x.copy(), *values) for x, values in rows)
        for name, array in self._arrays().items():
            array[...] = state[name]
        for name, part in self._parts().items():
            part.restore(_under(f"{name}/", state))
        if self.known is None:
            self.late_targets[...] = self.targets
        self.samples, self.begun = int(counters["samples"]), int(counters["begun"])
        if self.known is not None:
            self.known.rows = self.samples
        self.model.series = np.array(counters["series"], dtype=np.float64)


def _under(prefix: str, arrays: Mapping[str, Floats]) -> dict[str, Floats]:
    """The arrays whose names begin with the prefix, by the rest of their names."""
    return {name[len(prefix) :]: a for name, a in arrays.items() if name.startswith(prefix)}
