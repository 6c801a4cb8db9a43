"""What a run of an AutoBank leaves behind: one row per sample."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import _validate as check
from .._validate import Floats

NUMBERS = ("predictions", "lower", "upper", "weights", "slot_predictions")
CLASSES = ("predictions", "probabilities", "weights", "slot_predictions", "slot_answers")
BY_SLOT = ("weights", "slot_predictions", "slot_answers")


class AutoTrace:
    """The record of a run. Row n holds what was answered before target n was known.

    - predictions: numbers in the target's units, or labels
    - lower, upper: the interval of the coverage that `run` was asked for (regression)
    - probabilities: (n, classes), columns in the order of `classes` (classification)
    - weights: (n, P), of the slots; with more than two classes those of the first class's bank
    - slot_predictions: (n, P), of every slot alone: in the target's units; for two classes scores,
      positive for the second
    - slot_answers: (n, P), the place in `classes` of what every slot alone would have answered, -1
      before the first label was known (classification)
    """

    predictions: np.ndarray
    lower: Floats
    upper: Floats
    probabilities: Floats
    weights: Floats
    slot_predictions: Floats
    slot_answers: Floats

    def __init__(
        self, fields: tuple[str, ...], parts: dict[str, list[Any]], classes: tuple[Any, ...]
    ) -> None:
        self._fields = fields
        self.classes = classes
        for name in fields:
            setattr(self, name, _joined(parts[name]))

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the recorded arrays."""
        return self._fields

    def __len__(self) -> int:
        return len(getattr(self, self._fields[0])) if self._fields else 0

    def __getattr__(self, name: str) -> Any:
        if name in (*NUMBERS, *CLASSES):
            raise AttributeError(
                f"this trace has no {name!r}: it holds {list(self._fields)}. "
                'Some belong to one task only; others need run(..., record="all").'
            )
        raise AttributeError(name)

    def __repr__(self) -> str:
        return f"AutoTrace({len(self)} samples; {', '.join(self._fields)})"


def _joined(parts: list[Any]) -> np.ndarray:
    """Pieces one after the other; classes that came later had the probability 0 before."""
    width = max((part.shape[1] for part in parts if part.ndim == 2), default=0)
    filled = [
        np.pad(part, ((0, 0), (0, width - part.shape[1]))) if part.ndim == 2 else part
        for part in parts
    ]
    return np.concatenate(filled)


def chosen_fields(record: Any, task: str) -> tuple[str, ...]:
    """The fields that `record` asks for, in their usual order."""
    known = NUMBERS if task == "regression" else CLASSES
    if isinstance(record, str) and record in ("all", "light"):
        return tuple(name for name in known if record == "all" or name not in BY_SLOT)
    remedy = 'Use "light", "all" (also what is kept for every slot), or a list of names.'
    if isinstance(record, str) or not isinstance(record, Iterable):
        raise check.refuse("record", 'be "light", "all" or a list of names', record, remedy)
    names = tuple(record)
    for name in names:
        if name not in known:
            raise check.refuse("record", f"hold names from {list(known)}", name, remedy)
    if not names:
        raise check.refuse("record", "name at least one field", record, remedy)
    return tuple(name for name in known if name in names)
