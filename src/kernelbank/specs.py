"""Components as plain data and back: what a file, a log or a test can say about a part of a bank.

A component (kernel, loss, learner, combiner) is a frozen dataclass. Its spec is a dictionary of
its fields and its type's name; fields that are components, or tuples of them, nest. Reading a spec
builds only types from the given list, so that a stranger's file can name nothing else.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from .errors import FileRefused

_PLAIN = (bool, int, float, str, type(None))


def to_spec(component: Any) -> dict[str, Any]:
    """The component as JSON-ready data."""
    spec: dict[str, Any] = {"type": type(component).__name__}
    for field in fields(component):
        if not field.metadata.get("callable"):
            spec[field.name] = _value_to_spec(getattr(component, field.name))
    return spec


def callable_field() -> dict[str, bool]:
    """Metadata of a field that holds a user's function: such a field is not written to a file."""
    return {"callable": True}


def _value_to_spec(value: Any) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, (tuple, list)):
        return [_value_to_spec(item) for item in value]
    if is_dataclass(value):
        return to_spec(value)
    raise TypeError(f"a component's field holds {type(value).__name__}, which no file can keep")


def from_spec(spec: Any, known: Iterable[type], components: Mapping[str, Any]) -> Any:
    """The component that a spec describes.

    `components` gives back user-made parts: a ready instance under its own name, or a class.
    """
    if not (isinstance(spec, dict) and isinstance(spec.get("type"), str)):
        raise FileRefused("The file is damaged: a component in it has no type.")
    kind = spec["type"]
    own_name = spec.get("name")
    if own_name is not None and kind in ("Custom", "CustomLoss"):
        return _own_part(str(own_name), components)
    types = {t.__name__: t for t in known}
    maker = types.get(kind)
    if maker is None:
        maker = _own_part(kind, components)
        if not isinstance(maker, type):
            return maker
    arguments = {
        key: _value_from_spec(value, known, components)
        for key, value in spec.items()
        if key != "type"
    }
    try:
        return maker(**arguments)
    except (TypeError, ValueError) as error:
        raise FileRefused(f"The file describes an impossible {kind}: {error}") from None


def _value_from_spec(value: Any, known: Iterable[type], components: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return from_spec(value, known, components)
    if isinstance(value, list):
        return tuple(_value_from_spec(item, known, components) for item in value)
    return value


def _own_part(name: str, components: Mapping[str, Any]) -> Any:
    if name not in components:
        raise FileRefused(
            f"The file needs the user-made part {name!r}. "
            f"Give it back: kb.load(path, components={{{name!r}: ...}})."
        )
    return components[name]
