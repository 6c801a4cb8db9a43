"""Rows with named columns as inputs of a model: numbers, times and categories.

A row is first written as *codes*, one number per column: a number as it is, a time as seconds since
1970, a category as a hash of its text; NaN where it is missing. Codes depend on the row alone. The
inputs of the model follow from codes and from what was learned:

- numbers, as they are;
- per time, sine and cosine of the time of day, week and year;
- per column of categories, the mean of the earlier targets with the same category (of labels: the
  shares of the second to fourth class);
- for each of the first 32 categories of a column an input that is 1 for this category, else 0. They
  stand behind the others. To add inputs takes a while, so they are added in groups: when a category
  without one is learned for the third time, all categories so far get theirs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import FileRefused
from ...utils.validation import Floats
from .category_statistics import CategoryStatistics

NUMBER, TIME, CATEGORY = "number", "time", "category"
KINDS = (NUMBER, TIME, CATEGORY)

OWN_INPUTS = 32
"""The most categories of a column that have an input of their own. A stream of 400 sites is learned
as well with 8, 16 or 32; hashing the others into 16 inputs made it slower and no better."""

DUE_ROWS = 3
"""When a category is learned this often, it gets an input of its own."""

CLASS_SHARES = 3
"""How many classes have their share as an input, from the second class on."""

PERIODS = {"day": 86_400.0, "week": 604_800.0, "year": 31_556_952.0}
"""Seconds."""


def encode_time(seconds: float) -> list[float]:
    """Sine and cosine of the time of day, week and year; NaN for a missing time."""
    if math.isnan(seconds):
        return [math.nan] * (2 * len(PERIODS))
    angles = [2 * math.pi * math.fmod(seconds, period) / period for period in PERIODS.values()]
    return [wave(angle) for angle in angles for wave in (math.sin, math.cos)]


class EncodedRows(NamedTuple):
    """Rows as codes, in the order of an encoder's columns."""

    codes: Floats
    """(n, columns)."""
    texts: Mapping[float, str]
    """The categories in these rows, by their codes."""


