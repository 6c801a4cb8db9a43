"""Components from text: `Norma(learning_rate=0.05, budget=200), KRLS`.

The text is parsed, never executed: names from a list, and literals as their settings.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, cast

from .. import kernels
from ..errors import InvalidArgument
from ..kernels import Kernel


def parse(text: str, option: str, known: Iterable[type]) -> dict[str, Any]:
    """The components that a text lists, each by its own text."""
    types = {kind.__name__: kind for kind in known}
    return {words: _part(words, node, option, types) for words, node in _split(text, option)}


def parse_calls(
    text: str, option: str, known: Iterable[Callable[..., Any]], **defaults: Any
) -> dict[str, Any]:
    """What the functions that a text lists return, each by its own text.

    Their settings are their keyword-only parameters, given or from `defaults`.
    """
    functions = {function.__name__: function for function in known}
    found: dict[str, Any] = {}
    for words, node in _split(text, option):
        function, given = _kind(words, node, option, functions)
        try:
            found[words] = _make(words, function, {**defaults, **given}, option)
        except InvalidArgument as error:
            raise InvalidArgument(f"{option}: {words}: {error}") from None
    return found


def grid(text: str, option: str = "--widths") -> list[float]:
    """Widths from `0.5,1,2`, or from `low:high:count` in equal ratios."""
    try:
        if ":" in text:
            low, high, count = text.split(":")
            start, end, number = float(low), float(high), int(count)
            _positive(start, end)
            if not 1 <= number <= 1_000_000 or end < start:
                raise ValueError
            ratio = (end / start) ** (1 / max(number - 1, 1))
            return [start * ratio**place for place in range(number - 1)] + [end]
        widths = [float(word) for word in text.split(",")]
        _positive(*widths)
    except (ValueError, OverflowError):
        raise InvalidArgument(
            f"{option} must be positive numbers such as 0.5,1,2 or low:high:count such as "
            f"0.1:10:20; got {text!r}."
        ) from None
    return widths


def parse_kernels(text: str, widths: list[float], option: str = "--kernels") -> list[Kernel]:
    """Kernels from text; one that has a width and is given without it comes in every width."""
    simple = [k for k in kernels.BUILT_IN if k.pairwise or k is kernels.TreeKernel]
    types = {kind.__name__: kind for kind in simple if not _has_parts(kind)}
    found: list[Kernel] = []
    for words, node in _split(text, option):
        kind, given = _kind(words, node, option, types)
        if "width" in given or "width" not in _names(kind):
            found.append(_part(words, node, option, types))
        else:
            found += [_make(words, kind, {**given, "width": width}, option) for width in widths]
    return found


def _split(text: str, option: str) -> list[tuple[str, ast.expr]]:
    """The items of a list, as text and as syntax trees."""
    try:
        tree = ast.parse(f"({text},)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _unreadable(text, option) from None
    if not isinstance(tree, ast.Tuple) or not tree.elts:
        raise _unreadable(text, option)
    return [(ast.unparse(node), node) for node in tree.elts]


def _part(words: str, node: ast.expr, option: str, types: dict[str, type]) -> Any:
    kind, given = _kind(words, node, option, types)
    return _make(words, kind, given, option)


def _kind(
    words: str, node: ast.expr, option: str, types: Mapping[str, Callable[..., Any]]
) -> tuple[Any, dict[str, Any]]:
    name = node.func if isinstance(node, ast.Call) else node
    if not isinstance(name, ast.Name):
        raise _unreadable(words, option)
    if name.id not in types:
        raise InvalidArgument(f"{option}: there is no {name.id!r}. Use {', '.join(sorted(types))}.")
    kind = types[name.id]
    given: dict[str, Any] = {}
    if isinstance(node, ast.Call):
        if node.args or any(word.arg is None for word in node.keywords):
            raise InvalidArgument(
                f"{option}: settings need their names, as in {name.id}({_example(kind)}); "
                f"got {words!r}."
            )
        for word in node.keywords:
            given[str(word.arg)] = _literal(word.value, words, option)
    unknown = sorted(set(given) - set(_names(kind)))
    if unknown:
        has = ", ".join(_names(kind)) or "none"
        raise InvalidArgument(f"{option}: {name.id} has no setting {unknown[0]!r}. It has: {has}.")
    return kind, given


def _literal(node: ast.expr, words: str, option: str) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise InvalidArgument(
            f"{option}: settings are plain numbers or texts in quotes; got {words!r}."
        ) from None


def _make(words: str, kind: Any, given: dict[str, Any], option: str) -> Any:
    try:
        return kind(**given)
    except TypeError as error:
        raise InvalidArgument(f"{option}: {words!r} is not possible: {error}.") from None


def _names(kind: Any) -> list[str]:
    """The settings of a component, or of a function that makes one."""
    if isinstance(kind, type):
        return [field.name for field in fields(cast(Any, kind))]
    parameters = inspect.signature(kind).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind == parameter.KEYWORD_ONLY]


def _has_parts(kind: type) -> bool:
    """Whether a kernel is made of others: these have no text here."""
    return kind in (kernels.Product, kernels.Scaled, kernels.Sum)


def _example(kind: Any) -> str:
    return f"{_names(kind)[0]}=..." if _names(kind) else ""


def _unreadable(text: str, option: str) -> InvalidArgument:
    return InvalidArgument(
        f"{option} must list names with settings, such as Norma(learning_rate=0.05),Norma; "
        f"got {text!r}."
    )


def _positive(*numbers: float) -> None:
    if not all(math.isfinite(number) and number > 0 for number in numbers):
        raise ValueError
