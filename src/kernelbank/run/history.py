"""The history of a run, from which charts are drawn, in bounded memory.

A *point* holds sums and extremes over a number of consecutive rows. When there are POINTS points,
neighbours are merged and later points have twice as many rows: so there are between POINTS / 2 and
POINTS points, all with the same number of rows except the last. *Snapshots* of the model's function
along its inputs are thinned out in the same way. Beside them are the last rows, the ranges of the
inputs and the scores of labels. All of it depends on the rows alone, not on how they came in
blocks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..auto import AutoBank
from ..auto.inputs import NUMBER, PERIODS, CategoryStatistics, encode_time
from ..auto.scaling import MEAN
from ..utils.validation import Floats
from . import Saved
from .options import RunOptions
from .scores import EXTREMES, TOTALS, LabelScores
from .state_folder import Shapes, checked_arrays, require, saved_count

RECENT = 200
"""The most of the last rows."""

FIELDS = ("time", "target", "prediction", "low", "high", "baseline")
"""Of each row: its time in seconds since 1970, its target, the prediction, the ends of its interval
and the prediction of the baseline (last value); for labels the numbers of the classes, and twice
the probability of the predicted one. NaN where there is none."""


WORST = 20
"""The most rows with the largest losses."""


class ChosenRows:
    """Some rows of a run: the last ones, or those with the largest losses.

    fields : the names of the columns.
    most : the most rows.
    """

    def __init__(self, fields: tuple[str, ...], most: int) -> None:
        self._fields, self._most = fields, most
        self.rows = np.zeros((0, len(fields)))

    def __getitem__(self, field: str) -> Floats:
        """(rows,): one field of all rows."""
        return self.rows[:, self._fields.index(field)]

    def add_last(self, rows: Floats) -> None:
        """Add rows (n, fields), and keep the last ones."""
        self.rows = np.vstack([self.rows, rows])[-self._most :]

    def add_worst(self, rows: Floats) -> None:
        """Add rows (n, fields), and keep those with the largest first field, the largest first.

        Of equal ones the first are kept. A row whose loss is 0 was not scored, or was no loss.
        """
        rows = np.vstack([self.rows, rows[rows[:, 0] > 0]])
        self.rows = rows[np.argsort(-rows[:, 0], kind="stable")[: self._most]]


MOST_CATEGORIES = 1000
"""Of all columns; the rows of further ones are summed up by column."""

NO_CATEGORY, FURTHER = -np.inf, np.inf
"""Stand for the code of a missing category, and of all further ones."""


class CategoryErrors:
    """Sums over the scored rows of each category."""

    def __init__(self) -> None:
        self.sums: dict[tuple[int, float], list[float]] = {}
        """By the column's number and the category's code: rows, losses, losses of the baseline."""

    def add(self, codes: Floats, losses: Floats) -> None:
        """Add n rows: codes (n, C), NaN where there is none; losses, and the baseline's (n, 2)."""
        for row, (loss, baseline_loss) in zip(codes.tolist(), losses.tolist(), strict=True):
            for column, code in enumerate(row):
                key = (column, NO_CATEGORY if math.isnan(code) else code)
                if key not in self.sums and len(self.sums) >= MOST_CATEGORIES:
                    key = (column, FURTHER)
                sums = self.sums.setdefault(key, [0.0, 0.0, 0.0])
                sums[0] += 1.0
                sums[1] += loss
                sums[2] += baseline_loss

    def array(self) -> Floats:
        """(categories, 5): keys and sums."""
        rows = [[*key, *sums] for key, sums in self.sums.items()]
        return np.array(rows).reshape(len(rows), 5)

    @classmethod
    def restore(cls, rows: Floats) -> CategoryErrors:
        """What `array` returned, whose numbers are checked."""
        are_sums = (rows[:, [0, 2, 3, 4]] >= 0).all()
        require(are_sums, "the errors by category of its history are impossible.")
        errors = cls()
        errors.sums = {(int(row[0]), row[1]): row[2:] for row in rows.tolist()}
        return errors


CLOCK = 24
"""Into how many equal parts each period of time is cut: a day into hours."""

_MONDAY = 345_600.0
"""Seconds from the beginning of 1970, a Thursday, to a Monday."""

STARTS = {"day": 0.0, "week": _MONDAY, "year": 0.0}
"""Seconds since 1970 at which a period starts."""