class ColumnEncoder:
    """The columns that a bank has learned, and their encoding.

    Parameters
    ----------
    columns : names and kinds ("number", "time" or "category") in their order.
    labels : whether the targets are labels.
    """

    def __init__(self, columns: Sequence[tuple[str, str]], *, labels: bool) -> None:
        self.columns = tuple(columns)
        self.tentative = False
        """Whether rows were only predicted so far: the first learned row decides."""
        kinds = [kind for _, kind in self.columns]
        self._labels = labels
        self._numbers = [i for i, kind in enumerate(kinds) if kind == NUMBER]
        self._times = [i for i, kind in enumerate(kinds) if kind == TIME]
        self.is_numeric = bool(self.columns) and len(self._numbers) == len(self.columns)
        """Whether all columns are numbers: then codes are inputs."""
        self.targets_width = CLASS_SHARES if labels else 1
        self.statistics = {
            i: CategoryStatistics(self.targets_width, clipped=not labels)
            for i, kind in enumerate(kinds)
            if kind == CATEGORY
        }
        """By the index of a column of categories."""
        self._own: dict[tuple[int, float], int] = {}
        """By column and code, the number of the category's own input behind the fixed ones."""
        self._own_counts = dict.fromkeys(self.statistics, 0)

    # --- columns and inputs ---------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [name for name, _ in self.columns]

    def inputs_of(self, column: str | int) -> list[int]:
        """The inputs of a column of numbers or times, by its name or index; else none."""
        names = self.names
        index = column if isinstance(column, int) else -1
        if isinstance(column, str) and column in names:
            index = names.index(column)
        if index in self._numbers:
            return [self._numbers.index(index)]
        if index in self._times:
            waves = 2 * len(PERIODS)
            start = len(self._numbers) + waves * self._times.index(index)
            return [*range(start, start + waves)]
        return []

    @property
    def first_category(self) -> int:
        """The index of the first input of a single category."""
        fixed = len(self._numbers) + 2 * len(PERIODS) * len(self._times)
        return max(fixed + self.targets_width * len(self.statistics), 1)

    @property
    def width(self) -> int:
        """The number of inputs; at least one, which is 0 where there are no columns."""
        return self.first_category + len(self._own)

    @property
    def categories(self) -> list[tuple[str, str]]:
        """(column, category) of the inputs of single categories, in their order."""
        return [
            (self.columns[column][0], self.statistics[column].name(code))
            for column, code in self._own
        ]

    @property
    def beyond(self) -> dict[str, dict[str, int]]:
        """By column: how many categories will have no input of their own, and in how many rows
        they came since all inputs are taken."""
        found = {}
        for column, known in self.statistics.items():
            if known.rows_beyond:
                counts = {"categories": len(known) - OWN_INPUTS, "rows": known.rows_beyond}
                found[self.columns[column][0]] = counts
        return found

    @property
    def input_names(self) -> list[str]:
        """A name for every input of the model."""
        found = [self.columns[i][0] for i in self._numbers]
        for i in self._times:
            for period in PERIODS:
                found += [
                    f"{self.columns[i][0]} ({wave} of {period})" for wave in ("sine", "cosine")
                ]
        for i in self.statistics:
            name = self.columns[i][0]
            shares = [f"{name} (share of class {k + 2})" for k in range(CLASS_SHARES)]
            found += shares if self._labels else [f"{name} (mean target)"]
        found = found or ["(nothing)"]
        return found + [f"{column} = {category}" for column, category in self.categories]

    # --- encoding -------------------------------------------------------------------------------

    def expand(self, codes: Floats) -> Floats:
        """(n, width): the inputs of rows, by what is known now; changes nothing."""
        if self.is_numeric:
            return codes
        out = self._fixed_inputs(codes)
        if self.statistics:
            for row, own in zip(codes.tolist(), out, strict=True):
                self._write_categories(row, own)
        return out

    def _fixed_inputs(self, codes: Floats) -> Floats:
        """(n, width): numbers and times; 0 elsewhere."""
        out = np.zeros((len(codes), self.width))
        out[:, : len(self._numbers)] = codes[:, self._numbers]
        place = len(self._numbers)
        for column in self._times:
            waves = [encode_time(seconds) for seconds in codes[:, column].tolist()]
            out[:, place : place + 2 * len(PERIODS)] = waves
            place += 2 * len(PERIODS)
        return out

    def _write_categories(self, row: list[float], out: Floats) -> None:
        """Write the inputs of a row's categories."""
        first = self.first_category
        place = first - self.targets_width * len(self.statistics)
        for column, known in self.statistics.items():
            code = row[column]
            out[place : place + self.targets_width] = known.mean(code)
            place += self.targets_width
            if math.isnan(code):
                for (other, _), number in self._own.items():
                    if other == column:
                        out[first + number] = math.nan
            elif (column, code) in self._own:
                out[first + self._own[column, code]] = 1.0

    def set_category(self, column: str, category_code: float, out: Floats) -> None:
        """Write the inputs of one category into an input (width,), in place of another one's."""
        index = self.names.index(column)
        place = self.first_category - self.targets_width * len(self.statistics)
        place += self.targets_width * list(self.statistics).index(index)
        out[place : place + self.targets_width] = self.statistics[index].mean(category_code)
        for (other, code), number in self._own.items():
            if other == index:
                out[self.first_category + number] = float(code == category_code)

    # --- learning -------------------------------------------------------------------------------

    def adds_inputs(self, codes: Floats) -> bool:
        """Whether learning a row (1, columns) adds inputs."""
        return bool(self.statistics) and bool(self._new_inputs(codes[0].tolist()))

    def _new_inputs(self, row: list[float]) -> list[tuple[int, float]]:
        """The categories that get an input of their own when a row is learned."""
        found: list[tuple[int, float]] = []
        for column, known in self.statistics.items():
            free, code = OWN_INPUTS - self._own_counts[column], row[column]
            if free and (column, code) not in self._own and known.count(code) + 1 >= DUE_ROWS:
                waiting = [(column, other) for other in known.codes]
                found += [pair for pair in waiting if pair not in self._own][:free]
        return found

    def take(
        self, codes: Floats, targets: Floats, texts: Mapping[float, str]
    ) -> tuple[Floats, int]:
        """Encode the first of some rows, and learn from their targets.

        Parameters
        ----------
        codes : (n, columns).
        targets : (n, targets_width), each what `as_statistic` returns.
        texts : the categories by their codes.

        Returns
        -------
        (m, width): inputs, each by what was known before its row. A row that adds inputs is taken
        alone, so m may be less than n.
        How many inputs it has added.
        """
        if not self.statistics:
            return self.expand(codes), 0
        rows = codes.tolist()
        new = self._new_inputs(rows[0])
        for column, code in new:
            self._own[column, code] = len(self._own)
            self._own_counts[column] += 1
        out = self._fixed_inputs(codes)
        for t, (row, target) in enumerate(zip(rows, targets.tolist(), strict=True)):
            if t and (new or self._new_inputs(row)):
                return out[:t], len(new)
            self._write_categories(row, out[t])
            for column, known in self.statistics.items():
                code = row[column]
                if not math.isnan(code):
                    full = self._own_counts[column] == OWN_INPUTS
                    beyond = full and (column, code) not in self._own
                    known.update(code, texts.get(code, "?"), target, beyond=beyond)
        return out, len(new)

    def as_statistic(self, targets: Floats) -> Floats:
        """(n, targets_width): what is averaged by category, of targets or class numbers (n,).

        Of several targets, (n, K), it is the first.
        """
        if not self._labels:
            return targets[:, :1] if targets.ndim == 2 else targets[:, None]
        return (targets[:, None] == np.arange(1, CLASS_SHARES + 1)).astype(np.float64)

    # --- saving ---------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Columns and names of categories as plain data."""
        return {
            "columns": [list(column) for column in self.columns],
            "tentative": self.tentative,
            "categories": [known.to_json() for known in self.statistics.values()],
        }

    def arrays(self) -> dict[str, Floats]:
        """The codes and statistics of categories."""
        if not self.statistics:
            return {}
        own = np.array([[float(column), code] for column, code in self._own]).reshape(-1, 2)
        known = {f"statistics{i}": one.array() for i, one in self.statistics.items()}
        return {"own": own, **known}

    @classmethod
    def restore(
        cls, facts: Mapping[str, Any], arrays: Mapping[str, Floats], *, labels: bool
    ) -> ColumnEncoder:
        """The encoder from what `to_json` and `arrays` returned, after checking it."""
        columns = [(str(name), str(kind)) for name, kind in facts["columns"]]
        names = [name for name, _ in columns]
        if len(set(names)) < len(names) or any(kind not in KINDS for _, kind in columns):
            raise FileRefused("it has impossible columns.")
        encoder = cls(columns, labels=labels)
        if not isinstance(facts["tentative"], bool):
            raise FileRefused("it does not say whether its columns are tentative.")
        encoder.tentative = facts["tentative"]
        if not encoder.statistics:
            return encoder
        for (i, known), one in zip(encoder.statistics.items(), facts["categories"], strict=True):
            known.restore(one, arrays[f"statistics{i}"])
        for column, code in arrays["own"].tolist():
            if column not in encoder.statistics or code not in encoder.statistics[int(column)]:
                raise FileRefused("it has inputs of categories that were never learned.")
            encoder._own[int(column), code] = len(encoder._own)
            encoder._own_counts[int(column)] += 1
        if len(encoder._own) < len(arrays["own"]) or any(
            count > OWN_INPUTS for count in encoder._own_counts.values()
        ):
            raise FileRefused("it has too many inputs of categories.")
        return encoder
