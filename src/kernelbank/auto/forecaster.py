"""Direct forecasts of a series at several horizons, scored and learned as their targets come."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _core
from ..bank.bank import KernelBank
from ..bank.serialization import under
from ..bank.slot import Slot
from ..bank.trace import BY_HORIZON
from ..combiners import Stacking
from ..errors import KernelBankError
from ..kernels import ActiveDims, Linear
from ..learners import LinearRLS
from ..utils.validation import Floats
from .config import AutoConfig
from .horizons import HorizonsModel, KnownInputs, rows_back, with_missing
from .seasons import AUTO, history_size

if TYPE_CHECKING:
    import pandas

# --- what is returned -----------------------------------------------------------------------------

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Of the quantiles of a forecast."""


@dataclass(frozen=True)
class Forecast:
    """Forecasts of the next targets, one for every horizon.

    Parameters
    ----------
    samples : how many rows had been learned.
    horizons : how many rows ahead each forecast is.
    point, lower, upper : (H,), the forecasts and the ends of their intervals.
    coverage : of the intervals.
    quantiles : (H,) by level, 0.05 to 0.95; they do not cross.
    history : the last targets, the newest last, for drawings.

    >>> import numpy as np, kernelbank as kb
    >>> y = np.sin(np.arange(300) / 4)
    >>> bank = kb.AutoBank(lags=8, horizons=(1, 4), size="small")
    >>> trace = bank.run(np.zeros((300, 1)), y)
    >>> forecast = bank.forecast()
    >>> forecast.horizons, forecast.point.shape
    ((1, 4), (2,))
    >>> bool((forecast.lower <= forecast.point).all())
    True
    """

    samples: int
    horizons: tuple[int, ...]
    point: Floats
    lower: Floats
    upper: Floats
    coverage: float
    quantiles: Mapping[float, Floats]
    history: Floats

    def __len__(self) -> int:
        return len(self.horizons)

    def to_frame(self) -> pandas.DataFrame:
        """A data frame with one row per horizon: point, lower, upper and the quantiles."""
        try:
            import pandas
        except ImportError:
            raise KernelBankError(
                "to_frame() needs pandas, which is not installed. Install it with: "
                "pip install pandas"
            ) from None
        columns = {"point": self.point, "lower": self.lower, "upper": self.upper}
        columns |= {f"quantile {level:g}": values for level, values in self.quantiles.items()}
        return pandas.DataFrame(columns, index=pandas.Index(self.horizons, name="horizon"))

    def __repr__(self) -> str:
        lines = [f"Forecast(after {self.samples:,} rows, intervals of {self.coverage:.0%})"]
        shown = zip(self.horizons, self.point, self.lower, self.upper, strict=True)
        for number, (horizon, point, lower, upper) in enumerate(shown):
            if number == 12 and len(self) > 13:
                lines.append(f"  ... and {len(self) - 12} more")
                break
            lines.append(f"  +{horizon:<4} {point:.6g}  [{lower:.6g}, {upper:.6g}]")
        return "\n".join(lines)


class HorizonScore(NamedTuple):
    """How good the forecasts of one horizon were, over all whose targets have come.

    horizon : in rows.
    scored : how many.
    error : mean squared error.
    last_value, seasonal : the same of the last value, and of the last value of the same phase (of
        the longest period; equal to the first without seasons).
    absolute_error : mean absolute error.
    coverage : the share of targets within their intervals.
    width : mean width of the intervals.
    """

    horizon: int
    scored: int
    error: float
    last_value: float
    seasonal: float
    absolute_error: float
    coverage: float
    width: float


def ordered(quantiles: Floats) -> Floats:
    """(H, levels): quantiles in the order of their levels, so that none cross."""
    return np.sort(quantiles, axis=1)


# --- a line that goes on from its own forecasts ---------------------------------------------------

_RIDGE = 1.0
_FORGETTING = (1.0, 0.998)
_AROUND = (-1, 0, 1)
"""Which targets around that of one period before are inputs too."""


