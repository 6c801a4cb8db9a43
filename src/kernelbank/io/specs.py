"""Components as JSON data and back, for files, logs and tests.

A component (kernel, loss, learner, combiner) is a frozen dataclass. Its spec is a dictionary of its
type's name and its fields; components in fields, and tuples of them, are nested specs. Reading a
spec makes only types of a given list, so that an untrusted file can name nothing else.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from ..errors import FileRefused
from ..utils.validation import refuse

Component = Any  # a kernel, loss, learner or combiner: a frozen dataclass, perhaps of a user

Spec = dict[str, Any]  # JSON data

_PLAIN = (bool, int, float, str, type(None))


def to_spec(component: Component) -> Spec:
    """The component as JSON data."""
    spec: Spec = {"type": type(component).__name__}
    for field in fields(component):
        if not field.metadata.get("callable"):
            spec[field.name] = _value_to_spec(getattr(component, field.name))
    return spec


def callable_field() -> dict[str, bool]:
    """Metadata of a field that holds a user's function, which is not written to a file."""
    return {"callable": True}


def check_names(components: Iterable[Component]) -> None:
    """Refuse two different Custom components of one name: a file could not distinguish them."""
    named: dict[str, Component] = {}
    waiting = [component for component in components if is_dataclass(component)]
    while waiting:
        part: Component = waiting.pop()
        values = [getattr(part, field.name) for field in fields(part)]
        waiting += [value for value in values if is_dataclass(value)]
        if type(part).__name__ != "Custom":
            continue
        if named.setdefault(part.name, part) != part:
            remedy = "Give each Custom component its own name=..."
            raise refuse("name", "be different for different Custom components", part.name, remedy)


def _value_to_spec(value: object) -> object:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, (tuple, list)):
        return [_value_to_spec(item) for item in value]
    if is_dataclass(value):
        return to_spec(value)
    raise TypeError(f"a component's field holds {type(value).__name__}, which no file can keep")


def from_spec(
    spec: object, types: Iterable[type], components: Mapping[str, Component]
) -> Component:
    """The component that a spec describes.

    `components` holds user-made components: instances of Custom by their name, or classes.
    """
    if not (isinstance(spec, dict) and isinstance(spec.get("type"), str)):
        raise FileRefused("The file is damaged: a component in it has no type.")
    kind = spec["type"]
    custom_name = spec.get("name")
    if custom_name is not None and kind == "Custom":
        part = _users_component(str(custom_name), components)
        if type(part).__name__ != "Custom":
            remedy = "Give the kb.kernels.Custom or kb.losses.Custom that was saved."
            raise refuse(f"components[{custom_name!r}]", "be a Custom component", part, remedy)
        return part
    maker: Component = {t.__name__: t for t in types}.get(kind)
    if maker is None:
        maker = _users_component(kind, components)
        if not isinstance(maker, type):
            return maker
    arguments = {
        key: _value_from_spec(value, types, components)
        for key, value in spec.items()
        if key != "type"
    }
    try:
        return maker(**arguments)
    except FileRefused:
        raise
    except (TypeError, ValueError) as error:
        raise FileRefused(f"The file describes an impossible {kind}: {error}") from None


def _value_from_spec(
    value: object, types: Iterable[type], components: Mapping[str, Component]
) -> object:
    if isinstance(value, dict):
        return from_spec(value, types, components)
    if isinstance(value, list):
        return tuple(_value_from_spec(item, types, components) for item in value)
    return value


def _users_component(name: str, components: Mapping[str, Component]) -> Component:
    if name not in components:
        raise FileRefused(
            f"The file needs the user-made component {name!r}. "
            f"Give it: kb.load(path, components={{{name!r}: ...}})."
        )
    return components[name]
