"""Rules for the weights of the slots."""

from .base import Combiner
from .baselines import Best, Uniform
from .fixed_share import FixedShare
from .hedge import Hedge
from .intervals import Intervals
from .joint import Joint
from .newton_stacking import NewtonStacking
from .omkr import OMKR
from .simplex import Simplex
from .stacking import Stacking

BUILT_IN: tuple[type[Combiner], ...] = (
    Best,
    FixedShare,
    Hedge,
    Intervals,
    Joint,
    OMKR,
    Simplex,
    NewtonStacking,
    Stacking,
    Uniform,
)
"""Every combiner that a file may name."""

__all__ = [
    "Best",
    "Combiner",
    "FixedShare",
    "Hedge",
    "Intervals",
    "Joint",
    "NewtonStacking",
    "OMKR",
    "Simplex",
    "Stacking",
    "Uniform",
]
