"""Rules for the weights of the slots."""

from ..utils.validation import built_in
from .base import Combiner
from .experts import Best, FixedShare, Hedge, Uniform
from .simplex import OMKR, Simplex
from .stacking import Joint, RobustStacking, Stacking

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

BUILT_IN: tuple[type[Combiner], ...] = built_in(__all__, globals())
"""Every combiner that a file may name."""
