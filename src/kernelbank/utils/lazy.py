"""Modules of higher layers that are imported only when they are used."""

from importlib import import_module
from typing import Any


def plots() -> Any:
    """The module `kernelbank.research.plots`, for `trace.plot()` and `bank.plot_weights()`."""
    return import_module("kernelbank.research.plots")
