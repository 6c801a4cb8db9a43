"""Kernels: one formula each, sums and products (`+`, `*`), and `Custom` for a user's own."""

from .base import Kernel, NoKernel, Product, Scaled, Sum
from .dimensions import ActiveDims, Additive
from .elementary import (
    Custom,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Spline,
    TreeKernel,
)
from .random_features import FeatureMap, feature_counts, feature_map

BUILT_IN: tuple[type[Kernel], ...] = (
    NoKernel,
    Gaussian,
    Laplacian,
    Linear,
    Additive,
    Matern,
    TreeKernel,
    ActiveDims,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Scaled,
    Spline,
    Sum,
)
"""All kernels that a saved file may contain."""

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
    "Spline",
    "Sum",
    "TreeKernel",
    "feature_counts",
    "feature_map",
]
