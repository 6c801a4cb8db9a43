"""The bank of a run at work: pieces of rows in, answers out, and what is remembered of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...auto import AutoBank
from ...auto.auto_serialization import describe
from ...auto.serialization import restored
from ...bank.engines import as_engine
from ...bank.state import under
from ...io.sinks.base import Row
from ...utils.validation import Floats
from .feature_encoder import Piece
from .history import EARLY, EXTREMES, TOTALS, History
from .settings import Settings
from .snapshots import snapshot
from .timings import BANK, SNAPSHOTS, Diary

NUMBERS = ("row", "prediction", "lower", "upper", "target")
LABELS = ("row", "prediction", "probability", "target")

_MOST_MEMORY = 2**32


def header_of(task: str) -> tuple[str, ...]:
    """The columns of the predictions."""
    return NUMBERS if task == "regression" else LABELS


class Player:
    """A bank, the rows whose targets it waits for, and the history of its answers."""

    def __init__(self, settings: Settings, engine: Any, diary: Diary) -> None:
        self.settings = settings
        self.diary = diary
        self.bank: AutoBank = settings.bank(engine)
        self.history: History | None = None
        self.predicted_only = 0
        """How many rows had no target."""
        self._engine = engine
        self._due = False
        self._last: Any = None
        self._waiting: list[tuple[Floats, Any]] = []
        """Rows that were answered and whose target has not come."""
        self._deepen()

    def _deepen(self) -> None:
        """Let the bank remember as many questions as wait for their targets."""
        pending = self.bank._pending
        pending.most = max(pending.most, self.settings.delay + 1)

    @property
    def room(self) -> int:
        """How many rows may be played at once: none beyond the next snapshot."""
        return EARLY[0] if self.history is None else self.history.until_snapshot

    def play(self, piece: Piece, numeric: int) -> list[Row]:
        """Answer a piece, and learn what is due; snapshots are along the first `numeric` inputs."""
        X, targets, added = piece.X, piece.targets, piece.added
        with self.diary.during(BANK):
            if self.settings.delay:
                answers = self._play_late(X, targets, added)
            elif targets == [None]:
                answers = [self._predict_only(X, added)]
            else:
                answers = self._play_at_once(X, targets, added)
        with self.diary.during(SNAPSHOTS):
            self._look(numeric)
        return answers

    def _play_at_once(self, X: Floats, targets: list[Any], added: int) -> list[Row]:
        trace = self.bank.run(
            X, targets, record="all", coverage=self.settings.coverage, added=added
        )
        self._remember(trace, targets)
        return self._worded(trace, targets)

    def _play_late(self, X: Floats, targets: list[Any], added: int) -> list[Row]:
        self._widen(added)
        answers: list[Row] = []
        for x, target in zip(X, targets, strict=True):
            if target is None:  # it waits as the others do, so that all come so many rows later
                answers.append(self._predict_only(x[None], 0))
            else:
                trace = self.bank.answer_one(x, record="all", coverage=self.settings.coverage)
                self._remember(trace, [target])
                answers += self._worded(trace, [target])
            self._waiting.append((x, target))
            if len(self._waiting) > self.settings.delay:
                self._learn_oldest()
        return answers

    def _widen(self, added: int) -> None:
        if added:
            self.bank.add_inputs(added)
            self._waiting = [(np.append(x, [np.nan] * added), y) for x, y in self._waiting]

    def _learn_oldest(self) -> None:
        x, target = self._waiting.pop(0)
        if target is not None:
            self.bank.learn_one(x, target)
            self._last = target

    def _predict_only(self, X: Floats, added: int) -> Row:
        """A row without a target: answered, not learned, and not remembered as a question."""
        self.predicted_only += 1
        self._widen(added)
        coverage = self.settings.coverage
        if self.settings.task == "regression":
            low, high = self.bank.predict_interval(X, coverage)[0].tolist()
            return float(self.bank.predict(X)[0]), low, high, None
        if not self.bank.classes:
            return None, None, None
        shares = self.bank.predict_proba(X)[0]
        return _plain(self.bank.predict(X)[0]), float(shares.max()), None

    def _worded(self, trace: Any, targets: list[Any]) -> list[Row]:
        if self.settings.task == "regression":
            columns = (trace.predictions.tolist(), trace.lower.tolist(), trace.upper.tolist())
            return list(zip(*columns, targets, strict=True))
        shares = trace.probabilities.max(axis=1, initial=0.0).tolist()
        labels = [_plain(label) for label in trace.predictions]
        return [
            # Before the first class is known there is no answer, only what a trace fills in.
            (label, share, target) if share else (None, None, target)
            for label, share, target in zip(labels, shares, targets, strict=True)
        ]

    # --- history ----------------------------------------------------------------------------------

    def _remember(self, trace: Any, targets: list[Any]) -> None:
        slots = trace.weights.shape[1]
        if self.history is None:
            self.history = History(slots)
        count = len(targets)
        figures = np.zeros((count, len(TOTALS)))
        extremes = np.full((count, len(EXTREMES)), np.nan)
        figures[:, :2] = 1.0
        if self.settings.task == "regression":
            y = np.array(targets)
            before = np.concatenate([[self._last if self._last is not None else y[0]], y[:-1]])
            figures[:, 2] = (trace.predictions - y) ** 2
            figures[:, 3] = (before - y) ** 2
            figures[:, 4] = (trace.lower <= y) & (y <= trace.upper)
            figures[:, 5] = trace.upper - trace.lower
            losses = (trace.slot_predictions - y[:, None]) ** 2
            extremes[:, 1:] = np.column_stack([y, trace.predictions, y, trace.predictions])
        else:
            last = [self._last if self._last is not None else targets[0], *targets[:-1]]
            figures[:, 2] = [a != b for a, b in zip(trace.predictions, targets, strict=True)]
            figures[:, 3] = [a != b for a, b in zip(last, targets, strict=True)]
            figures[:, 4] = 1.0 - figures[:, 2]
            figures[:, 5] = trace.probabilities.max(axis=1, initial=0.0)
            places = {label: place for place, label in enumerate(trace.classes)}
            numbers = np.array([places.get(label, -2) for label in targets])
            losses = (trace.slot_classes != numbers[:, None]).astype(np.float64)
        extremes[:, 0] = figures[:, 2]
        if self._last is None:  # the first answer was given before any target was known
            figures[0, 1:] = 0.0
            losses[0] = 0.0
            extremes[0, [0, 2, 4]] = np.nan
        if not self.settings.delay:  # else it is the last target that has been learned
            self._last = targets[-1]
        self.history.add(figures, extremes, trace.weights, losses)
        self._due = self.history.due(self.history.rows)

    def _look(self, numeric: int) -> None:
        """Take a snapshot if one is due."""
        if self.history is not None and self._due:
            self._due = False
            taken = snapshot(self.bank, self.history, numeric, self.settings.coverage)
            if taken is not None:
                self.history.take(taken)

    # --- in a file --------------------------------------------------------------------------------

    def described(self) -> tuple[dict[str, Any], dict[str, Floats]]:
        """Everything that the next answer depends on: plain data, and arrays."""
        header, arrays = describe(self.bank)
        own = {f"bank/{name}": array for name, array in arrays.items()}
        if self.history is not None:
            own |= {f"history/{name}": array for name, array in self.history.state().items()}
        own["waiting"] = np.array([x for x, _ in self._waiting] or np.zeros((0, 0)))
        facts = {
            "waiting": [y for _, y in self._waiting],
            "last": self._last,
            "bank": header,
            "history": None if self.history is None else self.history.facts(),
        }
        return facts, own

    def restore(self, facts: Mapping[str, Any], state: Mapping[str, Floats]) -> None:
        """Go on from what `described` said."""
        engine = as_engine(self._engine)
        self.bank = restored(facts["bank"], under("bank/", state), engine, {}, _MOST_MEMORY)
        self._deepen()
        if facts["history"] is not None:
            self.history = History.restored(facts["history"], under("history/", state))
        self._last = facts["last"]
        self._waiting = list(zip(state["waiting"], facts["waiting"], strict=True))


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
