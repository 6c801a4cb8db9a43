"""Kernels against their definitions, and their algebra."""

import numpy as np
import pytest

import kernelbank as kb
from support import naive
from support.instances import KERNELS, cauchy, name_of, stream
from support.instances import stream as samples
from support.marks import refuses

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


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: K.Linear()([[1.0, 2.0]], [[1.0]]), "'Z' must have 2 columns"),
        (lambda: K.Linear()([[float("nan")]], [[1.0]]), "'X' must be finite"),
    ],
)
def test_kernels_with_bad_arguments_name_them(make, name):
    refuses(name, make)


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


# --- composed -------------------------------------------------------------------------------------

Norma = kb.learners.Norma
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")

CASES = [
    (K.ActiveDims(K.Gaussian(0.8), [2, 0]), [2, 0]),
    (K.ActiveDims(K.Periodic(1.3), [4, 1, 3]), [4, 1, 3]),
    (K.ActiveDims(K.Linear(0.2), range(5)), range(5)),
    (K.ActiveDims(K.Custom(cauchy), [3, 1]), [3, 1]),
    (K.ActiveDims(K.Additive(K.Gaussian(0.5), 2), [0, 2, 4]), [0, 2, 4]),
    (K.ActiveDims(K.ActiveDims(K.Polynomial(), [1]), [4, 2]), [4, 2]),
]


@pytest.mark.parametrize(("kernel", "coordinates"), CASES, ids=repr)
def test_active_dims_equals_its_base_on_these_columns_bit_for_bit(kernel, coordinates):
    X, y = stream(1, 40, 5)
    chosen = X[:, list(coordinates)]
    assert (kernel(X, X[:7]) == kernel.base(chosen, chosen[:7])).all()
    whole, alone = (kb.KernelBank([k], Norma(0.02, 20)) for k in (kernel, kernel.base))
    trace, expected = whole.run(X, y), alone.run(chosen, y)
    assert (trace.predictions == expected.predictions).all()
    assert (trace.cost == expected.cost).all()
    assert (whole.predict(X) == alone.predict(chosen)).all()
    assert whole.predict_one(X[3]) == alone.predict_one(chosen[3])


def test_additive_of_active_dims_uses_coordinates_of_the_subset():
    X, _ = stream(3, 9, 4)
    kernel = K.Additive(K.ActiveDims(K.Gaussian(0.5), [1]), 2)
    slow = naive.additive(naive.active_dims(naive.gaussian(0.5), [1]), 2)
    expected = np.array([[slow(x, t) for t in X] for x in X])
    assert np.abs(kernel(X, X) - expected).max() <= 40 * EPS
    nested = K.Additive(K.Additive(K.Gaussian(0.5), 1), 3)  # every coordinate is equally often in
    flat = K.Additive(K.Gaussian(0.5), 1)
    assert np.abs(nested(X, X) - flat(X, X)).max() <= 40 * EPS


@pytest.mark.parametrize(
    "kernels",
    [
        [K.Additive(K.Gaussian(width), 2) for width in (0.5, 1.0, 2.0, 4.0)],
        [K.Polynomial(degree, 1.0, 0.5) for degree in (1, 4, 2, 3)],
    ],
)
def test_kernels_of_one_structure_share_a_pack_and_equal_those_alone(kernels):
    bank = kb.KernelBank(kernels, Norma(0.001, 20))
    assert bank._settings.packs == ((0, 1, 2, 3),)
    X, y = stream(4, 50, 6)
    bank.run(X, y)
    assert [bank.predict_one(x) for x in X] == bank.predict(X).tolist()
    for p, kernel in enumerate(kernels):
        alone = kb.KernelBank([kernel], Norma(0.001, 20))
        alone.run(X, y)
        assert (alone.predict_slots(X)[:, 0] == bank.predict_slots(X)[:, p]).all()


@pytest.mark.parametrize(
    "kernel",
    [
        K.Linear() + 2.0 * K.ActiveDims(K.Gaussian(1.0), [3]) * K.Gaussian(1.0),
        K.Additive(K.ActiveDims(K.Gaussian(1.0), [2]), 2),
        K.ActiveDims(K.ActiveDims(K.Gaussian(1.0), [1]), [0]),
    ],
    ids=repr,
)
def test_inputs_too_narrow_for_a_kernel_are_refused_and_change_nothing(kernel):
    bank = kb.KernelBank([K.Gaussian(1.0), kernel])
    for call in (
        lambda: bank.run(np.ones((5, 3)), np.ones(5)),
        lambda: bank.learn_one(np.ones(3), 1.0),
        lambda: bank.predict_one(np.ones(3)),
        lambda: bank.predict(np.ones((5, 3))),
        lambda: kernel(np.ones((2, 3)), np.ones((2, 3))),
    ):
        words = r"'[xX]' must have at least \d columns for ActiveDims"
        refuses(words, call)
    assert bank.samples == 0
    assert bank.state() == {}


def test_additive_of_too_many_subsets_is_refused_and_changes_nothing():
    bank = kb.KernelBank([K.Additive(K.Gaussian(1.0), 2)])
    with pytest.raises(ValueError, match=r"'order' of Additive .* 2000 .* 100 .*random features"):
        bank.learn_one(np.ones(100), 1.0)
    with pytest.raises(ValueError, match="'order' of Additive"):
        K.Additive(K.Gaussian(1.0), 500)(np.ones((1, 100_000)), np.ones((1, 100_000)))
    assert bank.samples == 0
    bank.learn_one(np.ones(10), 1.0)  # another width is still welcome
    features = kb.KernelBank([K.Additive(K.Gaussian(1.0), 3)], kb.learners.FourierRLS(20))
    features.learn_one(np.ones(60), 1.0)  # 34,220 subsets, of which features look at a few
    assert bank.samples == features.samples == 1


CELLS = K.ActiveDims(K.TreeKernel(), [1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CELLS([[0.0, 1.0]], [[0.0, 1.0]]), "'kernel' of ActiveDims must be .*PartitionT"),
        (lambda: K.TreeKernel()([[0.0]], [[1.0]]), "'kernel' of TreeKernel must be .*PartitionT"),
        (lambda: CELLS + K.Linear(), "'left' of Sum must be a function of two"),
        (lambda: K.Linear() * K.TreeKernel(), "'right' of Product must be a function of two"),
        (lambda: 2.0 * CELLS, "'kernel' of Scaled must be a function of two"),
        (lambda: K.Additive(CELLS, 1), "'base' of Additive must be a function of two"),
        (lambda: kb.checks.check_kernel(CELLS), "'kernel' of check_kernel"),
    ],
)
def test_invalid_parts_of_kernels_are_refused(make, message):
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "got" in str(caught.value)
