"""Kernels on some coordinates and of low order, beyond what every kernel is tested for."""

import math

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.kernels.base import active_coordinates, without_active_dims
from support import naive
from support.instances import cauchy, stream

EPS = np.finfo(float).eps
K = kb.kernels
Norma = kb.learners.Norma
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")

CASES = [
    (K.ActiveDims(K.Gaussian(0.8), [2, 0]), [2, 0]),
    (K.ActiveDims(K.Periodic(1.3), [4, 1, 3]), [4, 1, 3]),
    (K.ActiveDims(K.Linear(0.2), range(5)), range(5)),
    (K.ActiveDims(K.Custom(cauchy), [3, 1]), [3, 1]),
    (K.ActiveDims(K.Additive(K.Gaussian(0.5), 2), [0, 2, 4]), [0, 2, 4]),
    (K.ActiveDims(K.ActiveDims(K.Spline(), [1]), [4, 2]), [4, 2]),
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


@pytest.mark.parametrize("order", [1, 2, 4, 7])
def test_additive_equals_the_mean_over_subsets(order):
    X, _ = stream(2, 9, 4)
    kernel = K.Additive(K.Gaussian(0.5) * K.Linear(1.0), order)
    slow = naive.additive(lambda x, t: naive.gaussian(0.5)(x, t) * naive.linear(1.0)(x, t), order)
    expected = np.array([[slow(x, t) for t in X] for x in X])
    assert np.abs(kernel(X, X) - expected).max() <= 40 * EPS * np.abs(expected).max()
    if order >= 4:
        assert (kernel(X, X) == kernel.base(X, X)).all()


def test_additive_of_active_dims_uses_coordinates_of_the_subset():
    X, _ = stream(3, 9, 4)
    kernel = K.Additive(K.ActiveDims(K.Gaussian(0.5), [1]), 2)
    slow = naive.additive(naive.active_dims(naive.gaussian(0.5), [1]), 2)
    expected = np.array([[slow(x, t) for t in X] for x in X])
    assert np.abs(kernel(X, X) - expected).max() <= 40 * EPS
    nested = K.Additive(K.Additive(K.Gaussian(0.5), 1), 3)  # every coordinate is equally often in
    flat = K.Additive(K.Gaussian(0.5), 1)
    assert np.abs(nested(X, X) - flat(X, X)).max() <= 40 * EPS


def test_additive_kernels_of_many_widths_share_a_pack():
    kernels = [K.Additive(K.Gaussian(width), 2) for width in (0.5, 1.0, 2.0, 4.0)]
    bank = kb.KernelBank(kernels, Norma(0.02, 20))
    assert bank._settings.packs == ((0, 1, 2, 3),)
    assert kernels[0].term_count(6) == math.comb(6, 2)
    X, y = stream(4, 50, 6)
    bank.run(X, y)
    assert [bank.predict_one(x) for x in X] == bank.predict(X).tolist()
    for p, kernel in enumerate(kernels):
        alone = kb.KernelBank([kernel], Norma(0.02, 20))
        alone.run(X, y)
        assert (alone.predict_slots(X)[:, 0] == bank.predict_slots(X)[:, p]).all()


def test_active_dims_and_additive_after_saving_and_loading_are_equal(tmp_path):
    kernel = K.Additive(K.ActiveDims(K.Matern(1.0), [0]) + K.Gaussian(1.0), 2) * K.ActiveDims(
        K.Linear(), [2, 1]
    )
    X, y = stream(6, 40, 3)
    bank = kb.KernelBank([kernel], Norma(0.01, 20))
    bank.run(X[:20], y[:20])
    bank.save(tmp_path / "bank.kb")
    again = kb.load(tmp_path / "bank.kb")
    assert again.slots[0].kernel == kernel
    assert (again.run(X[20:], y[20:]).cost == bank.run(X[20:], y[20:]).cost).all()
    with pytest.raises(ValueError, match="than most_memory"):
        kb.load(tmp_path / "bank.kb", most_memory=1000)


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
        with pytest.raises(ValueError, match=words):
            call()
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
    assert bank.samples == 1


def test_active_dims_checks_the_domain_of_its_coordinates_only():
    kernel = K.ActiveDims(K.Spline(), [1])
    X = np.array([[-1.0, 2.0]])
    assert kernel(X, X).shape == (1, 1)
    kb.KernelBank([kernel + K.Gaussian(1.0)]).run(X, [1.0])
    with pytest.raises(ValueError, match="'X' must be non-negative"):
        kernel(-X, -X)
    with pytest.raises(ValueError, match="'x' must be non-negative"):
        kb.KernelBank([K.Additive(K.Spline(), 1)]).learn_one([1.0, -1.0], 0.0)


def test_nested_active_dims_have_composed_coordinates():
    kernel = K.ActiveDims(K.ActiveDims(K.Linear(), [2, 0]), [5, 1, 3])
    assert without_active_dims(kernel) == K.Linear()
    assert active_coordinates(kernel, 6) == (3, 5)
    assert active_coordinates(K.Linear() + kernel, 6) == (0, 1, 2, 3, 4, 5)
    with pytest.raises(ValueError, match="at least 6 columns"):
        active_coordinates(kernel, 5)


CELLS = K.ActiveDims(K.TreeKernel(), [1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: K.ActiveDims("gaussian", [0]), "'base' of ActiveDims"),
        *(
            (lambda listed=listed: K.ActiveDims(K.Linear(), listed), "'coordinates' of ActiveDims")
            for listed in (0, "01", [], [1, 1], [-1], [0.5])
        ),
        (lambda: K.Additive(None, 1), "'base' of Additive"),
        (lambda: K.Additive(K.Linear(), 0), "'order' of Additive"),
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
