"""`Slot`: one function estimate of a bank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property, partial
from types import NoneType
from typing import Any, NamedTuple

from ..kernels import (
    ActiveDims,
    Kernel,
    Product,
    Scaled,
    Sum,
    gaussian_grid,
    kernel_list,
    require_kernel,
)
from ..learners import Learner, Norma
from ..losses import Custom, Loss, Objective, as_loss
from ..transforms import ShiftedLog
from ..utils import validation as check
from ..utils.rendering import one_line, shortened


class Method(NamedTuple):
    """How a slot learns: all of it but the kernel."""

    learner: Learner
    loss: Loss | None
    residual_of: int | None
    transform: ShiftedLog | None

    @property
    def changes_target(self) -> bool:
        """Whether the learner has another target than the bank."""
        return self.residual_of is not None or self.transform is not None

    def objective(self, objective: Objective) -> Objective:
        """The objective by which the slot learns, in a bank with that one."""
        return objective if self.loss is None else replace(objective, loss=self.loss)


_LEARNERS = "Use one of kb.learners, such as kb.learners.Norma()."
_TRANSFORMS = "Use one of kb.transforms, such as kb.transforms.ShiftedLog(2.0), or None."


def _slot_loss(name: str, value: object, owner: str) -> Loss | None:
    """The loss by which a slot learns: the targets of the slot may be any numbers."""
    loss = None if value is None else as_loss(value)
    if loss is not None and (not loss.any_target or isinstance(loss, Custom)):
        remedy = 'Use "squared" or another loss for all numbers; Custom is for the bank.'
        raise check.refuse(name, "be a built-in loss for all numbers", loss, remedy, owner)
    return loss


@dataclass(frozen=True)
class Slot(check.Settings):
    """One function estimate of a bank: a kernel and the online method that learns with it.

    Parameters
    ----------
    kernel : one of `kb.kernels`.
    learner : one of `kb.learners`.
    loss : the loss by which this slot learns, or its name; by default the bank's. A built-in loss
        for all numbers. The bank still judges the slot by its own loss: a second-order learner,
        which needs a curvature, can so be a slot of a bank for the absolute loss. It then aims
        at what its own loss aims at (the mean, not the median).
    residual_of : index, from 0, of an earlier slot of the bank. With b the function of that slot
        before it learned the sample, this slot learns y - b(x), and its function is b + its own.
        norm^2 is the sum of both. Cost and memory: those of the learner; the base runs only once.
    transform : one of `kb.transforms`, T. The slot learns T(y), and its function is T^-1 of what it
        has found; with a base b it learns T(y) - T(b(x)). The bank judges it by its predictions of
        y. T^-1 of a mean is not the mean, but near it where errors are small beside the bend of T.

    >>> import kernelbank as kb
    >>> line = kb.Slot(kb.kernels.Linear(1.0), kb.learners.LinearRLS())
    >>> rest = kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.KRLS(), residual_of=0)
    >>> bank = kb.KernelBank(slots=[line, rest])
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, n / 10 + (n % 20 < 10))
    >>> bool(bank.ledger.slot_loss[1] < bank.ledger.slot_loss[0])
    True
    """

    kernel: Kernel = field(metadata={"rule": partial(require_kernel, pairwise=False)})
    learner: Learner = field(metadata=check.instance_of(Learner, "a learner", _LEARNERS))
    loss: Loss | None = field(default=None, metadata={"rule": _slot_loss})
    residual_of: int | None = check.count_field(
        None, "Give the index, from 0, of an earlier slot of the bank, or None.", least=0
    )
    transform: ShiftedLog | None = field(
        default=None,
        metadata=check.instance_of(
            (ShiftedLog, NoneType), "a transform of the target", _TRANSFORMS
        ),
    )

    @property
    def method(self) -> Method:
        """How the slot learns."""
        return Method(self.learner, self.loss, self.residual_of, self.transform)


def late_prices(slots: Sequence[Slot]) -> list[float]:
    """(P,): of every slot; that on a residual has at least the price of its base."""
    prices: list[float] = []
    for slot in slots:
        base = 0.0 if slot.residual_of is None else prices[slot.residual_of]
        prices.append(max(base, slot.learner.late_price))
    return prices


def slot_tuple(slots: object, owner: str, remedy: str) -> tuple[Slot, ...]:
    """The slots that a user gives, checked."""
    listed = tuple(slots) if isinstance(slots, Iterable) else ()
    if not listed or not all(isinstance(slot, Slot) for slot in listed):
        raise check.refuse("slots", "be a list of at least one Slot", slots, remedy, owner)
    return listed


def bank_slots(dictionary: Any, learner: Any, slots: object) -> tuple[Slot, ...]:
    """The slots of a bank, given one by one or as kernels with a learner for all."""
    remedy = "Give a list of kb.Slot(kernel, learner), without dictionary and learner."
    if slots is not None:
        if dictionary is not None or learner is not None:
            raise check.refuse("slots", "be given alone", slots, remedy, "KernelBank")
        return slot_tuple(slots, "KernelBank", remedy)
    chosen = gaussian_grid(0.1, 10, 20) if dictionary is None else dictionary
    method = Norma() if learner is None else learner
    return tuple(Slot(kernel, method) for kernel in kernel_list(chosen, "dictionary", "KernelBank"))


LONGEST = 56
"""Characters of a kernel's or learner's name in the name of a slot."""


def full_name(component: object) -> str:
    """The repr in one line; the name of the class for components whose repr raises."""
    try:
        return one_line(repr(component))
    except Exception:
        return type(component).__name__


def short_name(component: object) -> str:
    """The component with those of its settings that are not the defaults."""
    return _call(component, defaults=False)


def method_name(slot: Slot, name: Callable[[object], str] = short_name) -> str:
    """The learner; the slot's own loss, its transform and the slot whose residual it learns."""
    parts = [shortened(name(slot.learner), LONGEST)]
    if slot.loss is not None:
        parts.append(f"loss {name(slot.loss)}")
    if slot.transform is not None:
        parts.append(f"transform {name(slot.transform)}")
    if slot.residual_of is not None:
        parts.append(f"residual of [{slot.residual_of}]")
    return ", ".join(parts)


