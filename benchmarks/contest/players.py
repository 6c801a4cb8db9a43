"""Who plays, and how: everyone predicts a row before its target is told, in one pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .entries import CLASSIFICATION, REGRESSION, Entry

OURS, PEER, HOUSE, BASELINE = "ours", "peer", "house", "baseline"
BOTH = (REGRESSION, CLASSIFICATION)
PERSISTENCE = "persistence"


@dataclass(frozen=True)
class Played:
    """One pass: a prediction for every row (a label in classification; NaN: none was made).

    `extras` holds what only some have: slot_predictions (n, P), lower and upper (n,).
    """

    predictions: np.ndarray
    seconds: float
    note: str = ""
    jobs: int = 1
    """How many played side by side: the time is honest only for one."""

    extras: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Player:
    """A name, what it is, and its pass over an entry. `words` tell the reader what it is."""

    name: str
    kind: str
    words: str
    play: Callable[[Entry], Played]
    tasks: tuple[str, ...] = BOTH
    many_classes: bool = True
    libraries: tuple[str, ...] = ()
    """Whose versions its predictions depend on; a result is kept only if there are some."""

    def takes(self, entry: Entry) -> bool:
        return entry.task in self.tasks and (self.many_classes or entry.classes <= 2)

    def competes(self, entry: Entry) -> bool:
        """Persistence knows the last target: it competes with those that are told it too."""
        return self.kind == PEER or (self.name == PERSISTENCE and entry.lags > 0)


def one_by_one(
    entry: Entry, rows: list, predict: Callable[..., float], learn: Callable[..., None]
) -> Played:
    """Predict, then learn, row after row. Whoever fails predicts nothing from there on."""
    predictions = np.full(len(entry.y), np.nan)
    targets = entry.y.tolist()
    note = ""
    row = 0
    start = time.perf_counter()
    try:
        for row, given in enumerate(rows):
            predictions[row] = predict(given)
            learn(given, targets[row])
    except Exception as error:  # a peer that breaks has lost, and the others play on
        note = f"failed at row {row + 1}: {error!r}"[:200]
    return Played(predictions, time.perf_counter() - start, note)


def last_target(entry: Entry) -> Played:
    start = time.perf_counter()
    predictions = np.concatenate([[0.0], entry.y[:-1]])
    return Played(predictions, time.perf_counter() - start)


BASELINES = [Player(PERSISTENCE, BASELINE, "the last target again", last_target)]
