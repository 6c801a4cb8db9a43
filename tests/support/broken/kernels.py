"""Kernels that each lack one property, with the property."""

import numpy as np

import kernelbank as kb
from support.instances import cauchy

K = kb.kernels


def squared_distance(X, Z):
    return ((X[:, None] - Z[None]) ** 2).sum(axis=2)


def asymmetric(X, Z):
    return cauchy(X, Z) + 0.01 * (X[:, None, 0] - Z[None, :, 0])


def sigmoid(X, Z):
    return np.tanh((X[:, None] * Z[None]).sum(axis=2) - 1) + 1


def truncated_parabola(X, Z):
    return np.maximum(0, 1 - squared_distance(X, Z))


def scaled_by_batch(X, Z):
    return np.exp(-squared_distance(X, Z) / (1 + X.std()))


def rounded_by_batch(X, Z):
    return cauchy(X, Z) * (1 + (2.0**-52 if len(Z) > 10 else 0.0))


def matrix_product(X, Z):
    """Sums in an order that depends on the shapes: BLAS."""
    return X @ Z.T + 1.0


def overwriting(X, Z):
    X /= 2.0
    Z /= 2.0
    return cauchy(X, Z)


_random = np.random.default_rng(0)


def random(X, Z):
    return cauchy(X, Z) + 1e-9 * _random.normal(size=(len(X), len(Z)))


def singular(X, Z):
    with np.errstate(divide="ignore"):
        return 1 / squared_distance(X, Z)


def raising(X, Z):
    raise RuntimeError("not today")


KERNELS = [
    (K.Custom(asymmetric), "symmetric"),
    (K.Custom(sigmoid), "positive semi-definite"),
    (K.Custom(truncated_parabola), "positive semi-definite"),
    (K.Custom(scaled_by_batch), "computed element by element"),
    (K.Custom(rounded_by_batch), "computed element by element"),
    (K.Custom(matrix_product), "computed element by element"),
    (K.Custom(overwriting), "leaving its arguments unchanged"),
    (K.Gaussian(1.0) + K.ActiveDims(K.Custom(overwriting), [1]), "leaving its arguments unchanged"),
    (K.Custom(random), "deterministic"),
    (K.Custom(singular), "finite"),
    (K.Custom(raising), "free of exceptions"),
]
