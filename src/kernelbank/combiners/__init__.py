"""Rules for the weights of the slots."""

from .base import Combiner
from .omkr import OMKR
from .plain import Best, Uniform
from .simplex import Simplex

BUILT_IN: tuple[type[Combiner], ...] = (Best, OMKR, Simplex, Uniform)
"""Every combiner that a file may name."""

__all__ = ["Best", "Combiner", "OMKR", "Simplex", "Uniform"]
