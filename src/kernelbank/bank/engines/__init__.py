"""Where the slots run."""

from __future__ import annotations

from ...utils import validation as check
from .base import Engine, Serial, Threads
from .ray import Ray

BUILT_IN: dict[str, type[Engine]] = {"ray": Ray, "serial": Serial, "threads": Threads}
"""The engines by the names that `engine=` takes."""


def as_engine(engine: object) -> Engine:
    """An engine from an engine or from its name."""
    if isinstance(engine, Engine):
        return engine
    if isinstance(engine, str) and engine in BUILT_IN:
        return BUILT_IN[engine]()
    raise check.refuse(
        "engine",
        f"be an engine or one of the names {sorted(BUILT_IN)}",
        engine,
        "Use a name or one of kb.engines.",
    )


__all__ = ["Engine", "Ray", "Serial", "Threads"]
