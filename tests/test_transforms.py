"""Transforms of the target: formulas, and slots that learn a transformed target."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelbank as kb
from support.instances import stream
from support.marks import refuses
from support.naive.transforms import shifted_exp, shifted_log

K, L, T = kb.kernels, kb.learners, kb.transforms
EPS = np.finfo(float).eps
pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
SHIFTS = [2.0, 1.2, -1.5, 40.0]
NUMBERS = [0.0, -0.0, 1e-300, 0.3, -0.3, 1.0, -1.0, 5.0, -5.0, 30.0, -30.0, 1e6, -1e6]


@pytest.mark.parametrize("shift", SHIFTS)
def test_shifted_log_and_its_inverse_equal_their_definitions(shift):
    transform = T.ShiftedLog(shift)
    # r = 1 + y / shift is rounded, r and log(r) have errors of a few eps, and slopes are at most 8.
    for function, naive in ((transform.forward, shifted_log), (transform.inverse, shifted_exp)):
        expected = np.array([naive(v, shift) for v in NUMBERS])
        allowed = 64 * EPS * (abs(shift) + np.abs(expected) + np.abs(NUMBERS))
        assert (np.abs(function(NUMBERS) - expected) <= allowed).all()


@given(st.floats(-1e6, 1e6), st.sampled_from(SHIFTS))
@settings(max_examples=100, deadline=None)
def test_inverse_of_the_transform_is_the_target(y, shift):
    transform = T.ShiftedLog(shift)
    # Errors of T(y), at most 8 times as large after the inverse, whose slope is at most 8.
    allowed = 600 * EPS * (abs(shift) + abs(y))
    assert abs(transform.inverse(transform.forward(y)) - y) <= allowed


# --- slots ----------------------------------------------------------------------------------------


def inner_values(kernel, learner, X, targets, window):
    """Predictions of a bank of one slot on other targets."""
    return kb.KernelBank([kernel], learner, window=window).run(X, targets).slot_predictions[:, 0]


@pytest.mark.parametrize(("shift", "window"), [(1.5, 4), (-2.0, 1)])
def test_slot_with_a_transform_learns_it_and_predicts_its_inverse(shift, window):
    X, y = stream(2, 300, 2)
    transform = T.ShiftedLog(shift)
    kernel, learner = K.Gaussian(0.5), L.Norma(0.1, 30)
    slots = [kb.Slot(K.Linear(1.0), L.LinearRLS()), kb.Slot(kernel, learner, transform=transform)]
    trace = kb.KernelBank(slots=slots, window=window).run(X, y)
    inner = inner_values(kernel, learner, X, transform.forward(y), window)
    assert np.array_equal(trace.slot_predictions[:, 1], transform.inverse(inner))
    plain = kb.KernelBank(slots=slots[:1], window=window).run(X, y)
    assert np.array_equal(trace.slot_predictions[:, 0], plain.slot_predictions[:, 0])
    assert f"transform ShiftedLog(shift={shift:g})" in kb.KernelBank(slots=slots).names[1]


def test_slot_with_a_base_and_a_transform_learns_the_difference_of_transforms():
    X, y = stream(2, 300, 2)
    transform = T.ShiftedLog(1.3)
    base, learner = kb.Slot(K.Linear(1.0), L.LinearRLS()), L.KLMS(0.2, 30)
    rest = kb.Slot(K.Gaussian(0.5), learner, residual_of=0, transform=transform)
    trace = kb.KernelBank(slots=[base, rest], window=3).run(X, y)
    b = transform.forward(trace.slot_predictions[:, 0])
    inner = inner_values(rest.kernel, learner, X, transform.forward(y) - b, 3)
    assert np.array_equal(trace.slot_predictions[:, 1], transform.inverse(inner + b))


def test_transform_with_labels_or_an_initial_function_is_refused():
    with pytest.raises(kb.errors.InvalidArgument, match="'transform' of Slot must be a transform"):
        kb.Slot(K.Gaussian(1.0), L.KLMS(), transform=np.log1p)
    slot = kb.Slot(K.Gaussian(1.0), L.KLMS(), transform=T.ShiftedLog())
    refuses("or have a transform", kb.KernelBank, slots=[slot], loss="hinge")
    refuses("'initial' must be left out", kb.KernelBank, slots=[slot], initial=([[0.0]], [1.0]))


def test_new_slots_with_a_transform_begin_with_the_last_samples_or_beside_their_base():
    X, y = stream(5, 400, 2)
    line = kb.Slot(K.Linear(1.0), L.LinearRLS())
    log = kb.Slot(K.Gaussian(0.5), L.KLMS(0.1, 30), transform=T.ShiftedLog(1.5))
    rest = kb.Slot(K.Gaussian(0.5), L.Norma(0.1, 30), residual_of=0, transform=T.ShiftedLog(1.5))
    bank = kb.KernelBank(slots=[line], window=2)
    bank.run(X[:300], y[:300])
    other = bank.with_slots([line, log, rest], [0, None, None], replay=(X[200:300], y[200:300]))
    alone = kb.KernelBank(slots=[log], window=2)
    alone.run(X[200:300], y[200:300])
    found = other.predict_slots(X[300:])
    assert np.array_equal(found[:, 1], alone.predict_slots(X[300:])[:, 0])
    # T^-1(T(b)) is b but for rounding.
    assert np.abs(found[:, 2] - found[:, 0]).max() <= 600 * EPS * 10
    kept = other.with_slots([log], [1])
    later = other.run(X[300:], y[300:]).slot_predictions[:, 1]
    assert np.array_equal(kept.run(X[300:], y[300:]).slot_predictions[:, 0], later)
