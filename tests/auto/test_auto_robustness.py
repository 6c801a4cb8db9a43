"""AutoBank on streams that misbehave: jumps, spikes, new levels, missing values."""

import numpy as np
import pytest

import kernelbank as kb
from support.auto_streams import HOSTILE, SMALL, numbers, rmse
from support.marks import slow, slow_unless


@pytest.mark.parametrize("shift", [slow("level"), slow("scale"), "both"])
def test_new_target_level_is_learned_within_tens_of_rows(shift):
    X, y = numbers(700)
    after = np.arange(700) >= 400
    moved = np.where(after, y * (1000 if shift != "level" else 1), y)
    moved += np.where(
        after & (shift != "scale"), 50 * y.std() * (1 if shift == "level" else 1e4), 0
    )
    unit = 1000 if shift != "level" else 1
    bank = kb.AutoBank(**SMALL)
    trace = bank.run(X, moved)
    before = rmse(trace, moved, slice(350, 400))
    assert rmse(trace, moved, slice(440, 490)) < 1.5 * before * unit
    assert [c.row for c in bank.ledger.changes if c.what == "target level"] == [405]


def test_new_input_level_is_learned_and_signalled():
    X, y = numbers(700)
    X[400:, 0] += 50
    bank = kb.AutoBank(**SMALL)
    trace = bank.run(X, y)
    assert rmse(trace, y, slice(440, 490)) < 1.5 * rmse(trace, y, slice(350, 400))
    assert ("input level", 0, 405) in [(c.what, c.column, c.row) for c in bank.ledger.changes]


QUICK = ("constant target", "huge", "alternating", "all missing", "walk", "spikes")


@pytest.mark.parametrize("name", slow_unless(lambda name: name in QUICK, HOSTILE))
@pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
def test_hostile_streams_give_finite_predictions(name):
    X, y = HOSTILE[name](*numbers(200))
    bank = kb.AutoBank(lags=1, **SMALL)
    trace = bank.run(X, y.clip(-1e150, 1e150), record="all")
    for field in trace.fields:
        assert np.isfinite(getattr(trace, field)[1:].astype(float)).all(), field
    seen = y.clip(-1e150, 1e150)
    assert np.nanmax(np.abs(trace.predictions)) <= 2 * np.abs(seen).max() + 1e-300
    for value in (*bank.predict_interval_one(X[0]), bank.predict_one(X[1]), *bank.predict(X[:5])):
        assert np.isfinite(value)
    labels = np.where(y > np.median(y), 1, 0)
    chances = kb.AutoBank("classification", **SMALL).run(X, labels).probabilities
    assert np.isfinite(chances[1:]).all()


# --- targets that jump, and predictions beyond the range of the targets so far --------------------


def staircase(seed=0, level=100.0):
    """A target that moves little for long, then jumps far."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(400, 2))
    y = 10 + np.cumsum(0.3 * draw.normal(size=400))
    y[300:] += level
    return X, y


def test_new_level_is_followed_from_its_second_row_on():
    """One far target may be a spike: the interval has both, the prediction stays."""
    X, y = staircase()
    trace = kb.AutoBank(size="small").run(X, y)
    jump = y[300] - y[299]
    errors = np.abs(trace.predictions - y)
    assert errors[300] > 0.9 * jump  # nobody could know
    assert errors[301] > 0.9 * jump
    assert trace.lower[301] < y[299] < y[301] < trace.upper[301]
    assert (errors[302:310] < 0.1 * jump).all()


def test_a_level_that_is_reached_by_steps_is_followed():
    """Far targets on one side, of which the newest two are near each other, are no spikes."""
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(320, 2)), 24.0 + draw.normal(size=320)
    y[300:] += [30.0, 50.0, 67.0, *[77.0] * 17]
    errors = np.abs(kb.AutoBank(size="small").run(X, y).predictions - y)
    steps = np.abs(np.diff(y[299:310]))
    assert errors[301] > 45.0  # the first may have been a spike
    assert (errors[302:310] < steps[2:10] + 20.0).all()


def spiked(outputs=1):
    """A smooth series, the same with lone spikes, and the rows of these."""
    draw = np.random.default_rng(1)
    X, rows = draw.normal(size=(420, 2)), np.arange(420)[:, None]
    y = 40 + 2 * np.sin(rows / 40) + 0.1 * draw.normal(size=(420, outputs))
    at = np.arange(200, 400, 40)
    moved = y.copy()
    moved[at, 0] = 600.0
    return X, y.squeeze(), moved.squeeze(), at


def test_lone_spikes_neither_move_predictions_nor_count_as_changes():
    X, y, moved, at = spiked()
    bank, clean = kb.AutoBank(size="small"), kb.AutoBank(size="small")
    trace, without = bank.run(X, moved), clean.run(X, y)
    share = (trace.predictions - y)[at + 1] / 560
    assert (np.abs(share) < 0.01).all()
    assert (trace.lower <= y)[at + 1].all()
    assert (trace.upper >= y)[at + 1].all()
    assert (trace.upper[at + 1] > 500).all()  # five of six: it may stay all the same
    usual = np.setdiff1d(np.arange(200, 420), at)
    assert np.std((trace.predictions - y)[usual]) < 1.5 * np.std((without.predictions - y)[usual])
    assert [c.row for c in bank.ledger.changes if c.row >= 200] == []
    # The baseline is the last target that was believed.
    last = np.where(np.isin(np.arange(420), at + 1), np.roll(y, 2), np.roll(moved, 1))
    expected = np.mean((moved - last)[1:] ** 2)
    assert bank.ledger.baseline_loss == pytest.approx(expected, rel=1e-9)


def test_spikes_of_one_target_leave_the_others_and_its_own_next_predictions_alone():
    X, y, moved, at = spiked(outputs=2)
    clean = kb.AutoBank(size="small").run(X, y).predictions
    actual = kb.AutoBank(size="small").run(X, moved).predictions
    assert np.abs(actual - clean)[at + 1].max() < 0.5


def test_forecasts_do_not_follow_a_spike_but_a_level():
    X, y, moved, at = spiked()
    moved[410:] += 50.0
    bank = kb.AutoBank(size="small", horizons=[1, 5])
    trace = bank.run(X, moved)
    assert np.abs(trace.forecasts[at] - y[at][:, None]).max() < 5.0
    assert np.abs(trace.forecasts[415:, 0] - y[415:] - 50.0).max() < 5.0
    assert (trace.forecast_upper - trace.forecast_lower)[at].max() < 10.0


def test_slot_last_value_is_the_last_target_through_every_rescaling():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(900, 2))
    y = np.cumsum(draw.normal(size=900)) + 0.05 * np.arange(900)
    bank = kb.AutoBank(size="small")
    trace = bank.run(X, y, record="all")
    slot = bank.names.index("last value")
    predictions = trace.slot_predictions[130:, slot]
    assert predictions == pytest.approx(y[129:-1], rel=1e-12)
