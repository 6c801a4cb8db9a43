"""Where the slots run."""

from __future__ import annotations

from ...utils import validation as check
from .base import Engine, Serial, Threads
from .ray import Ray

BUILT_IN: dict[str, type[Engine]] = {"ray": Ray, "serial": Serial, "threads": Threads}
"""The engines by the names that `engine=` takes."""


def as_engine(engine: object) -> Engine:
    """An engine from an engine or from its name."""
    return check.by_name("engine", engine, Engine, BUILT_IN, "Use a name or one of kb.engines.")


__all__ = ["Engine", "Ray", "Serial", "Threads"]
