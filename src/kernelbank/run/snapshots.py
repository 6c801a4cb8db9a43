"""The model's function along one input, with the other inputs at usual values.

The usual value of a number is its median, of a category the most frequent one, of the time the last
one. Numbers are drawn over the range in which they were seen lately, times where there was a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..auto import AutoBank
from ..auto.inputs import NUMBER, PERIODS, encode_time
from ..auto.scaling import MEAN
from ..utils.validation import Floats
from .history import DRAWN, GRID, History, Snapshot
from .options import RunOptions
from .seen_inputs import CLOCK, STARTS

RECENT = 1024
"""Rows whose targets give the range along which a lagged target is drawn."""

MOST_INPUTS = 100
"""The most inputs along which the present function is drawn."""


MOST_LABELS = 1000
"""The most categories of a column whose names are in a page."""


class InputLayout(NamedTuple):
    """What the inputs of the model are: numbers, a time, categories."""

    target: str
    """The target that is drawn."""
    features: Sequence[str]
    """The numeric columns."""
    time: str | None
    categorical: Sequence[str]
    """The columns of categories."""
    categories: Mapping[str, Sequence[float]]
    """By column the codes of the categories that were learned, in their order."""
    output: int = 0
    """The number of the target among several."""
    outputs: int = 1
    """How many targets there are."""


def layout_of(options: RunOptions, bank: AutoBank, output: int = 0) -> InputLayout:
    """The layout of the inputs of a run's model, to draw one of its targets."""
    encoder = bank._encoder
    numbers = [] if encoder is None else [n for n, kind in encoder.columns if kind == NUMBER]
    known = {}
    if encoder is not None:
        known = {encoder.columns[i][0]: one.codes for i, one in encoder.statistics.items()}
    own, outputs = options.targets[output], len(options.targets)
    return InputLayout(own, numbers, options.time, options.categorical, known, output, outputs)


class DrawnInput(NamedTuple):
    """An input along which the function is drawn."""

    kind: str
    """number; day, week or year, in shares of the period; category, by its number; lag."""
    name: str
    place: int
    """Of a number or a lagged target its column; of a period its number."""
    labels: Sequence[str] = ()
    """The categories."""


def drawn_inputs(layout: InputLayout, bank: AutoBank) -> list[DrawnInput]:
    """All inputs along which the function can be drawn, at most MOST_INPUTS."""
    found = [DrawnInput("number", name, k) for k, name in enumerate(layout.features)]
    if layout.time:
        found += [DrawnInput(p, f"{layout.time}: time of {p}", k) for k, p in enumerate(PERIODS)]
    for k, column in enumerate(layout.categorical):
        found.append(DrawnInput("category", column, k, _labels(bank, layout, column)))
    lags = bank.lags if bank.task == "regression" else 0  # labels have no order
    for k in range(lags):
        place = layout.outputs * k + layout.output
        found.append(DrawnInput("lag", f"{layout.target}, {k + 1} before", place))
    return [found[k] for k in _some(found, MOST_INPUTS)]


def _labels(bank: AutoBank, layout: InputLayout, column: str) -> list[str]:
    """The names of the categories of a column, the first MOST_LABELS."""
    codes, encoder = layout.categories.get(column, ()), bank._encoder
    if encoder is None:
        return []
    known = encoder.statistics[encoder.names.index(column)] if codes else None
    return [] if known is None else [known.name(code) for code in codes[:MOST_LABELS]]


def _some(inputs: Sequence[DrawnInput], most: int) -> list[int]:
    """The indices of at most so many inputs: the first of each kind, the second of each, ..."""
    groups = [_group(one) for one in inputs]
    order = sorted(range(len(inputs)), key=lambda k: (groups[:k].count(groups[k]), k))
    return sorted(order[:most])


def _group(one: DrawnInput) -> str:
    return "time" if one.kind in PERIODS else one.kind


def kept_inputs(inputs: Sequence[DrawnInput]) -> list[int]:
    """The indices of the inputs along which snapshots are kept."""
    return _some(inputs, DRAWN)


