"""Rules for the weights of the slots."""

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

BUILT_IN: tuple[type[Combiner], ...] = tuple(
    kind
    for kind in [globals()[name] for name in __all__]
    if issubclass(kind, Combiner) and kind is not Combiner
)
"""Every combiner that a file may name."""
