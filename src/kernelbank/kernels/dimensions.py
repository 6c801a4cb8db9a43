"""Kernels on some coordinates of the input, and means over all subsets of one size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb

from ..utils import validation as check
from ..utils.validation import Floats
from .base import CoreSpec, Kernel, require_kernel

MAX_SUBSETS = 2000
"""A kernel row costs as many rows of the base as there are subsets: more are refused."""


@dataclass(frozen=True)
class ActiveDims(Kernel):
    """k(x, t) = base(x_c, t_c), where x_c holds only the coordinates c of x, in that order.

    Cost per term: that of the base on these coordinates. Kernels on the same coordinates share
    their statistics. Learners on the inputs themselves or on random features (LinearRLS,
    FourierRLS, FourierSGD, PartitionTree) cost the same time and memory with an `ActiveDims` as
    with its base on inputs of these columns alone, and give the same bits.

    Parameters
    ----------
    base : the kernel, also a sum, a product, a `Custom` one or `TreeKernel`.
    coordinates : different ints, counted from 0.

    Reference: Duvenaud, Nickisch and Rasmussen, Additive Gaussian processes, NeurIPS 2011.

    >>> import kernelbank as kb
    >>> hour = kb.kernels.ActiveDims(kb.kernels.Periodic(period=24.0), [0])
    >>> k = hour * kb.kernels.ActiveDims(kb.kernels.Gaussian(width=5.0), [1])
    >>> k([[1.0, 20.0]], [[25.0, 20.0]]).round(4).tolist()
    [[1.0]]
    >>> tree = kb.kernels.ActiveDims(kb.kernels.TreeKernel(), [2, 3])  # a tree on two columns
    >>> bank = kb.KernelBank([tree], kb.learners.PartitionTree())
    """

    base: Kernel
    coordinates: tuple[int, ...]

    def __post_init__(self) -> None:
        require_kernel("base", self.base, "ActiveDims", pairwise=False)
        remedy = "Give a list of different coordinates, counted from 0, such as [0, 2]."
        listed = self.coordinates
        if isinstance(listed, (str, bytes)) or not isinstance(listed, Iterable):
            raise check.refuse(
                "coordinates", "be a list of whole numbers", listed, remedy, "ActiveDims"
            )
        coordinates = tuple(
            check.count("coordinates", k, "ActiveDims", remedy, least=0) for k in listed
        )
        if not coordinates or len(set(coordinates)) < len(coordinates):
            rule = "hold at least one coordinate, none twice"
            raise check.refuse("coordinates", rule, coordinates, remedy, "ActiveDims")
        object.__setattr__(self, "coordinates", coordinates)

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return (self.base,)

    @property
    def pairwise(self) -> bool:  # type: ignore[override]
        return self.base.pairwise

    @property
    def structure_key(self) -> tuple[object, ...]:
        return ("ActiveDims", self.coordinates, self.base.structure_key)

    def core_spec(self, dimension: int) -> CoreSpec:
        self.check_width(dimension, "X")
        return _on_coordinates(self.base.core_spec(len(self.coordinates)), self.coordinates)

    def term_count(self, dimension: int) -> int:
        return self.base.term_count(len(self.coordinates))

    def check_width(self, width: int, name: str) -> None:
        last = max(self.coordinates)
        if last >= width:
            raise check.refuse(
                name,
                f"have at least {last + 1} columns for {self!r}",
                width,
                "Give wider samples, or a kernel on other coordinates; they count from 0.",
            )
        self.base.check_width(len(self.coordinates), name)

    def check_inputs(self, X: Floats, name: str) -> None:
        self.base.check_inputs(X[:, list(self.coordinates)], name)


def _on_coordinates(spec: CoreSpec, coordinates: tuple[int, ...]) -> CoreSpec:
    """A kernel of inputs that are these coordinates, as a kernel of all coordinates."""
    name, statistic, constants, parts = spec
    if statistic is not None:
        selected = tuple(coordinates[k] for k in statistic[2])
        statistic = (*statistic[:2], selected, *statistic[3:])
    return (name, statistic, constants, tuple(_on_coordinates(p, coordinates) for p in parts))


def without_active_dims(kernel: Kernel) -> Kernel:
    """The kernel inside all `ActiveDims`."""
    while isinstance(kernel, ActiveDims):
        kernel = kernel.base
    return kernel


@lru_cache(maxsize=1024)
def active_coordinates(kernel: Kernel, dimension: int) -> tuple[int, ...]:
    """The coordinates of an input that `without_active_dims(kernel)` gets, in its order."""
    kernel.check_width(dimension, "X")
    active = tuple(range(dimension))
    while isinstance(kernel, ActiveDims):
        active = tuple(active[k] for k in kernel.coordinates)
        kernel = kernel.base
    return active


@dataclass(frozen=True)
class Additive(Kernel):
    """k(x, t) = the mean of base(x_S, t_S) over all subsets S of `order` coordinates.

    A function of this kernel is a sum of functions of few coordinates each: of one (order 1, an
    additive model), of pairs (order 2), ... With at most `order` coordinates it is the base itself.

    Cost per term: that of the base times the number of subsets, C(d, order) for d coordinates;
    more than 2,000 are refused. Random features need no such sum: see `feature_map`.

    Parameters
    ----------
    base : the kernel of each subset.
    order : int of at least 1.

    Reference: Duvenaud, Nickisch and Rasmussen, Additive Gaussian processes, NeurIPS 2011.

    >>> import kernelbank as kb
    >>> k = kb.kernels.Additive(kb.kernels.Gaussian(width=1.0), order=1)
    >>> k([[0.0, 0.0]], [[0.0, 1.0]]).round(4).tolist()
    [[0.8033]]
    """

    base: Kernel
    order: int = 1

    def __post_init__(self) -> None:
        require_kernel("base", self.base, "Additive")
        remedy = "Give 1 for single coordinates, 2 for pairs, ..."
        object.__setattr__(self, "order", check.count("order", self.order, "Additive", remedy))

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return (self.base,)

    @property
    def structure_key(self) -> tuple[object, ...]:
        return ("Additive", self.order, self.base.structure_key)

    def core_spec(self, dimension: int) -> CoreSpec:
        if self.order >= dimension:
            return self.base.core_spec(dimension)
        if not _at_most(dimension, self.order, MAX_SUBSETS):
            raise check.refuse(
                "order",
                f"leave at most {MAX_SUBSETS} subsets of the {dimension} coordinates",
                self.order,
                "Lower it, choose coordinates by ActiveDims, or use a learner on random features "
                "(kb.kernels.feature_map), which draws subsets instead of listing them.",
                "Additive",
            )
        base = self.base.core_spec(self.order)
        subsets = combinations(range(dimension), self.order)
        parts = tuple(_on_coordinates(base, subset) for subset in subsets)
        return ("scaled", None, (1.0 / len(parts),), (("sum", None, (), parts),))

    def term_count(self, dimension: int) -> int:
        if self.order >= dimension:
            return self.base.term_count(dimension)
        within = _at_most(dimension, self.order, MAX_SUBSETS)
        subsets = comb(dimension, self.order) if within else MAX_SUBSETS
        return subsets * self.base.term_count(self.order)

    def check_width(self, width: int, name: str) -> None:
        self.base.check_width(min(self.order, width), name)

    def check_inputs(self, X: Floats, name: str) -> None:
        if "non-negative" in self.domains:  # every coordinate is one of the base's in some subset
            self.check_non_negative(X, name)


def _at_most(things: int, chosen: int, limit: int) -> bool:
    """Whether C(things, chosen) <= limit, without large numbers."""
    ways = 1
    for i in range(min(chosen, things - chosen)):
        ways = ways * (things - i) // (i + 1)
        if ways > limit:
            return False
    return True
