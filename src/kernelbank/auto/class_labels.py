"""The labels of classes: as they are given, and as numbers from 0."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from ..utils import validation as check

MAX_CLASSES = 100
"""More classes than this have to be named: such a target may be a number."""

LISTED = 12
"""Labels that a message lists."""

_REMEDY = "Give booleans, whole or other finite numbers, or text."


class ClassLabels:
    """The classes in order: as named, then as they first appear."""

    def __init__(self, classes: Iterable[Any] | None) -> None:
        self.known: list[Any] = []
        self._numbers: dict[Any, int] = {}
        if classes is None:
            return
        if isinstance(classes, (str, bytes)) or not isinstance(classes, Iterable):
            remedy = 'Give a list of labels, such as ["no", "yes"], or leave it out.'
            raise check.refuse("classes", "be a list of labels", classes, remedy, "AutoBank")
        named = [plain(label, "classes") for label in classes]
        if len(named) < 2 or len(set(named)) < len(named):
            remedy = "Name each label once, or leave classes out: they are found in the stream."
            raise check.refuse("classes", "be at least two different labels", named, remedy)
        self.add(named)

    def __len__(self) -> int:
        return len(self.known)

    def __contains__(self, label: Any) -> bool:
        return label in self._numbers

    def add(self, labels: Iterable[Any]) -> None:
        """Add labels that were checked before."""
        for label in labels:
            if label not in self._numbers:
                self._numbers[label] = len(self.known)
                self.known.append(label)

    def number(self, label: Any) -> int:
        """The number of a known label's class."""
        return self._numbers[label]

    def numbers_ahead(self, labels: Iterable[Any]) -> np.ndarray:
        """(n,): the numbers of labels, as new ones among them will get them; adds none."""
        ahead: dict[Any, int] = {}
        numbers = [
            self._numbers[label]
            if label in self._numbers
            else ahead.setdefault(label, len(self.known) + len(ahead))
            for label in labels
        ]
        return np.array(numbers, dtype=np.float64)

    def check(self, y: Any, length: int | None, limit: int) -> list[Any]:
        """The labels of `length` rows, or of one (None), as plain values; refuses what is no label.

        limit : how many classes there may be.
        """
        values = [y] if length is None else _listed(y, length)
        found = [plain(value, "y") for value in values]
        most = max(limit, len(self.known))
        new = [label for label in dict.fromkeys(found) if label not in self._numbers]
        if len(self.known) + len(new) > most and limit != MAX_CLASSES:
            more = ", ..." if len(self.known) > LISTED else ""
            listed = ", ".join(map(repr, self.known[:LISTED])) + more
            raise InvalidArgument(
                f"'y' has the label {new[0]!r}, which is not one of the {most} classes that were "
                f"named: {listed}. Name all labels that may come, or leave classes out: then they "
                "are found in the stream."
            )
        if len(self.known) + len(new) > most:
            raise InvalidArgument(
                f"'y' must have at most {most} different labels; got more, such as {new[-1]!r}. "
                'For numbers use task="regression" (in a command: --task regression); for more '
                "labels name them all, in Python: classes=[...]."
            )
        return found

    def array(self, numbers: np.ndarray) -> np.ndarray:
        """The labels of class numbers (n,), as an array of their own type."""
        kinds = {type(label) for label in self.known}
        if kinds <= {bool} or kinds <= {int} or kinds <= {int, float} or kinds <= {str}:
            alike = np.array(self.known)
            if alike.tolist() == self.known:  # large whole numbers may not be floats
                return alike[numbers]
        mixed = np.empty(len(self.known), dtype=object)
        mixed[:] = self.known
        return mixed[numbers]


def plain(label: Any, name: str) -> Any:
    """A label as a plain Python value; whole floats are whole numbers."""
    value = (
        label.item() if isinstance(label, (np.generic, np.ndarray)) and label.size == 1 else label
    )
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        raise InvalidArgument(
            f"'{name}' has a missing label ({value!r}). Leave such rows out of learning: "
            "predict_one works without a label."
        )
    raise check.refuse(name, "hold labels", label, _REMEDY)


def _listed(y: Any, length: int) -> list[Any]:
    if isinstance(y, (str, bytes)) or not isinstance(y, Iterable):
        raise check.refuse("y", "be a list of labels", y, "Give one label for each row of X.")
    array = np.asarray(y) if not isinstance(y, (list, tuple)) else None
    if array is not None and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array is not None and array.ndim != 1:
        raise check.refuse("y", "have the shape (n,)", array.shape, "Give one label per row.")
    values = list(y) if array is None else list(array)
    if len(values) != length:
        remedy = "Give one label for each row of X."
        raise check.refuse("y", f"have as many rows as X ({length})", len(values), remedy)
    return values
