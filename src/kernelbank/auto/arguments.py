"""Checks of the arguments of an AutoBank, before anything changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bank.slot import Slot, given_slots
from ..losses import Loss, as_loss
from ..utils import validation as check
from ..utils.validation import Floats
from .encoding.named_targets import read_targets, with_missing_as_nan
from .scaling.scaling import SCALINGS

if TYPE_CHECKING:
    from .config import AutoConfig


def checked_coverage(coverage: Any) -> float:
    """The coverage of an interval, between 0 and 1."""
    remedy = "Give a share between 0 and 1, such as 0.9."
    return check.number("coverage", coverage, "AutoBank", remedy, above=0, below=1)


def checked_slots(slots: Any) -> tuple[Slot, ...]:
    """The user's own slots."""
    remedy = "Give a list of kb.Slot(kernel, learner), or leave it out for the default ones."
    return given_slots(slots, "AutoBank", remedy)


def checked_loss(loss: Any, task: str) -> Loss:
    """A loss that fits the task."""
    found = as_loss(loss)
    if found.labels and task == "regression":
        remedy = 'Use task="classification", or a loss for numbers, such as "squared".'
        raise check.refuse("loss", "be one for numbers in regression", loss, remedy, "AutoBank")
    if not found.labels and not found.any_target:
        remedy = (
            'Use "squared" with lower=0, which predicts the mean of counts, or '
            "kb.KernelBank(loss=...), which takes targets as they are."
        )
        rule = "be one for all numbers, because targets are standardised"
        raise check.refuse("loss", rule, loss, remedy, "AutoBank")
    return found


def checked_bounds(lower: Any, upper: Any, task: str) -> tuple[float | None, float | None]:
    """What no target lies below and above; None for no bound."""
    found = []
    for name, bound in (("lower", lower), ("upper", upper)):
        if bound is not None and task == "classification":
            remedy = "Leave it out: labels have no bounds."
            raise check.refuse(name, "be left out for classification", bound, remedy, "AutoBank")
        remedy = "Give the number that no target can pass, or leave it out."
        known = bound is not None
        most = check.LARGEST
        found.append(
            check.number(name, bound, "AutoBank", remedy, least=-most, most=most) if known else None
        )
    low, high = found
    if low is not None and high is not None and not low < high:
        remedy = "Give the smaller number as lower and the larger one as upper."
        raise check.refuse("lower", f"be less than upper, which is {high:g}", low, remedy)
    return low, high


LONGEST_HORIZON = 1000
"""How many rows ahead a forecast may be."""


def checked_horizons(horizons: Any, task: str) -> tuple[int, ...]:
    """Horizons in ascending order; none for None."""
    if horizons is None:
        return ()
    owner, remedy = "AutoBank", "Give rows ahead, such as (1, 6, 24), or 24 for 1 to 24."
    if task == "classification":
        rule = "be left out for classification"
        raise check.refuse("horizons", rule, horizons, "Leave it out.", owner)
    if isinstance(horizons, Iterable) and not isinstance(horizons, (str, bytes)):
        given = [
            check.count("horizons", one, owner, remedy, most=LONGEST_HORIZON) for one in horizons
        ]
        if not given or len(set(given)) < len(given):
            raise check.refuse("horizons", "name at least one, none twice", given, remedy, owner)
        return tuple(sorted(given))
    last = check.count("horizons", horizons, owner, remedy, most=LONGEST_HORIZON)
    return tuple(range(1, last + 1))


def checked_quantiles(quantiles: Any, task: str) -> tuple[float, ...]:
    """Levels in ascending order; none for None."""
    if quantiles is None:
        return ()
    owner, remedy = "AutoBank", "Give levels between 0 and 1, such as (0.05, 0.5, 0.95)."
    if task == "classification":
        rule = "be left out for classification"
        raise check.refuse("quantiles", rule, quantiles, "Leave it out.", owner)
    is_list = isinstance(quantiles, Iterable) and not isinstance(quantiles, (str, bytes))
    listed = list(quantiles) if is_list else [quantiles]
    levels = [check.number("quantiles", level, owner, remedy, above=0, below=1) for level in listed]
    if len(levels) < 2 or len(set(levels)) < len(levels):
        rule = "be two levels or more, none twice"
        remedy += " For one quantile use loss=kb.losses.Pinball(level)."
        raise check.refuse("quantiles", rule, quantiles, remedy, owner)
    return tuple(sorted(levels))


def checked_known(known: Any, horizons: tuple[int, ...]) -> tuple[Any, ...]:
    """Names or indices of columns whose future values are known; none for None."""
    if known is None:
        return ()
    remedy = 'Give names or indices of columns, such as ["hour", "price"].'
    listed = list(known) if isinstance(known, Iterable) and not isinstance(known, str) else [known]
    if not horizons:
        rule = "be given with horizons only"
        raise check.refuse("known", rule, known, "Add horizons, such as horizons=24.", "AutoBank")
    for one in listed:
        whole = isinstance(one, (int, np.integer)) and not isinstance(one, bool) and one >= 0
        if not (isinstance(one, str) or whole):
            raise check.refuse("known", "be names or indices of columns", one, remedy, "AutoBank")
    if not listed or len(set(listed)) < len(listed):
        raise check.refuse("known", "name at least one, none twice", known, remedy, "AutoBank")
    return tuple(one if isinstance(one, str) else int(one) for one in listed)


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


def checked_scalings(scalings: Any, usual: tuple[str, ...]) -> tuple[str, ...]:
    """The names of scalings, in their usual order; `usual` if None is given."""
    if scalings is None:
        return usual
    remedy = 'Give one or a list of some of them, such as ["standard", "rank"].'
    if not isinstance(scalings, Iterable):
        raise check.refuse("scalings", "be a word or a list of words", scalings, remedy, "AutoBank")
    words = [scalings] if isinstance(scalings, str) else scalings
    given = tuple(check.choice("scalings", name, "AutoBank", SCALINGS) for name in words)
    if not given or len(set(given)) < len(given):
        raise check.refuse("scalings", "name at least one, none twice", given, remedy, "AutoBank")
    return tuple(name for name in SCALINGS if name in given)
