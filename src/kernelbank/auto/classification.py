"""The desk for targets that are classes, numbered from 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..utils.validation import Floats
from . import calibration as hot
from .config import Plan
from .task_model import STARTS, Desk, Said, lagged_rows

KEPT = 512
"""Rows from which the bank of a class that appears late starts."""


class Classification(Desk):
    """Two classes: one bank on labels of -1 and 1. More: one bank a class, against the rest.

    The squared loss on such labels has the conditional mean as its best function, and each score is
    turned into a probability by a logistic curve that is fitted online (Platt 1999).
    """

    def __init__(self, plan: Plan, dimension: int, classes: int) -> None:
        super().__init__(plan, dimension, target=False, kept=KEPT, until=np.inf)
        self.classes = classes
        self.counts = np.zeros(classes)
        self.platt = np.zeros((0, hot.PLATT))
        self.wrong = np.zeros(2)
        """How many answers were wrong, and how often the label changed."""
        self._last = -1

    @property
    def heads(self) -> int:
        """How many banks this many classes need."""
        return {0: 0, 1: 0, 2: 1}.get(self.classes, self.classes)

    def _positive(self, head: int) -> int:
        """The class that is 1 for a bank."""
        return 1 if self.heads == 1 else head

    def add_class(self) -> None:
        """A class has appeared: it, and whoever has no bank yet, starts from the rows kept."""
        self.classes += 1
        self.counts = np.append(self.counts, 0.0)
        if self.heads > 1 and len(self.banks) == 1:
            self.banks.insert(0, self._new_bank(0))  # the bank of two classes is that of class 1
            self.platt = np.vstack([[hot.PLATT_START], self.platt])
        self._fill()

    def _fill(self) -> None:
        if self.rows < STARTS[0]:
            return
        while len(self.banks) < self.heads:
            self.banks.append(self._new_bank(self._positive(len(self.banks))))
            self.platt = np.vstack([self.platt, [hot.PLATT_START]])

    def _new_bank(self, positive: int) -> Any:
        bank = self.new_bank()
        X, lagged, targets = self.kept()
        if len(X):
            rows = self._with_lags(self.scaling.rows(X, lagged), lagged, positive)
            self.replay(bank, rows, np.where(targets == positive, 1.0, -1.0))
        return bank

    def _with_lags(self, rows: Floats, lagged: Floats, positive: int) -> Floats:
        """The rows with the lagged classes as this bank sees them: 1, -1, or 0 if unknown."""
        if self.plan.lags:
            signs = np.where(np.isnan(lagged), 0.0, np.where(lagged == positive, 1.0, -1.0))
            repeats = len(self.scaling.lag_columns) // self.plan.lags
            rows[:, self.scaling.lag_columns] = np.tile(signs, (1, repeats))
        return rows

    # --- answering ------------------------------------------------------------------------------

    def ask(self, X: Floats, lagged: Floats, tail: float) -> list[Said]:
        scores = np.zeros((len(X), len(self.banks)))
        slots = np.zeros((len(self.banks) if len(X) == 1 else 0, len(self.names)))
        if self.banks:
            rows = self.scaling.rows(X, lagged)
            for head, bank in enumerate(self.banks):
                own = self._with_lags(rows, lagged, self._positive(head))
                if len(X) == 1:
                    scores[0, head], slots[head] = bank.predict_slots_one(own[0])
                else:
                    scores[:, head] = bank.predict(own)
        answers = self._probabilities(scores)
        return [
            Said(self.rows, lagged[t].copy(), scores[t], slots, answers[t]) for t in range(len(X))
        ]

    def _probabilities(self, scores: Floats) -> Floats:
        if not self.banks:
            total = self.counts.sum() + self.classes
            return np.tile((self.counts + 1.0) / max(total, 1.0), (len(scores), 1))
        out = np.empty((len(scores), self.classes))
        hot.probability_rows(scores, self.platt, out)
        return out

    def as_lag(self, said: Said) -> float:
        return float(np.argmax(said.answer))

    # --- learning -------------------------------------------------------------------------------

    def tell(self, x: Floats, said: Said, target: float) -> None:
        number = int(target)
        first = self._first_asked(said)
        total = self.wrong[0]
        self._count(np.array([int(np.argmax(said.answer)) if len(said.answer) else -1]), [number])
        if not said.row:
            self.wrong[0] = total
            self.blind += 1
        if self.banks:
            # Banks that came after the question was asked have said nothing.
            scores = np.zeros(len(self.banks))
            scores[first : first + len(said.scores)] = said.scores
            hot.calibrate_row(scores, number, self.platt)
            wrong = float(int(np.argmax(said.answer)) != number) if len(said.answer) else 1.0
            self.watch(np.array([wrong]), self.banks[0].weights[None], self.rows + 1)
        self.rows += 1
        self.keep(x[None], said.lagged[None], np.array([target]), [said.row])
        if self.rows > STARTS[0]:
            rows = self.scaling.rows(x[None], said.lagged[None])
            for column in self.scaling.take(x):
                self.note("input level", self.rows, column)
            for head, bank in enumerate(self.banks):
                positive = self._positive(head)
                own = self._with_lags(rows, said.lagged[None], positive)
                late = said.row + 1 < self.rows and 0 <= head - first < len(said.slots)
                slots = said.slots[head - first] if late else None
                bank.learn_one(own[0], 1.0 if number == positive else -1.0, slots)
        self.shift(target)
        if self.rows in STARTS:
            self.start()

    def _first_asked(self, said: Said) -> int:
        """Which of the present banks was the first then: that of two classes is now the second."""
        return 1 if len(said.scores) == 1 and len(self.banks) > 1 else 0

    def _count(self, answered: np.ndarray, numbers: Any) -> None:
        for answer, number in zip(answered.tolist(), numbers, strict=True):
            self.counts[number] += 1.0
            self.wrong[0] += answer != number
            self.wrong[1] += self._last != number and self._last >= 0
            self._last = number

    def start(self) -> None:
        X, _, _ = self.kept()
        self.start_anew()
        self.scaling.begin(X, None)
        self.platt = np.zeros((0, hot.PLATT))
        self._fill()
        self.spare = []

    def play(self, X: Floats, targets: Floats, tail: float, slots: bool) -> dict[str, Floats]:
        if not self.banks:
            return self.play_one(X[0], targets[0], tail)
        room = self.room()
        X, targets = X[:room], targets[:room]
        count, first = len(X), self.rows
        lagged = lagged_rows(targets, self.lagged)
        rows, _, _, news = self.scaling.stream(X, np.zeros(count), np.zeros(0))
        scores = np.empty((count, len(self.banks)))
        spoken = np.zeros((len(self.banks), count if slots else 0, len(self.names)))
        found: dict[str, Floats] = {}
        for head, bank in enumerate(self.banks):
            positive = self._positive(head)
            own = self._with_lags(rows, lagged, positive)
            wanted = ["predictions", "weights", *(["slot_predictions"] if slots else [])]
            trace = bank.run(own, np.where(targets == positive, 1.0, -1.0), record=wanted)
            scores[:, head] = trace.predictions
            if head == 0:
                found["weights"] = trace.weights
            if slots:
                spoken[head] = trace.slot_predictions
        if slots:
            found["slot_predictions"] = spoken[0]
            found["slot_classes"] = _chosen(spoken)
        probabilities = np.empty((count, self.classes))
        hot.calibrate_rows(scores, targets, self.platt, probabilities)
        numbers = targets.astype(np.int64)
        answered = np.argmax(probabilities, axis=1)
        self._count(answered, numbers.tolist())
        for target in targets[-self.plan.lags :] if self.plan.lags else ():
            self.shift(target)
        self.rows += count
        self.keep(X, lagged, targets, np.arange(first, self.rows))
        for t, column in news:
            self.note("input level", first + t + 1, column)
        self.watch(1.0 * (answered != numbers), found["weights"], first + 1)
        if self.rows in STARTS:
            self.start()
        return found | {"probabilities": probabilities}

    def described(self, said: Said) -> dict[str, Floats]:
        spoken = said.slots[0] if len(said.slots) else np.zeros(len(self.names))
        guess = float(np.argmax(said.answer)) if len(said.answer) else -1.0
        rows = {
            "probabilities": said.answer,
            "weights": self.weights(),
            "slot_predictions": spoken,
            "slot_classes": _chosen(said.slots) if len(said.slots) else np.full_like(spoken, guess),
        }
        return {name: np.array([value]) for name, value in rows.items()}

    # --- saving ---------------------------------------------------------------------------------

    def state(self) -> dict[str, Floats]:
        own = {"counts": self.counts, "platt": self.platt, "wrong": self.wrong}
        return super().state() | own

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"classes": self.classes, "last": self._last}

    def restore(self, state: Mapping[str, Floats], facts: Mapping[str, Any]) -> None:
        self.classes = int(facts["classes"])
        self.counts = np.zeros(self.classes)
        self.platt = np.zeros_like(state["platt"])
        super().restore(state, facts)
        self._last = int(facts["last"])


def _chosen(scores: Floats) -> Floats:
    """The classes that slots choose by their scores in all banks, which stand along the first axis.

    One bank is that of the second of two classes.
    """
    if len(scores) == 1:
        return (scores[0] > 0.0).astype(np.float64)
    return np.argmax(scores, axis=0).astype(np.float64)
