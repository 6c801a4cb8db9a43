"""Rows of a source to codes of a model's columns; `auto.inputs` makes inputs of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..auto.inputs import CATEGORY, NUMBER, TIME, category_code
from ..errors import RunRefused
from ..io.cells import MISSING, MissingValues, parse_time, shown_cell
from ..io.sinks import Row
from ..io.sources import RejectedRow, RowBlock
from ..utils.validation import Floats
from .notes import DataNotes
from .options import ID, PROBABILITY, RunOptions, as_label, prediction_columns

Targets = tuple[Any, ...]
"""The targets of a row: K numbers, None where one is missing, or one label."""


class Batch(NamedTuple):
    """Rows that the model takes at once: all with a target, or a single one without."""

    rows: list[int]
    """(n,) their indices in the block; no bad row is between them."""
    first: int
    """The number of row 0 of the block in the source."""
    X: Floats
    """(n, columns) codes: numbers first, then the time in seconds since 1970, then categories."""
    targets: Sequence[Targets | None]
    """(n,) [None] where there is none."""
    texts: Mapping[float, str]
    """Categories by their codes."""

    def part(self, begin: int, end: int) -> Batch:
        """Rows `begin` to `end` of the batch."""
        cut = slice(begin, end)
        return Batch(self.rows[cut], self.first, self.X[cut], self.targets[cut], self.texts)


class FeatureEncoder:
    """Chooses the columns of the source that the model sees, and writes them as codes."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._features = None if options.features is None else list(options.features)
        self.notes = DataNotes(options)
        self._missing = MissingValues.of(options.missing) if options.missing else None

    # --- columns --------------------------------------------------------------------------------

    @property
    def features(self) -> list[str]:
        """The numeric columns, once the source's columns are known."""
        return self._features or []

    def set_columns(self, columns: Sequence[str]) -> None:
        """Check the options against the source's columns, and choose the features."""
        options = self._options
        used = [("--target", name) for name in options.targets]
        used += [("--categorical", name) for name in options.categorical]
        used += [("--time", options.time)] if options.time else []
        reserved = [name for _, name in used]
        used += [("--features", name) for name in self.features]
        for option, name in used:
            if name not in columns:
                raise RunRefused(
                    f"{option}: there is no column {name!r}. There are: {listed_columns(columns)}."
                )
        names = [name for _, name in used]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            flags = " and ".join(dict.fromkeys(option for option, name in used if name == twice))
            raise RunRefused(f"{flags}: column {twice!r} is named twice. Use it once.")
        if self._features is None:
            self._features = [name for name in columns if name not in reserved]
        usable = [*self._features, *([options.time] if options.time else [])]
        for name in options.known:
            if name not in usable:
                raise RunRefused(
                    f"--known: {name!r} is not a numeric input or the time. There are: "
                    f"{', '.join(usable) or 'none'}."
                )
        past = options.lags or options.seasons
        if not (self._features or options.categorical or options.time is not None or past):
            raise RunRefused(
                "There are no inputs beside the target. Use --lags or --seasons for its past."
            )

    @property
    def columns(self) -> list[tuple[str, str]]:
        """The columns of the codes, with their kinds: numbers, the time, categories."""
        options = self._options
        columns = [(name, NUMBER) for name in self.features]
        columns += [(options.time, TIME)] if options.time else []
        return columns + [(name, CATEGORY) for name in options.categorical]

    # --- rows -----------------------------------------------------------------------------------

    def encode(self, block: RowBlock) -> tuple[list[Batch], list[RejectedRow]]:
        """The rows of a block in batches, and the rows that cannot be used."""
        options = self._options
        regression = options.task == "regression"
        several = len(options.targets) > 1
        numeric = [*self.features, *(options.targets if regression else [])]
        text = [*options.categorical, *([options.time] if options.time else [])]
        text += [] if regression else options.targets
        inputs_may_miss = options.allow_missing or options.missing
        may_miss = [*self.features, *options.categorical] if inputs_may_miss else []
        may_miss += options.targets if options.predict_missing or several else []
        parsed = block.parse(numeric, text, allow_missing=may_miss, missing=self._missing)
        self.notes.watch(numeric, parsed.numbers)
        rejected = list(parsed.rejected)
        usable = np.ones(len(parsed), dtype=bool)
        codes = np.full((len(parsed), len(self.columns)), np.nan)
        codes[:, : len(self.features)] = parsed.numbers[:, : len(self.features)]
        if options.time:
            for i, cell in enumerate(parsed.texts[options.time]):
                try:
                    codes[i, len(self.features)] = parse_time(
                        cell, options.time_format, options.zone
                    )
                except ValueError as error:
                    usable[i] = False
                    row = int(parsed.rows[i])
                    where, value = block.where(row), shown_cell(str(cell))
                    rejected.append(RejectedRow(row, where, options.time, value, str(error)))
            indices = np.flatnonzero(usable)
            times = codes[indices, len(self.features)].tolist()
            self.notes.watch_times(block, parsed.rows[indices].tolist(), times)
        texts: dict[float, str] = {}
        for column, name in enumerate(
            options.categorical, codes.shape[1] - len(options.categorical)
        ):
            for i, category in enumerate(parsed.texts[name]):
                if category is not None:
                    codes[i, column] = code = category_code(category)
                    texts[code] = category
        targets: list[Targets | None]
        if regression:
            numbers = [
                tuple(None if math.isnan(y) else y for y in row)
                for row in parsed.numbers[:, len(self.features) :].tolist()
            ]
            for i, row_targets in enumerate(numbers):
                wrong = self._wrong_target(row_targets) if usable[i] else None
                if wrong is not None:
                    usable[i] = False
                    row = int(parsed.rows[i])
                    rejected.append(RejectedRow(row, block.where(row), *wrong))
            targets = [None if set(row) == {None} else row for row in numbers]
        else:
            texts_of = parsed.texts[options.targets[0]]
            targets = [None if text is None else (as_label(text),) for text in texts_of]
        rejected.sort(key=lambda one: one.row)
        cuts = {one.row for one in rejected}
        rows = parsed.rows.tolist()
        batches = [
            Batch(
                [rows[i] for i in indices],
                block.first + 1,
                codes[indices],
                [targets[i] for i in indices],
                texts,
            )
            for indices in _cut(rows, targets, usable, cuts)
        ]
        return batches, rejected

    def labels(self, block: RowBlock) -> list[str]:
        """The different labels in a block, in their order; none for numbers."""
        target, *_ = self._options.targets
        if self._options.task == "regression":
            return []
        parsed = block.parse(text=[target], allow_missing=True, missing=self._missing)
        cells = parsed.texts[target]
        return list(dict.fromkeys(as_label(cell) for cell in cells if cell is not None))

    def _wrong_target(self, targets: tuple[float | None, ...]) -> tuple[str, str, str] | None:
        """Column, value and reason of a target that cannot be used; None if all can.

        Rows without one are predicted if the options say so; of several targets some may be
        missing.
        """
        options = self._options
        if len(targets) > 1 and set(targets) == {None} and not options.predict_missing:
            return options.targets[0], "", MISSING
        for name, target in zip(options.targets, targets, strict=True):
            reason = options.beyond_bounds(target)
            if reason:
                return name, f"{target:.12g}", reason
        return None


