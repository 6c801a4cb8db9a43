"""Rules for the weights of the slots."""

from .base import Combiner
from .experts import Best, FixedShare, Hedge, Uniform
from .simplex import OMKR, Simplex
from .stacking import Joint, RobustStacking, Stacking

BUILT_IN: tuple[type[Combiner], ...] = (
    Best,
    FixedShare,
    Hedge,
    Joint,
    OMKR,
    RobustStacking,
    Simplex,
    Stacking,
    Uniform,
)
"""Every combiner that a file may name."""

__all__ = [
    "Best",
    "Combiner",
    "FixedShare",
    "Hedge",
    "Joint",
    "OMKR",
    "RobustStacking",
    "Simplex",
    "Stacking",
    "Uniform",
]
