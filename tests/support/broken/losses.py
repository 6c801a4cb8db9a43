"""Losses that each lack one property, with the property (None: a sound one)."""

from dataclasses import dataclass

import numpy as np

import kernelbank as kb

L = kb.losses
_random = np.random.default_rng(0)


def square(f, y):
    return (f - y) ** 2


def slope(f, y):
    return 2 * (f - y)


def custom(value, derivative, curvature=None, name="custom"):
    return L.Custom(value, derivative, curvature, name)


def overwriting(f, y):
    f -= y
    return f**2


@dataclass(frozen=True)
class LabelLoss(L.Custom):
    """A loss of labels."""

    labels = True


LOSSES = [
    (custom(square, lambda f, y: f - y), "consistent with its derivative"),
    (custom(square, lambda f, y: 2 * (y - f)), "consistent with its derivative"),
    (
        custom(lambda f, y: np.log1p((f - y) ** 2), lambda f, y: 2 * (f - y) / (1 + (f - y) ** 2)),
        "convex",
    ),
    (
        custom(lambda f, y: np.abs(f - y), lambda f, y: np.where(f == y, 3.0, np.sign(f - y))),
        "consistent with its derivative",
    ),
    (custom(square, slope, 1.9), "within its curvature"),
    (custom(lambda f, y: np.abs(f - y), lambda f, y: np.sign(f - y), 1.0), "within its curvature"),
    (custom(lambda f, y: (f - y) ** 2 + 0 * f.max(), slope), None),
    (custom(lambda f, y: (f - y) ** 2 / len(f), slope), "computed element by element"),
    (custom(overwriting, slope), "leaving its arguments unchanged"),
    (custom(lambda f, y: square(f, y) + _random.uniform(size=f.shape), slope), "deterministic"),
    (custom(lambda f, y: np.exp(f - y), lambda f, y: np.exp(f - y)), "finite"),
    (
        LabelLoss(lambda f, y: np.log(1 + np.exp(-y * f)), lambda f, y: -y / (1 + np.exp(y * f))),
        "finite",
    ),
    (custom(lambda f, y: 1.0, slope), "free of exceptions"),
]
