"""The component that is checked, and its failures: the property, an example, why, the repair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ..errors import CheckFailed
from ..io.specs import from_spec, to_spec


class CheckContext:
    """A component under one of the checks."""

    def __init__(self, check: str, component: Any) -> None:
        self.component = component
        self._title = f"{check}({component!r})"

    def fails(self, property: str, found: str, why: str, repair: str) -> CheckFailed:
        """The error to raise when a property does not hold."""
        lines = [
            f"{self._title}: not {property}.",
            f"  Found:  {found}",
            f"  Why:    {why}",
            f"  Repair: {repair}",
        ]
        return CheckFailed("\n".join(lines), property)

    @contextmanager
    def works(
        self, doing: str, repair: str, property: str = "free of exceptions"
    ) -> Iterator[None]:
        """Turn any exception of the component into a failed check."""
        try:
            # As in a bank: an overflow shows in the results.
            with np.errstate(all="ignore"):
                yield
        except CheckFailed:
            raise
        except Exception as error:
            found = f"{doing}, it raised {type(error).__name__}: {error}"
            why = "A block in which a component raises is rolled back, and the bank cannot go on."
            raise self.fails(property, found, why, repair) from error

    def check_settings(self, *, file: bool = True) -> None:
        """Settings are frozen, hashable and equal by value, and come back from a file."""
        component = self.component
        kind = type(component)
        why = (
            "A component may be used in many banks; slots are grouped by equality, and fields are "
            "saved. So it must not change, and everything that changes must be in the state."
        )
        repair = "Put @dataclass(frozen=True) above the class; fields are numbers, strings, tuples."
        if not is_dataclass(component):
            raise self.fails(
                "a frozen dataclass", f"{kind.__name__} is not a dataclass.", why, repair
            )
        if "__dataclass_params__" in vars(kind):
            own = True
        else:  # inherits its fields: then it must not have added any by annotation
            own = not vars(kind).get("__annotations__")
        if not (own and kind.__dataclass_params__.frozen):  # type: ignore[attr-defined]
            found = f"{kind.__name__} is not decorated with @dataclass(frozen=True)."
            raise self.fails("a frozen dataclass", found, why, repair)
        try:
            hash(component)
        except TypeError as error:
            raise self.fails("hashable", f"hash() raised: {error}.", why, repair) from error
        if file:
            self._check_file(why)

    def _check_file(self, why: str) -> None:
        component = self.component
        repair = (
            "Let fields be numbers, strings, tuples and other components, and let __post_init__ "
            "accept its own result."
        )
        with self.works("while its settings were written and read", repair, "saveable"):
            again = from_spec(to_spec(component), (), parts_of(component))
        if again != component:
            found = f"loaded from a file it is {again!r}."
            raise self.fails("equal to what comes back from a file", found, why, repair)


def parts_of(*components: Any) -> Mapping[str, Any]:
    """The `components` that `kb.load` needs for user-made ones: by name, classes or instances."""
    found: dict[str, Any] = {}
    waiting = list(components)
    while waiting:
        part: Any = waiting.pop()
        if isinstance(part, tuple):
            waiting += part
        elif is_dataclass(part) and not isinstance(part, type):
            waiting += [getattr(part, field.name) for field in fields(part)]
            held = [field for field in fields(part) if field.metadata.get("callable")]
            name = type(part).__name__
            if held and name == "Custom":
                found[str(getattr(part, "name", name))] = part
            else:  # a class with function fields cannot be made from a file
                found[name] = part if held else type(part)
    return found


def same_bits(one: Any, other: Any) -> bool:
    """Whether two arrays are equal, with NaN at the same indices."""
    return np.array_equal(np.asarray(one), np.asarray(other), equal_nan=True)


def first_difference(one: Any, other: Any) -> tuple[int, ...]:
    """The first index at which two arrays of the same shape differ."""
    left, right = np.asarray(one), np.asarray(other)
    differ = ~((left == right) | (np.isnan(left) & np.isnan(right)))
    return tuple(int(i) for i in np.argwhere(differ)[0])


def shown(values: Any) -> str:
    """Numbers as Python writes them."""
    return repr(np.asarray(values).tolist())
