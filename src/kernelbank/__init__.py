"""kernelbank: learning from streams with many kernels at once.

One cheap online learner per kernel of a dictionary, all independent, and after every sample the
convex combination that minimises a separable bound of the regularised cost over a sliding window.

The names below are imported when they are first used, so that `kernelbank --help` starts at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import checks, combiners, errors, kernels, learners, losses, reference, transforms
    from .auto import AutoBank, AutoLedger, AutoTrace, Change
    from .auto.loading import from_bytes, load
    from .bank import AdaptiveDictionary, KernelBank, Ledger, Slot, Trace, engines
    from .combiners import kkt_residual, simplex_qp
    from .io import sources
    from .kernels import gaussian_grid
    from .research import datasets, plots, regret, rivals
    from .research.batch import BatchSolution, batch_solution
    from .research.comparison import compare
    from .research.results import Comparison

__version__ = "0.1.0"

_MODULES = {
    **{name: name for name in ("checks", "combiners", "errors", "kernels", "learners", "losses")},
    **{name: name for name in ("reference", "river", "sklearn", "transforms")},
    **{name: f"research.{name}" for name in ("datasets", "plots", "regret", "rivals")},
    "engines": "bank.engines",
    "sources": "io.sources",
}
"""Public modules and where they are. `river` and `sklearn` need the libraries of these names."""

_NAMES = {
    **dict.fromkeys(("AdaptiveDictionary", "KernelBank", "Ledger", "Slot", "Trace"), "bank"),
    **dict.fromkeys(("AutoBank", "AutoLedger", "AutoTrace", "Change"), "auto"),
    **dict.fromkeys(("BatchSolution", "batch_solution"), "research.batch"),
    **dict.fromkeys(("from_bytes", "load"), "auto.loading"),
    **dict.fromkeys(("kkt_residual", "simplex_qp"), "combiners"),
    "Comparison": "research.results",
    "compare": "research.comparison",
    "gaussian_grid": "kernels",
}
"""Public names and the modules that define them."""

__all__ = [
    "AdaptiveDictionary",
    "AutoBank",
    "AutoLedger",
    "AutoTrace",
    "BatchSolution",
    "Change",
    "Comparison",
    "KernelBank",
    "Ledger",
    "Slot",
    "Trace",
    "batch_solution",
    "checks",
    "combiners",
    "compare",
    "datasets",
    "engines",
    "errors",
    "from_bytes",
    "gaussian_grid",
    "kernels",
    "kkt_residual",
    "learners",
    "load",
    "losses",
    "plots",
    "reference",
    "regret",
    "rivals",
    "simplex_qp",
    "sources",
    "transforms",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{_MODULES[name]}", __name__)
    if name in _NAMES:
        return getattr(import_module(f".{_NAMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
