"""Checks of arguments. Every message has the name, the rule, the value and the remedy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, field, fields, is_dataclass
from datetime import date
from functools import lru_cache, wraps
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np

from .. import _core
from ..errors import InvalidArgument, PackageMissing

Floats = np.ndarray[Any, np.dtype[np.float64]]  # numpy.typing is slow to import

LARGEST = 1e150
"""Inputs and targets beyond this are refused: the square of a difference must not overflow."""

LARGEST_COUNT = 2**63 - 1  # beyond this whole numbers are refused: compiled code takes 64 bits

_FLOAT64 = np.dtype(np.float64)

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])


def refuse(
    name: str, rule: str, value: object, remedy: str, owner: str = "", where: str = ""
) -> InvalidArgument:
    """The error to raise when argument `name` breaks `rule`; `where` says at which place."""
    of = f" of {owner}" if owner else ""
    shown = " ".join(line.strip() for line in repr(value).splitlines())
    if len(shown) > 80:
        shown = shown[:77] + "..."
    return InvalidArgument(f"'{name}'{of} must {rule}; got {shown}{where}. {remedy}")


@contextmanager
def optional(what: str, package: str, extra: str) -> Iterator[None]:
    """Imports of a package that an extra installs, if any; the error names the command."""
    try:
        yield
    except ModuleNotFoundError as error:
        wanted = f"'kernelbank[{extra}]'" if extra else package
        raise PackageMissing(
            f"{what} {package}, which is not installed. Install it: pip install {wanted}"
        ) from error


def as_float(number: Real) -> float:
    """The number as a float, infinity if it is beyond all floats."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def number(
    name: str,
    value: object,
    owner: str,
    remedy: str,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    below: float = math.inf,
    most: float = math.inf,
) -> float:
    """A finite real number within bounds, as a float."""
    limits = ((">", above), (">=", least), ("<", below), ("<=", most))
    bounds = [f"{sign} {limit:g}" for sign, limit in limits if abs(limit) < math.inf]
    rule = " ".join(["be a finite number", " and ".join(bounds)]).rstrip()
    is_number = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    result = as_float(value) if is_number else math.nan  # type: ignore[arg-type]
    if not (math.isfinite(result) and above < result < below and least <= result <= most):
        raise refuse(name, rule, value, remedy, owner)
    return result


def count(
    name: str,
    value: object,
    owner: str,
    remedy: str,
    *,
    least: int = 1,
    most: int = LARGEST_COUNT,
    even: bool = False,
) -> int:
    """A whole number of at least `least`, as an int; an even one, if it has to be."""
    if type(value) is int and least <= value <= most and not even:
        return value
    whole = isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))
    result = int(value) if whole else least - 1  # type: ignore[call-overload]
    if not least <= result <= most:
        rule = f"be a whole number >= {least}"
        if most < LARGEST_COUNT or result > most:
            rule += f" and <= {most}"
        raise refuse(name, rule, value, remedy, owner)
    if even and result % 2:
        raise refuse(name, "be even", value, remedy, owner)
    return int(result)


def choice(name: str, value: object, owner: str, allowed: Iterable[str]) -> str:
    """One of a few words."""
    words = list(allowed)
    if not (isinstance(value, str) and value in words):
        raise refuse(name, f"be one of {words}", value, "Use one of these words.", owner)
    return value


def floats(name: str, value: object, remedy: str) -> Floats:
    """An array of float64 from numbers only: no text, no objects, no complex."""
    if type(value) is np.ndarray and value.dtype is _FLOAT64 and value.flags.carray:
        return value
    without_masked(name, value)
    if hasattr(value, "toarray"):
        remedy = f"Give {name}.toarray()."
        raise refuse(name, "be a dense array", f"a sparse {type(value).__name__}", remedy)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        raise refuse(name, "be a rectangular array of numbers", value, remedy) from None
    if array.dtype.kind == "O" and array.size and all(map(_is_number, array.flat)):
        array = np.array([as_float(number) for number in array.flat]).reshape(array.shape)
    if array.dtype.kind not in "fiub":
        raise _not_numbers(name, array, remedy)
    result = np.asarray(array, dtype=np.float64, order="C")
    # Writeable, so that each compiled loop has one signature.
    return result if result.flags.writeable else result.copy()


