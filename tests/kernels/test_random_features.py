"""Random features against their kernels."""

import math

import numpy as np
import pytest

import kernelbank as kb
from support.instances import stream
from support.marks import refuses

EPS = np.finfo(float).eps
K = kb.kernels
feature_counts, feature_map = K.feature_counts, K.feature_map


def rng(seed=0):
    return np.random.default_rng(seed)


# --- kernels ----------------------------------------------------------------------------------------

RANDOM = [
    K.Gaussian(0.7),
    K.Laplacian(1.3),
    K.Matern(0.9, nu=0.5),
    K.Matern(0.9, nu=2.5),
    K.ActiveDims(K.Gaussian(0.4), [2, 0]),
    K.Additive(K.Matern(0.5, nu=1.5), 2),
    K.Additive(K.Additive(K.Laplacian(0.5), 9), 3),
    K.ActiveDims(K.Additive(K.Gaussian(0.4), 1), [0, 2]),
    0.5 * (K.Gaussian(0.3) + 3.0 * K.Additive(K.Matern(0.9), 1)) + K.Linear(0.4),
    K.Gaussian(0.7) + K.ActiveDims(K.Linear(0.3), [1]) + 0.2 * K.Additive(K.Linear(0.1), 2),
]


def parts(kernel):
    """The factors of the random parts of a kernel."""
    if isinstance(kernel, K.Sum):
        return parts(kernel.left) + parts(kernel.right)
    if isinstance(kernel, K.Scaled):
        return [kernel.factor * factor for factor in parts(kernel.kernel)]
    base = getattr(kernel, "base", kernel)
    return [] if isinstance(base, K.Linear) else [1.0]


@pytest.mark.parametrize("kernel", RANDOM, ids=repr)
def test_feature_products_equal_the_kernel_on_average(kernel):
    # A pair of features adds factor / pairs * cos(w'(x - t)), whose variance is at most 9/16 for
    # spectra with k(2 (x - t)) <= k(x - t), as all these have, whatever subset it looks at. So a
    # product has the variance sum_parts factor^2 9/16 / pairs; of 200 products none is 5 standard
    # deviations off, but for once in ten thousand seeds.
    X, _ = stream(1, 20, 4)
    Z, _ = stream(2, 10, 4)
    count = 10_000
    phi = feature_map(kernel, count, 4, rng(5))
    error = phi(X) @ phi(Z).T - kernel(X, Z)
    factors = np.array(parts(kernel))
    pairs = count // 2 // len(factors)
    assert np.abs(error).max() <= 5 * math.sqrt((factors**2).sum() * 9 / 16 / pairs)
    assert np.abs(error).max() > 1e-6  # it is random


@pytest.mark.parametrize("kernel", RANDOM, ids=repr)
@pytest.mark.parametrize("count", [6, 50])
def test_feature_product_of_a_point_with_itself_is_exact(kernel, count):
    X, _ = stream(3, 30, 4)
    features = feature_map(kernel, count, 4, rng(6))(X)
    exact = np.diag(kernel(X, X))
    assert np.abs((features**2).sum(axis=1) - exact).max() <= (count + 10) * EPS * exact.max()


@pytest.mark.parametrize("kernel", RANDOM, ids=repr)
def test_features_equal_the_formula_of_their_arrays(kernel):
    phi = feature_map(kernel, 22, 4, rng(7))
    X, _ = stream(4, 30, 4)
    seen = X[:, list(phi.coordinates)]
    angles = seen @ phi.frequencies + phi.phases
    waves = phi.trigonometric
    expected = phi.amplitudes * np.hstack([np.cos(angles[:, :waves]), angles[:, waves:]])
    # The angles themselves are rounded, and -pi/2 is.
    allowed = 8 * EPS * (np.abs(seen) @ np.abs(phi.frequencies) + 4) * phi.amplitudes
    assert (np.abs(phi(X) - expected) <= allowed).all()
    for row in range(3):
        assert (phi(X[row : row + 1]) == phi(X)[row]).all()


def test_feature_maps_of_kernels_of_equal_structure_have_equal_shape():
    assert K.Linear(0.0).structure_key == K.Linear(1.0).structure_key
    for kernel in (K.Linear(0.0) + K.Gaussian(1.0), K.Linear(1.0) + K.Gaussian(2.0)):
        assert feature_counts(kernel, 12, 4) == (16, 24)
        assert feature_map(kernel, 12, 4, rng()).frequencies.shape == (4, 24)
    assert feature_counts(K.Gaussian(1.0), 12, 4) == (16, 16)
    assert feature_counts(K.Linear(1.0), 12, 3) == (0, 4)


GAUSSIAN = K.Gaussian(1.0)
WRONG = [
    ((GAUSSIAN * K.Linear(), 10, 1, rng()), "'kernel' of feature_map .*A"),
    ((K.ActiveDims(K.Periodic(1.0), [0]), 10, 1, rng()), "'kernel' of feature_map .*A"),
    ((K.Additive(K.ActiveDims(GAUSSIAN, [0]), 1), 10, 1, rng()), "'kernel' of feature_map .*A"),
    (("gaussian", 10, 1, rng()), "'kernel' of feature_map"),
    ((GAUSSIAN, 5, 1, rng()), "'count' of feature_map must be even"),
    ((GAUSSIAN, 0, 1, rng()), "'count' of feature_map"),
    ((GAUSSIAN, 2.0, 1, rng()), "'count' of feature_map"),
    ((GAUSSIAN + K.Gaussian(2.0), 2, 1, rng()), "'count' of feature_map must be >= 4"),
    ((GAUSSIAN, 2, 0, rng()), "'dimension' of feature_map"),
    ((K.ActiveDims(GAUSSIAN, [1]), 2, 1, rng()), "'dimension' must have"),
    ((GAUSSIAN, 2, 1, 0), "'draw' of feature_map"),
]


@pytest.mark.parametrize(("arguments", "name"), WRONG)
def test_feature_map_with_bad_arguments_names_them(arguments, name):
    refuses(name, feature_map, *arguments)
    refuses("'X' must have 3 columns", feature_map(GAUSSIAN, 2, 3, rng()), [[1.0]])
    refuses("'X' must be finite", feature_map(GAUSSIAN, 2, 1, rng()), [[np.nan]])


@pytest.mark.parametrize(
    "kernel",
    [K.Gaussian(1.5), K.Gaussian(0.7) + K.Linear(2.0), K.ActiveDims(K.Matern(2.0), [2, 0])],
)
def test_squared_gradients_are_those_of_the_naive_derivative(kernel):
    draw = np.random.default_rng(0)
    phi = K.feature_map(kernel, 12, 3, draw)
    weights, points = draw.normal(size=phi.total), draw.normal(size=(7, len(phi.coordinates)))
    angles = points @ phi.frequencies + phi.phases  # (7, total)
    slopes = -np.sin(angles)
    slopes[:, phi.trigonometric :] = 1.0
    gradients = (slopes * phi.amplitudes * weights) @ phi.frequencies.T
    found = phi.squared_gradients(points, weights)
    assert np.allclose(found, np.mean(gradients**2, axis=0), rtol=1e-12, atol=1e-13)
