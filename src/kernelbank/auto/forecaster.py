"""Direct forecasts at several horizons: one bank, with an output for each horizon.

A row is what is known at one moment: the inputs, the last targets, the targets one period before
the moments to be forecast, and the phases of the periods. All horizons share it; the targets of
row t are those h rows later, and all have the running statistics of one series. The slots are:

- *mean*; *last value* and *last value of period p*: the target now, and that of the same phase
  before; *iterated*: a line, learned one step ahead, that goes on from its own forecasts.
- *linear*: least squares on everything; *few lags*: on the inputs, the last six targets and the
  phases.
- *random features*, *nearest neighbors*, *tree*: on few lags too; nearest neighbors alone on many.

Those of the last two lines are there alone, and on the residual of each of the first line.

Inputs whose future values are known, such as the hour of the day or a price that was announced,
have a model of their own, which predicts the target of their row. What it leaves, the residual, is
a series without such inputs: that series is forecast, and the model's prediction from the known
future inputs is added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _core
from ..bank.bank import KernelBank
from ..bank.engines import Engine, Ray, Serial
from ..bank.slot import Slot
from ..combiners import Stacking, Uniform
from ..errors import FileRefused
from ..kernels import ActiveDims, Linear, NoKernel
from ..learners import LastValue, LinearRLS
from ..losses import Squared
from ..utils.rendering import frame
from ..utils.validation import Floats
from .config import AutoConfig
from .scaling import Scaling
from .seasons import AUTO, history_size
from .slots import FORGETTING, LINEAR_RIDGE, SIZES, Size, SlotBuilder, SlotPool, cells_on, line_on
from .state import Arrays, Json, Reading, check_finite, describe_parts, whole_number

if TYPE_CHECKING:
    import pandas

    from .auto_bank import AutoBank

# --- what is returned -----------------------------------------------------------------------------

BY_HORIZON = ("forecasts", "forecast_lower", "forecast_upper")
"""The arrays of a trace with one column per horizon."""

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)  # of the quantiles of a forecast


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
        columns = {"point": self.point, "lower": self.lower, "upper": self.upper}
        columns |= {f"quantile {level:g}": values for level, values in self.quantiles.items()}
        table = frame(len(self), columns, {})
        return table.set_axis(list(self.horizons)).rename_axis("horizon")

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


# --- rows and slots -------------------------------------------------------------------------------

FEW, MANY = 6, 24
"""How many of the last targets the slots see that are not linear; and those on nearest neighbors
of whole rows, which find the same course of a series in the past."""

_FLAT = 1e9  # a ridge that leaves a line no slope: its forecast is the mean

_FASTER = 0.998


def rows_back(horizon: int, period: int) -> int:
    """How many rows before the last one the newest target of the same phase is."""
    return -(-horizon // period) * period - horizon


def forecast_row(
    targets: Floats,
    lags: int,
    horizons: Sequence[int],
    periods: Sequence[int],
    iterated: Floats,
    recalled: Floats,
) -> Floats:
    """What is known at one moment: see the parameters, in the order of the columns.

    Parameters
    ----------
    targets : the last ones, the newest last, NaN before the first. `lags` of them, the newest
        first; then, for each of the periods, those of the phases of all horizons.
    iterated : (H,), forecasts that go on from their own predictions.
    recalled : what the next row knows of earlier periods; see `SeasonHistory.recall`.
    """
    pairs = [(horizon, period) for period in periods for horizon in horizons]
    phases = [targets[len(targets) - 1 - rows_back(*pair)] for pair in pairs]
    return np.concatenate([targets[::-1][:lags], phases, iterated, recalled])


def forecast_pool(
    scaling: Scaling, lags: int, horizons: Sequence[int], periods: Sequence[int], config: AutoConfig
) -> SlotPool:
    """All slots of the forecasts on rows of `forecast_row`, bases before those that need them."""
    first, core, count = scaling.columns_of[scaling.names[0]], scaling.core, len(horizons)
    inputs, past, later = first[:core], first[core:][: scaling.lags], first[core + scaling.lags :]
    phases = scaling.season_columns
    few, many = ((*inputs, *past[: min(lags, n)], *phases) for n in (FEW, MANY))
    builder = SlotBuilder(SlotPool(scaling.width), SIZES[config.size], config.seed, config.loss)
    line, short = (*inputs, *past[:-count], *phases, *later), (*few, *later)
    slow = LinearRLS(ridge=LINEAR_RIDGE, **FORGETTING)
    fast = LinearRLS(ridge=LINEAR_RIDGE, forgetting=_FASTER, forget="prior")
    builder.add("mean", line_on(past[:1]), LinearRLS(ridge=_FLAT))
    values = {"last value": 0, "iterated": -count}
    values |= {f"last value of period {p}": lags + i * count for i, p in enumerate(periods)}
    bases: dict[str, int | None] = {"": None}
    for name, place in values.items():
        learner = LastValue(past[place], per_output=place != 0)
        bases[f"{name} + "] = builder.add(name, NoKernel(), learner)
    for base, index in bases.items():
        builder.add(f"{base}linear", line_on(line), slow, index)
        builder.add(f"{base}linear, few lags", line_on(short), fast, index)
        features = builder.features(**FORGETTING)
        builder.add(f"{base}random features", builder.mixed(few), features, index)
        builder.add_neighbors(f"{base}nearest neighbors", few if base else many, index)
        if base:
            builder.add(f"{base}tree", cells_on(short), builder.tree(0), index)
    return builder.pool


# --- inputs that are known in advance -------------------------------------------------------------


def known_slots(inputs: int, size: Size, seed: int) -> list[Slot]:
    """Slots that are functions of the inputs alone: none follows the last targets or errors.

    Else what they leave of the next target would be forecast with what is known only then.
    """
    pool = SlotPool(inputs)
    SlotBuilder(pool, size, seed, Squared()).add_scaling("", range(inputs), (), shifted=False)
    forgetful = ("adaptive", ", forgetting")
    lasting = [i for i, name in enumerate(pool.names) if not any(w in name for w in forgetful)]
    return pool.bank_slots(lasting)


class KnownInputs:
    """A model of the inputs that are known in advance.

    Parameters
    ----------
    columns : their indices among the inputs of a row.
    bank, late : two `AutoBank`s that have learned nothing, without lags. The second learns every
        row so many rows later as the longest horizon is, less one: it is the first as that was when
        the target of a row was forecast at the longest horizon.
    delay : the longest horizon.
    """

    def __init__(self, columns: Sequence[int], bank: AutoBank, late: AutoBank, delay: int) -> None:
        self.columns = list(columns)
        self.bank, self.late = bank, late
        self.rows = 0
        self.waiting = np.zeros((delay, len(self.columns) + 1))
        """Inputs and targets of the last rows: those of row n in row n % delay."""

    def residuals(self, x: Floats, y: float) -> tuple[float, float]:
        """What the model, and the late one, leave of the target of a row (d,).

        Predictions are 0 before the first target.
        """
        inputs, row = x[self.columns], self.rows % len(self.waiting)
        if self.rows >= len(self.waiting):
            self.late.learn_one(self.waiting[row, :-1], float(self.waiting[row, -1]))
        left = y - float(np.nan_to_num(self.bank.predict_one(inputs)))
        left_late = y - float(np.nan_to_num(self.late.predict_at(inputs[None])[0, 0]))
        self.bank.learn_one(inputs, y)
        self.waiting[row] = [*inputs, y]
        self.rows += 1
        return left, left_late

    def predict(self, rows: Floats) -> Floats:
        """(n,): the prediction from known inputs (n, columns); NaN where a row is not known."""
        in_advance = ~np.isnan(rows).all(axis=1)
        out = np.full(len(rows), np.nan)
        if in_advance.any():
            predicted = self.bank.predict(rows[in_advance])
            out[in_advance] = np.nan_to_num(predicted)  # NaN before the first target
        return out


# --- a line that goes on from its own forecasts ---------------------------------------------------

_RIDGE = 1.0
_AROUND = (-1, 0, 1)  # which targets around that of one period before are inputs too


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
        few, everything = tuple(range(min(3, lags))), tuple(range(len(self.back)))
        slots = [
            Slot(line_on(few), LinearRLS(ridge=_RIDGE)),
            Slot(line_on(few), LinearRLS(ridge=_RIDGE, forgetting=_FASTER)),
        ]
        if everything != few:
            line = ActiveDims(Linear(1.0), everything)
            memories = (1.0, _FASTER) if len(everything) <= 3 else (1.0,)
            slots += [Slot(line, LinearRLS(ridge=_RIDGE, forgetting=rate)) for rate in memories]
        self.bank = KernelBank(slots=slots, combiner=Stacking(), window=1, regularization=0.0)

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

RECENT = 1000  # how many of the last rows are kept where periods are to be found

_USUAL_TAIL = 0.5 * (1 - 0.9)
"""Of rows that are learned outside of a run: `tail_of(COVERAGE)`, to the bit."""

_TARGET, _LATE, _OBSERVED = range(3)
"""Of a row: what known inputs leave of its target (the target without known inputs), what their
late model leaves, and the target as it was."""


class _Collection(NamedTuple):
    """The forecasts (H, 3) after each row that a run learns.

    upcoming : (n, d), the rows that will be learned, in their order.
    tail : probability beyond each end of the intervals.
    """

    upcoming: Floats
    tail: float
    forecasts: list[Floats]


class Forecaster:
    """Makes forecasts after every row.

    They are scored when their targets come, and then each horizon learns its weights. The slots
    learn a row when the targets of all horizons are known, so that all horizons share it; after a
    few rows scaling and bank start anew, from all rows so far, as those of the predictions. Moments
    that wait are in rings: moment n in row n % (the longest horizon).

    Parameters
    ----------
    config : the settings of the AutoBank.
    dimension : number of inputs.
    periods : of seasons.
    known : the model of the inputs that are known in advance, if there are any. Forecasts of what
        it leaves and forecasts without it are then combined.
    """

    def __init__(
        self,
        config: AutoConfig,
        dimension: int,
        periods: Sequence[int],
        known: KnownInputs | None = None,
    ) -> None:
        self.config, self.dimension, self.known = config, dimension, known
        self.horizons, self.periods = config.horizons, tuple(periods)
        count, longest, most = len(self.horizons), self.horizons[-1], config.restarts[-1]
        self.lags = max(config.lags, 1)
        self.stacked = config.combiner is None and config.loss == Squared()
        """Whether the weights are those of a `HorizonStacking`, not of the bank."""
        self.samples = 0
        """How many rows have come."""
        self.first_moment = config.restarts[0] + longest - 1
        """The first moment whose forecasts count: before it there is no bank."""
        self._collection: _Collection | None = None
        """While a run collects forecasts."""
        self.bank: KernelBank | None = None
        self.lay_out(dimension)
        slots = self.bank_slots()
        prices = [0.0 if isinstance(slot.kernel, NoKernel) else 1.0 for slot in slots]
        prices = prices if self.stacked else [0.0]
        self.plain = None if known is None else Forecaster(config, dimension, periods)
        """The forecasts without known inputs. Their slots are combined with those of this one."""
        self.stacking = _core.HorizonStacking(
            horizons=self.horizons,
            prices=prices if known is None else prices * 2,
            known=0 if known is None else len(prices),
        )
        """The weights of the slots at every horizon."""
        # Bounds are of the targets, not of what known inputs leave.
        lower, upper = config.bounds if known is None else (-np.inf, np.inf)
        self.intervals = _core.HorizonIntervals(
            horizons=self.horizons, lower=lower, upper=upper, in_range=known is None
        )
        self.line = IteratedLine(self.lags, periods, longest)
        self._lateness = (np.array(self.horizons) - 1.0) / max(longest - 1.0, 1.0)
        """(H,): how much of the late model is in what known inputs leave; see `_left`."""
        history = max([self.lags, *periods, int(self.line.back[-1]), longest])
        self._newest = np.full((3, history + 1), np.nan)
        """(_TARGET, _LATE and _OBSERVED, of the last rows, the newest last)."""
        self._series = np.full(most + longest + 1, np.nan)
        """The targets up to the last restart, the oldest first."""
        self._recent = np.zeros((RECENT if config.seasons == AUTO else 0, 3 + dimension))
        """Rows from which the forecasts start anew when periods are found: the three numbers of
        the target, and inputs; those of row n in row n % RECENT."""
        width = self.scaling.past
        self._first_inputs = np.zeros((most, dimension))
        self._first_past, self._first_targets = np.zeros((most, width)), np.zeros((most, count))
        """Of the first rows, from which scaling and bank start anew."""
        self._inputs, self._past = np.zeros((longest, dimension)), np.zeros((longest, width))
        self._scores = np.zeros((longest, count))
        self._slots = np.zeros((longest, count, 0 if self.stacked else len(slots)))
        """Of the moments that wait."""
        self._season_history: _core.SeasonHistory | None = None
        if periods:
            size = history_size(self.periods)
            self._season_history = _core.SeasonHistory(size=size, places=len(periods))
            self._season_history.set_periods(self.periods)

    # --- columns and slots ----------------------------------------------------------------------

    def lay_out(self, first_inputs: int) -> None:
        """Choose scaling and slots for the present inputs; those beyond the first ones are new."""
        periods = len(self.periods)
        self.scaling = Scaling(
            self.dimension,
            self.lags + len(self.horizons) * (periods + 1),
            self.config.scalings[:1],
            core=first_inputs,
            seasons=periods,
            periods=periods,
        )
        self.pool = forecast_pool(self.scaling, self.lags, self.horizons, self.periods, self.config)

    def bank_slots(self) -> list[Slot]:
        """The slots of the bank: all."""
        return self.pool.bank_slots(range(len(self.pool)))

    def _new_bank(self) -> KernelBank:
        combiner = Uniform() if self.stacked else self.config.combiner
        config = replace(self.config, combiner=combiner, engine=_local(self.config.engine))
        return config.make_bank(self.bank_slots(), len(self.horizons))

    def add_inputs(self, count: int) -> None:
        """Add `count` inputs behind the others, as if they had been missing so far."""
        self.dimension += count
        before = self.scaling
        self.lay_out(self.dimension if self.bank is None else before.core)
        if self.bank is not None:
            self.scaling.statistics.continue_from(before.statistics)
            self.bank = self.bank.with_inputs(self.scaling.width, self.bank_slots())
        if self.plain is not None:
            self.plain.add_inputs(count)
        self._first_inputs, self._inputs, self._recent = (
            np.hstack([rows, np.full((len(rows), count), np.nan)])
            for rows in (self._first_inputs, self._inputs, self._recent)
        )

    def with_periods(self, periods: tuple[int, ...]) -> Forecaster:
        """Forecasts that start anew from the last rows, with other periods."""
        if periods == self.periods:
            return self
        new = Forecaster(self.config, self.dimension, periods, self.known)
        new._collection = self._collection
        for n in range(max(self.samples - len(self._recent), 0), self.samples):
            row = self._recent[n % RECENT]
            if new.plain is not None:
                new.plain._learn(row[3:], (row[_OBSERVED],) * 3, self._tail)
            new._learn(row[3:], tuple(row[:3].tolist()), self._tail)
        return new

    # --- rows that a model has learned ----------------------------------------------------------

    def __getstate__(self) -> dict[str, object]:
        """For copy and pickle: a copy collects no forecasts."""
        return self.__dict__ | {"_collection": None}

    @property
    def _tail(self) -> float:
        return _USUAL_TAIL if self._collection is None else self._collection.tail

    def collect(self, upcoming: Floats, tail: float) -> None:
        """Begin to collect the forecasts after rows (n, d) that will be learned, in their order.

        tail : probability beyond each end of the intervals.
        """
        self._collection = _Collection(upcoming, tail, [])

    def collected(self) -> dict[str, Floats]:
        """What was collected since, as arrays of a trace (n, H)."""
        collection, self._collection = self._collection, None
        if collection is None or not collection.forecasts:
            return {}
        parts = np.moveaxis(np.array(collection.forecasts), 2, 0).copy()
        return dict(zip(BY_HORIZON, parts, strict=True))

    def learn_rows(self, X: Floats, targets: Floats, readings: Floats) -> None:
        """Forecast after each of these rows (n, d), which have just been learned.

        readings : what is believed of the newest targets, the newest last, if that one is far.
        """
        for x, y in zip(X, targets.tolist(), strict=True):
            forecasts = self._learn_target(x, y, readings, self._tail, self._future())
            if self._collection is not None:
                self._collection.forecasts.append(forecasts)

    def _future(self) -> Floats | None:
        """(H, known): the inputs that are known in advance, of the rows after the present one."""
        if self.known is None or self._collection is None:
            return None
        row, upcoming = len(self._collection.forecasts), self._collection.upcoming
        future = np.full((len(self.horizons), len(self.known.columns)), np.nan)
        for k, horizon in enumerate(self.horizons):
            if row + horizon < len(upcoming):
                future[k] = upcoming[row + horizon, self.known.columns]
        return future

    # --- one row --------------------------------------------------------------------------------

    def _learn_target(
        self, x: Floats, y: float, readings: Floats, tail: float, future: Floats | None = None
    ) -> Floats:
        """Take the newest row (d,) with its target; (H, 3): the forecasts made after it.

        Forecasts are made with what is believed of far targets, the readings, and scored by the
        targets as they came.
        """
        believed = y
        if len(readings):
            self._correct(readings[:-1])
            believed = float(readings[-1])
        spike = y - believed
        if self.known is None or self.plain is None:
            return self._learn(x, (believed,) * 3, tail, spike)
        without = self.plain._learn_target(x, y, readings, tail)
        left, late = self.known.residuals(x, believed)
        output = self._learn(x, (left, late, believed), tail, spike)
        return without if future is None else self._with_known(output, without, future)

    def _correct(self, readings: Floats) -> None:
        """The newest targets were these."""
        count = min(len(readings), self.samples)
        if not count:
            return
        self._newest[:, -count:] += readings[-count:] - self._newest[_OBSERVED, -count:]
        if self._season_history is not None:
            newest = self._newest[_TARGET, ::-1]
            for ago in range(count):
                self._season_history.append(self.samples - ago, newest[ago : ago + 1].copy())

    def _with_known(self, output: Floats, without: Floats, future: Floats) -> Floats:
        """(H, ...): forecasts with the part of the known inputs (H, known).

        output : without that part. without : the forecasts that do not need them, which are taken
        where the known inputs of a horizon are missing.
        """
        assert self.known is not None
        added = self.known.predict(future)[:, None]
        together = np.clip(output + self.stacking.share[:, None] * added, *self.config.bounds)
        return np.where(np.isnan(added), without, together)

    def _learn(
        self, x: Floats, numbers: tuple[float, ...], tail: float, spike: float = 0.0
    ) -> Floats:
        """Take the newest row (d,) and make its forecasts.

        numbers : _TARGET, _LATE and _OBSERVED. spike : how much more the target was, if it is not
        believed.
        """
        if len(self._recent):
            recent = self._recent[self.samples % RECENT]
            recent[:3], recent[3:] = numbers, x
        self._score(numbers, spike)
        self._newest[:, :-1] = self._newest[:, 1:]
        self._newest[:, -1] = numbers
        y = numbers[_TARGET]
        if self.samples < len(self._series):
            self._series[self.samples] = y
        self.samples += 1
        if self._season_history is not None:
            self._season_history.append(self.samples, np.array([y]))
        if self.bank is not None:
            self._add_to_statistics(x, y)
        if self.samples > self.horizons[-1]:
            self._learn_oldest()
        return self._issue(x, tail)

    def _add_to_statistics(self, x: Floats, y: float) -> None:
        """Add the newest row and its target to the running statistics and to the line."""
        statistics = self.scaling.statistics
        statistics.add_inputs(x)
        if not statistics.outlier_level(y):
            statistics.add_target(y)
        elif statistics.hold_target(y):
            statistics.restart_target()
        scaled = float(statistics.scale_targets(np.array([y]))[0])
        self.line.learn(self._newest[_TARGET, :-1], scaled, statistics.target_scale())

    def _left(self, y: Floats | float, late: Floats | float) -> Floats:
        """(H,): what known inputs leave of a target, as they were known h rows before it.

        One row before, that is what the model leaves, and at the longest horizon what the late one
        leaves. The horizons between are interpolated.
        """
        return np.asarray(y + self._lateness * (late - y))

    def _score(self, numbers: tuple[float, ...], spike: float) -> None:
        """Score the forecasts of the newest target, and learn their weights."""
        y, late, observed = numbers
        waiting = min(self.samples - self.first_moment, self.horizons[-1])
        waiting = 0 if self.bank is None else waiting
        left = self._left(y, late)
        wanted = observed - self.stacking.shares_due(self.samples) * (observed - left)
        scale, came = self.scaling.statistics.target_scale(), (wanted + spike, observed + spike)
        self.intervals.score(self.samples, *came, waiting, *scale, spike)
        self.stacking.learn(self.samples, waiting, left, observed)

    @property
    def rows(self) -> int:
        """How many rows the bank has learned, or will have after its first restart."""
        return max(self.samples - self.horizons[-1], 0)

    def _learn_oldest(self) -> None:
        """Learn the oldest row that waits: all its targets are known now."""
        longest = self.horizons[-1]
        oldest = (self.samples - 1) % longest
        places = np.array(self.horizons) - longest - 1
        targets = self._left(self._newest[_TARGET, places], self._newest[_LATE, places])
        x, past = self._inputs[oldest], self._past[oldest]
        if self.rows <= len(self._first_inputs):
            firsts = (self._first_inputs, self._first_past, self._first_targets)
            for array, values in zip(firsts, (x, past, targets), strict=True):
                array[self.rows - 1] = values
        if self.bank is not None:
            judged = None
            if not self.stacked and self.samples - 1 - longest >= self.first_moment:
                slots = self._slots[oldest]
                scaled = self._scaled_targets(slots)
                scores = self._scores[oldest][:, None]
                judged = self._of_outputs(np.where(np.isnan(slots), scores, scaled))
            target = self._of_outputs(self._scaled_targets(targets))
            self.bank.learn_one(self._scaled_row(x, past), target, judged)
        if self.rows in self.config.restarts:
            self._restart()

    def _scaled_row(self, x: Floats, past: Floats) -> Floats:
        row: Floats = self.scaling.statistics.scale_rows(x[None], past[None])[0]
        return row

    def _scaled_targets(self, targets: Floats) -> Floats:
        scaled: Floats = self.scaling.statistics.scale_targets(targets.ravel())
        return scaled.reshape(targets.shape)

    def _of_outputs(self, values: Floats) -> Floats:
        """What a bank takes for values (H, ...): for one output those of the first."""
        return values if len(self.horizons) > 1 else np.asarray(values[0])

    def _restart(self) -> None:
        """Start scaling and bank anew from all rows so far."""
        if self.scaling.core < self.dimension:
            self.lay_out(self.dimension)
        X, past = self._first_inputs[: self.rows], self._first_past[: self.rows]
        self.scaling.fit(X, self._series[:, None])
        self.bank = self._new_bank()
        scaled = self._scaled_targets(self._first_targets[: self.rows])
        outputs = scaled if len(self.horizons) > 1 else scaled[:, 0]
        self.bank.run(self.scaling.statistics.scale_rows(X, past), outputs, record="light")

    def _issue(self, x: Floats, tail: float) -> Floats:
        """Make the forecasts of this moment, and keep them until their targets come."""
        moment, count = self.samples - 1, len(self.horizons)
        row = moment % self.horizons[-1]
        self._inputs[row], self._past[row] = x, self._past_row()
        if self.bank is not None:
            center, scale = self.scaling.statistics.target_scale()
            mixed, by_slot = self.bank.predict_slots_one(self._scaled_row(x, self._past[row]))
            self._scores[row] = np.reshape(mixed, count)
            columns = np.reshape(by_slot, (count, -1)) * scale + center
            if not self.stacked:
                self._slots[row] = columns
                columns = self._scores[row][:, None] * scale + center
            if self.plain is not None:
                columns = np.hstack([columns, self.plain.stacking.forecasts(moment)])
            columns = np.where(np.isfinite(columns), columns, self._newest[_OBSERVED, -1])
            self.stacking.keep(moment, columns)
        output = self._output(tail)
        self.intervals.issue(moment, output, self._baselines())
        return output

    def _past_row(self) -> Floats:
        """What is known after the newest row."""
        targets, recalled = self._newest[_TARGET], np.zeros(0)
        if self._season_history is not None:
            at = np.array([self.samples])
            recalled = self._season_history.recall(self.samples, at, at)[0]
        iterated = np.full(len(self.horizons), targets[-1])
        if self.bank is not None:
            ahead = self.line.forecast(targets, self.scaling.statistics.target_scale())
            iterated = ahead[np.array(self.horizons) - 1]
        return forecast_row(targets, self.lags, self.horizons, self.periods, iterated, recalled)

    def _baselines(self) -> Floats:
        """(H, 2): the last value, and that of the same phase in the longest period."""
        observed = self._newest[_OBSERVED]
        baselines = np.full((len(self.horizons), 2), observed[-1])
        if self.periods:
            back = [rows_back(horizon, self.periods[-1]) for horizon in self.horizons]
            season = observed[len(observed) - 1 - np.array(back)]
            baselines[:, 1] = np.where(np.isnan(season), observed[-1], season)
        return baselines

    def _output(self, tail: float) -> Floats:
        """(H, 3): forecasts and intervals from the newest row, without the part of known inputs."""
        if self.bank is None:
            return np.full((len(self.horizons), 3), self._newest[_TARGET, -1])
        forecasts = self.stacking.forecasts(self.samples - 1)
        points, deviations = self.stacking.combine(forecasts).T
        return self.intervals.forecast(points, deviations, tail)

    # --- what is asked --------------------------------------------------------------------------

    def forecast(self, coverage: float, tail: float, future: Floats | None) -> Forecast:
        """The forecasts from the newest row; changes nothing.

        tail : beyond each end of the intervals. future : (H, known), the inputs that are known.
        """

        def at(tail: float) -> Floats:
            """(3, H): forecasts and the ends of their intervals."""
            if self.plain is None:
                return self._output(tail).T
            without = self.plain._output(tail)
            if future is None:
                return without.T
            return self._with_known(self._output(tail), without, future).T

        quantiles = []
        for level in LEVELS:
            _, below, above = at(min(level, 1.0 - level))
            middle = 0.5 * (below + above)
            quantiles.append(below if level < 0.5 else above if level > 0.5 else middle)
        in_order = np.sort(np.array(quantiles), axis=0)  # none cross
        by_level = dict(zip(LEVELS, in_order, strict=True))
        observed = self._newest[_OBSERVED]
        history = observed[~np.isnan(observed)]
        point, lower, upper = at(tail).copy()
        return Forecast(
            self.samples, self.horizons, point, lower, upper, coverage, by_level, history
        )

    def weights(self) -> dict[str, Floats]:
        """(H,) by slot: of the forecasts at every horizon, with and without known inputs together.

        Empty before the first bank.
        """
        weights, count = self.stacking["weights"], len(self.horizons)
        parts = [self] if self.plain is None else [self, self.plain]
        total = np.zeros((count, len(self.pool)))
        for part, shares in zip(parts, np.split(weights, len(parts), axis=1), strict=True):
            if part.bank is None:
                return {}
            inner = 1.0 if self.stacked else np.reshape(part.bank.weights, (count, -1))
            total += shares * inner
        return dict(zip(self.pool.names, total.T.copy(), strict=True))

    def scores(self) -> tuple[HorizonScore, ...]:
        """How good the forecasts were, by horizon."""
        scores = []
        by_horizon: Floats = np.asarray(self.intervals.sums)
        for horizon, (count, *sums) in zip(self.horizons, by_horizon.tolist(), strict=True):
            means = [total / count if count else float("nan") for total in sums]
            scores.append(HorizonScore(horizon, int(count), *means))
        return tuple(scores)

    # --- saving ---------------------------------------------------------------------------------

    def _parts(self) -> dict[str, Any]:
        """All that holds state, by its name in a file."""
        arrays = (
            *("newest", "series", "recent", "first_inputs", "first_past", "first_targets"),
            *("inputs", "past", "scores", "slots"),
        )
        parts = {name: getattr(self, f"_{name}") for name in arrays} | {
            "stacking": self.stacking,
            "intervals": self.intervals,
            "scaling": self.scaling.statistics,
            "line": self.line.bank,
            "bank": self.bank,
            "plain": self.plain,
        }
        if self._season_history is not None:
            parts["seasons"] = self._season_history
        if self.known is not None:
            parts |= {"known": self.known.bank, "late": self.known.late}
            parts["known_waiting"] = self.known.waiting
        return parts

    def describe(self) -> tuple[Json, Arrays]:
        """Everything that the next forecast depends on, as JSON data and arrays."""
        header, arrays = describe_parts(self._parts())
        counters = {"samples": self.samples, "first_inputs": self.scaling.core}
        counters["known_rows"] = 0 if self.known is None else self.known.rows
        return {**header, **counters, "periods": list(self.periods)}, arrays

    def restore(self, header: Json, arrays: Arrays, reading: Reading) -> None:
        """Continue, with nothing learned so far, from what `describe` returned."""
        if list(self.periods) != header["periods"]:
            raise FileRefused("its forecasts do not fit its seasons.")
        first = whole_number(header["first_inputs"], 1, self.dimension, "inputs of forecasts")
        if first < self.dimension:
            self.lay_out(first)
        self.samples = whole_number(header["samples"], 0, 2**53, "rows")
        if self.rows >= self.config.restarts[0]:
            self.bank = self._new_bank()
        engines: dict[str, Engine] = dict.fromkeys(("line", "known", "late"), Serial())
        engines["bank"] = _local(reading.engine)
        banks = reading.restore(self._parts(), header, arrays, engines)
        self.line.bank, self.bank = banks["line"], banks.get("bank")
        others = {*engines, "plain"}
        numbers = {n: array for n, array in arrays.items() if n.split("/")[0] not in others}
        check_finite(numbers, _MAY_MISS)
        come = [self._series[: self.samples], self._recent[:, :3]]
        come += [self._newest[:, -self.samples :]] if self.samples else []
        come += [] if self.known is None else [self.known.waiting[:, -1]]
        if not all(np.isfinite(array).all() for array in come):
            raise FileRefused("its targets are not numbers.")
        if self.known is not None:
            self.known.bank, self.known.late = banks["known"], banks["late"]
            self.known.rows = whole_number(header["known_rows"], self.samples, 2**53, "known rows")
            for bank in (self.known.bank, self.known.late):
                if len(bank.input_names) not in (0, len(self.known.columns)):
                    raise FileRefused("the model of its known inputs does not fit its settings.")


_MAY_MISS = (
    *("inputs", "past", "slots", "waiting", "seasons/targets"),
    *("newest", "series", "recent"),
)
"""Arrays that may hold NaN; those of the second line where targets have not come."""


def _local(engine: Engine) -> Engine:
    """Rows are learned one by one: processes would only wait."""
    return Serial() if isinstance(engine, Ray) else engine
