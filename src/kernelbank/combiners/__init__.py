"""Rules for the weights of the slots."""

from .base import Combiner
from .baselines import Best, Uniform
from .bayesian_averaging import BayesianAveraging
from .bayesian_stacking import BayesianStacking
from .fixed_share import FixedShare
from .hedge import Hedge
from .intervals import Intervals
from .joint import Joint
from .newton_stacking import NewtonStacking
from .omkr import OMKR
from .simplex import Simplex
from .stacking import Stacking
from .vaw import VAW

BUILT_IN: tuple[type[Combiner], ...] = (
    BayesianAveraging,
    BayesianStacking,
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
    VAW,
)
"""Every combiner that a file may name."""

__all__ = [
    "BayesianAveraging",
    "BayesianStacking",
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
    "VAW",
]