def without_masked(name: str, value: object) -> None:
    """Refuse masked arrays with masked members, also as rows of a list."""
    rows = value if isinstance(value, (list, tuple)) else (value,)
    if any(isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row) for row in rows):
        raise refuse(name, "have no masked members", value, "Fill or remove them.")


_ADVICE = {
    "x": (
        "Give float('nan') where a value is missing: kb.AutoBank fills it in.",
        "kb.AutoBank takes text as categories and datetimes as times if columns have names: give a "
        "table of pandas, polars or arrow, or a dictionary; else encode them as numbers.",
    ),
    "y": (
        "A missing target cannot be learned: leave the row out, predicting it needs no target.",
        'Use kb.AutoBank("classification") for labels.',
    ),
}
"""By argument: what to do about None, and about text and times."""


def _not_numbers(name: str, array: np.ndarray, remedy: str) -> InvalidArgument:
    """The error for an array that does not hold numbers; it has the first wrong value."""
    wrong = ((where, value) for where, value in np.ndenumerate(array) if not _is_number(value))
    where, value = next(wrong, ((), array.tolist()))
    missing, other = _ADVICE.get(name.lower(), (remedy, remedy))
    if value is None or type(value).__name__ == "NAType":
        remedy = missing
    elif name == "y" and isinstance(value, str) and reads_as_number(value):
        remedy = f"Turn text into numbers first, as by float({str(value)!r}). {other}"
    elif isinstance(value, (str, np.datetime64, date)):
        remedy = other
    elif isinstance(value, dict):
        remedy = f"Make a table of them: pandas.DataFrame({name})."
    shown = str(value) if isinstance(value, np.str_) else value
    return refuse(name, "hold numbers", shown, remedy, where=_at_index(where))


def _at_index(where: tuple[int, ...]) -> str:
    """A place in an array for a message."""
    return f" at index {where if len(where) > 1 else where[0]}" if where else ""


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, np.datetime64)