class SeenInputs:
    """The range of every numeric input, and the parts of day, week and year with any row."""

    def __init__(self) -> None:
        self.ranges = np.zeros((0, 2))
        """(numeric inputs, 2): lowest and highest value; infinite before there is one."""
        self.clock = np.zeros((len(PERIODS), CLOCK))
        """(periods, CLOCK): 1 where there was a row."""

    def add(self, inputs: Floats, times: Floats) -> None:
        """Add n rows: numeric inputs (n, d), and times (n,), NaN where there are none."""
        if len(self.ranges) < inputs.shape[1]:
            self.ranges = np.tile([np.inf, -np.inf], (inputs.shape[1], 1))
        usual = inputs + 0.0  # a zero without a sign, whatever the order of the rows
        self.ranges[:, 0] = np.fmin(self.ranges[:, 0], np.fmin.reduce(usual))
        self.ranges[:, 1] = np.fmax(self.ranges[:, 1], np.fmax.reduce(usual))
        times = times[~np.isnan(times)]
        for seen, (name, period) in zip(self.clock, PERIODS.items(), strict=True):
            share = np.mod(times - STARTS[name], period) / period
            seen[np.minimum((share * CLOCK).astype(int), CLOCK - 1)] = 1.0

    def arrays(self) -> dict[str, Floats]:
        return {"seen_ranges": self.ranges.copy(), "seen_clock": self.clock.copy()}

    @classmethod
    def restore(cls, state: Mapping[str, Floats]) -> SeenInputs:
        """What `arrays` returned, checked."""
        seen = cls()
        shapes: Shapes = {"seen_ranges": (range(_MOST_ROWS), 2), "seen_clock": seen.clock.shape}
        seen.ranges, seen.clock = checked_arrays(state, shapes, "the history").values()
        return seen


POINTS = 512
"""The most points; an even number."""

SNAPSHOTS = 32
"""The most snapshots after the early ones; an even number."""

GRID = CLOCK
"""The most values of an input that a snapshot has."""

DRAWN = 12
"""The most inputs of a snapshot."""

DRAWN_TARGETS = 8
"""The most targets whose function is drawn along inputs, and that a page shows."""

EARLY = (64, 128, 256, 512)
"""Rows after which a snapshot is always taken: most is learned at the beginning."""

FIRST_SNAPSHOT = 1024
"""Rows between the later snapshots, before they are thinned out."""

_SIGNS = np.array([-1.0 if name.endswith("_low") else 1.0 for name in EXTREMES])
"""The lowest value is kept as the highest of the negative values."""

_MOST_ROWS = 2**53