def _cut(
    rows: list[int], targets: Sequence[Targets | None], usable: np.ndarray, cuts: set[int]
) -> Iterator[list[int]]:
    """The usable rows, cut at bad rows and around rows without a target."""
    collected: list[int] = []
    for i in np.flatnonzero(usable).tolist():
        before = rows[collected[-1]] if collected else 0
        cut = any(row in cuts for row in range(before + 1, rows[i]))
        if collected and (cut or targets[i] is None):
            yield collected
            collected = []
        collected.append(i)
        if targets[i] is None:
            yield collected
            collected = []
    if collected:
        yield collected


def listed_columns(columns: Sequence[str]) -> str:
    """The names of a source's columns for a message."""
    names = [n if n.isprintable() and "," not in n else repr(n) for n in columns[:20]]
    return (", ".join(names) + (", ..." if len(columns) > 20 else "")) or "none"


class KeptColumns:
    """Copies columns of the source as text, unchanged; missing values are None."""

    def __init__(self, options: RunOptions) -> None:
        self._columns = prediction_columns(options)
        self._labels = options.task == "classification"
        self._names = options.keep
        self._with_ids = bool(options.keep) and options.is_broker
        if self._with_ids:
            self._names = tuple(name for name in options.keep if name != ID)

    def check(self, columns: Sequence[str]) -> None:
        """Refuse columns that do not exist, or would stand in the predictions twice."""
        taken = [*self._columns, *([ID] if self._with_ids else [])]
        taken += [name for name in self._names if self._labels and name.startswith(PROBABILITY)]
        for name in self._names:
            if name not in columns:
                raise RunRefused(
                    f"--keep: there is no column {name!r}. There are: {listed_columns(columns)}."
                )
            if name in taken:
                raise RunRefused(
                    f"--keep: the predictions have a column {name!r} already. Leave it out of "
                    "--keep, or rename it in the source."
                )
            taken.append(name)

    def cells(self, block: RowBlock) -> list[Row]:
        """For every row of a block, what is copied into its prediction."""
        cells = block.copied(self._names)
        if self._with_ids:
            return [(block.identifier(row), *copies) for row, copies in enumerate(cells)]
        return cells
