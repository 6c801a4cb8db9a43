"""Kernels: one formula each, sums and products (`+`, `*`), and `Custom` for a user's own.

A kernel is a positive-definite function of two inputs. Kernels add and multiply, and work on some
coordinates of the input (`ActiveDims`) or on all subsets of them (`Additive`). Random features are
maps phi with phi(x)'phi(t) close to k(x, t), so that a slot can be linear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import accumulate, combinations
from math import comb, log, pi, sqrt
from typing import Any, ClassVar

import numpy as np

from . import _core
from .io.specs import callable_field
from .utils import validation as check
from .utils.validation import Floats, UsersFunctions, built_in, quiet, real_numbers

__all__ = [
    "ActiveDims",
    "Additive",
    "Custom",
    "FeatureMap",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "NoKernel",
    "Periodic",
    "Polynomial",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "Sum",
    "TreeKernel",
    "feature_map",
]


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
        return self._values()

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

    def __call__(self, X: object, Z: object) -> Floats:
        require_kernel("kernel", self, type(self).__name__)
        left = check.samples(X, None)
        right = check.samples(Z, left.shape[1], "Z")
        self.check_width(left.shape[1], "X")
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
            rule = f"have at least {least} columns for ActiveDims on coordinates {self.coordinates}"
            remedy = "Give wider samples, or a kernel on other coordinates; they count from 0."
            raise check.refuse(name, rule, width, remedy)
        self.base.check_width(len(self.coordinates), name)


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


def active_width(kernel: Kernel, dimension: int) -> int:
    """How many there are; takes no memory, whatever the dimension that a file claims."""
    kernel.check_width(dimension, "X")
    while isinstance(kernel, ActiveDims):
        dimension, kernel = len(kernel.coordinates), kernel.base
    return dimension


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
            raise self._refuse("order", rule, remedy)
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


# --- the kernels of the field ---------------------------------------------------------------------
#
# A formula gives the kernel value from a statistic of two inputs (a sum or product over their
# coordinates) and up to three constants.


_LOG2E = 1 / log(2)

Formula = tuple[str, str, float, tuple[float, ...]]
"""A formula, its statistic, the parameter of the statistic (0 for none), and up to three numbers.

Both names are those of the core (kernel_formulas.hpp).
"""


class Elementary(Kernel):
    """A kernel of one formula: k(x, t) = formula(s, a, b, c), with the statistic s of x and t."""

    def formula(self) -> Formula:
        """What gives the kernel's values; a, b, c are its numbers."""
        raise NotImplementedError

    def core_spec(self, dimension: int) -> CoreSpec:
        formula, statistic, parameter, constants = self.formula()
        return (formula, (statistic, parameter, tuple(range(dimension))), constants, ())

    @cached_property
    def structure_key(self) -> tuple[object, ...]:
        return self.formula()[:3]


def _width() -> Any:
    remedy = "Give a positive width, in the units of the inputs."
    return check.scale_field(remedy=remedy)


def _offset() -> Any:
    remedy = "A negative offset is not positive definite: give 0 or more."
    return check.number_field(1.0, remedy, least=0)


@dataclass(frozen=True)
class Gaussian(Elementary):
    """k(x, t) = exp(-|x - t|^2 / (2 width^2)), |.| the Euclidean distance.

    Parameters
    ----------
    width : positive number, in the units of the inputs.

    >>> Gaussian(width=1.0)([[0.0]], [[1.0]]).round(4).tolist()
    [[0.6065]]
    """

    width: float = _width()

    def formula(self) -> Formula:
        exponent = -0.5 * _LOG2E / self.width / self.width
        return "exponential", "squared_distance", 0.0, (exponent,)


@dataclass(frozen=True)
class Laplacian(Elementary):
    """k(x, t) = exp(-|x - t|_1 / width), |.|_1 the sum of absolute differences.

    Parameters
    ----------
    width : positive number, in the units of the inputs.

    >>> Laplacian(width=2.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(4).tolist()
    [[0.3679]]
    """

    width: float = _width()

    def formula(self) -> Formula:
        return "exponential", "distance", 0.0, (-_LOG2E / self.width,)


