"""Single-kernel online methods: the slots of a bank."""

from .base import Learner
from .norma import Norma
from .tree import PartitionTree

BUILT_IN: tuple[type[Learner], ...] = (Norma, PartitionTree)
"""Every learner that a file may name."""

__all__ = ["Learner", "Norma", "PartitionTree"]
