"""Targets that a user gives: numbers, with names or without, and the labels of classes."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import FileRefused, InvalidArgument
from ..io.cells import MissingValues
from ..utils import validation as check
from ..utils.validation import Floats
from .inputs import (
    NUMBER,
    codes_of,
    is_missing,
    is_named_row,
    is_table,
    listed,
    means_none,
    read_row,
    read_table,
    with_gaps,
)
from .state import Json, whole_number

if TYPE_CHECKING:
    from .config import AutoConfig

Label = bool | int | float | str

# --- numbers --------------------------------------------------------------------------------------


def checked_targets(
    y: object,
    count: int,
    outputs: int | None,
    names: Sequence[str] | None,
    config: AutoConfig,
    *,
    single: bool = False,
) -> tuple[Floats, tuple[str, ...] | None]:
    """Targets of `count` rows, (n,) or (n, K), and their names, if they have some.

    outputs : how many targets a row has; None if the first rows are to say it.
    names : of the targets, if rows with names were learned.
    """
    values, given_names = y, None
    if not (single and outputs == 1 and type(y) is float and not config.missing):
        values, given_names = read_targets(y, names, config.missing_values, single=single)
    if outputs == 1 or (outputs is None and _has_one_column(values, single=single)):
        targets = check.one_target(values) if single else check.targets(values, count)
    else:
        targets = check.floats("y", values, "Give numbers, NaN where a target is missing.")
        targets = targets[None] if single and targets.ndim else targets
        width = targets.shape[1] if targets.ndim == 2 else 0
        if not width or len(targets) != count or width != (outputs or width):
            wanted = f"{outputs or 'K'}"
            shape = f"({wanted},)" if single else f"({count}, {wanted})"
            remedy = "Give all targets of each row, as many as in the rows before."
            raise check.refuse("y", f"have the shape {shape}", np.asarray(values).shape, remedy)
        if outputs is None:
            config.check_several(width)
        check.within_range("y", np.where(np.isnan(targets), 0.0, targets))
        targets = np.ascontiguousarray(targets)
    check_within_bounds(targets, config)
    return targets, given_names


def _has_one_column(values: object, *, single: bool) -> bool:
    """Whether rows have one target each; shapes that are unknown are left to the checks."""
    try:
        shape = np.shape(np.asarray(values))
    except ValueError:  # ragged
        return False
    return len(shape) < (1 if single else 2) or shape[-1] == 1


def check_within_bounds(targets: Floats, config: AutoConfig) -> None:
    """Refuse targets beyond the bounds: predictions never go there, so they could not be right."""
    for name, bound, sign in (("lower", config.lower, 1.0), ("upper", config.upper, -1.0)):
        if bound is not None and len(outside := np.argwhere(sign * targets < sign * bound)):
            row, *_ = where = outside[0].tolist()
            wrong = float(targets[tuple(where)])
            rule = f"be {'at least' if name == 'lower' else 'at most'} {name}={bound:g}"
            remedy = f"Correct the target of row {row}, or make the AutoBank with another {name}."
            raise check.refuse("y", rule, wrong, remedy)


def read_targets(
    y: object, names: Sequence[str] | None, missing: MissingValues | None, *, single: bool
) -> tuple[object, tuple[str, ...] | None]:
    """Targets in the order of the bank's, and their names; without names None.

    Missing ones are NaN. What is no number is left to the checks of arrays.

    Parameters
    ----------
    y : for a `single` row a dictionary or a series by names, for several rows a table.
    names : of the bank's targets; None if these are the first.
    """
    if single and is_named_row(y):
        columns = read_row(y, "y")
    elif not single and is_table(y):
        columns = read_table(y, "y")
    else:
        return _without_names(y, missing), None
    if names is not None:
        unknown = [name for name in columns if name not in names]
        if unknown or not (single or columns.keys() >= set(names)):
            targets = "the target" if len(names) == 1 else "the targets"
            rule = f"have {targets} {', '.join(map(repr, names))}, as in the rows learned so far"
            remedy = "Give these names, in any order, NaN where a target is missing."
            raise check.refuse("y", rule, list(columns), remedy)
        # One that a dictionary does not have is missing in this row.
        columns = {name: columns.get(name, np.array([math.nan])) for name in names}
    numbers = [_numbers(name, with_gaps(column, missing)) for name, column in columns.items()]
    array = np.column_stack(numbers) if numbers else np.zeros((1, 0))
    return array[0] if single else array, tuple(columns)


def _numbers(name: str, values: np.ndarray) -> np.ndarray:
    """(n,): the targets of one name; NaN for those that are missing, which may be None too."""
    try:
        return codes_of(name, NUMBER, values, {})
    except InvalidArgument:
        wrong = next((value for value in values.tolist() if not _is_number(value)), values[0])
        remedy = (
            "Give a number, or float('nan') where the target is missing; "
            'kb.AutoBank("classification") learns labels.'
        )
        raise check.refuse("y", f"hold numbers for {name!r}", wrong, remedy) from None


def _is_number(value: object) -> bool:
    return isinstance(value, (Real, Decimal)) or is_missing(value)


def _without_names(values: object, missing: MissingValues | None) -> object:
    """Targets with NaN for None, pandas.NA and what means that there is none; or as they are."""
    has_type = missing is None or hasattr(values, "dtype")  # else numbers beside text became text
    try:
        array = np.asarray(values) if has_type else np.array(values, dtype=object)
    except (ValueError, TypeError):  # ragged
        return values
    if np.ma.is_masked(values):
        return values
    array = with_gaps(array, missing)
    members = array.ravel().tolist() if array.dtype.kind == "O" else []
    if members and all(map(_is_number, members)):
        return _numbers("y", np.array([*members, None], dtype=object)[:-1]).reshape(array.shape)
    return values if missing is None or array.dtype.kind not in "biuf" else array


# --- labels ---------------------------------------------------------------------------------------

MAX_CLASSES = 100
"""How many labels are found in a stream by default: a target with more may be a number."""

LARGEST_LIMIT = 10_000  # the most that max_classes may be
LISTED = 12  # labels that a message lists

_REMEDY = "Give booleans, whole or other finite numbers, or text."


class RefusedLabel(NamedTuple):
    """A label that may not occur: in which of the rows that were asked about, and why."""

    row: int
    label: Label
    reason: str
    """As the end of a sentence."""


class ClassLabels:
    """The classes in order: as named, then as they first appear.

    Parameters
    ----------
    classes : the labels that may occur; None if they are found in the stream.
    limit : how many may be found there; by default MAX_CLASSES.
    """

    def __init__(self, classes: Iterable[object] | None = None, limit: int | None = None) -> None:
        self.labels: list[Label] = []
        """In the order of their numbers."""
        self._numbers: dict[Label, int] = {}
        self.named = classes is not None
        """Whether no others may occur."""
        self.limit = MAX_CLASSES
        """How many labels there may be, unless they are named."""
        if limit is not None:
            remedy = "Give how many labels may occur, such as 100."
            most = LARGEST_LIMIT
            self.limit = check.count("max_classes", limit, "AutoBank", remedy, least=2, most=most)
        if classes is not None:
            if limit is not None:
                remedy = "Leave it out: with classes=[...], the named labels may occur, no others."
                raise check.refuse("max_classes", "be left out", limit, remedy, "AutoBank")
            named = checked_labels(classes)
            if len(named) < 2:
                remedy = "Name them all, or leave classes out: they are found in the stream."
                raise check.refuse("classes", "be at least two labels", named, remedy, "AutoBank")
            self.add(named)

    def __len__(self) -> int:
        return len(self.labels)

    def __contains__(self, label: object) -> bool:
        return label in self._numbers

    def add(self, labels: Iterable[Label]) -> None:
        """Add labels that were checked before."""
        for label in labels:
            if label not in self._numbers:
                self._numbers[label] = len(self.labels)
                self.labels.append(label)

    def number(self, label: Label) -> int:
        """The number of a known label's class."""
        return self._numbers[label]

    def known_number(self, label: object) -> int | None:
        """The same for anything; None if it is not a known label as it is."""
        try:
            return self._numbers.get(label)  # type: ignore[call-overload, no-any-return]
        except TypeError:  # not hashable
            return None

    def refused(self, labels: Sequence[Label], waiting: Iterable[Label] = ()) -> list[RefusedLabel]:
        """Which of these labels, in their order, may not occur; changes nothing.

        waiting : labels of earlier rows that will be learned before them.
        """
        coming = {label for label in waiting if label not in self._numbers}
        refused: list[RefusedLabel] = []
        for row, label in enumerate(labels):
            if label in self._numbers or label in coming:
                continue
            if self.named:
                reason = f"is not one of the {len(self.labels)} classes that were named"
                refused.append(RefusedLabel(row, label, reason))
            elif len(self.labels) + len(coming) >= self.limit:
                refused.append(RefusedLabel(row, label, f"is one label more than {self.limit}"))
            else:
                coming.add(label)
        return refused

    def restore(self, header: Json) -> None:
        """Take over the labels of a file, and which others may occur."""
        labels, named = header["classes"], header["classes_named"]
        limit = whole_number(header["max_classes"], 0, 10**6, "the most classes")
        if not all(isinstance(label, (bool, int, float, str)) for label in labels):
            raise FileRefused("its classes are not labels.")
        self.add(labels)
        if len(self) < len(labels):  # such as 0 and False
            raise FileRefused("its classes are not different labels.")
        if not isinstance(named, bool):
            raise FileRefused("it does not say whether its classes were named.")
        self.named, self.limit = named, MAX_CLASSES if named else limit

    def check(
        self, y: object, length: int | None, missing: MissingValues | None = None
    ) -> list[Label]:
        """The labels of `length` rows, or of one (None), as plain values.

        Refuses what is no label, and labels that may not occur; then nothing has changed.
        """
        values = [y] if length is None else _listed(y, length)
        values = [None if means_none(value, missing) else value for value in values]
        labels = [plain(value, "y") for value in values]
        refused = self.refused(labels)
        if refused:
            raise self._refusal(refused[0], single=length is None)
        return labels

    def _refusal(self, refused: RefusedLabel, *, single: bool) -> InvalidArgument:
        label = refused.label
        where = "" if single else f" in row {refused.row}"
        add = f"bank.add_classes([{label!r}])"
        if not self.named:
            return InvalidArgument(
                f"'y' must have at most {self.limit} different labels; got {label!r}{where}. For "
                f'numbers use task="regression"; for more labels make the AutoBank with a larger '
                f"max_classes or with classes=[...], or add them: {add}."
            )
        meant = nearest_label(label, self.labels)
        typo = "" if meant is None else f" Did you mean {meant!r}?"
        return InvalidArgument(
            f"'y' has the label {label!r}{where}, which is not one of the {len(self.labels)} "
            f"classes that were named: {listed(self.labels, LISTED)}.{typo} "
            f"Correct it, or add it: {add}."
        )

    def array(self, numbers: np.ndarray) -> np.ndarray:
        """The labels of class numbers (n,), as an array of their own type; None for -1."""
        kinds = {type(label) for label in self.labels}
        if (len(kinds) < 2 or kinds == {int, float}) and (numbers >= 0).all():
            alike = np.array(self.labels)
            if alike.tolist() == self.labels:  # large whole numbers may not be floats
                return np.asarray(alike[numbers])
        mixed = np.empty(len(self.labels) + 1, dtype=object)
        mixed[:] = [*self.labels, None]
        return np.asarray(mixed[numbers])


