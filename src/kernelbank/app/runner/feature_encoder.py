"""Rows of a source become rows of a bank: numbers, waves of a time, one column a category."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from ...errors import RunRefused
from ...io.sources import Bad, Block, Table
from ...utils.validation import Floats

LEVELS = 100
"""Most categories of a column that become columns; later ones are none of these."""

PERIODS = {"day": 86_400.0, "week": 604_800.0, "year": 31_556_952.0}
"""Seconds."""


class Piece(NamedTuple):
    """Rows that can be played at once: all with a target, or one without."""

    rows: list[int]
    """Their indices in the block; there is no bad row between them."""
    X: Floats
    targets: list[Any]
    """Numbers or labels; [None] where the target is missing."""
    added: int
    """How many of the last columns are new from this piece on."""


class Intake:
    """Which columns of the source the bank sees, and how.

    features : numeric columns; None for all that are nothing else.
    """

    def __init__(
        self,
        target: str,
        task: str,
        features: Sequence[str] | None,
        categorical: Sequence[str],
        time: str | None,
        *,
        allow_missing: bool,
        predict_missing: bool,
        lags: int = 0,
    ) -> None:
        self.target = target
        self.task = task
        self.categorical = list(categorical)
        self.time = time
        self._features = None if features is None else list(features)
        self._allow_missing = allow_missing
        self._predict_missing = predict_missing
        self._lags = lags
        self.levels: list[tuple[str, str]] = []
        """(column, category) of the columns that stand behind the others."""

    # --- columns --------------------------------------------------------------------------------

    @property
    def features(self) -> list[str]:
        """The numeric columns, once they are known."""
        return self._features or []

    def settle(self, columns: Sequence[str]) -> None:
        """Look at the source's columns, once they are known."""
        given = [self.target, *self.categorical, *([self.time] if self.time else [])]
        asked = [("--target", self.target), *(("--categorical", name) for name in self.categorical)]
        asked += [("--time", self.time)] if self.time else []
        asked += [("--features", name) for name in self._features or []]
        for option, name in asked:
            if name not in columns:
                names = [one if one.isprintable() else repr(one) for one in columns[:20]]
                shown = ", ".join(names) + (", ..." if len(columns) > 20 else "")
                raise RunRefused(
                    f"{option}: there is no column {name!r}. There are: {shown or 'none'}."
                )
        names = [name for _, name in asked]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            options = " and ".join(dict.fromkeys(option for option, n in asked if n == twice))
            raise RunRefused(f"{options}: column {twice!r} is named twice. Give it one part.")
        if self._features is None:
            self._features = [name for name in columns if name not in given]
        if not self._features and not self.categorical and self.time is None and not self._lags:
            raise RunRefused("There are no inputs beside the target. Use --lags for its past.")

    @property
    def names(self) -> list[str]:
        """The bank's columns, in words."""
        periods = [f"{self.time}: {word} {wave}" for word in PERIODS for wave in ("sin", "cos")]
        own = [*self.features, *(periods if self.time else [])]
        return [*own, *(f"{column}={level}" for column, level in self.levels)] or ["(nothing)"]

    # --- rows -----------------------------------------------------------------------------------

    def take(self, block: Block) -> tuple[list[Piece], list[Bad]]:
        """The rows of a block in pieces, and those that cannot be used."""
        numeric = [*self.features]
        text = [*self.categorical, *([self.time] if self.time else [])]
        if self.task == "regression":
            numeric.append(self.target)
        else:
            text.append(self.target)
        missing = [*self.features, *self.categorical] if self._allow_missing else []
        missing += [self.target] if self._predict_missing else []
        table = block.table(numeric, text, allow_missing=missing)
        bad = list(table.bad)
        rows, good = table.numbers[:, : len(self.features)], np.ones(len(table), dtype=bool)
        if self.time:
            waves = np.zeros((len(table), 2 * len(PERIODS)))
            for i, cell in enumerate(table.texts[self.time]):
                try:
                    waves[i] = periodic(cell)
                except ValueError:
                    good[i] = False
                    row = int(table.rows[i])
                    reason = "is no time: give seconds since 1970, or ISO 8601"
                    bad.append(Bad(row, block.where(row), self.time, str(cell), reason))
            rows = np.hstack([rows, waves])
        targets = self._targets(table.numbers, table.texts)
        bad.sort(key=lambda one: one.row)
        cuts = {one.row for one in bad}
        return list(self._pieces(table, rows, targets, good, cuts)), bad

    def _targets(self, numbers: Floats, texts: Mapping[str, list[str | None]]) -> list[Any]:
        if self.task == "regression":
            return [None if math.isnan(y) else y for y in numbers[:, -1].tolist()]
        return list(texts[self.target])

    def _pieces(
        self, table: Table, rows: Floats, targets: list[Any], good: np.ndarray, cuts: set[int]
    ) -> Iterator[Piece]:
        """Cut where a category is new, at bad rows, and around rows without a target."""
        places = {pair: i for i, pair in enumerate(self.levels)}
        counts = {name: sum(c == name for c, _ in self.levels) for name in self.categorical}
        waiting: list[int] = []
        added = 0

        def piece(some: list[int], new: int) -> Piece:
            indicators = np.zeros((len(some), len(self.levels)))
            for line, i in enumerate(some):
                for name in self.categorical:
                    level = table.texts[name][i]
                    if level is None:
                        own = [place for pair, place in places.items() if pair[0] == name]
                        indicators[line, own] = np.nan
                    elif (name, level) in places:
                        indicators[line, places[name, level]] = 1.0
            X = np.hstack([rows[some], indicators])
            if not X.shape[1]:
                X = np.zeros((len(some), 1))
            return Piece([int(table.rows[i]) for i in some], X, [targets[i] for i in some], new)

        for i in np.flatnonzero(good).tolist():
            new = []
            for name in self.categorical:
                level = table.texts[name][i]
                if level is not None and (name, level) not in places and counts[name] < LEVELS:
                    new.append((name, level))
                    counts[name] += 1
            before = int(table.rows[waiting[-1]]) if waiting else 0
            cut = any(row in cuts for row in range(before + 1, int(table.rows[i])))
            if waiting and (new or cut or targets[i] is None):
                yield piece(waiting, added)
                waiting, added = [], 0
            for pair in new:
                places[pair] = len(self.levels)
                self.levels.append(pair)
                added += 1
            waiting.append(i)
            if targets[i] is None:
                yield piece(waiting, added)
                waiting, added = [], 0
        if waiting:
            yield piece(waiting, added)


def periodic(cell: str | None) -> list[float]:
    """Sine and cosine of the time of day, week and year; raises ValueError for what is no time."""
    if cell is None or "_" in cell:
        raise ValueError
    try:
        seconds = float(cell)
    except ValueError:
        moment = datetime.fromisoformat(cell.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = moment.timestamp()
    if not math.isfinite(seconds) or abs(seconds) > 1e15:
        raise ValueError
    angles = [2 * math.pi * math.fmod(seconds, period) / period for period in PERIODS.values()]
    return [wave(angle) for angle in angles for wave in (math.sin, math.cos)]
