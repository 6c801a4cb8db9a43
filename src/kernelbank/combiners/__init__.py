"""Rules for the weights of the slots."""

from .base import Combiner
from .fixed_share import FixedShare
from .hedge import Hedge
from .intervals import Intervals
from .joint import Joint
from .omkr import OMKR
from .plain import Best, Uniform
from .simplex import Simplex
from .slope_stacking import SlopeStacking
from .stacking import Stacking

BUILT_IN: tuple[type[Combiner], ...] = (
    Best,
    FixedShare,
    Hedge,
    Intervals,
    Joint,
    OMKR,
    Simplex,
    SlopeStacking,
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
    "OMKR",
    "Simplex",
    "SlopeStacking",
    "Stacking",
    "Uniform",
]