def distinct_methods(slots: Sequence[Slot]) -> list[Slot]:
    """A slot of every combination of learner, loss, transform and residual_of."""
    return list({slot.method: slot for slot in reversed(slots)}.values())[::-1]


class SlotNames(Sequence[str]):
    """The names of a bank's slots: "[index] kernel", and the method where methods differ.

    They are made when they are first asked for: a bank may have many slots.
    """

    def __init__(self, slots: Sequence[Slot]) -> None:
        self._slots = slots

    @cached_property
    def _names(self) -> tuple[str, ...]:
        several, names = len(distinct_methods(self._slots)) > 1, []
        for index, slot in enumerate(self._slots):
            name = shortened(kernel_name(slot.kernel), LONGEST)
            name += f", {method_name(slot)}" if several else ""
            names.append(f"[{index}] {one_line(name)}")
        return tuple(names)

    def __len__(self) -> int:
        return len(self._slots)

    def __getitem__(self, index: Any) -> Any:
        return self._names[index]

    def __reduce__(self) -> tuple[object, ...]:
        """As text: slots may hold functions that cannot be pickled."""
        return tuple, (self._names,)


def kernel_name(kernel: Kernel) -> str:
    """A kernel as a formula."""
    if isinstance(kernel, Sum):
        return f"{kernel_name(kernel.left)} + {kernel_name(kernel.right)}"
    if isinstance(kernel, Product):
        return f"{_factor(kernel.left)} * {_factor(kernel.right)}"
    if isinstance(kernel, Scaled):
        return f"{kernel.factor:.4g} * {_factor(kernel.kernel)}"
    if isinstance(kernel, ActiveDims):
        return f"{_factor(kernel.base)} on {shortened(str([*kernel.coordinates]), 18)}"
    return _call(kernel, defaults=True)


def _factor(kernel: Kernel) -> str:
    return f"({kernel_name(kernel)})" if isinstance(kernel, Sum) else kernel_name(kernel)


def _call(component: object, *, defaults: bool) -> str:
    if not is_dataclass(component):
        plain: object = type(component).__repr__
        return type(component).__name__ if plain is object.__repr__ else full_name(component)
    settings = [
        f"{field.name}={_value(getattr(component, field.name), defaults=defaults)}"
        for field in fields(component)
        if field.repr and (defaults or getattr(component, field.name) != field.default)
    ]
    return f"{type(component).__name__}({', '.join(settings)})"


def _value(value: object, *, defaults: bool) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if value is None or isinstance(value, (bool, int, str, tuple)):
        return shortened(full_name(value), LONGEST)
    if is_dataclass(value):
        return _call(value, defaults=defaults)
    # the repr of somebody's model may fill a page
    return getattr(value, "__name__", type(value).__name__)