def _smoothness(name: str, value: object, owner: str) -> float:
    if isinstance(value, float) and value in (0.5, 1.5, 2.5):
        return float(value)
    remedy = "Use one of these smoothnesses."
    raise check.refuse(name, "be 0.5, 1.5 or 2.5", value, remedy, owner)


@dataclass(frozen=True)
class Matern(Elementary):
    """The Matern kernel of smoothness nu = 1/2, 3/2 or 5/2; with r = |x - t| / width:

    nu = 0.5: exp(-r);  nu = 1.5: (1 + sqrt(3) r) exp(-sqrt(3) r);
    nu = 2.5: (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r).

    Parameters
    ----------
    width : positive number, in the units of the inputs.
    nu : 0.5, 1.5 or 2.5.

    >>> Matern(width=1.0, nu=1.5)([[0.0]], [[1.0]]).round(4).tolist()
    [[0.4834]]
    """

    width: float = _width()
    nu: float = field(default=1.5, metadata={"rule": _smoothness})

    def formula(self) -> Formula:
        rate = -_LOG2E / self.width if self.nu == 0.5 else sqrt(2 * self.nu) / self.width
        return f"matern{round(2 * self.nu)}", "squared_distance", 0.0, (rate,)


@dataclass(frozen=True)
class RationalQuadratic(Elementary):
    """k(x, t) = (1 + |x - t|^2 / (2 alpha width^2))^(-alpha).

    Parameters
    ----------
    width : positive number, in the units of the inputs.
    alpha : positive number; the larger, the closer to a Gaussian.

    >>> RationalQuadratic(width=1.0, alpha=1.0)([[0.0]], [[1.0]]).round(4).tolist()
    [[0.6667]]
    """

    width: float = _width()
    alpha: float = check.scale_field(1.0)

    def formula(self) -> Formula:
        constants = (0.5 / self.alpha / self.width / self.width, -self.alpha)
        return "rational_quadratic", "squared_distance", 0.0, constants


@dataclass(frozen=True)
class Periodic(Elementary):
    """k(x, t) = exp(-2 sum_k sin^2(pi (x_k - t_k) / period) / width^2).

    Parameters
    ----------
    period : positive number, in the units of the inputs.
    width : positive number, without unit.

    >>> Periodic(period=1.0, width=1.0)([[0.25]], [[3.25]]).round(4).tolist()
    [[1.0]]
    """

    period: float = check.scale_field(remedy="Give a positive period, in the units of the inputs.")
    width: float = check.scale_field(1.0)

    def formula(self) -> Formula:
        exponent = -2.0 * _LOG2E / self.width / self.width
        return "exponential", "squared_sines", self.period, (exponent,)


@dataclass(frozen=True)
class Linear(Elementary):
    """k(x, t) = x't + offset.

    Parameters
    ----------
    offset : number >= 0; above 0 the functions of the kernel may have an intercept.

    >>> Linear(offset=1.0)([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[12.0]]
    """

    offset: float = _offset()

    def formula(self) -> Formula:
        return "linear", "dot_product", 0.0, (self.offset,)


@dataclass(frozen=True)
class Polynomial(Elementary):
    """k(x, t) = (scale x't + offset)^degree.

    Parameters
    ----------
    degree : int from 1 to 64.
    offset : number >= 0; above 0 the lower degrees are included.
    scale : positive number; about 1 / d keeps the values near 1 for standardised inputs.

    >>> Polynomial(degree=2, offset=1.0, scale=1.0)([[1.0]], [[2.0]]).tolist()
    [[9.0]]
    """

    degree: int = check.count_field(2, "Give 1, 2, 3, ...", most=64)
    offset: float = _offset()
    scale: float = check.number_field(1.0, above=0)

    def formula(self) -> Formula:
        constants = (self.scale, self.offset, float(self.degree))
        return "polynomial", "dot_product", 0.0, constants


# --- kernels of particular learners ---------------------------------------------------------------


@dataclass(frozen=True)
class NoKernel(Kernel):
    """For a slot that uses no kernel: a model of another library in `kb.learners.Adapter`.

    >>> import kernelbank as kb
    >>> kb.kernels.NoKernel()
    NoKernel()
    """

    pairwise: ClassVar[bool] = False


