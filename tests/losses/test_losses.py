"""Losses against their definitions, and the losses for counts in banks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelbank as kb
from support.instances import LOSSES, name_of
from support.marks import refuses

EPS = np.finfo(float).eps
L, K, M = kb.losses, kb.kernels, kb.learners
numbers = st.one_of(
    st.floats(-1e3, 1e3, allow_subnormal=False),
    st.sampled_from([0.0, 0.5, -0.5, 1.0, -1.0, 0.2, -0.2, 0.4, 1e-300, 1e-20, 40.0, -800.0]),
)
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


@pytest.mark.parametrize(("loss", "definition"), LOSSES, ids=map(name_of, LOSSES))
@settings(max_examples=50)
@given(f=numbers, y=numbers)
def test_loss_value_and_derivative_equal_their_definition(loss, definition, f, y):
    if loss.labels:
        y = 1.0 if y >= 0 else -1.0
    if not loss.any_target:
        y = abs(y)
    value, derivative = definition
    # Each formula is at most ten roundings of numbers no larger than |f| + |y| + 1, squared; an
    # exponential of the margin brings margin * eps, which its own decay keeps below one unit.
    size = 1 + abs(value(f, y))
    slope = derivative(f, y)
    slope_size = 1 + abs(slope)
    if hasattr(loss, "smoothing"):
        # The definition takes sums of y f and y log y (at most 7 y here), and the difference of f
        # and a point that is rounded like f, over the smoothing.
        size += (1 + y) * (8 + abs(f)) + abs(f * slope)
        slope_size += (1 + abs(f) + y) / loss.smoothing
    assert abs(loss.value(f, y) - value(f, y)) <= 16 * EPS * size
    assert abs(loss.derivative(f, y) - slope) <= 16 * EPS * slope_size


def test_loss_derivative_at_a_kink_is_the_least_subgradient():
    assert L.Absolute().derivative(1.0, 1.0) == 0
    assert L.EpsilonInsensitive(0.5).derivative([1.5, 0.5, 1.25], 1.0).tolist() == [0, 0, 0]
    assert L.Pinball(0.9).derivative(2.0, 2.0) == 0
    assert L.Hinge().derivative([1.0, -1.0], [1.0, -1.0]).tolist() == [0, 0]
    assert L.Huber(1.0).derivative([1.0, -1.0], 0.0).tolist() == [1.0, -1.0]


def test_logistic_loss_of_large_margins_keeps_its_digits():
    # log(1 + e^-m) near e^-m for large m, near -m for small: no overflow, no 0 too early.
    margins = np.array([-700.0, -40.0, 0.0, 40.0, 700.0])
    expected = np.array([700.0, 40.0 + np.exp(-40), np.log(2), np.exp(-40), np.exp(-700)])
    values = L.Logistic().value(margins, 1.0)
    assert (np.abs(values - expected) <= 800 * EPS * expected).all()


def test_loss_of_arrays_broadcasts_shapes_and_a_name_gives_the_built_in_one():
    assert L.Squared().value(np.ones((2, 3)), 0.0).shape == (2, 3)
    assert L.Squared().derivative([], []).shape == (0,)
    for name, kind in L.BUILT_IN.items():
        assert type(kb.KernelBank(loss=name).loss) is kind


# --- counts: Moreau envelopes ---------------------------------------------------------------------


def test_poisson_loss_without_smoothing_is_half_the_deviance():
    f, y = np.array([-2.0, 0.0, 1.0, 3.0]), np.array([0.0, 1.0, 4.0, 7.0])
    loss = L.Poisson(smoothing=0)
    expected = np.exp(f) - y * f - (y - y * np.log(np.where(y > 0, y, 1)))
    assert np.abs(loss.value(f, y) - expected).max() <= 100 * EPS
    assert np.abs(loss.derivative(f, y) - (np.exp(f) - y)).max() <= 100 * EPS
    assert loss.curvature is None


@pytest.mark.parametrize("y", [0.0, 0.5, 3.0, 1000.0])
def test_envelope_is_finite_has_the_minimiser_of_the_loss_and_lies_below_it(y):
    loss = L.Poisson(0.3)
    f = np.concatenate([-np.logspace(-3, 12, 60), np.logspace(-3, 12, 60)])
    value, slope = loss.value(f, y), loss.derivative(f, y)
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()
    assert value.min() >= -100 * EPS * (1 + y)  # the least value is 0
    if y > 0:
        best = np.log(y)
        assert abs(loss.derivative(best, y)) <= 100 * EPS * (1 + y) / loss.smoothing
        assert abs(loss.value(best, y)) <= 100 * EPS * (1 + y) * (1 + abs(best))
    inside = f < 30
    plain = L.Poisson(0)
    above = plain.value(f[inside], y) - value[inside]
    bound = loss.smoothing / 2 * plain.derivative(f[inside], y) ** 2
    size = 1 + np.abs(plain.value(f[inside], y)) + y * (8 + np.abs(f[inside]))
    assert (above >= -100 * EPS * size).all()
    assert (above <= bound + 100 * EPS * size).all()


def stepped_curvature(loss, f, y):
    """bound / 4^k with the largest k <= 8 at which the step leaves half of the derivative."""
    slope, curvature = loss.derivative(f, y), loss.curvature
    for k in range(1, 9):
        c = loss.curvature / 4**k
        if not loss.derivative(f - slope / c, y) / slope >= 0.5:
            break
        curvature = c
    return curvature


@pytest.mark.parametrize("loss", [L.Huber(0.3), L.Poisson(0.2)], ids=repr)
def test_second_order_method_takes_the_curvature_along_its_step(loss):
    """Recursive least squares on a linear kernel, against its equations with that curvature."""
    draw = np.random.default_rng(3)
    X = draw.uniform(-1, 1, (60, 2))
    y = np.abs(2 * X[:, 0] + draw.normal(size=60))
    bank = kb.KernelBank([K.Linear(1.0)], M.LinearRLS(ridge=0.5), loss=loss, window=3)
    trace = bank.run(X, y)
    weights, P = np.zeros(3), np.eye(3) / 0.5
    for n, (x, target) in enumerate(zip(X, y, strict=True)):
        phi = np.append(x, 1.0)
        f = weights @ phi
        assert abs(trace.slot_predictions[n, 0] - f) < 1e-9
        c = stepped_curvature(loss, f, target)
        gain = P @ phi / (2 / c + phi @ P @ phi)
        weights = weights - gain * loss.derivative(f, target) / c
        P = P - np.outer(gain, phi @ P)


KLMS = kb.Slot(K.Gaussian(1.0), M.KLMS())
TWO = kb.KernelBank(loss=["squared", "hinge"], outputs=2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kb.KernelBank(loss="hinge").learn_one(0.0, 0.5), "'y' must be -1 or"),
        (lambda: kb.KernelBank(loss="logistic").run([0.0, 1.0], [1, 0]), "'y' must be -1 or"),
        (lambda: TWO.learn_one(0.0, [1.0, 0.5]), "'y' must be -1 or"),
        (lambda: kb.KernelBank(loss="poisson").learn_one(0.0, -1.0), r"'y' must lie in \[0, inf\]"),
        (lambda: kb.AutoBank(loss="poisson"), "because targets are standardised.*lower=0"),
        (lambda: kb.Slot(K.Gaussian(1.0), M.KLMS(), loss="poisson"), "a built-in loss for all"),
        (
            lambda: kb.KernelBank(
                slots=[KLMS, kb.Slot(K.Gaussian(1.0), M.KLMS(), residual_of=0)], loss="poisson"
            ),
            "be one for all numbers where slots learn a residual",
        ),
        (
            lambda: kb.KernelBank(learner=M.KRLS(), loss=L.Poisson(0)),
            "have a bounded curvature for KRLS",
        ),
    ],
)
def test_losses_refuse_what_they_cannot_use_by_name(make, message):
    refuses(message, make)
