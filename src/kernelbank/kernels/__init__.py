"""Kernels: one formula each, an algebra (`+`, `*`), and `Custom` for a user's own."""

from .algebra import Product, Scaled, Sum
from .base import Kernel
from .cells import NestedCells
from .custom import Custom
from .elementary import (
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Spline,
)
from .external import External

BUILT_IN: tuple[type[Kernel], ...] = (
    External,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    NestedCells,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Scaled,
    Spline,
    Sum,
)
"""Every kernel that a file may name."""

__all__ = [
    "Custom",
    "External",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "NestedCells",
    "Periodic",
    "Polynomial",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "Spline",
    "Sum",
]
