"""What a kernel is, a positive-definite function of two inputs; kernels that are made of others.

Kernels add and multiply, and work on some coordinates of the input (`ActiveDims`) or on all subsets
of them (`Additive`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache, partial
from itertools import combinations
from math import comb
from typing import Any, ClassVar

from .. import _core
from ..utils import validation as check
from ..utils.validation import Floats

CoreSpec = tuple[str, tuple[Any, ...] | None, tuple[float, ...], tuple[Any, ...]]
"""A kernel as the core is told of it: the name of its formula, the statistic, constants, parts.

statistic : (name, parameter, coordinates), and the function of a user; None for a sum, a product or
a multiple of the parts, and for a kernel that is not a function of two inputs alone.
"""


class Kernel(check.Settings):
    """A positive-definite function k(x, t).

    Call a kernel with two arrays, (n, d) and (m, d), for the (n, m) matrix of its values. Kernels
    add, multiply with each other and with positive numbers:

    >>> import kernelbank as kb
    >>> k = kb.kernels.Gaussian(width=1.0) + 0.5 * kb.kernels.Linear(offset=0.0)
    >>> k([[0.0], [1.0]], [[0.0]]).round(3).tolist()
    [[1.0], [0.607]]
    """

    pairwise: ClassVar[bool] = True
    """Whether k(x, t) is a function of x and t alone."""

    def __getstate__(self) -> object:
        """The settings, without what is cached of them: using a kernel does not change it."""
        settings = fields(self)  # type: ignore[arg-type]
        return {setting.name: getattr(self, setting.name) for setting in settings}

    @cached_property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels that it is made of: those among its fields."""
        return tuple(value for value in vars(self).values() if isinstance(value, Kernel))

    def core_spec(self, dimension: int) -> CoreSpec:
        """What the core makes the kernel of, for inputs of this dimension; "none": it has none."""
        return ("none", None, (), ())

    @cached_property
    def in_python(self) -> bool:
        """Whether a function of a user in Python is part of it."""
        return any(part.in_python for part in self.parts)

    @cached_property
    def non_negative(self) -> bool:
        """Whether it, or a part of it, is defined for non-negative inputs only."""
        return any(part.non_negative for part in self.parts)

    @cached_property
    def structure_key(self) -> tuple[object, ...]:
        """Kernels with equal keys differ only in constants, and are computed together."""
        return (type(self).__name__, *(part.structure_key for part in self.parts))

    def term_count(self, dimension: int) -> int:
        """How many elementary kernels it is made of, for inputs of this dimension."""
        return sum(part.term_count(dimension) for part in self.parts) or 1

    def fewest_columns(self) -> int:
        """The fewest columns of inputs that it takes."""
        return max((part.fewest_columns() for part in self.parts), default=1)

    def check_width(self, width: int, name: str) -> None:
        """Refuse inputs that lack a coordinate of the kernel."""
        for part in self.parts:
            part.check_width(width, name)

    def check_inputs(self, X: Floats, name: str) -> None:
        """Refuse inputs for which the kernel is not defined."""
        for part in self.parts:
            part.check_inputs(X, name)
        if self.non_negative and not self.parts:
            refuse_negative(self, X, name)

    def __call__(self, X: object, Z: object) -> Floats:
        require_kernel("kernel", self, type(self).__name__)
        left = check.samples(X, None)
        right = check.samples(Z, left.shape[1], "Z")
        self.check_width(left.shape[1], "X")
        self.check_inputs(left, "X")
        self.check_inputs(right, "Z")
        return kernel_matrix(self, left, right)

    def __add__(self, other: object) -> Kernel:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        return Product(self, other) if isinstance(other, Kernel) else Scaled(self, other)

    def __rmul__(self, factor: float) -> Kernel:
        return self * factor


def kernel_matrix(kernel: Kernel, X: Floats, Z: Floats) -> Floats:
    """(n, m): the kernel values of (n, d) and (m, d) inputs, as slots compute them; unchecked."""
    return _core.kernel_matrix(kernel.core_spec(X.shape[1]), X, Z)


def refuse_negative(kernel: Kernel, X: Floats, name: str) -> None:
    """Refuse inputs below 0."""
    if X.size and X.min() < 0:
        remedy = "Shift or rescale the inputs, or use another kernel."
        raise check.refuse(name, f"be non-negative for {kernel!r}", float(X.min()), remedy)


def require_kernel(name: str, value: object, owner: str, *, pairwise: bool = True) -> Kernel:
    """A kernel, which must be a function of two inputs if it has to be pairwise."""
    if not isinstance(value, Kernel):
        remedy = "Use one of kb.kernels, or Custom for your own."
        raise check.refuse(name, "be a kernel", value, remedy, owner)
    if pairwise and not value.pairwise:
        remedy = "Give it a slot: TreeKernel is for kb.learners.PartitionTree, NoKernel for models."
        raise check.refuse(name, "be a function of two inputs alone", value, remedy, owner)
    return value


def kernel_list(kernels: object, name: str, owner: str) -> list[Kernel]:
    """One kernel or several, as a list."""
    if isinstance(kernels, Kernel):
        return [kernels]
    remedy = "Give a list of kernels, such as [kb.kernels.Gaussian(1.0)]."
    if isinstance(kernels, (str, bytes)) or not isinstance(kernels, Iterable):
        raise check.refuse(name, "be a list of kernels", kernels, remedy, owner)
    result = list(kernels)
    if not result:
        raise check.refuse(name, "hold at least one kernel", [], remedy, owner)
    for kernel in result:
        if not isinstance(kernel, Kernel):
            if hasattr(kernel, "learner"):  # a slot
                remedy = "Give slots as slots=[...], without a dictionary."
            raise check.refuse(name, "hold only kernels", kernel, remedy, owner)
    return result


