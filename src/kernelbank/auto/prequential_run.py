"""One call of `AutoBank.run`: rows that are answered and learned, and what is recorded of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..bank.trace import Trace
from ..utils.interrupts import defer_sigint
from ..utils.validation import Floats
from .labels import Labels
from .task_model import Desk, Said

_AHEAD = 1024  # labels that are looked up at once


class Run:
    """`given` are the labels of the rows, empty for regression; `class_of` finds new classes."""

    def __init__(
        self,
        desk: Desk,
        rows: Floats,
        targets: Floats,
        given: list[Any],
        labels: Labels,
        class_of: Callable[[Any], int],
        tail: float,
        fields: tuple[str, ...],
    ) -> None:
        self._desk = desk
        self._rows = rows
        self._targets = targets
        self._given = given
        self._labels = labels
        self._class_of = class_of
        self._tail = tail
        self._fields = fields
        self._parts: dict[str, list[Any]] = {name: [] for name in fields}

    def at_once(self) -> None:
        """Every target comes before the next row."""
        desk, rows, targets = self._desk, self._rows, self._targets
        slots = not {"slot_predictions", "slot_classes"}.isdisjoint(self._fields)
        done = 0
        while done < len(rows):
            with defer_sigint():
                end = self._known_until(done)
                if end == done:
                    found = self._play_new(done)
                else:
                    found = desk.play(rows[done:end], targets[done:end], self._tail, slots)
            done += self._record(found)

    def late(self, delay: int) -> None:
        """Every target comes so many rows later, the last ones after the last answer."""
        desk, rows = self._desk, self._rows
        waiting: list[Said] = []
        for t in range(len(rows) + delay):
            with defer_sigint():
                if t < len(rows):
                    said = desk.ask(rows[t][None], desk.lagged[None], self._tail)[0]
                    waiting.append(said)
                    self._record(desk.described(said))
                if t >= delay:
                    row = t - delay
                    if row >= len(rows):
                        break
                    if self._given:
                        self._targets[row] = self._class_of(self._given[row])
                    desk.tell(rows[row], waiting.pop(0), float(self._targets[row]))

    def trace(self) -> Trace:
        """What was recorded."""
        if self._given and "predictions" in self._parts:
            numbers = np.concatenate(self._parts["predictions"])
            # Where no class was known (-1), one that was not it, if there is any.
            for t in np.flatnonzero(numbers < 0):
                numbers[t] = (self._labels.number(self._given[t]) + 1) % len(self._labels)
            self._parts["predictions"] = [self._labels.array(numbers)]
        task = "classification" if self._given else "regression"
        known = tuple(self._labels.known)
        arrays = {name: _joined(parts) for name, parts in self._parts.items()}
        own = {"task": task, "classes": known, "arrays": arrays}
        return Trace(len(self._rows), tuple(self._desk.names), self._fields, **own)

    def _known_until(self, start: int) -> int:
        """Up to where targets are known classes; writes their numbers."""
        if not self._given:
            return len(self._targets)
        end = start
        known = set(self._labels.known)
        while end < min(len(self._given), start + _AHEAD) and self._given[end] in known:
            self._targets[end] = self._labels.number(self._given[end])
            end += 1
        return end

    def _play_new(self, row: int) -> dict[str, Floats]:
        """A row whose class has never been seen: answered without it, then learned."""
        desk = self._desk
        said = desk.ask(self._rows[row][None], desk.lagged[None], self._tail)[0]
        found = desk.described(said)
        desk.tell(self._rows[row], said, float(self._class_of(self._given[row])))
        return found

    def _record(self, found: dict[str, Any]) -> int:
        if "probabilities" in found:
            sure = found["probabilities"]
            unknown = np.full(len(sure), -1)
            found["predictions"] = np.argmax(sure, axis=1) if sure.shape[1] else unknown
        for name, pieces in self._parts.items():
            pieces.append(found[name])
        return len(found["weights"])


def _joined(parts: list[Any]) -> np.ndarray:
    """Pieces one after the other; classes that came later had the probability 0 before."""
    width = max((part.shape[1] for part in parts if part.ndim == 2), default=0)
    filled = [
        np.pad(part, ((0, 0), (0, width - part.shape[1]))) if part.ndim == 2 else part
        for part in parts
    ]
    return np.concatenate(filled)
