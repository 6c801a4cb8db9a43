"""Banks of the literature: each is a `KernelBank` with certain components."""

from collections.abc import Callable

from ...bank.bank import KernelBank
from .doebe import doebe
from .graph_feedback import omkl_gf, omkl_sfg, similarity_graph
from .raker import adaraker, raker
from .vaw import vaw

BANKS: tuple[Callable[..., KernelBank], ...] = (adaraker, doebe, omkl_gf, omkl_sfg, raker, vaw)
"""Every preset that makes a bank, for `kernelbank compare --presets`."""

__all__ = ["adaraker", "doebe", "omkl_gf", "omkl_sfg", "raker", "similarity_graph", "vaw"]
