"""The kernels of the field, one formula each.

Each class names its statistic of two inputs (a sum or product over coordinates) and its formula, as
the core knows them: the kernel value from the statistic and up to three constants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from ..utils import validation as check
from .base import Elementary

_LOG2E = 1 / math.log(2)


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
    statistic = "squared_distance"
    formula = "exponential"

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
    statistic = "distance"
    formula = "exponential"

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
    statistic = "squared_distance"

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
    statistic = "squared_distance"
    formula = "rational_quadratic"

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
    statistic = "squared_sines"
    formula = "exponential"

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
    statistic = "dot_product"
    formula = "linear"

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
    statistic = "dot_product"
    formula = "polynomial"

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

    statistic = "spline_product"
    formula = "identity"
    domain = "non-negative"
