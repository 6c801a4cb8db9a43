"""What is declared about an option, and whether a value fits it."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any, get_args, get_origin

FIXED = "fixed"
"""Saved in the checkpoint; a resumed run must have the same value."""

FREE = "free"
"""Saved in the checkpoint; a resumed run may have another value."""


@dataclass(frozen=True)
class OptionSpec:
    """What is declared about one option, beside its name, type and default.

    Parameters
    ----------
    group : the heading of the help under which it stands.
    help : its line in the help.
    metavar : how its value is called in the help.
    choices : the allowed values.
    low, high : the range of a number; None for no bound.
    open_range : whether the bounds themselves are excluded.
    bare_value : the value if the option is given without one.
    saved : FIXED, FREE, or None if the checkpoint does not hold it.
    """

    group: str
    help: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    open_range: bool = False
    bare_value: Any = None
    saved: str | None = None


def option(group: str, text: str, default: Any = MISSING, **declared: Any) -> Any:
    """A field of a dataclass that is an option."""
    return field(default=default, metadata={"option": OptionSpec(group, text, **declared)})


def flag(name: str) -> str:
    """How an option is written in a command: `--max-rows`."""
    return f"--{name.replace('_', '-')}"


def value_type(hint: Any) -> type:
    """The type of an option's value, without None and type arguments."""
    if get_origin(hint) is tuple:
        return tuple
    return next((value_type(one) for one in get_args(hint) if one is not type(None)), hint)


def fits(value: Any, kind: type, spec: OptionSpec) -> bool:
    """Whether a value is of its type, and among the choices or in the range."""
    if kind is tuple:
        return isinstance(value, tuple) and all(isinstance(name, str) for name in value)
    if kind is float and type(value) is int:
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        return False
    if spec.choices:
        return value in spec.choices
    if spec.low is None and spec.high is None:
        return True
    low = float("-inf") if spec.low is None else spec.low
    high = float("inf") if spec.high is None else spec.high
    number = float(value)  # type: ignore[arg-type]
    return low < number < high if spec.open_range else low <= number <= high


def allowed(name: str, kind: type, spec: OptionSpec) -> str:
    """The values that an option may have, in words."""
    if spec.choices:
        return " or ".join(spec.choices)
    words = {
        int: "a whole number",
        float: "a number",
        str: "text",
        bool: "true or false",
        Path: "a path",
        tuple: "labels" if name == "classes" else "column names",
    }[kind]
    if spec.low is not None:
        words += f" {'above' if spec.open_range else 'from'} {spec.low:g}"
    if spec.high is not None:
        words += f" {'and below' if spec.open_range else 'to'} {spec.high:g}"
    return words


def option_text(value: Any) -> str:
    """An option's value in a message."""
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
