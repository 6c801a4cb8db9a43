"""Rules for the weights of the slots."""

from dataclasses import is_dataclass

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

_public = [globals()[name] for name in __all__]
BUILT_IN: tuple[type[Combiner], ...] = tuple(kind for kind in _public if is_dataclass(kind))
"""Every combiner that a file may name."""
