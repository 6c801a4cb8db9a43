"""Kernels against their definitions, and their algebra."""

import numpy as np
import pytest

import kernelbank as kb
from support.instances import KERNELS, name_of
from support.instances import stream as samples

EPS = np.finfo(float).eps
K = kb.kernels


@pytest.mark.parametrize(("kernel", "naive"), KERNELS, ids=map(name_of, KERNELS))
@pytest.mark.parametrize("dimension", [1, 3])
def test_kernel_values_equal_their_definition(kernel, naive, dimension):
    # A value is a few roundings of d-term sums away from its definition; in an exponential with
    # exponent -u the relative error grows by u, and u <= 40 here. |k| exceeds no 5000.
    X, _ = samples(1, 20, dimension)
    Z, _ = samples(2, 9, dimension)
    expected = np.array([[naive(x, z) for z in Z] for x in X])
    values = kernel(X, Z)
    assert values.shape == (20, 9)
    size = np.abs(expected) + 1e-300
    assert (np.abs(values - expected) / size).max() <= (2 * dimension + 4) * 40 * EPS


@pytest.mark.parametrize(("kernel", "naive"), KERNELS, ids=map(name_of, KERNELS))
def test_kernel_matrix_is_symmetric_and_positive_definite(kernel, naive):
    X, _ = samples(3, 25, 2)
    gram = kernel(X, X)
    assert np.abs(gram - gram.T).max() <= 4 * EPS * np.abs(gram).max()
    assert np.linalg.eigvalsh(gram).min() >= -25 * 8 * EPS * np.abs(gram).max()


def test_gaussian_over_the_whole_range_of_the_exponential_is_exact():
    distance = np.sqrt(np.linspace(0, 1500, 4001))
    values = K.Gaussian(1.0)([[0.0]], distance[:, None])[0]
    exact = np.exp(-(distance.astype(np.longdouble) ** 2) / 2)
    normal = exact >= 2.0**-1021
    # 1.3 ulp of the exponential, and the constant 1 / (2 log 2) rounded: u eps with u <= 709.
    error = np.abs(values - exact)[normal] / exact[normal]
    allowed = (2 + distance[normal] ** 2 / 2) * EPS
    assert (error <= allowed).all()
    assert (values[exact < 2.0**-1022] == 0).all()
    assert (values <= 1.0).all()


def test_kernels_of_inputs_far_apart_are_zero():
    assert K.Gaussian(0.1)([[0.0]], [[1e150]]).tolist() == [[0.0]]
    assert K.Laplacian(0.1)([[0.0]], [[1e150]]).tolist() == [[0.0]]
    for nu in (0.5, 1.5, 2.5):
        assert K.Matern(1e-150, nu)([[0.0]], [[1e150]]).tolist() == [[0.0]]


def test_sums_products_and_multiples_equal_those_of_the_values():
    X, _ = samples(4, 5, 2)
    g, h = K.Gaussian(1.0), K.Linear(0.5)
    gv, hv = g(X, X), h(X, X)
    assert ((g + h)(X, X) == gv + hv).all()
    assert ((g * h)(X, X) == gv * hv).all()
    assert ((2.5 * g)(X, X) == 2.5 * gv).all()
    assert ((g * 2.5)(X, X) == 2.5 * gv).all()
    nested = (g + h * (g + 0.5 * h)) * (h + g)
    assert np.allclose(nested(X, X), (gv + hv * (gv + 0.5 * hv)) * (hv + gv), rtol=1e-14)
    assert g + h == K.Sum(g, h)
    for factor in (0, -1.0, float("nan"), "2"):
        with pytest.raises(ValueError, match="'factor'"):
            factor * g
    with pytest.raises(TypeError):
        g + 1.0


def test_polynomials_of_mixed_degrees_in_one_pack_equal_those_alone():
    dictionary = [K.Polynomial(degree, 1.0, 0.5) for degree in (1, 4, 2, 3, 5)]
    X, y = samples(5, 30, 2)
    bank = kb.KernelBank(dictionary, kb.learners.Norma(0.001), window=3)
    bank.run(X, y)
    alone = [kb.KernelBank([k], kb.learners.Norma(0.001), window=3) for k in dictionary]
    for p, single in enumerate(alone):
        single.run(X, y)
        assert (single.predict_slots(X)[:, 0] == bank.predict_slots(X)[:, p]).all()


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: K.Gaussian(0), "'width' of Gaussian"),
        (lambda: K.Gaussian("1"), "'width' of Gaussian"),
        (lambda: K.Gaussian(1e-170), "'width' of Gaussian"),
        (lambda: K.Gaussian(10**400), "'width' of Gaussian"),
        (lambda: K.Matern(1.0, nu=np.ones(2)), "'nu' of Matern"),
        (lambda: K.Matern(1.0, nu=1), "'nu' of Matern"),
        (lambda: K.RationalQuadratic(1.0, alpha=0), "'alpha' of RationalQuadratic"),
        (lambda: K.Periodic(0.0), "'period' of Periodic"),
        (lambda: K.Linear(-0.1), "'offset' of Linear"),
        (lambda: K.Polynomial(2.5), "'degree' of Polynomial"),
        (lambda: K.Polynomial(0), "'degree' of Polynomial"),
        (lambda: K.Polynomial(2, scale=0), "'scale' of Polynomial"),
        (lambda: K.Custom("no"), "'function' of Custom"),
        (lambda: kb.KernelBank([]), "'dictionary' of KernelBank"),
        (lambda: kb.KernelBank(["gaussian"]), "'dictionary' of KernelBank"),
        (lambda: kb.KernelBank("gaussian"), "'dictionary' of KernelBank"),
        (lambda: kb.gaussian_grid(2, 1, 3), "'high' of gaussian_grid"),
        (lambda: kb.gaussian_grid(0, 1, 3), "'low' of gaussian_grid"),
        (lambda: kb.gaussian_grid(1, 2, 0), "'count' of gaussian_grid"),
        (lambda: kb.gaussian_grid(1, 2, 3, spacing="log"), "'spacing' of gaussian_grid"),
        (lambda: K.Spline()([[-1.0]], [[1.0]]), "'X' must be non-negative"),
        (lambda: (K.Spline() + K.Linear())([[1.0]], [[-1.0]]), "'Z' must be non-negative"),
        (lambda: K.Linear()([[1.0, 2.0]], [[1.0]]), "'Z' must have 2 columns"),
        (lambda: K.Linear()([[float("nan")]], [[1.0]]), "'X' must be finite"),
    ],
)
def test_kernels_with_bad_arguments_name_them(make, name):
    with pytest.raises(ValueError, match=name):
        make()


def test_custom_kernel_that_fails_raises_its_own_error():
    def broken(X, Z):
        raise RuntimeError("no such kernel")

    with pytest.raises(RuntimeError, match="no such kernel"):
        K.Custom(broken)([[1.0]], [[2.0]])
    for result in (np.ones((2, 3)), 0.5, np.ones((1, 1)) * 1j, [["a"]]):
        with pytest.raises(ValueError, match=r"'odd' must return real numbers of shape \(1, 1\)"):
            K.Custom(lambda X, Z, result=result: result, name="odd")([[1.0]], [[2.0]])


def test_gaussian_grid_is_a_list_of_kernels_with_equal_ratios_or_steps():
    grid = kb.gaussian_grid(1, 4, 3)
    assert grid == [K.Gaussian(1.0), K.Gaussian(2.0), K.Gaussian(4.0)]
    assert kb.gaussian_grid(1, 4, 3, spacing="linear")[1] == K.Gaussian(2.5)