@dataclass(frozen=True)
class TreeKernel(Kernel):
    """k(x, t) = sum over levels l < levels of v_l [x and t share a cell of level l].

    v_l = scale * decay^l is the variance that level l adds; level 0 is one cell for all inputs,
    and every cell of level l + 1 lies inside one of level l. `kb.learners.PartitionTree`, the only
    learner for it, makes the cells from the samples. So k(x, t) is unknown before the stream, and
    the kernel cannot be called, added or multiplied.

    Parameters
    ----------
    decay : number in (0, 1], the ratio of the variances of neighbouring levels: small for smooth
        targets, near 1 for rough ones.
    levels : 1 to 64, the most nested cells that contain a point.
    scale : positive number, the variance of level 0, in squared units of the target.

    >>> import kernelbank as kb
    >>> kernel = kb.kernels.TreeKernel(decay=0.5, levels=3)
    >>> kernel.variances()
    (1.0, 0.5, 0.25)
    >>> bank = kb.KernelBank([kernel], kb.learners.PartitionTree(noise=0.5))
    >>> bank.learn_one(0.0, 1.0)
    >>> round(bank.predict_one(0.0), 3)  # 1 / (1 + 0.5): only level 0 has a cell so far
    0.667
    """

    decay: float = check.number_field(0.8, above=0, most=1)
    levels: int = check.count_field(12, "Give the most nested cells, such as 12.", most=64)
    scale: float = check.scale_field(1.0)
    pairwise: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variances()[-1] < 1 / check.LARGEST:
            rule = f"leave the last level a variance of at least {1 / check.LARGEST:g}"
            raise self._refuse("decay", rule, "Raise decay or use fewer levels.")

    def variances(self) -> tuple[float, ...]:
        """v_0 .. v_{levels - 1}."""
        return tuple(self.scale * self.decay**level for level in range(self.levels))


# --- a user's own ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Custom(UsersFunctions, Kernel):
    """A kernel from a function k(X, Z) -> (n, m) of NumPy arrays (n, d) and (m, d).

    The function must be symmetric and positive definite, and must give the same values for the
    same inputs. It is called with one row of X at a time, always in the same shapes, so that
    blocks equal the loop over samples bit for bit.

    A function in C is faster: give its address, an int, as of ``numba.cfunc(...).address``. It is
    called for two inputs of d numbers each as ``double k(const double* x, const double* t, int64_t
    d)``, from several threads, and must stay loaded. It belongs to this process: a bank with it can
    be saved, but neither pickled nor run on Ray.

    Parameters
    ----------
    function : the kernel, or the address of a C function.
    name : its name in a saved bank; `kb.load(path, components={name: kernel})` restores it.

    >>> import numpy as np
    >>> def cauchy(X, Z):
    ...     return 1 / (1 + ((X[:, None] - Z[None]) ** 2).sum(axis=2))
    >>> Custom(cauchy)([[0.0]], [[1.0]]).tolist()
    [[0.5]]
    """

    function: Callable[[Floats, Floats], object] | int = field(
        repr=False, metadata=callable_field()
    )
    name: str = ""
    function_fields: ClassVar[tuple[str, ...]] = ("function",)

    def __post_init__(self) -> None:
        self.check_functions("Give a function k(X, Z) that returns an (n, m) array.")

    def __call__(self, X: object, Z: object) -> Floats:
        if not callable(self.function):
            return super().__call__(X, Z)
        left = check.samples(X, None)
        right = check.samples(Z, left.shape[1], "Z")
        values = self.function(left.copy(), right.copy())
        return real_numbers(values, (len(left), len(right)), self.name)

    def core_spec(self, dimension: int) -> CoreSpec:
        function, everything = self.function, tuple(range(dimension))
        statistic: tuple[object, ...] = ("c_function", 0.0, everything, function)
        if callable(function):
            statistic = ("python", 0.0, everything, quiet(function), self.name, function)
        return ("identity", statistic, (), ())

    @cached_property
    def structure_key(self) -> tuple[object, ...]:
        return ("Custom", self.function, self.name)


