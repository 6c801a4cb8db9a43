"""Single-kernel online methods: what the slots of a bank run."""

from ..utils.validation import built_in
from .base import Learner
from .centres import (
    KLMS,
    KNLMS,
    KRLS,
    QKLMS,
    FixedBudgetKRLS,
    KRLSTracker,
    Norma,
    SlidingWindowKRLS,
)
from .features import FourierRLS, FourierSGD, LinearRLS
from .nonparametric import BoostedTrees, LastValue, NearestNeighborGP, PartitionTree
from .python_learner import Adapter, PythonLearner

__all__ = [
    "Adapter",
    "BoostedTrees",
    "FixedBudgetKRLS",
    "FourierRLS",
    "FourierSGD",
    "KLMS",
    "KNLMS",
    "KRLS",
    "KRLSTracker",
    "LastValue",
    "Learner",
    "LinearRLS",
    "NearestNeighborGP",
    "Norma",
    "PartitionTree",
    "PythonLearner",
    "QKLMS",
    "SlidingWindowKRLS",
]

BUILT_IN: tuple[type[Learner], ...] = built_in(__all__, globals())
"""Every learner that a saved file may name."""


def standalone() -> list[type[Learner]]:
    """The learners that need no model: every setting has a default."""
    return [kind for kind in BUILT_IN if kind is not Adapter]