def reads_as_number(text: str) -> bool:
    """Whether a text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_within_range(array: Floats) -> bool:
    """Whether all numbers are finite and not too large."""
    return _core.is_within(np.ascontiguousarray(array), LARGEST)


def within_range(name: str, array: Floats) -> None:
    """Refuse NaN, infinity and numbers whose squares overflow; the error has the first index."""
    if is_within_range(array):
        return
    bad = ~(np.abs(array) <= LARGEST)
    where = tuple(int(i) for i in np.argwhere(bad)[0])
    remedy = "Remove or repair such samples before they reach the bank."
    if name == "y" and np.isnan(array[where]):
        remedy = _ADVICE["y"][0]
    rule = f"be finite and at most {LARGEST:g} in size"
    raise refuse(name, rule, float(array[where]), remedy, where=_at_index(where))


def samples(X: object, dimension: int | None, name: str = "X") -> Floats:
    """Inputs as (n, d); a one-dimensional array is n samples of one number each."""
    remedy = "Give an (n, d) array of numbers, one sample per row."
    array = floats(name, X, remedy)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise refuse(name, "have the shape (n, d)", array.shape, remedy)
    if array.size == 0:
        raise refuse(name, "have at least one row and one column", array.shape, remedy)
    check_width(array.shape[1], dimension, name)
    within_range(name, array)
    return array


def one_sample(x: object, dimension: int | None) -> Floats:
    """One input, a number or a (d,) array, as (1, d)."""
    remedy = "Give one number, or one sample as a (d,) array."
    array = floats("x", x, remedy)
    if array.ndim > 1 or array.size == 0:
        raise refuse("x", "be a number or have the shape (d,)", array.shape, remedy)
    return samples(array.reshape(1, -1), dimension, "x")


def check_width(width: int, dimension: int | None, name: str) -> None:
    """Refuse inputs with another number of columns than before."""
    if dimension is not None and width != dimension:
        raise refuse(
            name,
            f"have {dimension} columns, as the samples learned so far",
            width,
            "Give samples of the same width, or start a new bank.",
        )


def targets(y: object, length: int) -> Floats:
    """Targets as (n,), as many as there are inputs."""
    remedy = "Give one number for each row of X."
    array = floats("y", y, remedy)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise refuse("y", "have the shape (n,)", array.shape, remedy)
    if array.shape[0] != length:
        raise refuse("y", f"have as many rows as X ({length})", array.shape[0], remedy)
    within_range("y", array)
    return np.ascontiguousarray(array)


def one_target(y: object) -> Floats:
    """One target as an array of one."""
    if type(y) is float and -LARGEST <= y <= LARGEST:
        return np.array([y])
    remedy = "Give one number."
    array = floats("y", y, remedy)
    if array.size != 1:
        raise refuse("y", "be one number", array.shape, remedy)
    return targets(array.reshape(1), 1)


class Settings:
    """Settings that are checked when they are made. Subclasses are frozen dataclasses.

    The metadata of a field may have a "rule": rule(name, value, owner) is the checked value, or
    raises `InvalidArgument`. `number_field`, `count_field` and `choice_field` make such fields.
    """

    core_name: ClassVar[str] = ""
    """What the core calls it: the class's name, unless it says another; empty if it is Python's."""

    def __init_subclass__(cls) -> None:
        if cls.__module__.startswith("kernelbank.") and "core_name" not in vars(cls):
            cls.core_name = cls.__name__

    def _refuse(self, name: str, rule: str, remedy: str) -> InvalidArgument:
        """The error to raise when a setting breaks a rule."""
        return refuse(name, rule, getattr(self, name), remedy, type(self).__name__)

    def _values(self) -> dict[str, Any]:
        """The settings by name."""
        return {setting.name: getattr(self, setting.name) for setting in fields(self)}  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        for name, rule in _rules(type(self)):  # type: ignore[arg-type]
            value = rule(name, getattr(self, name), type(self).__name__)
            object.__setattr__(self, name, value)


Rule = Callable[[str, object, str], object]


@lru_cache(maxsize=1024)
def _rules(settings: type) -> tuple[tuple[str, Rule], ...]:
    """The fields of settings that have a rule, and their rules."""
    listed = fields(settings)  # type: ignore[arg-type]
    return tuple((f.name, f.metadata["rule"]) for f in listed if "rule" in f.metadata)


def _checked_field(default: Any, rule: Rule) -> Any:
    def optional(name: str, value: object, owner: str) -> object:
        return None if value is None else rule(name, value, owner)

    return field(default=default, metadata={"rule": optional if default is None else rule})


def number_field(default: Any = MISSING, remedy: str = "", **bounds: float) -> Any:
    """A number within the bounds of `number`; also None, if that is the default."""
    words = remedy or f"Give a number such as {default:g}."
    return _checked_field(
        default, lambda name, value, owner: number(name, value, owner, words, **bounds)
    )


def scale_field(default: Any = MISSING, remedy: str = "") -> Any:
    """A positive number whose square, and that of its inverse, are finite."""
    return number_field(default, remedy, least=1 / LARGEST, most=LARGEST)


def count_field(default: Any, remedy: str, **bounds: Any) -> Any:
    """A whole number within the bounds of `count`; also None, if that is the default."""
    return _checked_field(
        default, lambda name, value, owner: count(name, value, owner, remedy, **bounds)
    )


def choice_field(default: str, *others: str) -> Any:
    """One of a few words."""
    words = (default, *others)
    return _checked_field(default, lambda name, value, owner: choice(name, value, owner, words))


def flag_field(default: bool, remedy: str) -> Any:
    """True or False."""

    def rule(name: str, value: object, owner: str) -> bool:
        if not isinstance(value, bool):
            raise refuse(name, "be True or False", value, remedy, owner)
        return value

    return _checked_field(default, rule)


def instance_of(kinds: Any, what: str, remedy: str) -> dict[str, Any]:
    """Metadata of a field that holds an object of these classes; `what` names them in an error."""

    def rule(name: str, value: object, owner: str) -> object:
        if not isinstance(value, kinds):
            raise refuse(name, f"be {what}", value, remedy, owner)
        return value

    return {"rule": rule}


def by_name(
    name: str, value: object, kind: type[T], kinds: Mapping[str, type[T]], remedy: str
) -> T:
    """An object of a class, or one of its subclasses with its defaults, by a name."""
    if isinstance(value, kind):
        return value
    if isinstance(value, str) and value in kinds:
        return kinds[value]()
    article = "an" if name[0] in "aeiou" else "a"
    raise refuse(name, f"be {article} {name} or one of the names {sorted(kinds)}", value, remedy)


def built_in(names: Iterable[str], namespace: Mapping[str, Any]) -> tuple[type[Any], ...]:
    """The settings with these names in a module, but for those of users' functions."""
    kinds = [namespace[name] for name in names if isinstance(namespace[name], type)]
    settings: list[Any] = [k for k in kinds if issubclass(k, Settings) and is_dataclass(k)]
    return tuple(kind for kind in settings if not issubclass(kind, UsersFunctions))


