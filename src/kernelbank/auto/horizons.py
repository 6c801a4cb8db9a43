"""The model of forecasts at several horizons: one bank, with an output for each horizon.

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
from typing import Any

import numpy as np

from ..bank.bank import KernelBank
from ..bank.engines import Ray, Serial
from ..bank.serialization import under
from ..bank.slot import Slot
from ..combiners import Uniform
from ..kernels import ActiveDims, Linear, NoKernel, TreeKernel
from ..learners import FourierRLS, LastValue, LinearRLS, PartitionTree
from ..losses import Loss, Squared
from ..utils import validation as check
from ..utils.validation import Floats
from .config import AutoConfig
from .default_slots import (
    LINEAR_RIDGE,
    RIDGE,
    SIZES,
    SLOW,
    WIDE,
    Size,
    by_squares,
    default_slots,
    mixed_kernel,
    neighbor_slots,
)
from .inputs import codes_of, is_table, read_table
from .scaling import Scaling
from .seasons import INPUTS, PAST
from .slot_pool import NamedSlots, SlotPool

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
        own = [column for columns in self.seasons.values() for column in columns]
        return (*self.inputs, *self.lags, *own, *self.phases, *self.later)


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
        return self.past + len(self.periods) * PAST

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
        own, core, count = scaling.columns_of[scaling.names[0]], scaling.core, len(self.horizons)
        past = own[core : core + self.past]
        seasons = {
            period: past[self.lags + i * count : self.lags + (i + 1) * count]
            for i, period in enumerate(self.periods)
        }
        iterated = past[len(past) - count :]
        phases = scaling.season_columns[: len(self.periods) * INPUTS]
        return ForecastColumns(
            scaling.width,
            own[:core],
            past[: self.lags],
            seasons,
            iterated,
            phases,
            own[core + self.past :],
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

_FORGETTING: dict[str, Any] = {"forgetting": SLOW, "forget": "prior"}
_FASTER: dict[str, Any] = {"forgetting": 0.998, "forget": "prior"}


def forecast_pool(columns: ForecastColumns, size: Size, seed: int, loss: Loss) -> SlotPool:
    """All slots of the forecasts."""
    pool = SlotPool(columns.width)
    _Builder(pool, columns, size, seed, loss).add_all()
    return pool


class _Builder:
    """Adds slots to a pool."""

    def __init__(
        self, pool: SlotPool, columns: ForecastColumns, size: Size, seed: int, loss: Loss
    ) -> None:
        self.pool, self.columns, self.size, self.seed, self.loss = pool, columns, size, seed, loss
        self.few = (*columns.inputs, *columns.lags[:FEW], *columns.phases)
        self.all_lags = (*columns.inputs, *columns.lags[:MANY], *columns.phases)

    def _add(self, name: str, slot: Slot) -> int:
        self._add_group(name, [(name, slot)])
        return len(self.pool) - 1

    def _add_group(self, name: str, named: NamedSlots) -> None:
        self.pool.add_group(name, by_squares(named, self.loss))

    def add_all(self) -> None:
        """The slots, bases before those that need them."""
        columns = self.columns
        constant = LinearRLS(ridge=_FLAT)
        self._add("mean", Slot(ActiveDims(Linear(1.0), columns.lags[:1]), constant))
        last = self._add("last value", Slot(NoKernel(), LastValue(columns.lags[0])))
        iterated = Slot(NoKernel(), LastValue(columns.iterated[0], per_output=True))
        bases = {"": None, "last value + ": last, "iterated + ": self._add("iterated", iterated)}
        for period, own in columns.seasons.items():
            name = f"last value of period {period}"
            season = self._add(name, Slot(NoKernel(), LastValue(own[0], per_output=True)))
            bases[f"{name} + "] = season
        line = ActiveDims(Linear(1.0), columns.everything[:WIDE])
        short = ActiveDims(Linear(1.0), (*self.few, *columns.later)[:WIDE])
        for base, index in bases.items():
            linear = LinearRLS(ridge=LINEAR_RIDGE, **_FORGETTING)
            self._add(f"{base}linear", Slot(line, linear, residual_of=index))
            linear = LinearRLS(ridge=LINEAR_RIDGE, **_FASTER)
            self._add(f"{base}linear, few lags", Slot(short, linear, residual_of=index))
            self._add_features(base, index)
            self._add_neighbors(base, index, self.few if base else self.all_lags)
            if index is not None:
                self._add_tree(base, index)

    def _add_features(self, base: str, index: int | None) -> None:
        kernel = ActiveDims(mixed_kernel(len(self.few), self.size.widths), self.few)
        rls = FourierRLS(features=self.size.features, ridge=RIDGE, seed=self.seed, **_FORGETTING)
        self._add(f"{base}random features", Slot(kernel, rls, residual_of=index))

    def _add_neighbors(self, base: str, index: int | None, columns: tuple[int, ...]) -> None:
        name = f"{base}nearest neighbors"
        self._add_group(name, neighbor_slots(name, columns, self.size, index))

    def _add_tree(self, base: str, index: int) -> None:
        cells = ActiveDims(TreeKernel(decay=0.7, levels=20), (*self.few, *self.columns.later))
        tree = PartitionTree(nodes=self.size.nodes, noise=0.1, seed=self.seed * 1000)
        self._add(f"{base}tree", Slot(cells, tree, residual_of=index))


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
        own = self.forecast_rows_of
        self.scaling = own.make_scaling(self.dimension, first_inputs, self.config.scalings)
        self.pool = self._make_pool()

    def _make_pool(self) -> SlotPool:
        columns = self.forecast_rows_of.columns(self.scaling)
        return forecast_pool(columns, SIZES[self.config.size], self.config.seed, self.config.loss)

    def add_inputs(self, count: int) -> None:
        """Add `count` inputs behind the others, as if they had been missing so far."""
        self.dimension += count
        before, first = self.scaling, self.scaling.core if self.bank else self.dimension
        self.first_inputs = with_missing(self.first_inputs, count)
        self.lay_out(first)
        if self.bank is not None:
            self.scaling.continue_from(before)
            self.bank = self.bank.with_inputs(self.scaling.width, self.bank_slots())

    def bank_slots(self) -> list[Any]:
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
        first, own = self.bank.predict_slots_one(self.scaling.scale_rows(x[None], past[None])[0])
        scores, slots = np.reshape(first, count), np.reshape(own, (count, -1)) * scale + center
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
        self, x: Floats, past: Floats, targets: Floats, made: tuple[Floats, Floats] | None
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
            if made is not None:
                scores, slots = made
                own = self.scaling.scale_targets(slots.ravel()).reshape(slots.shape)
                judged = self._of_outputs(np.where(np.isnan(slots), scores[:, None], own))
            row = self.scaling.scale_rows(x[None], past[None])[0]
            target = self._of_outputs(self.scaling.scale_targets(targets))
            self.bank.learn_one(row, target, judged)
        if self.rows in self.config.restarts:
            self._restart()

    def _of_outputs(self, values: Floats) -> Any:
        """What a bank takes for values (H, ...): for one output those of the first."""
        return values if len(self.horizons) > 1 else values[0]

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

    def arrays(self) -> dict[str, Floats]:
        """The arrays that the next forecast depends on, without those of scaling and bank."""
        return {
            "first_inputs": self.first_inputs,
            "first_past": self.first_past,
            "first_targets": self.first_targets,
        }

    def state(self) -> dict[str, Floats]:
        """All arrays but those of the bank, by their names in a file."""
        own = self.scaling.statistics.state().items()
        return self.arrays() | {f"scaling/{name}": array for name, array in own}

    def restore(self, state: Mapping[str, Floats], rows: int) -> None:
        """Continue from what `state` returned, after so many rows, without the bank."""
        for name, array in self.arrays().items():
            array[...] = state[name]
        self.scaling.statistics.restore(under("scaling/", state))
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
    kept = [name for name in named if "adaptive" not in name and ", forgetting" not in name]
    place = {list(named).index(name): i for i, name in enumerate(kept)}
    found = []
    for name in kept:
        slot = named[name]
        base = None if slot.residual_of is None else place[slot.residual_of]
        found.append(replace(slot, residual_of=base))
    return found


def _or_zero(predicted: float) -> float:
    """A prediction; 0 before the first target."""
    return 0.0 if np.isnan(predicted) else float(predicted)


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

    def __init__(self, columns: Sequence[int], bank: Any, late: Any, delay: int) -> None:
        self.columns = tuple(columns)
        self.bank, self.late = bank, late
        self.rows = 0
        self.waiting = np.zeros((delay, len(self.columns) + 1))
        """Inputs and targets of the last rows: those of row n in row n % delay."""

    def residuals(self, x: Floats, y: float) -> tuple[float, float]:
        """What the model, and the late one, leave of the target of a row (d,)."""
        own, row = x[list(self.columns)], self.rows % len(self.waiting)
        if self.rows >= len(self.waiting):
            self.late.learn_one(self.waiting[row, :-1], float(self.waiting[row, -1]))
        left = y - _or_zero(self.bank.predict_one(own))
        left_late = y - _or_zero(self.late.predict_at(own[None])[0, 0])
        self.bank.learn_one(own, y)
        self.waiting[row] = [*own, y]
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


def known_table(
    X_future: Any, known: Sequence[Any], encoder: Any, forecaster: Any, remedy: str
) -> Floats:
    """(n, inputs): the inputs of known columns, from what a user gives for the next rows.

    X_future : a table with these columns at least, or an array with these columns or with all.
    """
    own = forecaster.known.columns
    if encoder is not None and is_table(X_future):
        return _from_table(read_table(X_future, "X_future"), known, encoder, own, remedy)
    array = check.floats("X_future", X_future, remedy)
    if array.ndim == 1:
        array = array[:, None] if len(known) == 1 else array[None]
    if array.ndim == 2 and array.shape[1] == forecaster.dimension != len(own):
        array = array[:, list(own)]
    if array.ndim != 2 or array.shape[1] != len(own):
        rule = f"have {len(own)} columns"
        raise check.refuse("X_future", rule, array.shape, remedy, "forecast")
    check.within_range("X_future", np.where(np.isnan(array), 0.0, array))
    return array


def _from_table(
    columns: Mapping[str, np.ndarray],
    known: Sequence[Any],
    encoder: Any,
    own: Sequence[int],
    remedy: str,
) -> Floats:
    """The same from the columns of a table; `own` are the inputs of the known ones."""
    wanted = [name if isinstance(name, str) else encoder.names[name] for name in known]
    for name in wanted:
        if name not in columns:
            rule = f"have the column {name!r}"
            raise check.refuse("X_future", rule, list(columns), remedy, "forecast")
    codes = np.full((len(columns[wanted[0]]), len(encoder.names)), np.nan)
    for index, (name, kind) in enumerate(encoder.columns):
        if name in wanted:
            codes[:, index] = codes_of(name, kind, columns[name], {})
    return np.ascontiguousarray(encoder.expand(codes)[:, list(own)])