def gaussian_grid(
    low: float, high: float, count: int, spacing: str = "geometric"
) -> list[Gaussian]:
    """`count` Gaussian kernels with widths from `low` to `high`.

    Parameters
    ----------
    low, high : positive numbers, in the units of the inputs.
    count : how many kernels.
    spacing : "geometric" (equal ratios, for unknown scales) or "linear" (equal steps, as in the
        paper's experiment).

    >>> [k.width for k in gaussian_grid(1, 4, 3)]
    [1.0, 2.0, 4.0]
    >>> [k.width for k in gaussian_grid(1, 4, 3, spacing="linear")]
    [1.0, 2.5, 4.0]
    """
    owner = "gaussian_grid"
    smallest = check.number("low", low, owner, "Give the smallest width, above 0.", above=0)
    largest = check.number("high", high, owner, "Give the largest width, at least low.", above=0)
    if largest < smallest:
        raise check.refuse("high", f"be >= low ({smallest:g})", high, "Exchange the two.", owner)
    number = check.count("count", count, owner, "Give how many kernels you want.")
    check.choice("spacing", spacing, owner, ("geometric", "linear"))
    space = np.linspace if spacing == "linear" else np.geomspace
    return [Gaussian(float(width)) for width in space(smallest, largest, number)]


# --- random features ------------------------------------------------------------------------------
#
# A kernel of x - t is the mean of cos(w'(x - t)) over its spectrum, a distribution of frequencies w
# (Bochner). The mean over a few drawn frequencies is a sum of products of cosines and sines.


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """phi_m(x) = amplitude_m cos(angle_m) for m < trigonometric, amplitude_m angle_m for the rest.

    angle_m = frequency_m'x_c + phase_m, where x_c holds the coordinates c of x. `feature_map` makes
    it. Trigonometric features come in blocks of eight: four cosines, and the sines of the same
    angles. The linear features follow: the coordinates, and a constant. Both are padded, to a
    multiple of eight and of four, with features of amplitude 0.

    Parameters
    ----------
    frequencies : (len(coordinates), total), one column per feature.
    phases, amplitudes : (total,).
    trigonometric : number of trigonometric features, with padding; they come first.
    dimension : number of coordinates of the inputs.
    coordinates : the coordinates that the features use: all, or those of an outermost `ActiveDims`.

    >>> import numpy as np, kernelbank as kb
    >>> draw = np.random.default_rng(0)
    >>> phi = kb.kernels.feature_map(kb.kernels.Gaussian(width=1.0), 8, 2, draw)
    >>> phi.frequencies.shape, phi([[0.0, 0.0]]).round(2).tolist()
    ((2, 8), [[0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0]])
    """

    frequencies: Floats
    phases: Floats
    amplitudes: Floats
    trigonometric: int
    dimension: int
    coordinates: tuple[int, ...]

    @property
    def total(self) -> int:
        """Number of features, with those of amplitude 0."""
        return int(self.frequencies.shape[1])

    def __call__(self, X: object) -> Floats:
        """(n, total): the features of the rows of an (n, d) array."""
        points = check.samples(X, None)
        if points.shape[1] != self.dimension:
            remedy = "Give samples with as many columns as the map was made for."
            raise check.refuse("X", f"have {self.dimension} columns", points.shape[1], remedy)
        if self.coordinates != tuple(range(self.dimension)):
            points = points[:, list(self.coordinates)]
        return _core.feature_rows(*self._arrays, points)

    @property
    def _arrays(self) -> tuple[Floats, Floats, Floats, int]:
        return self.frequencies, self.phases, self.amplitudes, self.trigonometric

    def squared_gradients(self, points: Floats, weights: Floats) -> Floats:
        """(len(coordinates),): the mean over points of the squared partial derivatives of f.

        f(x) = weights . phi(x). points : (n, len(coordinates)), n at least 1; weights : (total,).
        """
        return _core.squared_gradients(*self._arrays, points, weights) / len(points)


