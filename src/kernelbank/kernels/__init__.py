"""Kernels: one formula each, sums and products (`+`, `*`), and `Custom` for a user's own."""

from ..utils.validation import built_in
from .base import ActiveDims, Additive, Kernel, Product, Scaled, Sum
from .elementary import (
    Custom,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    NoKernel,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Spline,
    TreeKernel,
)
from .random_features import FeatureMap, feature_counts, feature_map

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

BUILT_IN: tuple[type[Kernel], ...] = built_in(__all__, globals())
"""All kernels that a saved file may contain."""
