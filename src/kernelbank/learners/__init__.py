"""Single-kernel online methods: what the slots of a bank run."""

from dataclasses import MISSING, fields
from typing import Any, cast

from .adapter import Adapter
from .base import Learner
from .fixed_budget import FixedBudgetKRLS
from .forgetron import Forgetron
from .fourier_rls import FourierRLS
from .fourier_sgd import FourierSGD
from .klms import KLMS
from .knlms import KNLMS
from .krls import KRLS
from .krls_tracker import KRLSTracker
from .last_value import LastValue
from .linear_rls import LinearRLS
from .nearest_neighbor_gp import NearestNeighborGP
from .norma import Norma
from .nystrom import NystromSGD
from .partition_tree import PartitionTree
from .polk import POLK
from .projectron import Projectron
from .python_learner import PythonLearner
from .qklms import QKLMS
from .sliding_window import SlidingWindowKRLS

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
        if not any(field.default is MISSING for field in fields(cast(Any, kind)))
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