def elementwise(function: Callable[..., Floats], spec: tuple[object, ...], *numbers: object) -> Any:
    """function(spec, *vectors) of the core for numbers or arrays, which are broadcast."""
    arrays = np.broadcast_arrays(*(np.asarray(x, float) for x in numbers))
    values = function(spec, *(np.ravel(array) for array in arrays))
    return values.reshape(arrays[0].shape)[()]


def quiet(function: Function) -> Function:
    """The function without NumPy's warnings of overflow: a bank reports a slot that diverges."""

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:  # NumPy's own decorator cannot be sent to Ray
        with np.errstate(over="ignore", invalid="ignore"):
            return function(*arguments, **options)

    return cast(Function, call)


def real_numbers(value: object, shape: tuple[int, ...], name: str) -> Floats:
    """What a user's function returned, as floats; refused unless it is numbers of that shape."""
    array = np.asarray(value)
    if array.shape != shape or array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name!r} must return real numbers of shape {shape}; got "
            f"{array.dtype} of shape {array.shape}. Let it work on whole arrays."
        )
    return array.astype(float)


class UsersFunctions:
    """A component of functions that a user writes: in Python, or in C, given by their addresses.

    An address has a meaning in one process only, so such a component cannot be pickled.
    """

    function_fields: ClassVar[tuple[str, ...]]
    """The fields that hold the functions."""

    name: str

    @property
    def in_python(self) -> bool:
        """Whether the functions are in Python."""
        return not isinstance(getattr(self, self.function_fields[0]), int)

    def check_functions(self, remedy: str) -> None:
        """Refuse what is neither callable nor an address, and a mixture of both; set the name."""
        owner = type(self).__name__
        for name in self.function_fields:
            function = getattr(self, name)
            whole = isinstance(function, Integral) and not isinstance(function, bool)
            if whole and int(function) > 0:
                object.__setattr__(self, name, int(function))
            elif not callable(function):
                rule = "be callable, or the address of a C function, an int above 0"
                raise refuse(name, rule, function, remedy, owner)
        in_c = [name for name in self.function_fields if not callable(getattr(self, name))]
        if in_c and len(in_c) < len(self.function_fields):
            remedy = "Give only functions in Python, or only addresses of C functions."
            rule = "be in Python, as the other function is"
            raise refuse(in_c[0], rule, getattr(self, in_c[0]), remedy, owner)
        first = getattr(self, self.function_fields[0])
        name = self.name or getattr(first, "__name__", "custom")
        if not isinstance(name, str):
            raise refuse("name", "be text", name, "Give a short name.", owner)
        object.__setattr__(self, "name", name)

    def __getstate__(self) -> object:
        if not self.in_python:
            raise refuse(
                self.function_fields[0],
                "be in Python for a bank that is pickled or on Ray: a C function's address has a "
                "meaning in this process only",
                getattr(self, self.function_fields[0]),
                "Give a Python function, or use kb.engines.Threads; bank.save works, with "
                "components= in kb.load.",
                type(self).__name__,
            )
        return super().__getstate__()

    def __copy__(self) -> Self:
        return self  # it is frozen, and a copy must not be pickled

    def __deepcopy__(self, copies: object) -> Self:
        return self
