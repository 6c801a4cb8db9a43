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

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .. import _core
from ..bank.bank import KernelBank
from ..bank.engines import Ray, Serial
from ..bank.serialization import under
from ..bank.slot import Slot
from ..bank.trace import BY_HORIZON
from ..combiners import Stacking, Uniform
from ..errors import FileRefused, KernelBankError
from ..kernels import ActiveDims, Kernel, Linear, NoKernel, TreeKernel
from ..learners import FourierRLS, LastValue, Learner, LinearRLS, PartitionTree
from ..losses import Loss, Squared
from ..utils import validation as check
from ..utils.validation import Floats
from .config import Arrays, AutoConfig, Column, Json, Reading, whole_number
from .inputs import ColumnEncoder, codes_of, is_table, read_table
from .scaling import Scaling
from .seasons import AUTO, SEASON_INPUTS, SEASON_PAST, history_size
from .slots import (
    LINEAR_RIDGE,
    RIDGE,
    SIZES,
    SLOW,
    WIDE,
    Size,
    SlotPool,
    by_squares,
    default_slots,
    mixed_kernel,
    neighbor_slots,
)

if TYPE_CHECKING:
    import pandas

    from .auto_bank import AutoBank

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


# --- rows and their columns -----------------------------------------------------------------------


@dataclass(frozen=True)
class ForecastColumns:
    """Where the parts of a scaled row stand.

    width : of a scaled row; inputs, lags : their columns; seasons : for each period the columns of
    the targets one period before those to be forecast, in the order of the horizons; iterated :
    those of forecasts that go on from their own predictions; phases : those of the phases, and of
    what the next row knows of earlier periods; later : those of inputs that were added later.
    """

    width: int
    inputs: tuple[int, ...]
    lags: tuple[int, ...]
    seasons: dict[int, tuple[int, ...]]
    iterated: tuple[int, ...]
    phases: tuple[int, ...]
    later: tuple[int, ...]

    @property
    def everything(self) -> tuple[int, ...]:
        """All columns."""
        seasons = [column for columns in self.seasons.values() for column in columns]
        return (*self.inputs, *self.lags, *seasons, *self.phases, *self.later)