class IteratedLine:
    """Least squares from the last targets, and from those of earlier periods, to the next target.

    A direct forecast at a long horizon has few independent errors to learn from: those of
    neighboring rows overlap. A line that is learned one step ahead, and used again and again, has
    as many as rows.

    Parameters
    ----------
    lags : how many of the last targets are inputs.
    periods : of seasons.
    steps : how many steps ahead it forecasts.
    """

    def __init__(self, lags: int, periods: Sequence[int], steps: int) -> None:
        back = {*range(1, lags + 1)}
        for period in periods:
            back |= {period + k for k in _AROUND if period + k > 0}
        self.back = np.array(sorted(back))
        """How many rows before the next one its inputs are."""
        self.steps = steps
        few = tuple(range(min(3, lags)))
        everything = tuple(range(len(self.back)))
        self.bank = KernelBank(
            slots=[
                Slot(ActiveDims(Linear(1.0), columns), LinearRLS(ridge=_RIDGE, forgetting=rate))
                for columns in dict.fromkeys([few, everything])
                for rate in (_FORGETTING if len(columns) <= 3 else _FORGETTING[:1])
            ],
            combiner=Stacking(),
            window=1,
            regularization=0.0,
        )

    @property
    def history(self) -> int:
        """How many of the last targets it needs."""
        return int(self.back[-1])

    def learn(self, targets: Floats, scaled: float, scale: tuple[float, float]) -> None:
        """Learn the next target, which is scaled; targets (m,) are those before it, newest last."""
        self.bank.learn_one(self._inputs(targets, scale), scaled)

    def forecast(self, targets: Floats, scale: tuple[float, float]) -> Floats:
        """(steps,): the next targets, in their units; targets (m,) are the last, newest last."""
        mean, sd = scale
        length = len(targets)
        values = np.concatenate([targets, np.zeros(self.steps)])
        for step in range(self.steps):
            inputs = self._inputs(values[: length + step], scale)
            value = min(max(self.bank.predict_one(inputs), -10.0), 10.0)
            values[length + step] = mean + sd * value
        return values[length:]

    def _inputs(self, targets: Floats, scale: tuple[float, float]) -> Floats:
        mean, sd = scale
        values = targets[len(targets) - self.back]
        scaled = (values - mean) / sd if sd > 0.0 else np.zeros(len(values))
        return np.where(np.isnan(scaled), 0.0, np.clip(scaled, -10.0, 10.0))


# --- forecasts after every row --------------------------------------------------------------------

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

    def learn(
        self,
        x: Floats,
        y: float,
        tail: float,
        future: Floats | None = None,
        readings: Floats | None = None,
    ) -> Floats:
        """Take the newest row (d,) with its target; (H, 3): the forecasts made after it.

        Parameters
        ----------
        tail : probability beyond each end of the intervals.
        future : (H, known), the inputs that are known in advance; NaN where they are not known.
        readings : what is believed of the newest targets, the newest last, which is far. Forecasts
            are made with these, and scored by the targets as they came.
        """
        believed = y
        if readings is not None and len(readings):
            self._correct(readings[:-1])
            believed = float(readings[-1])
        spike = y - believed
        if self.known is None or self.plain is None:
            return self._learn(x, believed, believed, believed, tail, spike)
        without = self.plain.learn(x, y, tail, readings=readings)
        found = self._learn(x, *self.known.residuals(x, believed), believed, tail, spike)
        return without if future is None else self._with_known(found, without, future)

    def _correct(self, readings: Floats) -> None:
        """The newest targets were these."""
        count = min(len(readings), self.samples)
        if not count:
            return
        changes = readings[-count:] - self.observed[-count:]
        for ring in (self.targets, self.late_targets, self.observed):
            ring[-count:] += changes
        if self._season_history is not None:
            for ago in range(count):
                self._season_history.append(self.samples - ago, self.targets[-1 - ago :][:1])

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

    def _learn(
        self, x: Floats, y: float, late: float, observed: float, tail: float, spike: float = 0.0
    ) -> Floats:
        """Take the newest row; y and late are what known inputs leave of the observed target.

        spike : how much more the target was, if it is not believed.
        """
        self._recent.append((x.copy(), y, late, observed))
        self._score(y, late, observed, spike)
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

    def _score(self, y: float, late: float, observed: float, spike: float) -> None:
        """Score the forecasts of the newest target, and learn their weights."""
        longest = self.horizons[-1]
        waiting = min(self.samples - self.begun, longest) if self.model.bank is not None else 0
        left = self._left(y, late)
        wanted = observed - self.stacking.shares_due(self.samples) * (observed - left)
        scale = self.model.scaling.target_scale()
        came = wanted + spike, observed + spike
        self.intervals.score(self.samples, *came, waiting, *scale, spike)
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
        self.model.restore(under("model/", state), int(counters["rows"]))
        rows = zip(state["recent_inputs"], state["recent_values"].tolist(), strict=True)
        self._recent.extend((x.copy(), *values) for x, values in rows)
        for name, array in self._arrays().items():
            array[...] = state[name]
        for name, part in self._parts().items():
            part.restore(under(f"{name}/", state))
        if self.known is None:
            self.late_targets[...] = self.targets
        self.samples, self.begun = int(counters["samples"]), int(counters["begun"])
        if self.known is not None:
            self.known.rows = self.samples
        self.model.series = np.array(counters["series"], dtype=np.float64)