def checked_labels(classes: object) -> list[Label]:
    """Labels that a user names, as plain values, none twice."""
    if isinstance(classes, (str, bytes)) or not isinstance(classes, Iterable):
        remedy = 'Give a list of labels, such as ["no", "yes"], or leave it out.'
        raise check.refuse("classes", "be a list of labels", classes, remedy, "AutoBank")
    named = [plain(label, "classes") for label in classes]
    if len(set(named)) < len(named):
        remedy = "Name each label once."
        raise check.refuse("classes", "be different labels", named, remedy, "AutoBank")
    return named


def nearest_label(label: object, labels: Iterable[object]) -> str | None:
    """The text among labels of which one is most likely a misspelling; None if there is none."""
    texts = [text for text in labels if isinstance(text, str)]
    if not isinstance(label, str):
        return None
    plainly = label.strip().casefold()
    same = [text for text in texts if text.strip().casefold() == plainly]
    return next(iter(same or difflib.get_close_matches(label[:200], texts, n=1, cutoff=0.75)), None)


def plain(label: object, name: str) -> Label:
    """A label as a plain Python value; whole floats are whole numbers."""
    value: object = label
    if isinstance(label, (np.generic, np.ndarray)) and label.size == 1:
        value = None if np.ma.is_masked(label) else label.item()
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


def _listed(y: object, length: int) -> list[object]:
    remedy = "Give one label for each row of X."
    if isinstance(y, (str, bytes)) or not isinstance(y, Iterable):
        raise check.refuse("y", "be a list of labels", y, remedy)
    if np.ma.is_masked(y):
        raise check.refuse("y", "have no masked members", y, "Leave out rows without a label.")
    if not isinstance(y, (list, tuple)):
        array = np.asarray(y)
        array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
        if array.ndim != 1:
            raise check.refuse("y", "have the shape (n,)", array.shape, remedy)
        y = array
    values = list(y)
    if len(values) != length:
        raise check.refuse("y", f"have as many rows as X ({length})", len(values), remedy)
    return values


def best_class(probabilities: Floats) -> np.ndarray:
    """(n,): the most probable class; -1 if no class is known."""
    if not probabilities.shape[1]:
        return np.full(len(probabilities), -1)
    return np.asarray(np.argmax(probabilities, axis=1))