def take_snapshot(
    bank: AutoBank, history: History, layout: InputLayout, coverage: float, *, kept: bool
) -> Snapshot | None:
    """The present function along the inputs that are kept, or along all of them.

    None before the model has learned. Lagged targets that are not drawn along keep their present
    values.
    """
    model = bank._model
    if model is None or not model.banks:
        return None
    inputs = drawn_inputs(layout, bank)
    if kept:
        inputs = [inputs[k] for k in kept_inputs(inputs)]
    ranges = model.scaling.input_ranges()  # (d, 3): median, low, high
    values = np.full((len(inputs), 4, GRID), np.nan)
    usual = _usual_row(bank, layout, history, ranges[:, 0])
    rows = np.tile(usual, (len(values) * GRID, 1))
    lagged = np.tile(model.past_row(), (len(rows), 1))
    for k, one in enumerate(inputs):
        own = slice(k * GRID, (k + 1) * GRID)
        if one.kind == "number":
            low, high = ranges[one.place, 1:]
            if one.place < len(history.seen.ranges):
                low, high = np.clip([low, high], *history.seen.ranges[one.place])
            values[k, 0] = rows[own, one.place] = np.linspace(low, high, GRID)
        elif one.kind == "lag":
            values[k, 0] = lagged[own, one.place] = np.linspace(*_target_range(history), GRID)
        elif one.kind == "category":
            _step_through_categories(bank, one.name, layout, values[k, 0], rows[own])
        else:
            seen = history.seen.clock[one.place] > 0
            shares = (np.arange(CLOCK) + 0.5) / CLOCK
            values[k, 0] = np.where(seen, shares, np.nan)
            waves = slice(2 * one.place, 2 * one.place + 2)
            first = len(layout.features) + 2 * one.place
            seconds = STARTS[one.kind] + shares * PERIODS[one.kind]
            rows[own, first : first + 2] = [encode_time(float(s))[waves] for s in seconds]
    if len(values):
        predictions = model.predict_rows(rows, lagged, 0.5 * (1 - coverage))
        if bank.task == "classification":
            predictions = np.repeat(predictions[:, :1], 3, axis=1)
        else:
            predictions = predictions[:, 3 * layout.output : 3 * layout.output + 3]
        values[:, 1:] = predictions.reshape(len(values), GRID, 3).transpose(0, 2, 1)
        values[:, 1:][np.isnan(np.repeat(values[:, :1], 3, axis=1))] = np.nan
    return Snapshot(history.rows, values)


def _usual_row(bank: AutoBank, layout: InputLayout, history: History, medians: Floats) -> Floats:
    """(d,): a usual value for every input."""
    row = medians.copy()
    times, first = history.recent["time"], len(layout.features)
    if layout.time and len(times) and np.isfinite(times[-1]):
        row[first : first + 2 * len(PERIODS)] = encode_time(float(times[-1]))
    for column in layout.categorical:
        frequent = _frequent(bank, column, layout)
        if frequent and bank._encoder is not None:
            bank._encoder.set_category(column, layout.categories[column][frequent[0]], row)
    return row


def _frequent(bank: AutoBank, column: str, layout: InputLayout) -> list[int]:
    """The numbers of the categories of a column, the most frequent one first.

    The mean of a category's own input is its share of the rows; others have counts up to a limit.
    """
    encoder, model = bank._encoder, bank._model
    codes = layout.categories.get(column, ())[:MOST_LABELS]
    if encoder is None or model is None or not codes:
        return []
    index = encoder.names.index(column)
    known, shares = encoder.statistics[index], model.scaling.columns[:, MEAN]
    own = {code: number for (at, code), number in encoder._category_inputs.items() if at == index}

    def rank(k: int) -> tuple[float, float, int]:
        number = own.get(codes[k])
        share = 0.0 if number is None else float(shares[encoder.first_category + number])
        return -share, -known.count(codes[k]), k

    return sorted(range(len(codes)), key=rank)


def _step_through_categories(
    bank: AutoBank, column: str, layout: InputLayout, numbers: Floats, rows: Floats
) -> None:
    """Let rows (GRID, d) have one category each, the most frequent ones; `numbers` are theirs."""
    frequent = _frequent(bank, column, layout)[:GRID]
    for line, k in enumerate(sorted(frequent)):
        numbers[line] = k
        if bank._encoder is not None:
            bank._encoder.set_category(column, layout.categories[column][k], rows[line])


def _target_range(history: History) -> tuple[float, float]:
    """The lowest and the highest of the recent targets."""
    recent = slice(-max(1, RECENT // history.stride), None)
    found: list[Floats] = [history.extremes[f"target_{end}"][recent] for end in ("low", "high")]
    return float(found[0].min()), float(found[1].max())
