"""kernelbank: learning from streams with many kernels at once.

One cheap online learner per kernel of a dictionary, all independent, and after every sample the
convex combination that minimises a separable bound of the regularised cost over a sliding window.
"""

from . import combiners, engines, errors, kernels, learners, losses
from .bank import KernelBank, load
from .dictionary import Dictionary, gaussian_grid
from .layout import Slot
from .ledger import Ledger
from .simplex import kkt_residual, simplex_qp
from .trace import Trace

__version__ = "0.1.0"

__all__ = [
    "Dictionary",
    "KernelBank",
    "Ledger",
    "Slot",
    "Trace",
    "combiners",
    "engines",
    "errors",
    "gaussian_grid",
    "kernels",
    "kkt_residual",
    "learners",
    "load",
    "losses",
    "simplex_qp",
]