# --- forecasts beside predictions -----------------------------------------------------------------

_USUAL_TAIL = 0.5 * (1 - 0.9)
"""Of rows that are learned outside of a run: `tail_of(COVERAGE)`, to the bit."""


class Forecasting:
    """The part of a model for numbers that forecasts: it hands every learned row to a `Forecaster`.

    Without horizons it does nothing.
    """

    def __init__(self) -> None:
        self.forecaster: Forecaster | None = None
        self.forecasts: list[Floats] | None = None
        """The forecasts (H, 3) after each learned row, while a run collects them."""
        self._tail = _USUAL_TAIL
        self._upcoming = np.zeros((0, 0))
        self._done = 0

    def __getstate__(self) -> dict[str, Any]:
        """For copy and pickle: a copy collects no forecasts."""
        return self.__dict__ | self._not_collecting()

    @staticmethod
    def _not_collecting() -> dict[str, Any]:
        """The attributes of a model outside of a run."""
        none = np.zeros((0, 0))
        return {"forecasts": None, "_tail": _USUAL_TAIL, "_upcoming": none, "_done": 0}

    def add_inputs(self, count: int) -> None:
        """Add `count` inputs behind the others, as if they had been missing so far."""
        if self.forecaster is not None:
            self.forecaster.add_inputs(count)

    def use_periods(self, periods: tuple[int, ...]) -> None:
        """Go on with these periods; the forecasts start anew if they are others."""
        if self.forecaster is not None:
            self.forecaster = self.forecaster.with_periods(periods, self._tail)

    def collect(self, rows: Floats, tail: float) -> None:
        """Begin to collect forecasts; rows (n, d) are those that will be learned, in their order.

        tail : probability beyond each end of the intervals.
        """
        if self.forecaster is not None:
            self.forecasts, self._tail = [], tail
            self._upcoming, self._done = rows, 0

    def collected(self) -> dict[str, Floats]:
        """What was collected since, as arrays of a trace (n, H); nothing without horizons."""
        found = self.forecasts
        self.__dict__ |= self._not_collecting()
        if not found:
            return {}
        parts = np.moveaxis(np.array(found), 2, 0).copy()
        return dict(zip(BY_HORIZON, parts, strict=True))

    def forecast_after(self, X: Floats, targets: Floats, readings: Floats) -> None:
        """Forecast after each of these rows, which have just been learned.

        readings : what is believed of the newest targets, the newest last, if that one is far.
        """
        if self.forecaster is None:
            return
        for x, y in zip(X, targets.tolist(), strict=True):
            made = self.forecaster.learn(x, y, self._tail, self._future(), readings)
            if self.forecasts is not None:
                self.forecasts.append(made)

    def _future(self) -> Floats | None:
        """The inputs that are known in advance, of the rows after the present one."""
        forecaster, rows = self.forecaster, self._upcoming
        assert forecaster is not None
        if forecaster.known is None or self.forecasts is None:
            return None
        columns = list(forecaster.known.columns)
        found = np.full((len(forecaster.horizons), len(columns)), np.nan)
        for k, horizon in enumerate(forecaster.horizons):
            if self._done + horizon < len(rows):
                found[k] = rows[self._done + horizon, columns]
        self._done += 1
        return found

    def horizon_scores(self) -> tuple[HorizonScore, ...]:
        """How good the forecasts were, by horizon."""
        if self.forecaster is None:
            return ()
        known: Any = self.forecaster.intervals.sums
        pairs = zip(self.forecaster.horizons, known.tolist(), strict=True)
        return tuple(_score(horizon, *sums) for horizon, sums in pairs)


def _score(horizon: int, count: float, *sums: float) -> HorizonScore:
    """From the number of scored forecasts, and sums in the order of HorizonScore."""
    means = [total / count if count else float("nan") for total in sums]
    return HorizonScore(horizon, int(count), *means)