def rows_back(horizon: int, period: int) -> int:
    """How many rows before the last one the newest target of the same phase is."""
    return -(-horizon // period) * period - horizon


class ForecastRows:
    """Makes the rows of forecasts, and the scaling for them.

    Parameters
    ----------
    lags : how many of the last targets a row knows, at least 1.
    horizons : in rows, ascending.
    periods : of seasons.
    """

    def __init__(self, lags: int, horizons: Sequence[int], periods: Sequence[int]) -> None:
        self.lags, self.horizons, self.periods = lags, tuple(horizons), tuple(periods)
        self.past = lags + len(self.horizons) * (len(self.periods) + 1)
        """How many targets of the past a row knows."""
        self.history = max([lags, *self.periods])
        """How many of the last targets are needed to make a row."""

    @property
    def width(self) -> int:
        """How many numbers of the past a row has, with the phases."""
        return self.past + len(self.periods) * SEASON_PAST

    def make_scaling(self, dimension: int, core: int, names: Sequence[str]) -> Scaling:
        """The scaling of such rows; only the first of the names is used."""
        periods = len(self.periods)
        return Scaling(
            dimension,
            self.past,
            names[:1],
            core=core,
            seasons=periods,
            periods=periods,
        )

    def columns(self, scaling: Scaling) -> ForecastColumns:
        """Where the parts of a row stand after scaling."""
        first, core, count = scaling.columns_of[scaling.names[0]], scaling.core, len(self.horizons)
        past = first[core : core + self.past]
        return ForecastColumns(
            scaling.width,
            inputs=first[:core],
            lags=past[: self.lags],
            seasons={
                period: past[self.lags + i * count : self.lags + (i + 1) * count]
                for i, period in enumerate(self.periods)
            },
            iterated=past[len(past) - count :],
            phases=scaling.season_columns[: len(self.periods) * SEASON_INPUTS],
            later=first[core + self.past :],
        )

    def row(self, targets: Floats, iterated: Floats, recalled: Floats) -> Floats:
        """(width,): what is known at one moment.

        targets : (history,), the last ones, the newest last; NaN before the first.
        iterated : (H,), forecasts that go on from their own predictions.
        recalled : what the next row knows of earlier periods; see `SeasonHistory.recall`.
        """
        out = np.empty(self.width)
        out[: self.lags] = targets[::-1][: self.lags]
        count = len(self.horizons)
        for i, period in enumerate(self.periods):
            for k, horizon in enumerate(self.horizons):
                back = rows_back(horizon, period)
                out[self.lags + i * count + k] = targets[len(targets) - 1 - back]
        out[self.past - count : self.past] = iterated
        out[self.past :] = recalled
        return out


# --- slots ----------------------------------------------------------------------------------------

FEW, MANY = 6, 24
"""How many of the last targets the slots see that are not linear; and those on nearest neighbors
of whole rows, which find the same course of a series in the past."""

_FLAT = 1e9
"""A ridge that leaves a line no slope: its forecast is the mean."""

_FASTER = 0.998


def forecast_pool(columns: ForecastColumns, size: Size, seed: int, loss: Loss) -> SlotPool:
    """All slots of the forecasts, bases before those that need them."""
    pool = SlotPool(columns.width)
    few = (*columns.inputs, *columns.lags[:FEW], *columns.phases)
    many = (*columns.inputs, *columns.lags[:MANY], *columns.phases)
    line = ActiveDims(Linear(1.0), columns.everything[:WIDE])
    short = ActiveDims(Linear(1.0), (*few, *columns.later)[:WIDE])
    kernel = ActiveDims(mixed_kernel(len(few), size.widths), few)
    cells = ActiveDims(TreeKernel(decay=0.7, levels=20), (*few, *columns.later))
    tree = PartitionTree(nodes=size.nodes, noise=0.1, seed=seed * 1000)
    slow, fast = (
        LinearRLS(ridge=LINEAR_RIDGE, forgetting=rate, forget="prior") for rate in (SLOW, _FASTER)
    )
    features = FourierRLS(
        features=size.features, ridge=RIDGE, seed=seed, forgetting=SLOW, forget="prior"
    )

    def add(name: str, *named: tuple[str, Slot]) -> int:
        pool.add_group(name, by_squares(named, loss))
        return len(pool) - 1

    def add_slot(name: str, kernel: Kernel, learner: Learner, base: int | None = None) -> int:
        return add(name, (name, Slot(kernel, learner, residual_of=base)))

    add_slot("mean", ActiveDims(Linear(1.0), columns.lags[:1]), LinearRLS(ridge=_FLAT))
    last = add_slot("last value", NoKernel(), LastValue(columns.lags[0]))
    iterated = add_slot("iterated", NoKernel(), LastValue(columns.iterated[0], per_output=True))
    bases = {"": None, "last value + ": last, "iterated + ": iterated}
    for period, places in columns.seasons.items():
        name = f"last value of period {period}"
        learner = LastValue(places[0], per_output=True)
        bases[f"{name} + "] = add_slot(name, NoKernel(), learner)
    for base, index in bases.items():
        add_slot(f"{base}linear", line, slow, index)
        add_slot(f"{base}linear, few lags", short, fast, index)
        add_slot(f"{base}random features", kernel, features, index)
        name = f"{base}nearest neighbors"
        add(name, *neighbor_slots(name, few if base else many, size, index))
        if index is not None:
            add_slot(f"{base}tree", cells, tree, index)
    return pool


# --- model ----------------------------------------------------------------------------------------


class HorizonsModel:
    """Learns rows whose targets are known by now, and predicts the newest one.

    After a few rows scaling and bank start anew, from all rows so far, as those of the predictions.
    """

    def __init__(
        self, config: AutoConfig, dimension: int, horizons: Sequence[int], periods: Sequence[int]
    ) -> None:
        self.forecast_rows_of = ForecastRows(max(config.lags, 1), horizons, periods)
        self.stacked = config.combiner is None and config.loss == Squared()
        """Whether the weights are those of a `HorizonStacking`, not of the bank."""
        combiner = Uniform() if self.stacked else config.combiner
        # Rows are learned one by one: processes would only wait.
        engine = Serial() if isinstance(config.engine, Ray) else config.engine
        self.config = replace(config, seasons=None, slots=None, combiner=combiner, engine=engine)
        self.dimension = dimension
        self.rows = 0
        """How many rows have been learned."""
        self.series = np.zeros(0)
        """The targets of the series up to the last restart, the newest last."""
        width, count, most = self.forecast_rows_of.width, len(horizons), config.restarts[-1]
        self.first_inputs = np.zeros((most, dimension))
        self.first_past = np.zeros((most, width))
        self.first_targets = np.zeros((most, count))
        """The first rows, from which scaling and bank start anew."""
        self.bank: KernelBank | None = None
        self.lay_out(dimension)

    @property
    def horizons(self) -> tuple[int, ...]:
        """In rows, ascending."""
        return self.forecast_rows_of.horizons

    @property
    def started(self) -> bool:
        """Whether the first restart is over."""
        return self.rows >= self.config.restarts[0]

    @property
    def names(self) -> list[str]:
        """The names of all slots."""
        return self.pool.names

    def lay_out(self, first_inputs: int) -> None:
        """Choose scaling and slots for the present inputs; those beyond the first ones are new."""
        rows, config = self.forecast_rows_of, self.config
        self.scaling = rows.make_scaling(self.dimension, first_inputs, config.scalings)
        columns = rows.columns(self.scaling)
        self.pool = forecast_pool(columns, SIZES[config.size], config.seed, config.loss)

    def add_inputs(self, count: int) -> None:
        """Add `count` inputs behind the others, as if they had been missing so far."""
        self.dimension += count
        before, first = self.scaling, self.scaling.core if self.bank else self.dimension
        self.first_inputs = with_missing(self.first_inputs, count)
        self.lay_out(first)
        if self.bank is not None:
            self.scaling.continue_from(before)
            self.bank = self.bank.with_inputs(self.scaling.width, self.bank_slots())

    def bank_slots(self) -> list[Slot]:
        """The slots of the bank: all."""
        return self.pool.bank_slots(range(len(self.pool)))

    def new_bank(self) -> KernelBank:
        """A bank that has learned nothing."""
        return self.config.make_bank(self.bank_slots(), len(self.horizons))

    def prices(self) -> Floats:
        """(columns,): what `HorizonStacking` is told of the columns of `forecasts`."""
        if not self.stacked:
            return np.zeros(1)
        read_off = [isinstance(slot.kernel, NoKernel) for slot in self.bank_slots()]
        return np.where(read_off, 0.0, 1.0)

    def weights(self) -> Floats:
        """(H, slots): the weights of the bank."""
        assert self.bank is not None
        return np.reshape(self.bank.weights, (len(self.horizons), -1))

    # --- the newest row -------------------------------------------------------------------------

    def forecasts(self, x: Floats, past: Floats) -> tuple[Floats, Floats, Floats]:
        """What is to be combined (H, columns), scaled forecasts (H,), those of slots (H, slots).

        Columns and slots are in the units of the target. Columns are the slots, or, where the bank
        combines them by itself, its forecast.
        """
        assert self.bank is not None
        count = len(self.horizons)
        center, scale = self.scaling.target_scale()
        row = self.scaling.scale_rows(x[None], past[None])[0]
        mixed, by_slot = self.bank.predict_slots_one(row)
        scores, slots = np.reshape(mixed, count), np.reshape(by_slot, (count, -1)) * scale + center
        return slots if self.stacked else scores[:, None] * scale + center, scores, slots

    def observe(self, x: Floats, y: float) -> None:
        """Add the newest row (d,) and its target to the running statistics."""
        if self.rows <= self.config.restarts[-1]:
            self.series = np.append(self.series, y)
        if self.bank is None:
            return
        statistics = self.scaling.statistics
        statistics.add_inputs(x)
        if not self.scaling.outlier_level(y):
            statistics.add_target(y)
        elif statistics.hold_target(y):
            statistics.restart_target()

    # --- learning -------------------------------------------------------------------------------

    def learn(
        self, x: Floats, past: Floats, targets: Floats, forecasts: tuple[Floats, Floats] | None
    ) -> None:
        """Learn a row (d,) with its past and its targets (H,), which are all known now.

        made : scaled forecasts (H,) and those of the slots (H, slots) that were made for it, by
            which the slots are judged; None if they are not, or there was no bank.
        """
        if self.rows < self.config.restarts[-1]:
            rows = (self.first_inputs, self.first_past, self.first_targets)
            for array, values in zip(rows, (x, past, targets), strict=True):
                array[self.rows] = values
        self.rows += 1
        if self.bank is not None:
            judged = None
            if forecasts is not None:
                scores, slots = forecasts
                scaled = self.scaling.scale_targets(slots.ravel()).reshape(slots.shape)
                judged = self._of_outputs(np.where(np.isnan(slots), scores[:, None], scaled))
            row = self.scaling.scale_rows(x[None], past[None])[0]
            target = self._of_outputs(self.scaling.scale_targets(targets))
            self.bank.learn_one(row, target, judged)
        if self.rows in self.config.restarts:
            self._restart()

    def _of_outputs(self, values: Floats) -> Floats:
        """What a bank takes for values (H, ...): for one output those of the first."""
        return values if len(self.horizons) > 1 else np.asarray(values[0])

    def _restart(self) -> None:
        """Start scaling and bank anew from all rows so far."""
        rows = slice(0, self.rows)
        X, past, targets = self.first_inputs[rows], self.first_past[rows], self.first_targets[rows]
        if self.scaling.core < self.dimension:
            self.lay_out(self.dimension)
        self.scaling.fit(X, self.series[:, None])
        self.bank = self.new_bank()
        scaled = self.scaling.scale_targets(targets.ravel()).reshape(targets.shape)
        known = scaled if len(self.horizons) > 1 else scaled[:, 0]
        self.bank.run(self.scaling.scale_rows(X, past), known, record="light")

    # --- saving ---------------------------------------------------------------------------------

    def _first_rows(self) -> Arrays:
        return {
            "first_inputs": self.first_inputs,
            "first_past": self.first_past,
            "first_targets": self.first_targets,
        }

    def state(self) -> Arrays:
        """All arrays but those of the bank, by their names in a file."""
        statistics = self.scaling.statistics.state().items()
        return self._first_rows() | {f"scaling/{name}": array for name, array in statistics}

    def restore(self, state: Arrays, rows: int) -> None:
        """Continue from what `state` returned, after so many rows, without the bank."""
        for name, array in self._first_rows().items():
            array[...] = state[name]
        self.scaling.statistics.restore(under("scaling/", state))
        if not self.scaling.has_plausible_shifts():
            raise FileRefused("no series has such running statistics.")
        self.rows = rows


def with_missing(rows: Floats, count: int) -> Floats:
    """Rows with `count` more columns, in which everything is missing (NaN)."""
    return np.hstack([rows, np.full((len(rows), count), np.nan)])


# --- inputs that are known in advance -------------------------------------------------------------


def known_slots(inputs: int, size: Size, seed: int) -> list[Slot]:
    """Slots that are functions of the inputs alone: none follows the last targets or errors.

    Else what they leave of the next target would be forecast with what is known only then.
    """
    squared = Squared()
    named = dict(default_slots("standard", range(inputs), (), 0, size, seed, squared))
    lasting = [name for name in named if "adaptive" not in name and ", forgetting" not in name]
    place = {list(named).index(name): i for i, name in enumerate(lasting)}
    slots = []
    for name in lasting:
        slot = named[name]
        base = None if slot.residual_of is None else place[slot.residual_of]
        slots.append(replace(slot, residual_of=base))
    return slots


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
        known = ~np.isnan(rows).all(axis=1)
        out = np.full(len(rows), np.nan)
        if known.any():
            predicted = self.bank.predict(rows[known])
            out[known] = np.where(np.isnan(predicted), 0.0, predicted)  # before the first target
        return out

    def restore(self, header: Json, arrays: Arrays, reading: Reading) -> None:
        """Continue with the banks of a file."""
        banks = []
        for name, template in (("known", self.bank), ("late", self.late)):
            bank = template.restored(header[name], under(f"{name}/", arrays), reading)
            fits = len(bank.input_names) in (0, len(self.columns))
            if not (fits and template.has_settings_of(bank)):
                raise FileRefused("the model of its known inputs does not fit its settings.")
            banks.append(bank)
        self.bank, self.late = banks

    def read(
        self,
        X_future: object,
        names: Sequence[Column],
        encoder: ColumnEncoder | None,
        dimension: int,
        remedy: str,
    ) -> Floats:
        """(n, columns): the known inputs, from what a user gives for the next rows.

        Parameters
        ----------
        X_future : a table with the columns at least, or an array with them or with all columns.
        names : of the columns, or their indices.
        encoder : of the AutoBank, if its columns have names.
        dimension : number of inputs of its rows.
        """
        count = len(self.columns)
        if encoder is not None and is_table(X_future):
            table = read_table(X_future, "X_future")
            wanted = [name if isinstance(name, str) else encoder.names[name] for name in names]
            for name in wanted:
                if name not in table:
                    rule = f"have the column {name!r}"
                    raise check.refuse("X_future", rule, list(table), remedy, "forecast")
            codes = np.full((len(table[wanted[0]]), len(encoder.names)), np.nan)
            for index, (name, kind) in enumerate(encoder.columns):
                if name in wanted:
                    codes[:, index] = codes_of(name, kind, table[name], {})
            return np.ascontiguousarray(encoder.expand(codes)[:, self.columns])
        array = check.floats("X_future", X_future, remedy)
        if array.ndim == 1:
            array = array[:, None] if len(names) == 1 else array[None]
        if array.ndim == 2 and array.shape[1] == dimension != count:
            array = array[:, self.columns]
        if array.ndim != 2 or array.shape[1] != count:
            rule = f"have {count} columns"
            raise check.refuse("X_future", rule, array.shape, remedy, "forecast")
        check.within_range("X_future", np.where(np.isnan(array), 0.0, array))
        return array


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


_USUAL_TAIL = 0.5 * (1 - 0.9)
"""Of rows that are learned outside of a run: `tail_of(COVERAGE)`, to the bit."""


@dataclass
class _Collection:
    """The forecasts (H, 3) after each row that a run learns.

    upcoming : (n, d), the rows that will be learned, in their order.
    tail : probability beyond each end of the intervals.
    """

    upcoming: Floats
    tail: float
    forecasts: list[Floats] = field(default_factory=list)


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
        self._collection: _Collection | None = None
        """While a run collects forecasts."""
        size = RECENT if config.seasons == AUTO else 0
        self._recent = deque[tuple[Floats, float, float, float]](maxlen=size)
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
        self.first_moment = 0
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
        self._season_history: _core.SeasonHistory | None = None
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
        together = np.clip(output + self.stacking.share[:, None] * added, *self._bounds)
        return np.where(np.isnan(added), without, together)

    def with_periods(self, periods: tuple[int, ...]) -> Forecaster:
        """Forecasts that start anew from the last rows, with other periods."""
        if periods == self.periods:
            return self
        new = Forecaster(self._config, self.dimension, self.horizons, periods, self.known)
        new._collection = self._collection
        for x, y, late, observed in self._recent:
            if new.plain is not None:
                new.plain._learn(x, observed, observed, observed, self._tail)
            new._learn(x, y, late, observed, self._tail)
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
        self._collection = _Collection(upcoming, tail)

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
            forecasts = self.learn(x, y, self._tail, self._future(), readings)
            if self._collection is not None:
                self._collection.forecasts.append(forecasts)

    def _future(self) -> Floats | None:
        """The inputs that are known in advance, of the rows after the present one."""
        if self.known is None or self._collection is None:
            return None
        row, upcoming = len(self._collection.forecasts), self._collection.upcoming
        future = np.full((len(self.horizons), len(self.known.columns)), np.nan)
        for k, horizon in enumerate(self.horizons):
            if row + horizon < len(upcoming):
                future[k] = upcoming[row + horizon, self.known.columns]
        return future

    # --- one row --------------------------------------------------------------------------------

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

    def _left(self, y: Floats | float, late: Floats | float) -> Floats:
        """(H,): what known inputs leave of a target, as they were known h rows before it.

        One row before, that is what the model leaves, and at the longest horizon what the late one
        leaves. The horizons between are interpolated.
        """
        return np.asarray(y + self._lateness * (late - y))

    def _score(self, y: float, late: float, observed: float, spike: float) -> None:
        """Score the forecasts of the newest target, and learn their weights."""
        longest = self.horizons[-1]
        waiting = (
            min(self.samples - self.first_moment, longest) if self.model.bank is not None else 0
        )
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
        scored = started and not model.stacked and self.samples - 1 - longest >= self.first_moment
        forecasts = (self._scores[row], self._slots[row]) if scored else None
        model.learn(self._inputs[row].copy(), self._past[row].copy(), target, forecasts)
        if not started and model.bank is not None:
            self.first_moment = self.samples - 1  # the moment whose forecasts follow

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
            columns = np.where(np.isfinite(columns), columns, self.observed[-1])
            self.stacking.keep(moment, columns)
        output = self._output(tail)
        self.intervals.issue(moment, output, self._baselines())
        return output

    def _output(self, tail: float) -> Floats:
        """(H, 3): forecasts and intervals from the newest row, without the part of known inputs."""
        if self.model.bank is None:
            return np.full((len(self.horizons), 3), self.targets[-1])
        forecasts = self.stacking.forecasts(self.samples - 1)
        points, deviations = self.stacking.combine(forecasts).T
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
        weights: Floats = self.stacking["weights"]
        count = len(self.model.prices())
        if self.model.stacked:
            return weights if self.plain is None else weights[:, :count] + weights[:, count:]
        total = weights[:, :1] * self.model.weights()
        return total if self.plain is None else total + weights[:, 1:] * self.plain.model.weights()

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
        baselines = np.full((len(self.horizons), 2), self.observed[-1])
        if self.periods:
            back = [rows_back(horizon, self.periods[-1]) for horizon in self.horizons]
            season = self.observed[len(self.observed) - 1 - np.array(back)]
            baselines[:, 1] = np.where(np.isnan(season), self.observed[-1], season)
        return baselines

    def scores(self) -> tuple[HorizonScore, ...]:
        """How good the forecasts were, by horizon."""
        scores = []
        by_horizon: Floats = np.asarray(self.intervals.sums)
        for horizon, (count, *sums) in zip(self.horizons, by_horizon.tolist(), strict=True):
            means = [total / count if count else float("nan") for total in sums]
            scores.append(HorizonScore(horizon, int(count), *means))
        return tuple(scores)

    # --- saving ---------------------------------------------------------------------------------

    def _arrays(self) -> Arrays:
        """The arrays of this object itself, by their names in a file."""
        arrays = {
            "targets": self.targets,
            "observed": self.observed,
            "inputs": self._inputs,
            "past": self._past,
            "scores": self._scores,
            "slots": self._slots,
        }
        if self.known is not None:
            arrays |= {"known_waiting": self.known.waiting, "late_targets": self.late_targets}
        return arrays

    def _parts(
        self,
    ) -> dict[str, _core.HorizonStacking | _core.HorizonIntervals | _core.SeasonHistory]:
        seasons = {} if self._season_history is None else {"seasons": self._season_history}
        return {"stacking": self.stacking, "intervals": self.intervals, **seasons}

    def state(self) -> Arrays:
        """The arrays without those of banks, by their names in a file."""
        inputs, values = [row[0] for row in self._recent], [row[1:] for row in self._recent]
        arrays = {
            "recent_inputs": np.array(inputs).reshape(-1, self.dimension),
            "recent_values": np.array(values).reshape(-1, 3),
        }
        arrays |= self._arrays()
        for name, part in self._parts().items():
            arrays |= {f"{name}/{n}": array for n, array in part.state().items()}
        return arrays | {f"model/{name}": array for name, array in self.model.state().items()}

    def describe(self) -> tuple[Json, Arrays]:
        """Everything that the next forecast depends on, as JSON data and arrays."""
        counters = {
            "samples": self.samples,
            "begun": self.first_moment,
            "first_inputs": self.model.scaling.core,
            "periods": list(self.periods),
            "series": self.model.series.tolist(),
            "rows": self.model.rows,
        }
        header: Json = {"counters": counters, "bank": None, "known": None}
        arrays: Arrays = {f"state/{n}": array.copy() for n, array in self.state().items()}
        parts: dict[str, KernelBank | AutoBank | Forecaster] = {"line": self.line.bank}
        if self.model.bank is not None:
            parts["bank"] = self.model.bank
        if self.known is not None:
            parts |= {"known": self.known.bank, "late": self.known.late}
        if self.plain is not None:
            parts["plain"] = self.plain
        for name, part in parts.items():
            header[name], state = part.describe()
            arrays |= {f"{name}/{n}": array for n, array in state.items()}
        return header, arrays

    def restore(self, header: Json, arrays: Arrays, reading: Reading) -> None:
        """Continue, with nothing learned so far, from what `describe` returned."""
        counters, state = header["counters"], under("state/", arrays)
        if list(self.periods) != counters["periods"]:
            raise FileRefused("its forecasts do not fit its seasons.")
        first = whole_number(counters["first_inputs"], 1, self.dimension, "inputs of forecasts")
        if first < self.dimension:
            self.model.lay_out(first)
        self._check(state, counters)
        self.samples, self.first_moment = int(counters["samples"]), int(counters["begun"])
        self.model.restore(under("model/", state), int(counters["rows"]))
        self.model.series = np.array(counters["series"], dtype=np.float64)
        rows = zip(state["recent_inputs"], state["recent_values"].tolist(), strict=True)
        self._recent.extend((x.copy(), *values) for x, values in rows)
        for name, array in self._arrays().items():
            array[...] = state[name]
        for name, part in self._parts().items():
            part.restore(under(f"{name}/", state))
        if (header["bank"] is not None) != self.model.started:
            raise FileRefused("its forecasts have the wrong number of banks.")
        if header["bank"] is not None:
            here = replace(reading, engine=self.model.config.engine)
            bank = here.bank(header["bank"], under("bank/", arrays), self.model.new_bank())
            self.model.bank = bank
        if self.plain is not None:
            self.plain.restore(header["plain"], under("plain/", arrays), reading)
        reading = replace(reading, engine=Serial())
        self.line.bank = reading.bank(header["line"], under("line/", arrays), self.line.bank)
        if self.known is None:
            self.late_targets[...] = self.targets
        else:
            self.known.rows = self.samples
            self.known.restore(header, arrays, reading)

    def _check(self, state: Arrays, counters: Json) -> None:
        """Refuse a state that no forecaster with these settings has."""
        recent, longest = len(state["recent_values"]), self.horizons[-1]
        shapes = {name: array.shape for name, array in self.state().items()}
        shapes |= {"recent_inputs": (recent, self.dimension), "recent_values": (recent, 3)}
        if {name: array.shape for name, array in state.items()} != shapes or recent > RECENT:
            raise FileRefused("its forecasts do not fit its settings.")
        for name, array in state.items():
            if not np.isfinite(array).all() and name not in _MAY_MISS:
                raise FileRefused(f"its forecasts are not numbers: {name}.")
        samples = whole_number(counters["samples"], 0, 2**53, "rows")
        whole_number(counters["begun"], 0, samples, "the first forecast")
        learned = max(samples - longest, 0)
        whole_number(counters["rows"], learned, learned, "the rows of its forecasts")
        for name in {*_TARGETS} & {*state}:
            come = min(samples, len(state[name]))
            if not np.isfinite(state[name][len(state[name]) - come :]).all():
                raise FileRefused(f"its last {name} are not numbers.")
        series = counters["series"]
        length = min(samples, self.model.config.restarts[-1] + longest + 1)
        if len(series) != length or not all(map(_is_number, series)):
            raise FileRefused("its series does not fit its rows.")


_TARGETS = ("targets", "late_targets", "observed")
_MAY_MISS = (
    *("inputs", "recent_inputs", "past", "slots", "seasons/targets"),
    *("model/first_past", "model/first_inputs"),
    *_TARGETS,
)
"""Arrays that may hold NaN. Of the last targets all must be numbers that have come."""


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and type(value) is not bool and bool(np.isfinite(value))
