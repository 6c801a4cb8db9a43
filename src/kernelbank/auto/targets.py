"""Targets that a user gives: numbers, with names or without, and the labels of classes."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InvalidArgument
from ..utils import validation as check
from ..utils.validation import Floats
from .inputs import (
    NUMBER,
    Columns,
    codes_of,
    is_missing,
    is_named_row,
    is_table,
    read_row,
    read_table,
)

if TYPE_CHECKING:
    from .config import AutoConfig

# --- numbers --------------------------------------------------------------------------------------


def checked_targets(
    y: Any,
    count: int,
    outputs: int | None,
    config: AutoConfig,
    *,
    known: Sequence[str] | None = None,
    one: bool = False,
) -> tuple[Floats, tuple[str, ...] | None]:
    """Targets of `count` rows, (n,) or (n, K), and the names of several ones, if they have names.

    outputs : how many targets a row has; None if the first rows are to say it.
    known : the names of several targets, if rows with some were learned.
    """
    if one and outputs == 1 and type(y) is float and -check.LARGEST <= y <= check.LARGEST:
        found = np.array([y])
        check_within_bounds(found, config.bounds)
        return found, None
    values, names = read_targets(y, known, one=one)
    if outputs == 1 or _is_single(values, outputs, one=one):
        found = check.one_target(values) if one else check.targets(values, count)
        check_within_bounds(found, config.bounds)
        return found, None
    remedy = "Give numbers, NaN where a target is missing."
    array = check.floats("y", with_missing_as_nan(values), remedy)
    array = array[None] if one and array.ndim else array
    width = array.shape[1] if array.ndim == 2 else 0
    if len(array.shape) != 2 or len(array) != count or width != (outputs or width) or not width:
        wanted = f"{'K' if outputs is None else outputs}"
        shape = f"({wanted},)" if one else f"({count}, {wanted})"
        remedy = "Give all targets of each row, as many as in the rows before."
        raise check.refuse("y", f"have the shape {shape}", np.shape(values), remedy)
    if outputs is None:
        config.check_several(width)
    missing = np.isnan(array)
    check.within_range("y", np.where(missing, 0.0, array))
    for column, gaps in zip(array.T, missing.T, strict=True):
        if not gaps.all():
            check_within_bounds(column[~gaps], config.bounds)
    return np.ascontiguousarray(array), names


def _is_single(values: Any, outputs: int | None, *, one: bool) -> bool:
    """Whether targets are those of one per row; unknown ones are left to the checks of arrays."""
    if outputs is not None:
        return False
    try:
        shape = np.shape(values)
    except ValueError:  # ragged
        return False
    return len(shape) < (1 if one else 2) or shape[-1] == 1


def check_within_bounds(targets: Floats, bounds: Floats) -> None:
    """Refuse targets beyond the bounds: predictions never go there, so they could not be right."""
    lower, upper = bounds.tolist()
    if (lower > -np.inf or upper < np.inf) and not (
        targets.min() >= lower and targets.max() <= upper
    ):
        outside = (targets < bounds[0]) | (targets > bounds[1])
        row = int(np.argmax(outside))
        below = targets[row] < bounds[0]
        name, bound = ("lower", bounds[0]) if below else ("upper", bounds[1])
        raise check.refuse(
            "y",
            f"be {'at least' if below else 'at most'} {name}={bound:g}",
            float(targets[row]),
            f"Correct the target of row {row}, or make the AutoBank with another {name}.",
        )


def read_targets(
    y: Any, known: Sequence[str] | None, *, one: bool
) -> tuple[Any, tuple[str, ...] | None]:
    """Targets in the order of the bank's, and their names; without names y as it is, and None.

    Parameters
    ----------
    y : for `one` row a dictionary or a series by names, for several rows a table.
    known : the names of the bank's targets; None if these are the first.
    """
    if one and is_named_row(y):
        columns = read_row(y, "y")
    elif not one and is_table(y):
        columns = read_table(y, "y")
    else:
        return y, None
    if known is not None:
        columns = _in_order(columns, known, one=one)
    numbers = [_numbers(name, values) for name, values in columns.items()]
    array = np.column_stack(numbers) if numbers else np.zeros((1, 0))
    return array[0] if one else array, tuple(columns)


def _in_order(columns: Columns, known: Sequence[str], *, one: bool) -> Columns:
    """The columns of known targets. One that a dictionary does not have is missing in this row."""
    unknown = [name for name in columns if name not in known]
    absent = [] if one else [name for name in known if name not in columns]
    if unknown or absent:
        rule = f"have the targets {', '.join(map(repr, known))}, as in the rows learned so far"
        remedy = "Give these names, in any order, NaN where a target is missing."
        raise check.refuse("y", rule, list(columns), remedy)
    return {name: columns.get(name, np.array([math.nan])) for name in known}


def _numbers(name: str, values: np.ndarray) -> np.ndarray:
    """(n,): the targets of one name; NaN for those that are missing, which may be None too."""
    try:
        return codes_of(name, NUMBER, values, {})
    except InvalidArgument:
        wrong = next((one for one in values.tolist() if not _is_number(one)), values[0])
        remedy = (
            "Give a number, or float('nan') where the target is missing; "
            'kb.AutoBank("classification") learns labels.'
        )
        raise check.refuse("y", f"hold numbers for {name!r}", wrong, remedy) from None


def _is_number(value: Any) -> bool:
    return isinstance(value, (Real, Decimal)) or is_missing(value)


def with_missing_as_nan(values: Any) -> Any:
    """Targets without names, with NaN for None and pandas.NA; anything else as it is."""
    try:
        array = np.asarray(values)
    except (ValueError, TypeError):  # ragged
        return values
    if array.dtype.kind != "O":
        return values
    members = array.ravel().tolist()
    if not members or not all(_is_number(one) for one in members):
        return values
    return _numbers("y", np.array([*members, None], dtype=object)[:-1]).reshape(array.shape)


# --- labels ---------------------------------------------------------------------------------------

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


def best_class(probabilities: Floats) -> np.ndarray:
    """(n,): the most probable class; -1 if no class is known."""
    if not probabilities.shape[1]:
        return np.full(len(probabilities), -1)
    return np.argmax(probabilities, axis=1)