class History:
    """Points and snapshots of a run whose model has P = `slots` slots."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.stride = 1
        self.rows = 0
        self._sums = np.zeros((POINTS, len(TOTALS) + 2 * slots))
        self._tops = np.full((POINTS, len(EXTREMES) + slots), -np.inf)
        self.snapshots: list[Snapshot] = []
        self.snapshot_stride = FIRST_SNAPSHOT
        self.recent = ChosenRows(FIELDS, RECENT)
        self.worst = ChosenRows(("loss", "row", *FIELDS), WORST)
        self.categories = CategoryErrors()
        self.seen = SeenInputs()
        self.labels = LabelScores()

    @property
    def points(self) -> int:
        """The number of points."""
        return -(-self.rows // self.stride)

    @property
    def totals(self) -> dict[str, Floats]:
        """By name, (points,): the sums over the rows of each point."""
        return {name: self._sums[: self.points, i] for i, name in enumerate(TOTALS)}

    @property
    def weights(self) -> Floats:
        """(points, P): the mean weights over the rows of each point."""
        sums = self._sums[: self.points, len(TOTALS) : len(TOTALS) + self.slots]
        return np.asarray(sums / self._sums[: self.points, :1])

    @property
    def losses(self) -> Floats:
        """(points, P): the summed losses of every slot alone."""
        return self._sums[: self.points, len(TOTALS) + self.slots :]

    @property
    def extremes(self) -> dict[str, Floats]:
        """By name, (points,): the extremes over the rows of each point; infinite without any."""
        extremes = _SIGNS * self._tops[: self.points, : len(EXTREMES)]
        return {name: extremes[:, i] for i, name in enumerate(EXTREMES)}

    @property
    def highest_weights(self) -> Floats:
        """(points, P): the highest weight of each slot in each point."""
        return self._tops[: self.points, len(EXTREMES) :]

    def add(self, totals: Floats, extremes: Floats, weights: Floats, losses: Floats) -> None:
        """Add n rows: (n, TOTALS), (n, EXTREMES), (n, P) and (n, P)."""
        rows = np.hstack([totals, weights, losses])
        tops = np.hstack([_SIGNS * extremes, weights])
        done = 0
        while done < len(rows):
            if self.rows == POINTS * self.stride:
                self._merge()
            point, inside = divmod(self.rows, self.stride)
            added = rows[done : done + self.stride - inside]
            # `accumulate` adds row by row, wherever a block begins: the same bits.
            self._sums[point] = np.add.accumulate(np.vstack([self._sums[point], added]))[-1]
            highest = np.fmax.reduce(tops[done : done + len(added)])  # ignores NaN
            self._tops[point] = np.fmax(self._tops[point], highest)
            self.rows += len(added)
            done += len(added)

    def _merge(self) -> None:
        half = POINTS // 2
        self._sums[:half] = self._sums[::2] + self._sums[1::2]
        self._sums[half:] = 0.0
        self._tops[:half] = np.fmax(self._tops[::2], self._tops[1::2])
        self._tops[half:] = -np.inf
        self.stride *= 2

    # --- snapshots ------------------------------------------------------------------------------

    @property
    def until_snapshot(self) -> int:
        """The number of rows until the next snapshot is due."""
        later = self.snapshot_stride - self.rows % self.snapshot_stride
        return min([row - self.rows for row in EARLY if row > self.rows] + [later])

    def due(self, row: int) -> bool:
        """Whether a snapshot is due after row `row`."""
        return row in EARLY or (row > 0 and row % self.snapshot_stride == 0)

    def add_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot that is due; thin out the others if there are too many."""
        self.snapshots.append(snapshot)
        if sum(s.row not in EARLY for s in self.snapshots) > SNAPSHOTS:
            self.snapshot_stride *= 2
            self.snapshots = [s for s in self.snapshots if self.due(s.row)]

    # --- in the checkpoint ----------------------------------------------------------------------

    def to_json(self) -> dict[str, object]:
        return {
            "slots": self.slots,
            "stride": self.stride,
            "rows": self.rows,
            "snapshot_stride": self.snapshot_stride,
            "snapshots": [s.row for s in self.snapshots],
        }

    def arrays(self) -> dict[str, Floats]:
        arrays = {
            "sums": self._sums[: self.points].copy(),
            "tops": self._tops[: self.points].copy(),
            **{f"snapshot{number}": taken.values for number, taken in enumerate(self.snapshots)},
            "recent": self.recent.rows.copy(),
            "worst": self.worst.rows.copy(),
            "categories": self.categories.array(),
        }
        return arrays | self.seen.arrays() | self.labels.arrays()

    @classmethod
    def restore(cls, facts: Saved, state: Mapping[str, Floats], slots: int) -> History:
        """The history from what `to_json` and `arrays` returned, after checking all of it.

        slots : of the model whose history it must be.
        """
        history = cls(slots)
        other = "its history belongs to another model."
        require(type(facts["slots"]) is int and facts["slots"] == slots, other)
        rows = history.rows = saved_count(facts["rows"], "rows of a history")
        stride = history.stride = _doubled(facts["stride"], 1)
        history.snapshot_stride = _doubled(facts["snapshot_stride"], FIRST_SNAPSHOT)
        points, taken = history.points, facts["snapshots"]
        possible = points <= POINTS and (stride == 1 or points > POINTS // 2)
        require(possible, "its history has an impossible length.")
        require(len(taken) <= SNAPSHOTS + len(EARLY), "it has too many snapshots.")
        for before, row in zip([0, *taken], taken, strict=False):
            is_due = before < saved_count(row, "rows of a snapshot") <= rows and history.due(row)
            require(is_due, "a snapshot is at a row at which none is due.")
        shapes: Shapes = {
            "sums": (points, len(TOTALS) + 2 * slots),
            "tops": (points, len(EXTREMES) + slots),
            "recent": (range(RECENT + 1), len(FIELDS)),
            "worst": (range(WORST + 1), 2 + len(FIELDS)),
            "categories": (range(_MOST_ROWS), 5),
        }
        snapshots = {f"snapshot{number}": row for number, row in enumerate(taken)}
        shapes |= dict.fromkeys(snapshots, (range(DRAWN + 1), 4, GRID))
        # A file of an earlier version has neither the worst rows nor the categories.
        state = {"worst": history.worst.rows, "categories": history.categories.array(), **state}
        arrays = checked_arrays(state, shapes, "its history")
        history._sums[:points], history._tops[:points] = arrays["sums"], arrays["tops"]
        counts = np.minimum(rows - stride * np.arange(points), stride)
        require(
            (arrays["sums"][:, 0] == counts).all(),
            "the points of its history have wrong numbers of rows.",
        )
        history.snapshots = [Snapshot(row, arrays[name]) for name, row in snapshots.items()]
        history.recent.rows, history.worst.rows = arrays["recent"], arrays["worst"]
        history.categories = CategoryErrors.restore(arrays["categories"])
        history.seen = SeenInputs.restore(state)
        history.labels = LabelScores.restore(state)
        return history


def _doubled(value: object, first: int) -> int:
    """A whole number that is `first` times a power of two, checked."""
    times, rest = divmod(saved_count(value, "rows"), first)
    is_power = times > 0 and not times & (times - 1)
    require(is_power and not rest, f"its history claims {value!r} rows.")
    return first * times


class Snapshot:
    """The function along some inputs after row `row`, with the other inputs at their medians.

    values : (inputs, 4, GRID): the input, the prediction, and the ends of its interval; for
        classification the probability of the first class, three times. NaN where the input has not
        been. `FunctionCurves` says which inputs they are.
    """

    def __init__(self, row: int, values: Floats) -> None:
        self.row = row
        self.values = values


TARGET_ROWS = 1024
"""Rows whose targets give the range along which a lagged target is drawn."""

FAR_SHARE = 0.02
"""The share of these targets, at either end, that the range leaves out."""

MOST_INPUTS = 100
"""The most inputs along which the present function is drawn."""


MOST_LABELS = 1000
"""The most categories of a column whose names are in a page."""


# --- the model's function along one input ---


class DrawnInput(NamedTuple):
    """An input along which the function is drawn."""

    kind: str
    """number; day, week or year, in shares of the period; category, by its number; lag."""
    name: str
    place: int
    """Of a number or a lagged target its column; of a period its number."""
    labels: Sequence[str] = ()
    """The categories."""


def chosen_of_each_kind(inputs: Sequence[DrawnInput], most: int) -> list[int]:
    """The indices of at most so many inputs: the first of each kind, the second of each, ..."""
    kinds = ["time" if drawn.kind in PERIODS else drawn.kind for drawn in inputs]
    order = sorted(range(len(inputs)), key=lambda k: (kinds[:k].count(kinds[k]), k))
    return sorted(order[:most])


class FunctionCurves:
    """The model's function along each of its inputs, for one of its targets.

    The other inputs have usual values: of a number its median, of a category the most frequent one,
    of the time the last one, of lagged targets the present ones. Numbers are drawn over the range
    in which they were seen, times where there was a row.
    """

    def __init__(self, options: RunOptions, bank: AutoBank, output: int = 0) -> None:
        self._options, self._bank, self._output = options, bank, output
        self._columns = [] if bank.encoder is None else bank.encoder.columns
        self._numbers = [name for name, kind in self._columns if kind == NUMBER]
        inputs = [DrawnInput("number", name, k) for k, name in enumerate(self._numbers)]
        if options.time:
            for k, period in enumerate(PERIODS):
                inputs.append(DrawnInput(period, f"{options.time}: time of {period}", k))
        for k, column in enumerate(options.categorical):
            statistics, codes = self._categories(column)
            labels = [statistics.name(code) for code in codes] if statistics else []
            inputs.append(DrawnInput("category", column, k, labels))
        lags = bank.lags if bank.task == "regression" else 0  # labels have no order
        for k in range(lags):
            name = f"{options.targets[output]}, {k + 1} before"
            inputs.append(DrawnInput("lag", name, len(options.targets) * k + output))
        self.inputs = [inputs[k] for k in chosen_of_each_kind(inputs, MOST_INPUTS)]
        """Those along which the present function is drawn."""
        self.recorded = chosen_of_each_kind(self.inputs, DRAWN)
        """The indices of those along which snapshots are recorded."""

    def snapshot(self, history: History, *, recorded: bool) -> Snapshot | None:
        """The present function along recorded inputs, or all; None before the model has learned."""
        bank, model = self._bank, self._bank.model
        if model is None or not model.banks:
            return None
        inputs = [self.inputs[k] for k in self.recorded] if recorded else self.inputs
        ranges = model.scaling.input_ranges()  # (d, 3): median, low, high
        values = np.full((len(inputs), 4, GRID), np.nan)
        usual = self._usual_row(history, ranges[:, 0])
        rows = np.tile(usual, (len(values) * GRID, 1))
        lagged = np.tile(model.core.past_row(), (len(rows), 1))
        for k, drawn in enumerate(inputs):
            grid = slice(k * GRID, (k + 1) * GRID)
            if drawn.kind == "number":
                low, high = ranges[drawn.place, 1:]
                seen = history.seen.ranges[drawn.place : drawn.place + 1]
                if len(seen) and np.isfinite(seen).all():  # it has had a value
                    low, high = np.clip([low, high], *seen[0])
                values[k, 0] = rows[grid, drawn.place] = np.linspace(low, high, GRID)
            elif drawn.kind == "lag":
                low, high = _target_range(history)
                values[k, 0] = lagged[grid, drawn.place] = np.linspace(low, high, GRID)
            elif drawn.kind == "category":
                frequent = sorted(self._frequent(drawn.name)[:GRID])
                for number, (category, row) in enumerate(zip(frequent, rows[grid], strict=False)):
                    values[k, 0, number] = category
                    self._set_category(drawn.name, category, row)
            else:
                seen = history.seen.clock[drawn.place] > 0
                shares = (np.arange(CLOCK) + 0.5) / CLOCK
                values[k, 0] = np.where(seen, shares, np.nan)
                waves = slice(2 * drawn.place, 2 * drawn.place + 2)
                first = len(self._numbers) + 2 * drawn.place
                seconds = STARTS[drawn.kind] + shares * PERIODS[drawn.kind]
                rows[grid, first : first + 2] = [encode_time(float(s))[waves] for s in seconds]
        if len(values):
            predictions = model.predict_rows(rows, lagged, 0.5 * (1 - self._options.coverage))
            if bank.task == "classification":
                predictions = np.repeat(predictions[:, :1], 3, axis=1)
            else:
                predictions = predictions[:, 3 * self._output : 3 * self._output + 3]
            values[:, 1:] = predictions.reshape(len(values), GRID, 3).transpose(0, 2, 1)
            values[:, 1:][np.isnan(np.repeat(values[:, :1], 3, axis=1))] = np.nan
        return Snapshot(history.rows, values)

    def _usual_row(self, history: History, medians: Floats) -> Floats:
        """(d,): a usual value for every input."""
        row = medians.copy()
        times, first = history.recent["time"], len(self._numbers)
        if self._options.time and len(times) and np.isfinite(times[-1]):
            row[first : first + 2 * len(PERIODS)] = encode_time(float(times[-1]))
        for column in self._options.categorical:
            for category in self._frequent(column)[:1]:
                self._set_category(column, category, row)
        return row

    def _categories(self, column: str) -> tuple[CategoryStatistics | None, Sequence[float]]:
        """What is known of a column of categories, and the codes of the first MOST_LABELS."""
        encoder = self._bank.encoder
        if encoder is None:
            return None, ()
        statistics = encoder.statistics_of(column)
        return statistics, statistics.codes[:MOST_LABELS]

    def _set_category(self, column: str, number: int, row: Floats) -> None:
        assert self._bank.encoder is not None
        self._bank.encoder.set_category(column, self._categories(column)[1][number], row)

    def _frequent(self, column: str) -> list[int]:
        """The numbers of the categories of a column, the most frequent one first.

        The mean of a category's own input is its share of the rows; others have counts up to a
        limit.
        """
        encoder, model = self._bank.encoder, self._bank.model
        statistics, codes = self._categories(column)
        if encoder is None or model is None or statistics is None:
            return []
        shares, inputs = model.scaling.columns[:, MEAN], statistics.inputs

        def rank(k: int) -> tuple[float, float, int]:
            share = float(shares[inputs[codes[k]]]) if codes[k] in inputs else 0.0
            return -share, -statistics.count(codes[k]), k

        return sorted(range(len(codes)), key=rank)


def _target_range(history: History) -> tuple[float, float]:
    """From the lowest to the highest of the recent targets, but for a few far ones."""
    recent = slice(-max(1, TARGET_ROWS // history.stride), None)
    ends: list[Floats] = [history.extremes[f"target_{end}"][recent] for end in ("low", "high")]
    low, high = (end[np.isfinite(end)] for end in ends)
    if not len(low):
        return math.nan, math.nan
    return float(np.quantile(low, FAR_SHARE)), float(np.quantile(high, 1 - FAR_SHARE))
