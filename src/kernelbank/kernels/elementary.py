"""The kernels of the field, one formula each.

Each class states its statistic of two inputs (a sum over coordinates) and its formula: the kernel
values of four slots from the statistic s and the constants a, b, c.
"""

# mypy: disable-error-code="no-untyped-def, var-annotated, call-arg"
# The formulas are compiled with types of their own.
from __future__ import annotations

import math
from dataclasses import dataclass, fields

from ..native.formulas import kernel_formula
from ..native.functions import CompiledFunction
from ..native.scalar_math import lane_power
from ..native.simd import broadcast, exp2_of_product, lane, sqrt, where_less
from ..native.trigonometry import sine
from ..utils import validation as check
from .base import Elementary
from .program import Statistic

_LOG2E = 1 / math.log(2)

# --- statistics: total <- step(total, x_k, t_k, parameter) for each coordinate k ------------------


def _square(total, x, t, parameter):
    return total + (x - t) * (x - t)


def _distance(total, x, t, parameter):
    return total + abs(x - t)


def _product(total, x, t, parameter):
    return total + x * t


def _sine(total, x, t, period):
    value = sine(math.pi * (x - t) / period)
    return total + value * value


def _spline(total, x, t, parameter):
    low = min(x, t)
    high = max(x, t)
    return total * (1.0 + x * t + low * low * (3.0 * high - low) / 6.0)


SQUARED_DISTANCE = Statistic(_square, "squared_distance")
DISTANCE = Statistic(_distance, "distance")
DOT_PRODUCT = Statistic(_product, "dot_product")
SQUARED_SINES = Statistic(_sine, "squared_sines")
SPLINE_PRODUCT = Statistic(_spline, "spline_product", start=1.0)

# --- formulas of several kernels ------------------------------------------------------------------


@kernel_formula
def _exponential(s, a, b, c):
    """exp(-s / ...) = 2^(a s), a <= 0."""
    return exp2_of_product(s, a)


@kernel_formula
def identity(s, a, b, c):
    """The statistic is the kernel value."""
    return broadcast(s)


@kernel_formula
def _matern_1(s, a, b, c):
    return exp2_of_product(sqrt(s), a)


@kernel_formula
def _matern_3(s, a, b, c):
    u = sqrt(s) * a
    return (1.0 + u) * exp2_of_product(u, -_LOG2E)


@kernel_formula
def _matern_5(s, a, b, c):
    u = sqrt(s) * a
    value = (1.0 + u + u * u / 3.0) * exp2_of_product(u, -_LOG2E)
    return where_less(u, 1000.0, value, 0.0)  # u * u may overflow where the exponential is 0


# --- kernels --------------------------------------------------------------------------------------


class _Positive(Elementary):
    """A kernel whose fields are all positive numbers."""

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            remedy = f"Give a positive {field.name}, in the units of the inputs."
            if field.name in ("alpha", "nu"):
                remedy = f"Give a positive {field.name}."
            own = check.scale(field.name, value, type(self).__name__, remedy)
            object.__setattr__(self, field.name, own)


@dataclass(frozen=True)
class Gaussian(_Positive):
    """k(x, t) = exp(-|x - t|^2 / (2 width^2)), |.| the Euclidean distance.

    Parameters
    ----------
    width : positive number, in the units of the inputs.

    >>> Gaussian(width=1.0)([[0.0]], [[1.0]]).round(4).tolist()
    [[0.6065]]
    """

    width: float
    statistic = SQUARED_DISTANCE
    formula = "exponential"
    _formula = _exponential

    def constants(self) -> tuple[float, ...]:
        return (-0.5 * _LOG2E / self.width / self.width,)


@dataclass(frozen=True)
class Laplacian(_Positive):
    """k(x, t) = exp(-|x - t|_1 / width), |.|_1 the sum of absolute differences.

    Parameters
    ----------
    width : positive number, in the units of the inputs.

    >>> Laplacian(width=2.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(4).tolist()
    [[0.3679]]
    """

    width: float
    statistic = DISTANCE
    formula = "exponential"
    _formula = _exponential

    def constants(self) -> tuple[float, ...]:
        return (-_LOG2E / self.width,)


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

    width: float
    nu: float = 1.5
    statistic = SQUARED_DISTANCE

    def __post_init__(self) -> None:
        remedy = "Give a positive width, in the units of the inputs."
        width = check.scale("width", self.width, "Matern", remedy)
        object.__setattr__(self, "width", width)
        if not isinstance(self.nu, float) or self.nu not in (0.5, 1.5, 2.5):
            raise check.refuse(
                "nu", "be 0.5, 1.5 or 2.5", self.nu, "Use one of these smoothnesses.", "Matern"
            )
        object.__setattr__(self, "nu", float(self.nu))

    @property
    def formula(self) -> str:  # type: ignore[override]
        return f"matern{round(2 * self.nu)}"

    @property
    def _formula(self) -> CompiledFunction:  # type: ignore[override]
        return {0.5: _matern_1, 1.5: _matern_3, 2.5: _matern_5}[self.nu]

    def constants(self) -> tuple[float, ...]:
        if self.nu == 0.5:
            return (-_LOG2E / self.width,)
        return (math.sqrt(2 * self.nu) / self.width,)


