"""The one way up: conveniences of lower layers whose work is done in a layer above them.

`trace.plot()` is `kb.plots.trace(trace)` in fewer words. Nothing else below `plots` may know it, so
it is found by name, and only when it is called.
"""

from importlib import import_module
from typing import Any


def plots() -> Any:
    """The module `kernelbank.plots`."""
    return import_module("kernelbank.plots")
