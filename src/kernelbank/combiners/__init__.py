"""Rules for the weights of the slots."""

from .base import Combiner
from .baselines import Best, Uniform
from .fixed_share import FixedShare
from .hedge import Hedge
from .joint import Joint
from .omkr import OMKR
from .robust_stacking import RobustStacking
from .simplex import Simplex
from .stacking import Stacking

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