@dataclass(frozen=True)
class RationalQuadratic(_Positive):
    """k(x, t) = (1 + |x - t|^2 / (2 alpha width^2))^(-alpha).

    Parameters
    ----------
    width : positive number, in the units of the inputs.
    alpha : positive number; the larger, the closer to a Gaussian.

    >>> RationalQuadratic(width=1.0, alpha=1.0)([[0.0]], [[1.0]]).round(4).tolist()
    [[0.6667]]
    """

    width: float
    alpha: float = 1.0
    statistic = SQUARED_DISTANCE
    formula = "rational_quadratic"

    @kernel_formula
    def _formula(s, a, b, c):
        return lane_power(1.0 + a * s, b)

    def constants(self) -> tuple[float, ...]:
        return (0.5 / self.alpha / self.width / self.width, -self.alpha)


@dataclass(frozen=True)
class Periodic(_Positive):
    """k(x, t) = exp(-2 sum_k sin^2(pi (x_k - t_k) / period) / width^2).

    Parameters
    ----------
    period : positive number, in the units of the inputs.
    width : positive number, without unit.

    >>> Periodic(period=1.0, width=1.0)([[0.25]], [[3.25]]).round(4).tolist()
    [[1.0]]
    """

    period: float
    width: float = 1.0
    statistic = SQUARED_SINES
    formula = "exponential"
    _formula = _exponential

    def parameter(self) -> float:
        return self.period

    def constants(self) -> tuple[float, ...]:
        return (-2.0 * _LOG2E / self.width / self.width,)


@dataclass(frozen=True)
class Linear(Elementary):
    """k(x, t) = x't + offset.

    Parameters
    ----------
    offset : number >= 0; above 0 the functions of the kernel may have an intercept.

    >>> Linear(offset=1.0)([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[12.0]]
    """

    offset: float = 1.0
    statistic = DOT_PRODUCT
    formula = "linear"

    @kernel_formula
    def _formula(s, a, b, c):
        return a + s

    def __post_init__(self) -> None:
        remedy = "A negative offset is not positive definite: give 0 or more."
        offset = check.number("offset", self.offset, "Linear", remedy, least=0)
        object.__setattr__(self, "offset", offset)

    def constants(self) -> tuple[float, ...]:
        return (self.offset,)


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

    degree: int = 2
    offset: float = 1.0
    scale: float = 1.0
    statistic = DOT_PRODUCT
    formula = "polynomial"

    @kernel_formula
    def _formula(s, scale, offset, degree):
        base = scale * s + offset
        result = base
        most = max(lane(degree, 0), lane(degree, 1), lane(degree, 2), lane(degree, 3))
        for k in range(1, int(most)):
            result = where_less(k, degree, result * base, result)
        return result

    def __post_init__(self) -> None:
        degree = check.count("degree", self.degree, "Polynomial", "Give 1, 2, 3, ...", most=64)
        remedy = "A negative offset is not positive definite: give 0 or more."
        offset = check.number("offset", self.offset, "Polynomial", remedy, least=0)
        scale = check.number("scale", self.scale, "Polynomial", "Give a positive scale.", above=0)
        object.__setattr__(self, "degree", degree)
        object.__setattr__(self, "offset", offset)
        object.__setattr__(self, "scale", scale)

    def constants(self) -> tuple[float, ...]:
        return (self.scale, self.offset, float(self.degree))


@dataclass(frozen=True)
class Spline(Elementary):
    """The cubic smoothing spline: k(x, t) = prod_k (1 + x_k t_k + m^2 (3 M - m) / 6).

    m and M are the smaller and the larger of x_k and t_k, which must be non-negative (Wahba, 1990).

    >>> Spline()([[1.0]], [[2.0]]).round(4).tolist()
    [[3.8333]]
    """

    statistic = SPLINE_PRODUCT
    formula = "identity"
    _formula = identity
    domain = "non-negative"
