"""The kernels of the field, one formula each.

A formula gives the kernel value from a statistic of two inputs (a sum or product over coordinates)
and up to three constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..io.specs import callable_field
from ..utils import validation as check
from ..utils.validation import Floats, UsersFunctions, quiet, real_numbers
from .base import CoreSpec, Kernel

_LOG2E = 1 / math.log(2)

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
        rate = -_LOG2E / self.width if self.nu == 0.5 else math.sqrt(2 * self.nu) / self.width
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


@dataclass(frozen=True)
class Spline(Elementary):
    """The cubic smoothing spline: k(x, t) = prod_k (1 + x_k t_k + m^2 (3 M - m) / 6).

    m and M are the smaller and the larger of x_k and t_k, which must be non-negative (Wahba, 1990).

    >>> Spline()([[1.0]], [[2.0]]).round(4).tolist()
    [[3.8333]]
    """

    non_negative = True

    def formula(self) -> Formula:
        return "identity", "spline_product", 0.0, ()


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
            remedy = "Raise decay or use fewer levels."
            raise check.refuse("decay", rule, self.decay, remedy, "TreeKernel")

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
