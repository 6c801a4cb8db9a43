"""The reference of every public name, made of signatures and docstrings."""

import dataclasses
import inspect
import re
from types import ModuleType
from typing import Any

import kernelbank as kb
from docstring_markdown import as_markdown

MODULES = (
    "kernels",
    "losses",
    "transforms",
    "learners",
    "combiners",
    "engines",
    "datasets",
    "plots",
    "reference",
    "regret",
    "rivals",
    "checks",
    "sources",
    "errors",
    "sklearn",
    "river",
)
"""The public modules of `kb`, in the order of the site."""


def public_names(module: ModuleType) -> list[str]:
    """Return the public names of a module."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    attributes = vars(module).items()
    return sorted(n for n, v in attributes if not n.startswith("_") and inspect.isclass(v))


def reference() -> dict[str, str]:
    """Return the Markdown of every page of the reference, by its path."""
    pages = {"reference/index.md": _index_page()}
    for name in MODULES:
        pages[f"reference/{name}.md"] = _module_page(name)
    return pages


def addresses() -> dict[str, str]:
    """Return where every public name stands: the page and its anchor."""
    places = {
        f"kb.{name}": f"reference/index.md#kb.{name}" for name in kb.__all__ if name not in MODULES
    }
    for module in MODULES:
        places[f"kb.{module}"] = f"reference/{module}.md"
        for name in public_names(getattr(kb, module)):
            places[f"kb.{module}.{name}"] = f"reference/{module}.md#kb.{module}.{name}"
    return places


def _index_page() -> str:
    names = [name for name in kb.__all__ if name not in MODULES]
    rows = [
        f"| [`kb.{module}`]({module}.md) | {_first_line(getattr(kb, module))} |"
        for module in MODULES
    ]
    parts = [
        "# Reference",
        "Every public name, from its docstring. `kb` is `kernelbank`: `import kernelbank as kb`.",
        "\n".join(["| module | what it holds |", "|---|---|", *rows]),
        *(_entry(f"kb.{name}", getattr(kb, name)) for name in names),
    ]
    return "\n\n".join(parts) + "\n"


def _module_page(name: str) -> str:
    module = getattr(kb, name)
    things = {key: getattr(module, key) for key in public_names(module)}
    constants = {k: v for k, v in things.items() if not (inspect.isclass(v) or callable(v))}
    parts = [f"# kb.{name}", as_markdown(inspect.getdoc(module) or "")]
    if name in ("sklearn", "river"):
        parts.append(f"Needs an extra: `pip install 'kernelbank[{name}]'`.")
    parts += [
        _entry(f"kb.{name}.{key}", thing) for key, thing in things.items() if key not in constants
    ]
    if constants:
        parts.append("## Constants")
        rows = [
            f'| <span id="kb.{name}.{key}">`kb.{name}.{key}`</span> | `{value!r}` |'
            for key, value in constants.items()
        ]
        parts.append("\n".join(["| name | value |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _entry(name: str, thing: Any) -> str:
    """Return heading, signature, docstring and members of a class or function."""
    parts = [f"## {name} {{#{name}}}", _signature(name, thing)]
    parts.append(as_markdown(_own_doc(thing)))
    if inspect.isclass(thing):
        base = _public_base(thing)
        if base:
            parts.append(f"A `{base}`, with its methods.")
        parts += [_member(name, key, member) for key, member in _members(thing)]
    return "\n\n".join(part for part in parts if part)


def _member(owner: str, key: str, member: Any) -> str:
    heading = f"### {key} {{#{owner}.{key}}}"
    if isinstance(member, property):
        returned = _plain(inspect.signature(member.fget).return_annotation)
        shown = f"```python\n{key}{f': {returned}' if returned else ''}\n```"
        return "\n\n".join([heading, shown, as_markdown(inspect.getdoc(member) or "")])
    return "\n\n".join([heading, _signature(key, member), as_markdown(_own_doc(member))])


def _members(thing: type) -> list[tuple[str, Any]]:
    """Return methods and properties that the class adds to its public base."""
    base = _base_class(thing)
    owners = [thing]
    if base is None:  # helpers that are not public themselves are described where they are used
        owners = [k for k in thing.__mro__ if k.__module__.startswith("kernelbank")]
    members: dict[str, Any] = {}
    for owner in owners:
        for key, value in vars(owner).items():
            member = getattr(thing, key) if isinstance(value, classmethod | staticmethod) else value
            described = inspect.isfunction(member) or inspect.ismethod(member)
            if key.startswith("_") or key in members or hasattr(base or object, key):
                continue
            if (described or isinstance(member, property)) and inspect.getdoc(member):
                members[key] = member
    return list(members.items())


def _base_class(thing: type) -> type | None:
    """Return the nearest base that is public too."""
    public = {id(getattr(getattr(kb, m), n)) for m in MODULES for n in public_names(getattr(kb, m))}
    return next((base for base in thing.__mro__[1:] if id(base) in public), None)


def _public_base(thing: type) -> str:
    base = _base_class(thing)
    for module in MODULES if base else ():
        if getattr(getattr(kb, module), base.__name__, None) is base:
            return f"kb.{module}.{base.__name__}"
    return ""


def _own_doc(thing: Any) -> str:
    """Return the docstring, unless dataclasses made it or it is inherited from outside."""
    doc = inspect.getdoc(thing) or ""
    if dataclasses.is_dataclass(thing) and doc.startswith(f"{thing.__name__}("):
        return ""
    return doc


def _signature(name: str, thing: Any) -> str:
    """Return how to call it, one argument per line if it is long."""
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        return ""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    arguments, bare = [], False
    for argument in signature.parameters.values():
        if argument.name in ("self", "cls"):
            continue
        if argument.kind is argument.KEYWORD_ONLY and not bare:
            arguments.append("*")
        bare = bare or argument.kind in (argument.KEYWORD_ONLY, argument.VAR_POSITIONAL)
        stars = {argument.VAR_POSITIONAL: "*", argument.VAR_KEYWORD: "**"}.get(argument.kind, "")
        arguments.append(f"{stars}{argument.name}{_default(argument.default)}")
    returned = "" if inspect.isclass(thing) else _plain(signature.return_annotation)
    end = f" -> {returned}" if returned and returned != "None" else ""
    call = f"{name}({', '.join(arguments)}){end}"
    if len(call) > 80:
        call = f"{name}(\n" + "".join(f"    {argument},\n" for argument in arguments) + f"){end}"
    return f"```python\n{call}\n```"


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return ""
    text = repr(value)
    return f"={text}" if not re.search(r" at 0x|^<", text) else "=..."


def _plain(annotation: Any) -> str:
    if annotation is inspect.Signature.empty:
        return ""
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")


def _first_line(module: ModuleType) -> str:
    first = (inspect.getdoc(module) or "").partition("\n")[0]
    return first.replace("|", "\\|")
