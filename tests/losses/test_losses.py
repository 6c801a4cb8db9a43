"""Losses against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelbank as kb
from support.instances import LOSSES, name_of

EPS = np.finfo(float).eps
L = kb.losses
numbers = st.one_of(
    st.floats(-1e3, 1e3),
    st.sampled_from([0.0, 0.5, -0.5, 1.0, -1.0, 0.2, -0.2, 0.4, 1e-300, 1e-20, 40.0, -800.0]),
)


@pytest.mark.parametrize(("loss", "definition"), LOSSES, ids=map(name_of, LOSSES))
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
    if hasattr(loss, "smoothing") and loss.smoothing:
        # The definition takes sums of y f and y log y (at most 7 y here), and the difference of f
        # and a point that is rounded like f, over the smoothing.
        size += (1 + y) * (8 + abs(f)) + abs(f * slope)
        slope_size += (1 + abs(f) + y) / loss.smoothing
    assert abs(loss.value(f, y) - value(f, y)) <= 16 * EPS * size
    assert abs(loss.derivative(f, y) - slope) <= 16 * EPS * slope_size


@pytest.mark.parametrize(("loss", "definition"), LOSSES, ids=map(name_of, LOSSES))
@given(f=st.floats(-50, 50), g=st.floats(-50, 50), share=st.floats(0, 1))
def test_loss_is_convex_and_within_its_curvature(loss, definition, f, g, share):
    y = 1.0
    mixed = share * f + (1 - share) * g
    chord = share * loss.value(f, y) + (1 - share) * loss.value(g, y)
    rounding = 1e-12 * (1 + abs(chord))
    assert loss.value(mixed, y) <= chord + rounding
    if loss.curvature is not None:
        growth = abs(loss.derivative(f, y) - loss.derivative(g, y))
        assert growth <= loss.curvature * abs(f - g) + rounding


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


def test_loss_of_arrays_broadcasts_shapes():
    assert L.Squared().value(np.ones((2, 3)), 0.0).shape == (2, 3)
    assert L.Squared().derivative([], []).shape == (0,)


@pytest.mark.parametrize("name", sorted(L.BUILT_IN))
def test_loss_given_by_name_is_the_built_in_one(name):
    loss = kb.KernelBank(loss=name).loss
    assert type(loss) is L.BUILT_IN[name]


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: kb.KernelBank(loss="squarred"), "'loss'"),
        (lambda: kb.KernelBank(loss=3), "'loss'"),
        (lambda: L.Huber(0), "'delta' of Huber"),
        (lambda: L.EpsilonInsensitive(-1), "'epsilon' of EpsilonInsensitive"),
        (lambda: L.Pinball(1), "'quantile' of Pinball"),
        (lambda: L.Custom(1, lambda f, y: f), "'value_function' of Custom"),
        (lambda: L.Custom(lambda f, y: f, None), "'derivative_function' of Custom"),
        (lambda: L.Custom(lambda f, y: f, lambda f, y: f, curvature=-1), "'curvature' of Custom"),
        (lambda: kb.KernelBank(loss="hinge").learn_one(0.0, 0.5), "'y' must be -1 or"),
        (lambda: kb.KernelBank(loss="logistic").run([0.0, 1.0], [1, 0]), "'y' must be -1 or"),
    ],
)
def test_losses_with_bad_arguments_name_them(make, name):
    with pytest.raises(ValueError, match=name):
        make()


def test_custom_loss_that_fails_raises_its_own_error_and_changes_nothing():
    def picky(f, y):
        if (np.abs(y) > 5).any():
            raise RuntimeError("too large for me")
        return (f - y) ** 2

    bank = kb.KernelBank(loss=L.Custom(picky, lambda f, y: 2 * (f - y), curvature=2.0))
    bank.run([0.0, 1.0, 2.0], [1.0, 2.0, 3.0])
    before = bank.state()
    with pytest.raises(RuntimeError, match="too large for me"):
        bank.learn_one(3.0, 7.0)
    after = bank.state()
    assert all((before[name] == after[name]).all() for name in before)
    assert bank.samples == 3
