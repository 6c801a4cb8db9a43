"""The labels of classes: as they are given, and as numbers from 0."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import InvalidArgument
from ...utils import validation as check

MAX_CLASSES = 100
"""How many labels are found in a stream by default: a target with more may be a number."""

LARGEST_LIMIT = 10_000
"""The most that max_classes may be."""

LISTED = 12
"""Labels that a message lists."""

_REMEDY = "Give booleans, whole or other finite numbers, or text."


class RefusedLabel(NamedTuple):
    """A label that may not occur: in which of the rows that were asked about, and why."""

    row: int
    label: Any
    reason: str
    """As the end of a sentence."""


class ClassLabels:
    """The classes in order: as named, then as they first appear.

    Parameters
    ----------
    classes : the labels that may occur; None if they are found in the stream.
    limit : how many may be found there; by default MAX_CLASSES.
    """

    def __init__(self, classes: Iterable[Any] | None = None, limit: int | None = None) -> None:
        self.known: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self.named = classes is not None
        """Whether only the known labels may occur."""
        self.limit = MAX_CLASSES
        """How many labels there may be, unless they are named."""
        if limit is not None:
            remedy = "Give how many labels may occur, such as 100."
            most = LARGEST_LIMIT
            self.limit = check.count("max_classes", limit, "AutoBank", remedy, least=2, most=most)
            if classes is not None:
                remedy = "Leave it out: with classes=[...], the named labels may occur, no others."
                raise check.refuse("max_classes", "be left out", limit, remedy, "AutoBank")
        if classes is not None:
            named = checked_labels(classes)
            if len(named) < 2:
                remedy = "Name them all, or leave classes out: they are found in the stream."
                raise check.refuse("classes", "be at least two labels", named, remedy, "AutoBank")
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

    def refused(self, labels: Sequence[Any], waiting: Iterable[Any] = ()) -> list[RefusedLabel]:
        """Which of these labels, in their order, may not occur; changes nothing.

        waiting : labels of earlier rows that will be learned before them.
        """
        coming = {label for label in waiting if label not in self._numbers}
        found: list[RefusedLabel] = []
        for row, label in enumerate(labels):
            if label in self._numbers or label in coming:
                continue
            if self.named:
                reason = f"is not one of the {len(self.known)} classes that were named"
                found.append(RefusedLabel(row, label, reason))
            elif len(self.known) + len(coming) >= self.limit:
                found.append(RefusedLabel(row, label, f"is one label more than {self.limit}"))
            else:
                coming.add(label)
        return found

    def check(self, y: Any, length: int | None) -> list[Any]:
        """The labels of `length` rows, or of one (None), as plain values.

        Refuses what is no label, and labels that may not occur; then nothing has changed.
        """
        values = [y] if length is None else _listed(y, length)
        labels = [plain(value, "y") for value in values]
        refused = self.refused(labels)
        if refused:
            raise self._refusal(refused[0], one=length is None)
        return labels

    def _refusal(self, refused: RefusedLabel, *, one: bool) -> InvalidArgument:
        label = refused.label
        where = "" if one else f" in row {refused.row}"
        add = f"bank.add_classes([{label!r}])"
        if not self.named:
            return InvalidArgument(
                f"'y' must have at most {self.limit} different labels; got {label!r}{where}. For "
                f'numbers use task="regression"; for more labels make the AutoBank with a larger '
                f"max_classes or with classes=[...], or add them: {add}."
            )
        more = ", ..." if len(self.known) > LISTED else ""
        listed = ", ".join(map(repr, self.known[:LISTED])) + more
        meant = nearest_label(label, self.known)
        typo = "" if meant is None else f" Did you mean {meant!r}?"
        return InvalidArgument(
            f"'y' has the label {label!r}{where}, which is not one of the {len(self.known)} "
            f"classes that were named: {listed}.{typo} Correct it, or add it: {add}."
        )

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


def checked_labels(classes: Any) -> list[Any]:
    """Labels that a user names, as plain values, none twice."""
    if isinstance(classes, (str, bytes)) or not isinstance(classes, Iterable):
        remedy = 'Give a list of labels, such as ["no", "yes"], or leave it out.'
        raise check.refuse("classes", "be a list of labels", classes, remedy, "AutoBank")
    named = [plain(label, "classes") for label in classes]
    if len(set(named)) < len(named):
        remedy = "Name each label once."
        raise check.refuse("classes", "be different labels", named, remedy, "AutoBank")
    return named


def nearest_label(label: Any, known: Iterable[Any]) -> Any:
    """The known text of which a label is most likely a misspelling; None if there is none."""
    texts = [one for one in known if isinstance(one, str)]
    if not isinstance(label, str):
        return None
    plainly = label.strip().casefold()
    same = [one for one in texts if one.strip().casefold() == plainly]
    return next(iter(same or difflib.get_close_matches(label[:200], texts, n=1, cutoff=0.75)), None)


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
