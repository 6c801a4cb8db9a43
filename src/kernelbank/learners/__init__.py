"""Single-kernel online methods: what the slots of a bank run."""

from dataclasses import MISSING, fields

from .base import Learner
from .features import FourierRLS, FourierSGD, LinearRLS, NystromSGD
from .gradient import KLMS, KNLMS, POLK, QKLMS, Forgetron, Projectron
from .kernel_least_squares import KRLS, FixedBudgetKRLS, KRLSTracker, SlidingWindowKRLS
from .last_value import LastValue
from .neighbors import NearestNeighborGP
from .norma import Norma
from .python_learner import Adapter, PythonLearner
from .tree import PartitionTree

BUILT_IN: tuple[type[Learner], ...] = (
    Adapter,
    FixedBudgetKRLS,
    Forgetron,
    FourierRLS,
    FourierSGD,
    KLMS,
    KNLMS,
    KRLS,
    KRLSTracker,
    LastValue,
    LinearRLS,
    NearestNeighborGP,
    Norma,
    NystromSGD,
    POLK,
    PartitionTree,
    Projectron,
    QKLMS,
    SlidingWindowKRLS,
)
"""Every learner that a saved file may name."""


def standalone() -> list[type[Learner]]:
    """The learners that need no other slot and no model: every setting has a default."""
    return [
        kind
        for kind in BUILT_IN
        if not any(field.default is MISSING for field in fields(kind))  # type: ignore[arg-type]
    ]


__all__ = [
    "Adapter",
    "FixedBudgetKRLS",
    "Forgetron",
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
    "NystromSGD",
    "POLK",
    "PartitionTree",
    "Projectron",
    "PythonLearner",
    "QKLMS",
    "SlidingWindowKRLS",
]