# --- sums, products and multiples -----------------------------------------------------------------


_PART = {"rule": require_kernel}


@dataclass(frozen=True)
class _Pair(Kernel):
    left: Kernel = field(metadata=_PART)
    right: Kernel = field(metadata=_PART)
    operation: ClassVar[str]

    def core_spec(self, dimension: int) -> CoreSpec:
        specs = tuple(part.core_spec(dimension) for part in self.parts)
        return (self.operation, None, (), specs)


@dataclass(frozen=True)
class Sum(_Pair):
    """k(x, t) = left(x, t) + right(x, t); written `left + right`."""

    operation: ClassVar[str] = "sum"


@dataclass(frozen=True)
class Product(_Pair):
    """k(x, t) = left(x, t) * right(x, t); written `left * right`."""

    operation: ClassVar[str] = "product"


@dataclass(frozen=True)
class Scaled(Kernel):
    """k(x, t) = factor * kernel(x, t) with factor > 0; written `factor * kernel`."""

    kernel: Kernel = field(metadata=_PART)
    factor: float = check.number_field(
        remedy="Scale a kernel by a positive number only: a kernel is positive definite.", above=0
    )

    def core_spec(self, dimension: int) -> CoreSpec:
        return ("scaled", None, (self.factor,), (self.kernel.core_spec(dimension),))


# --- some coordinates, and all subsets of one size ------------------------------------------------

MAX_SUBSETS = 2000
"""A kernel row costs as many rows of the base as there are subsets: more are refused."""


def _coordinates(name: str, value: object, owner: str) -> tuple[int, ...]:
    remedy = "Give a list of different coordinates, counted from 0, such as [0, 2]."
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise check.refuse(name, "be a list of whole numbers", value, remedy, owner)
    coordinates = tuple(check.count(name, k, owner, remedy, least=0) for k in value)
    if not coordinates or len(set(coordinates)) < len(coordinates):
        rule = "hold at least one coordinate, none twice"
        raise check.refuse(name, rule, coordinates, remedy, owner)
    return coordinates


@dataclass(frozen=True)
class ActiveDims(Kernel):
    """k(x, t) = base(x_c, t_c), where x_c holds only the coordinates c of x, in that order.

    Learners on the inputs themselves or on random features (LinearRLS, FourierRLS, FourierSGD,
    PartitionTree) give the same bits as with the base on inputs of these columns alone, at the
    same cost.

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
    """

    base: Kernel = field(metadata={"rule": partial(require_kernel, pairwise=False)})
    coordinates: tuple[int, ...] = field(metadata={"rule": _coordinates})

    @property
    def pairwise(self) -> bool:  # type: ignore[override]
        return self.base.pairwise

    @cached_property
    def structure_key(self) -> tuple[object, ...]:
        return ("ActiveDims", self.coordinates, self.base.structure_key)

    def core_spec(self, dimension: int) -> CoreSpec:
        self.check_width(dimension, "X")
        return _on_coordinates(self.base.core_spec(len(self.coordinates)), self.coordinates)

    def term_count(self, dimension: int) -> int:
        return self.base.term_count(len(self.coordinates))

    def fewest_columns(self) -> int:
        return max(self.coordinates) + 1

    def check_width(self, width: int, name: str) -> None:
        least = self.fewest_columns()
        if least > width:
            rule = f"have at least {least} columns for {self!r}"
            remedy = "Give wider samples, or a kernel on other coordinates; they count from 0."
            raise check.refuse(name, rule, width, remedy)
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
    A value costs as many of the base as there are subsets; more than 2,000 are refused. Random
    features need no such sum: see `feature_map`.

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

    base: Kernel = field(metadata=_PART)
    order: int = check.count_field(1, "Give 1 for single coordinates, 2 for pairs, ...")

    @cached_property
    def structure_key(self) -> tuple[object, ...]:
        return ("Additive", self.order, self.base.structure_key)

    def _subsets(self, dimension: int) -> int:
        """C(dimension, order), at least `dimension`, which alone may be too many."""
        return comb(dimension, self.order) if dimension <= MAX_SUBSETS else dimension

    def core_spec(self, dimension: int) -> CoreSpec:
        if self.order >= dimension:
            return self.base.core_spec(dimension)
        if self._subsets(dimension) > MAX_SUBSETS:
            remedy = "Lower it, choose coordinates by ActiveDims, or use a learner on random "
            remedy += "features (kb.kernels.feature_map), which draws subsets."
            rule = f"leave at most {MAX_SUBSETS} subsets of the {dimension} coordinates"
            raise check.refuse("order", rule, self.order, remedy, "Additive")
        base = self.base.core_spec(self.order)
        subsets = combinations(range(dimension), self.order)
        parts = tuple(_on_coordinates(base, subset) for subset in subsets)
        return ("scaled", None, (1.0 / len(parts),), (("sum", None, (), parts),))

    def term_count(self, dimension: int) -> int:
        if self.order >= dimension:
            return self.base.term_count(dimension)
        subsets = min(self._subsets(dimension), MAX_SUBSETS)
        return subsets * self.base.term_count(self.order)

    def check_width(self, width: int, name: str) -> None:
        self.base.check_width(min(self.order, width), name)

    def check_inputs(self, X: Floats, name: str) -> None:
        if self.non_negative:  # every coordinate is one of the base's in some subset
            refuse_negative(self, X, name)
