"""Banks of the literature: each is a `KernelBank` with certain components."""

from .doebe import doebe
from .raker import adaraker, raker
from .vaw import vaw

__all__ = ["adaraker", "doebe", "raker", "vaw"]
