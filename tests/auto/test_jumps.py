"""Targets that jump, and predictions beyond the range of the targets so far."""

import numpy as np

import kernelbank as kb

MARGIN = 0.05
"""Predictions stay within the range of the targets, widened by this share of it."""
AGREEMENT = 2.0
"""And beyond it by what the distance exceeds so many times the deviation of the slots."""


def staircase(seed=0, level=100.0):
    """A target that moves little for long, then jumps far."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(400, 2))
    y = 10 + np.cumsum(0.3 * draw.normal(size=400))
    y[300:] += level
    return X, y


def test_the_last_value_has_its_say_right_after_a_jump():
    X, y = staircase()
    trace = kb.AutoBank(size="small").run(X, y)
    jump = y[300] - y[299]
    errors = np.abs(trace.predictions - y)
    assert errors[300] > 0.9 * jump  # nobody could know
    assert errors[301] < 0.1 * jump
    assert errors[302] < 0.1 * jump


def test_a_single_far_target_of_independent_ones_moves_the_next_prediction_at_most_half_way():
    draw = np.random.default_rng(1)
    X, y = draw.normal(size=(320, 2)), draw.normal(size=320)
    y[300] = 500.0
    trace = kb.AutoBank(size="small").run(X, y)
    assert trace.predictions[301] < 0.6 * 500.0
    assert np.abs(trace.predictions[303:]).max() < 20.0


def test_predictions_leave_the_range_where_all_slots_agree():
    """A line that everybody has learned goes on beyond what was seen."""
    draw = np.random.default_rng(2)
    x = np.r_[draw.uniform(-1, 1, 300), 2.0]
    y = 3 * x
    slots = [
        kb.Slot(kb.kernels.Linear(1.0), kb.learners.LinearRLS(ridge=ridge))
        for ridge in (1e-3, 1e-2)
    ]
    trace = kb.AutoBank(slots=slots).run(x[:, None], y, record="all")
    spread = y[:300].max() - y[:300].min()
    assert trace.predictions[300] > y[:300].max() + 2 * MARGIN * spread
    beyond = trace.slot_predictions[300] @ trace.weights[300] - y[:300].max()
    deviation = np.sqrt(trace.weights[300] @ (trace.slot_predictions[300] - beyond) ** 2)
    assert deviation > 0  # they do not agree to the last bit
    assert abs(trace.predictions[300] - 6.0) < 0.2


def test_predictions_stay_near_the_range_where_slots_differ():
    draw = np.random.default_rng(2)
    x = np.r_[draw.uniform(-1, 1, 300), 2.0]
    y = 3 * x + draw.normal(size=301)
    slots = [
        kb.Slot(kb.kernels.Linear(1.0), kb.learners.LinearRLS()),
        kb.Slot(kb.kernels.Gaussian(0.5), kb.learners.FourierRLS(features=50)),
    ]
    bank = kb.AutoBank(slots=slots, combiner=kb.combiners.Uniform())
    trace = bank.run(x[:, None], y, record="all")
    low, high = y[:300].min(), y[:300].max()
    mixed = float(trace.slot_predictions[300].mean())
    deviation = float(trace.slot_predictions[300].std())
    room = MARGIN * (high - low)
    expected = np.clip(mixed, low - room, high + room)
    if mixed > high:
        expected = min(mixed, high + max(room, mixed - high - AGREEMENT * deviation))
    assert abs(trace.predictions[300] - expected) < 1e-9
