"""Rows of a source to codes of a model's columns; `auto.inputs` makes inputs of them."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Mapping, Sequence
from itertools import groupby
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
        is_regression = options.task == "regression"
        numbers, times = len(self.features), [options.time] if options.time else []
        numeric = [*self.features, *(options.targets if is_regression else [])]
        text = [*options.categorical, *times, *([] if is_regression else options.targets)]
        inputs_may_miss = options.allow_missing or options.missing
        may_miss = [*self.features, *options.categorical] if inputs_may_miss else []
        if options.predict_missing or len(options.targets) > 1:
            may_miss += options.targets
        parsed = block.parse(numeric, text, allow_missing=may_miss, missing=self._missing)
        self.notes.watch(numeric, parsed.numbers)
        rejected, rows = list(parsed.rejected), parsed.rows.tolist()
        usable = np.ones(len(parsed), dtype=bool)

        def reject(i: int, column: str, value: str, reason: str) -> None:
            usable[i] = False
            rejected.append(RejectedRow(rows[i], block.where(rows[i]), column, value, reason))

        codes = np.full((len(parsed), len(self.columns)), np.nan)
        codes[:, :numbers] = parsed.numbers[:, :numbers]
        for name in times:
            for i, cell in enumerate(parsed.texts[name]):
                try:
                    codes[i, numbers] = parse_time(cell, options.time_format, options.zone)
                except ValueError as error:
                    reject(i, name, shown_cell(str(cell)), str(error))
            seen = np.flatnonzero(usable)
            self.notes.watch_times(block, parsed.rows[seen].tolist(), codes[seen, numbers].tolist())
        texts: dict[float, str] = {}
        for column, name in enumerate(options.categorical, numbers + len(times)):
            for i, category in enumerate(parsed.texts[name]):
                if category is not None:
                    codes[i, column] = code = category_code(category)
                    texts[code] = category
        targets: list[Targets | None] = []
        if is_regression:
            for i, values in enumerate(parsed.numbers[:, numbers:].tolist()):
                row = tuple(None if math.isnan(y) else y for y in values)
                wrong = self._wrong_target(row) if usable[i] else None
                if wrong is not None:
                    reject(i, *wrong)
                targets.append(None if set(row) == {None} else row)
        else:
            labels = parsed.texts[options.targets[0]]
            targets = [None if label is None else (as_label(label),) for label in labels]
        rejected.sort(key=lambda bad: bad.row)
        cuts = [bad.row for bad in rejected]

        def batch_of(i: int) -> tuple[int, int]:
            """Rows between bad rows; a row without a target is a batch of its own."""
            return bisect(cuts, rows[i]), i if targets[i] is None else -1

        batches = []
        for _, group in groupby(np.flatnonzero(usable).tolist(), batch_of):
            indices = list(group)
            batch_rows, batch_targets = [rows[i] for i in indices], [targets[i] for i in indices]
            batches.append(Batch(batch_rows, block.first + 1, codes[indices], batch_targets, texts))
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
        lower, upper, begin = options.lower, options.upper, "correct it, or begin anew with"
        for name, target in zip(options.targets, targets, strict=True):
            if target is None:
                continue
            if lower is not None and target < lower:
                reason = f"is below --lower {lower:g}: {begin} a lower bound"
                return name, f"{target:.12g}", reason
            if upper is not None and target > upper:
                reason = f"is above --upper {upper:g}: {begin} a higher bound"
                return name, f"{target:.12g}", reason
        return None


def listed_columns(columns: Sequence[str]) -> str:
    """The names of a source's columns for a message."""
    names = [n if n.isprintable() and "," not in n else repr(n) for n in columns[:20]]
    return (", ".join(names) + (", ..." if len(columns) > 20 else "")) or "none"


class CopiedColumns:
    """Copies columns of the source as text, unchanged; missing values are None."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._with_ids = ID in options.copied_columns and options.is_broker
        self._names = options.copied_columns[1 if self._with_ids else 0 :]

    def check(self, columns: Sequence[str]) -> None:
        """Refuse columns that do not exist, or would stand in the predictions twice."""
        taken = [*prediction_columns(self._options), *([ID] if self._with_ids else [])]
        labels = self._options.task == "classification"
        for name in self._names:
            if name not in columns:
                raise RunRefused(
                    f"--keep: there is no column {name!r}. There are: {listed_columns(columns)}."
                )
            if name in taken or (labels and name.startswith(PROBABILITY)):
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
