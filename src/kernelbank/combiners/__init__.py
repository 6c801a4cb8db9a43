"""Rules for the weights of the slots."""

from .adaraker import AdaRaker
from .base import Combiner
from .baselines import Best, Uniform
from .bayesian_averaging import BayesianAveraging
from .bayesian_stacking import BayesianStacking
from .fixed_share import FixedShare
from .hedge import Hedge
from .intervals import Intervals
from .joint import Joint
from .newton_stacking import NewtonStacking
from .omkl_gf import OMKLGF
from .omkl_sfg import OMKLSFG
from .omkr import OMKR
from .robust_stacking import RobustStacking
from .simplex import Simplex
from .stacking import Stacking
from .vaw import VAW

BUILT_IN: tuple[type[Combiner], ...] = (
    AdaRaker,
    BayesianAveraging,
    BayesianStacking,
    Best,
    FixedShare,
    Hedge,
    Intervals,
    Joint,
    OMKLGF,
    OMKLSFG,
    OMKR,
    RobustStacking,
    Simplex,
    NewtonStacking,
    Stacking,
    Uniform,
    VAW,
)
"""Every combiner that a file may name."""

__all__ = [
    "AdaRaker",
    "BayesianAveraging",
    "BayesianStacking",
    "Best",
    "Combiner",
    "FixedShare",
    "Hedge",
    "Intervals",
    "Joint",
    "NewtonStacking",
    "OMKLGF",
    "OMKLSFG",
    "OMKR",
    "RobustStacking",
    "Simplex",
    "Stacking",
    "Uniform",
    "VAW",
]
