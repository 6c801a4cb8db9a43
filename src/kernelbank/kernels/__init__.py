"""Kernels: one formula each, an algebra (`+`, `*`), and `Custom` for a user's own."""

from .algebra import Product, Scaled, Sum
from .base import Kernel
from .cells import NestedCells
from .coordinates import LowOrder, On
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
from .features import FeatureMap, feature_counts, feature_map

BUILT_IN: tuple[type[Kernel], ...] = (
    External,
    Gaussian,
    Laplacian,
    Linear,
    LowOrder,
    Matern,
    NestedCells,
    On,
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
    "FeatureMap",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "LowOrder",
    "Matern",
    "NestedCells",
    "On",
    "Periodic",
    "Polynomial",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "Spline",
    "Sum",
    "feature_counts",
    "feature_map",
]
