"""Short names of components and slots, for people.

A component may be anybody's: its repr may be long, hold control characters or raise. A name is
always one printable line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from ..kernels import ActiveDims, Kernel, Product, Scaled, Sum
from ..utils.rendering import one_line, shortened
from .slot import Slot

LONGEST = 56
"""Characters of a kernel's or learner's name in the name of a slot."""


def full_name(component: Any) -> str:
    """The repr in one line, or the class if the repr raises."""
    try:
        return one_line(repr(component))
    except Exception:
        return type(component).__name__


def short_name(component: Any) -> str:
    """The component with those of its settings that are not the defaults."""
    try:
        return _call(component, defaults=False)
    except Exception:
        return type(component).__name__


def kernel_name(kernel: Kernel) -> str:
    """A kernel as a formula; of a long sum or product its first terms and the number of others."""
    try:
        return _formula(kernel)
    except Exception:
        return type(kernel).__name__


def method_name(slot: Slot, name: Callable[[Any], str] = short_name) -> str:
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
    """The first slot of every combination of learner, loss, transform and residual_of."""
    found: dict[Any, Slot] = {}
    for slot in slots:
        found.setdefault(slot.method, slot)
    return list(found.values())


class SlotNames(Sequence[str]):
    """The names of a bank's slots: "[index] kernel", and the method where methods differ.

    A name is made when it is first asked for: a bank may have many slots.
    """

    def __init__(self, slots: Sequence[Slot]) -> None:
        self._slots = slots
        self._several: bool | None = None

    def __len__(self) -> int:
        return len(self._slots)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if self._several is None:
            self._several = len(distinct_methods(self._slots)) > 1
        slot = self._slots[index]
        name = shortened(kernel_name(slot.kernel), LONGEST)
        if self._several:
            name += f", {method_name(slot)}"
        return f"[{range(len(self))[index]}] {one_line(name)}"

    def __iter__(self) -> Iterator[str]:
        return (self[index] for index in range(len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        """As text: slots may hold functions that cannot be pickled."""
        return tuple, (tuple(self),)


def _formula(kernel: Kernel) -> str:
    if isinstance(kernel, (Sum, Product)):
        sign = " + " if isinstance(kernel, Sum) else " * "
        terms = _terms(kernel)
        first = terms if len(terms) <= 3 else terms[:2]
        others = [] if len(terms) <= 3 else [f"{len(terms) - 2} more"]
        write = _factor if isinstance(kernel, Product) else _formula
        return sign.join([*map(write, first), *others])
    if isinstance(kernel, Scaled):
        return f"{kernel.factor:.4g} * {_factor(kernel.kernel)}"
    if isinstance(kernel, ActiveDims):
        some = ", ".join(map(str, kernel.coordinates[:4]))
        more = f", ... ({len(kernel.coordinates)})" if len(kernel.coordinates) > 4 else ""
        return f"{_factor(kernel.base)} on [{some}{more}]"
    return _call(kernel, defaults=True)


def _factor(kernel: Kernel) -> str:
    return f"({_formula(kernel)})" if isinstance(kernel, Sum) else _formula(kernel)


def _terms(kernel: Sum | Product) -> list[Kernel]:
    """The terms of a sum of sums, or the factors of a product of products, from left to right."""
    found: list[Kernel] = []
    waiting: list[Kernel] = [kernel]
    while waiting:
        part = waiting.pop()
        if isinstance(part, type(kernel)):
            waiting += [part.right, part.left]
        else:
            found.append(part)
    return found


def _call(component: Any, *, defaults: bool) -> str:
    if not is_dataclass(component):
        shows: Any = type(component).__repr__
        return type(component).__name__ if shows is object.__repr__ else full_name(component)
    given = [
        f"{field.name}={_value(getattr(component, field.name), defaults=defaults)}"
        for field in fields(component)
        if field.repr and (defaults or getattr(component, field.name) != field.default)
    ]
    return f"{type(component).__name__}({', '.join(given)})"


def _value(value: Any, *, defaults: bool) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if value is None or isinstance(value, (bool, int, str, tuple)):
        return shortened(repr(value), LONGEST)
    if is_dataclass(value):
        return _call(value, defaults=defaults)
    # the repr of somebody's model may fill a page
    return getattr(value, "__name__", type(value).__name__)
