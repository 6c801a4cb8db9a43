"""kernelbank: learning from streams with many kernels at once.

One cheap online learner per kernel of a dictionary, all independent, and after every sample the
convex combination that minimises a separable bound of the regularised cost over a sliding window.

The names below are imported when they are first used, so that `kernelbank --help` starts at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import (
        checks,
        combiners,
        engines,
        errors,
        kernels,
        learners,
        losses,
        plots,
        presets,
        sources,
        streams,
    )
    from .auto import AutoBank, AutoLedger, AutoTrace, Change
    from .bank import KernelBank
    from .comparison import compare
    from .dictionary import Dictionary, gaussian_grid
    from .layout import Slot
    from .ledger import Ledger
    from .outcome import Comparison
    from .saved import load
    from .simplex import kkt_residual, simplex_qp
    from .trace import Trace

__version__ = "0.1.0"

_HOMES = {
    "AutoBank": "auto",
    "AutoLedger": "auto",
    "AutoTrace": "auto",
    "Change": "auto",
    "Comparison": "outcome",
    "Dictionary": "dictionary",
    "KernelBank": "bank",
    "Ledger": "ledger",
    "Slot": "layout",
    "Trace": "trace",
    "compare": "comparison",
    "gaussian_grid": "dictionary",
    "kkt_residual": "simplex",
    "load": "saved",
    "simplex_qp": "simplex",
}
_MODULES = (
    "checks",
    "combiners",
    "engines",
    "errors",
    "kernels",
    "learners",
    "losses",
    "plots",
    "presets",
    "sources",
    "streams",
)

_EXTRAS = ("river", "sklearn")
"""Faces for other libraries, which need these: `kb.river` and `kb.sklearn`."""

__all__ = [
    "AutoBank",
    "AutoLedger",
    "AutoTrace",
    "Change",
    "Comparison",
    "Dictionary",
    "KernelBank",
    "Ledger",
    "Slot",
    "Trace",
    "checks",
    "combiners",
    "compare",
    "engines",
    "errors",
    "gaussian_grid",
    "kernels",
    "kkt_residual",
    "learners",
    "load",
    "losses",
    "plots",
    "presets",
    "simplex_qp",
    "sources",
    "streams",
]


def __getattr__(name: str) -> Any:
    if name in (*_MODULES, *_EXTRAS):
        return import_module(f".{name}", __name__)
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
