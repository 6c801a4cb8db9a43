"""AutoBank on streams that misbehave: new levels, extreme and missing values, odd widths."""

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


def test_encoded_category_that_appears_late_is_no_new_input_level():
    X, y = numbers(700)
    X[:, 0] = np.arange(700) % 400 >= 350
    bank = kb.AutoBank(**SMALL)
    bank.run(X, y)
    assert not [c for c in bank.ledger.changes if c.what == "input level"]


def test_single_extreme_values_do_not_spoil_later_predictions():
    X, y = numbers(500)
    clean = kb.AutoBank(**SMALL).run(X, y)
    bad_X, bad_y = X.copy(), y.copy()
    bad_X[300, 0] *= 1e6
    bad_y[320] = 1e6 * y.std()
    bad_y[12] = -1e6 * y.std()  # also among the first rows
    trace = kb.AutoBank(**SMALL).run(bad_X, bad_y)
    later = slice(330, 500)
    assert rmse(trace, y, later) < 1.1 * rmse(clean, y, later)


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


def test_missing_inputs_of_a_slow_column_are_filled_in():
    draw = np.random.default_rng(3)
    walk = np.cumsum(draw.normal(size=1200)) / 10
    X = np.column_stack([walk, draw.normal(size=1200)])
    y = walk + 0.1 * draw.normal(size=1200)
    X[draw.random(X.shape) < 0.3] = np.nan
    bank = kb.AutoBank(**SMALL)
    trace = bank.run(X, y)
    assert bank.samples == 1200
    # A column that goes slowly is filled in from its last value: far better than its mean.
    hidden = np.isnan(X[:, 0]) & (np.arange(1200) > 300)
    assert np.mean((trace.predictions[hidden] - y[hidden]) ** 2) < 0.15 * y.var()


def test_new_levels_in_several_columns_of_a_row_are_all_signalled():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(200, 3))
    y = X.sum(axis=1)
    X[150:] += [5000.0, 0.0, 8000.0]
    blocks, rows = kb.AutoBank(size="small"), kb.AutoBank(size="small")
    blocks.run(X, y)
    for x, target in zip(X, y, strict=True):
        rows.learn_one(x, target)
    assert blocks.ledger.changes == rows.ledger.changes
    levels = [(c.row, c.column) for c in rows.ledger.changes if c.what == "input level"]
    assert levels == [(155, 0), (155, 2)]