def feature_map(
    kernel: Kernel, count: int, dimension: int, draw: np.random.Generator
) -> FeatureMap:
    """Random features of a kernel: E phi(x)'phi(t) = k(x, t), and always phi(x)'phi(x) = k(x, x).

    For a single Gaussian, Laplacian or Matern kernel the standard deviation of phi(x)'phi(t) is at
    most sqrt(1 - k^2) / sqrt(count), k = k(x, t). The random parts of a sum have equal numbers of
    frequencies, up to one. Linear parts are exact. `Additive` draws a subset of the coordinates for
    each frequency.

    Parameters
    ----------
    kernel : made of Gaussian, Laplacian, Matern and Linear by positive factors, `+`, `ActiveDims`
        and, inside these, `Additive`.
    count : number of trigonometric features, cosines and sines; even. Linear ones are added.
    dimension : number of coordinates of the inputs.
    draw : the random generator of the frequencies; an equal generator gives an equal map.

    Reference: Rahimi and Recht, Random features for large-scale kernel machines, NeurIPS 2007.

    >>> import numpy as np, kernelbank as kb
    >>> kernel = kb.kernels.Gaussian(width=1.0) + kb.kernels.Linear(offset=1.0)
    >>> phi = kb.kernels.feature_map(kernel, 2000, 1, np.random.default_rng(0))
    >>> features = phi([[0.0], [1.0]])
    >>> (features @ features.T).round(1).tolist(), kernel([[0.0]], [[1.0]]).round(1).tolist()
    ([[2.0, 1.6], [1.6, 3.0]], [[1.6]])
    """
    trigonometric, total = feature_counts(kernel, count, dimension)
    if not isinstance(draw, np.random.Generator):
        remedy = "Give np.random.default_rng(seed)."
        raise check.refuse("draw", "be a NumPy generator", draw, remedy, "feature_map")
    coordinates = active_coordinates(kernel, dimension)
    frequencies = np.zeros((len(coordinates), total))
    phases, amplitudes = np.zeros(total), np.zeros(total)
    result = FeatureMap(frequencies, phases, amplitudes, trigonometric, dimension, coordinates)
    terms = _as_terms(without_active_dims(kernel), tuple(range(len(coordinates))))
    _set_trigonometric(result, [term for term in terms if not term.linear], count // 2, draw)
    _set_linear(result, [term for term in terms if term.linear])
    return result


@lru_cache(maxsize=256, typed=True)
def feature_counts(kernel: Kernel, count: int, dimension: int) -> tuple[int, int]:
    """Numbers of trigonometric features, and of all features, of a map, with padding.

    Equal for kernels of equal structure, so that their slots can share an array.
    """
    owner = "feature_map"
    require_kernel("kernel", kernel, owner)
    check.count("dimension", dimension, owner, "Give the number of columns of the inputs.")
    kernel.check_width(dimension, "dimension")
    used = active_width(kernel, dimension)
    terms = _as_terms(without_active_dims(kernel), tuple(range(used)))
    remedy = "Features come in pairs, a cosine and a sine: give an even number, such as 100."
    check.count("count", count, owner, remedy, least=2, even=True)
    random = sum(not term.linear for term in terms)
    if count < 2 * random:
        remedy = "Each random part of a sum needs a pair of features of its own."
        raise check.refuse("count", f"be >= {2 * random} for {kernel!r}", count, remedy, owner)
    trigonometric = _padded(count, 2 * _core.WIDTH) if random else 0
    linear = _padded(used + 1, _core.WIDTH) if random < len(terms) else 0
    return trigonometric, trigonometric + linear


def _padded(count: int, size: int) -> int:
    return -(-count // size) * size


def _set_trigonometric(
    result: FeatureMap, terms: list[_Term], pairs: int, draw: np.random.Generator
) -> None:
    if not terms:
        return
    shares = [pairs // len(terms) + (i < pairs % len(terms)) for i in range(len(terms))]
    ends = list(accumulate(shares))
    dimension = len(result.coordinates)
    frequencies = np.zeros((_padded(pairs, _core.WIDTH), dimension))
    amplitudes = np.zeros(len(frequencies))
    for term, share, end in zip(terms, shares, ends, strict=True):
        frequencies[end - share : end] = _draw_frequencies(term, share, dimension, draw)
        amplitudes[end - share : end] = sqrt(term.factor / share)
    # Four pairs make a block: their cosines, then their sines.
    blocks = (-1, 2, _core.WIDTH)
    drawn = slice(0, result.trigonometric)
    pairs_twice = np.repeat(frequencies.reshape(-1, 1, _core.WIDTH, dimension), 2, axis=1)
    result.frequencies[:, drawn] = pairs_twice.reshape(-1, dimension).T
    result.amplitudes[drawn].reshape(blocks)[...] = amplitudes.reshape(-1, 1, _core.WIDTH)
    result.phases[drawn].reshape(blocks)[:, 1] = -pi / 2


def _set_linear(result: FeatureMap, terms: list[_Term]) -> None:
    """The features of all linear parts together: sum_k weight_k x_k t_k + constant."""
    if not terms:
        return
    dimension, start = len(result.coordinates), result.trigonometric
    weights = np.zeros(dimension)
    constant = 0.0
    for term in terms:
        assert isinstance(term.kernel, Linear)
        # A subset of `order` of n coordinates has each of them with the probability order / n.
        weights[list(term.coordinates)] += term.factor * (term.order / len(term.coordinates))
        constant += term.factor * term.kernel.offset
    result.frequencies[:, start : start + dimension] = np.eye(dimension)
    result.amplitudes[start : start + dimension] = np.sqrt(weights)
    result.phases[start + dimension] = 1.0
    result.amplitudes[start + dimension] = sqrt(constant)


# --- kernels as sums of spectra -------------------------------------------------------------------

_RANDOM = (Gaussian, Laplacian, Matern)
"""The kernels whose spectra are drawn from."""


@dataclass(frozen=True)
class _Term:
    """factor * the mean of kernel over the subsets of `order` of these coordinates."""

    factor: float
    kernel: Gaussian | Laplacian | Matern | Linear
    coordinates: tuple[int, ...]
    order: int

    @property
    def linear(self) -> bool:
        """Whether its features are exact, and none is drawn."""
        return isinstance(self.kernel, Linear)


def _as_terms(
    kernel: Kernel, coordinates: tuple[int, ...], factor: float = 1.0, order: int | None = None
) -> list[_Term]:
    """The parts of a sum on these coordinates; order : that of an `Additive` around it, if any."""
    if isinstance(kernel, Scaled):
        return _as_terms(kernel.kernel, coordinates, factor * kernel.factor, order)
    if isinstance(kernel, Sum):
        sides = (kernel.left, kernel.right)
        return [term for side in sides for term in _as_terms(side, coordinates, factor, order)]
    if isinstance(kernel, ActiveDims) and order is None:
        selected = tuple(coordinates[k] for k in kernel.coordinates)
        return _as_terms(kernel.base, selected, factor)
    if isinstance(kernel, Additive):
        return _as_terms(kernel.base, coordinates, factor, min(kernel.order, order or kernel.order))
    if isinstance(kernel, (Linear, *_RANDOM)):
        count = len(coordinates)
        return [_Term(factor, kernel, coordinates, min(order or count, count))]
    names = ", ".join(kind.__name__ for kind in (*_RANDOM, Linear))
    rule = f"be made of {names} by Scaled, Sum, ActiveDims and, inside these, Additive"
    remedy = "Use one of these, or a learner that works on kernel values."
    raise check.refuse("kernel", rule, kernel, remedy, "feature_map")


def _draw_frequencies(term: _Term, pairs: int, dimension: int, draw: np.random.Generator) -> Floats:
    """(pairs, dimension): frequencies, zero at the coordinates that a pair does not use."""
    chosen = np.tile(term.coordinates, (pairs, 1))
    if term.order < chosen.shape[1]:
        order = np.argsort(draw.random(chosen.shape), axis=1, kind="stable")
        picked = np.sort(order[:, : term.order], axis=1)
        chosen = np.take_along_axis(chosen, picked, axis=1)
    result = np.zeros((pairs, dimension))
    np.put_along_axis(result, chosen, _draw_spectrum(term.kernel, chosen.shape, draw), axis=1)
    return result


def _draw_spectrum(kernel: Kernel, shape: tuple[int, ...], draw: np.random.Generator) -> Floats:
    if isinstance(kernel, Laplacian):
        return draw.standard_cauchy(shape) / kernel.width
    assert isinstance(kernel, (Gaussian, Matern))
    drawn = draw.standard_normal(shape)
    if isinstance(kernel, Matern):  # t of 2 nu degrees: the coordinates share their denominator
        freedom = 2 * kernel.nu
        drawn /= np.sqrt(draw.chisquare(freedom, (shape[0], 1)) / freedom)
    return drawn / kernel.width


BUILT_IN: tuple[type[Kernel], ...] = built_in(__all__, globals())
"""All kernels that a saved file may contain."""
