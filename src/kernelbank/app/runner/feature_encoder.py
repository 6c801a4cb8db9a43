"""Rows of a source to inputs of a model: numbers, waves of a time, one-hot categories."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import RunRefused
from ...io.sources import ParsedRows, RejectedRow, RowBlock
from ...io.sources.parsing import shortened
from ...io.times import parse_time
from ...utils.validation import Floats
from .options import RunOptions

MAX_CATEGORIES = 100
"""The most categories of a column that get an input; a later category has none of them set."""

PERIODS = {"day": 86_400.0, "week": 604_800.0, "year": 31_556_952.0}
"""Seconds."""


class Batch(NamedTuple):
    """Rows that the model takes at once: all with a target, or a single one without."""

    rows: list[int]
    """(n,) their indices in the block; no bad row is between them."""
    X: Floats
    """(n, d) inputs."""
    targets: list[Any]
    """(n,) numbers or labels; [None] where the target is missing."""
    new_inputs: int
    """How many of the last columns of X are new from this batch on."""
    times: Floats
    """(n,) the times in seconds since 1970; NaN without `--time`."""

    def part(self, begin: int, end: int) -> Batch:
        """Rows `begin` to `end` of the batch."""
        cut = slice(begin, end)
        new = 0 if begin else self.new_inputs
        return Batch(self.rows[cut], self.X[cut], self.targets[cut], new, self.times[cut])


class FeatureEncoder:
    """Chooses the columns of the source that the model sees, and encodes them."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._features = None if options.features is None else list(options.features)
        self.categories: list[tuple[str, str]] = []
        """(column, category) of the one-hot inputs, which stand behind the other inputs."""

    # --- columns --------------------------------------------------------------------------------

    @property
    def features(self) -> list[str]:
        """The numeric columns, once the source's columns are known."""
        return self._features or []

    def set_columns(self, columns: Sequence[str]) -> None:
        """Check the options against the source's columns, and choose the features."""
        options = self._options
        used = [("--target", options.target)]
        used += [("--categorical", name) for name in options.categorical]
        used += [("--time", options.time)] if options.time else []
        reserved = [name for _, name in used]
        used += [("--features", name) for name in self.features]
        for option, name in used:
            if name not in columns:
                names = [one if one.isprintable() else repr(one) for one in columns[:20]]
                shown = ", ".join(names) + (", ..." if len(columns) > 20 else "")
                raise RunRefused(
                    f"{option}: there is no column {name!r}. There are: {shown or 'none'}."
                )
        names = [name for _, name in used]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            flags = " and ".join(dict.fromkeys(option for option, name in used if name == twice))
            raise RunRefused(f"{flags}: column {twice!r} is named twice. Use it once.")
        if self._features is None:
            self._features = [name for name in columns if name not in reserved]
        others = options.categorical or options.time is not None or options.lags
        if not self._features and not others:
            raise RunRefused("There are no inputs beside the target. Use --lags for its past.")

    # --- rows -----------------------------------------------------------------------------------

    def encode(self, block: RowBlock) -> tuple[list[Batch], list[RejectedRow]]:
        """The rows of a block in batches, and the rows that cannot be used."""
        options = self._options
        regression = options.task == "regression"
        numeric = [*self.features, *([options.target] if regression else [])]
        text = [*options.categorical, *([options.time] if options.time else [])]
        text += [] if regression else [options.target]
        may_miss = [*self.features, *options.categorical] if options.allow_missing else []
        may_miss += [options.target] if options.predict_missing else []
        parsed = block.parse(numeric, text, allow_missing=may_miss)
        rejected = list(parsed.rejected)
        inputs = parsed.numbers[:, : len(self.features)]
        usable = np.ones(len(parsed), dtype=bool)
        times = np.full(len(parsed), np.nan)
        if options.time:
            waves = np.zeros((len(parsed), 2 * len(PERIODS)))
            for i, cell in enumerate(parsed.texts[options.time]):
                try:
                    times[i] = parse_time(cell)
                    waves[i] = encode_time(float(times[i]))
                except ValueError as error:
                    usable[i] = False
                    row = int(parsed.rows[i])
                    where, value = block.where(row), shortened(str(cell))
                    rejected.append(RejectedRow(row, where, options.time, value, str(error)))
            inputs = np.hstack([inputs, waves])
        targets: list[Any]
        if regression:
            targets = [None if math.isnan(y) else y for y in parsed.numbers[:, -1].tolist()]
            for i, y in enumerate(targets):
                reason = options.beyond_bounds(y)
                if reason and usable[i]:
                    usable[i] = False
                    row = int(parsed.rows[i])
                    where = block.where(row)
                    rejected.append(RejectedRow(row, where, options.target, f"{y:.12g}", reason))
        else:
            targets = list(parsed.texts[options.target])
        rejected.sort(key=lambda one: one.row)
        cuts = {one.row for one in rejected}
        return list(self._batches(parsed, inputs, targets, times, usable, cuts)), rejected

    def _batches(
        self,
        parsed: ParsedRows,
        inputs: Floats,
        targets: list[Any],
        times: Floats,
        usable: np.ndarray,
        cuts: set[int],
    ) -> Iterator[Batch]:
        """Cut where a category is new, at bad rows, and around rows without a target."""
        columns = self._options.categorical
        index = {pair: i for i, pair in enumerate(self.categories)}
        counts = {name: sum(c == name for c, _ in self.categories) for name in columns}
        collected: list[int] = []
        added = 0

        def batch(some: list[int], new: int) -> Batch:
            one_hot = np.zeros((len(some), len(self.categories)))
            for line, i in enumerate(some):
                for name in columns:
                    category = parsed.texts[name][i]
                    if category is None:
                        one_hot[line, [k for pair, k in index.items() if pair[0] == name]] = np.nan
                    elif (name, category) in index:
                        one_hot[line, index[name, category]] = 1.0
            X = np.hstack([inputs[some], one_hot])
            if not X.shape[1]:
                X = np.zeros((len(some), 1))
            rows, own = [int(parsed.rows[i]) for i in some], [targets[i] for i in some]
            return Batch(rows, X, own, new, times[some])

        for i in np.flatnonzero(usable).tolist():
            new = []
            for name in columns:
                category = parsed.texts[name][i]
                known = category is None or (name, category) in index
                if not known and counts[name] < MAX_CATEGORIES:
                    new.append((name, str(category)))
                    counts[name] += 1
            before = int(parsed.rows[collected[-1]]) if collected else 0
            cut = any(row in cuts for row in range(before + 1, int(parsed.rows[i])))
            if collected and (new or cut or targets[i] is None):
                yield batch(collected, added)
                collected, added = [], 0
            for pair in new:
                index[pair] = len(self.categories)
                self.categories.append(pair)
                added += 1
            collected.append(i)
            if targets[i] is None:
                yield batch(collected, added)
                collected, added = [], 0
        if collected:
            yield batch(collected, added)


def encode_time(seconds: float) -> list[float]:
    """Sine and cosine of the time of day, week and year."""
    angles = [2 * math.pi * math.fmod(seconds, period) / period for period in PERIODS.values()]
    return [wave(angle) for angle in angles for wave in (math.sin, math.cos)]
