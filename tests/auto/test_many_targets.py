"""Several targets in one AutoBank: shapes, names, missing targets, and the same bits every way."""

import numpy as np
import pandas as pd
import pytest

import kernelbank as kb
from kernelbank.auto.scaling import CHANGE_AFTER
from support.auto_streams import SMALL, assert_same_state, troubled_targets
from support.auto_streams import two_targets as stream
from support.marks import library, refuses

NAMES = ("load", "price")


def learned(X, Y, **settings):
    bank = kb.AutoBank(**{**SMALL, **settings})
    return bank, bank.run(X, Y, record="all")


def test_everything_public_has_an_axis_of_targets():
    X, Y = stream(60)
    bank, trace = learned(X, Y)
    slots = len(bank.names)
    assert (trace.outputs, trace.target_names) == (2, ("target 0", "target 1"))
    assert bank.target_names == ("target 0", "target 1")
    for name in ("predictions", "lower", "upper"):
        assert getattr(trace, name).shape == (60, 2)
    assert trace.weights.shape == trace.slot_predictions.shape == (60, 2, slots)
    assert bank.predict(X[:7]).shape == (7, 2)
    assert bank.predict_interval(X[:7]).shape == (7, 2, 2)
    assert bank.predict_at(X[:7]).shape == (7, 2, 3)
    assert bank.predict_one(X[0]).shape == (2,)
    assert bank.weights.shape == (slots,)
    assert bank.ledger.mean_loss.shape == bank.ledger.baseline_loss.shape == (2,)
    assert bank.input_ranges().shape == (3, 3)
    assert len(bank.input_names) == 3


def test_lagged_targets_are_those_of_all_targets():
    """The second target is the first one of the row before: only its lag tells.

    Without lags, slots on relevant columns see it too.
    """
    draw = np.random.default_rng(0)
    first = draw.normal(size=300)
    Y = np.column_stack([first, np.concatenate([[0.0], first[:-1]])])
    X = draw.normal(size=(300, 1))
    errors = {}
    for lags in (0, 1):
        bank, trace = learned(X, Y, lags=lags)
        assert bank._model.scaling.lags == 2 * lags
        errors[lags] = np.mean((trace.predictions[200:, 1] - Y[200:, 1]) ** 2)
    assert max(errors.values()) < 0.01
    core = bank._model.core
    assert core.past_row()[: core.known_targets].tolist() == Y[:-4:-1].ravel().tolist()


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, lambda Y, columns: library("polars").DataFrame(Y, list(columns))]
)
def test_tables_name_targets_and_their_order_does_not_matter(frame):
    X, Y = stream(60)
    bank, trace = learned(X, frame(Y, columns=NAMES))
    assert bank.target_names == trace.target_names == NAMES
    plain, _ = learned(X, Y)
    other = kb.AutoBank(**SMALL)
    other.run(X[:30], frame(Y[:30], columns=NAMES))
    other.run(X[30:], frame(Y[30:, ::-1], columns=NAMES[::-1]))
    assert np.array_equal(bank.predict(X), plain.predict(X))
    assert_same_state(bank, other)


def test_rows_by_names_may_have_any_order_and_leave_targets_out():
    X, Y = troubled_targets(60)
    names = ["a", "b", "c"]
    bank, _ = learned(X, pd.DataFrame(Y, columns=names))
    other = kb.AutoBank(**SMALL)
    for t, (x, y) in enumerate(zip(X, Y, strict=True)):
        row = dict(zip(names, y.tolist(), strict=True))
        if t % 2 and t:
            row = {name: row[name] for name in reversed(names) if not np.isnan(row[name])}
        elif t:
            row = {name: None if np.isnan(value) else value for name, value in row.items()}
        other.learn_one(x, row)
    assert_same_state(bank, other)
    series = pd.Series(Y[-1], index=names)
    bank.learn_one(X[0], series)
    other.learn_one(X[0], Y[-1].tolist())
    assert_same_state(bank, other)


def test_categories_help_and_missing_first_targets_do_not_spoil_them():
    draw = np.random.default_rng(0)
    sites = draw.integers(0, 6, 400)
    level = np.array([-5.0, 3.0, 8.0, -2.0, 0.0, 4.0])[sites]
    Y = np.column_stack([level, -level]) + 0.1 * draw.normal(size=(400, 2))
    table = pd.DataFrame({"site": [f"s{k}" for k in sites]})
    Y[draw.random(400) < 0.5, 0] = np.nan
    Y[:3, 0] = np.nan
    bank = kb.AutoBank(**SMALL)
    trace = bank.run(table, Y)
    errors = (trace.predictions - Y)[300:]
    assert (np.sqrt(np.nanmean(errors**2, axis=0)) < 0.3).all()
    assert len(bank._encoder.categories) == 6
    assert all(np.isfinite(array).all() for array in bank.encoder.describe()[1].values())


def test_a_missing_target_is_learned_for_the_others_only():
    """Another target hardly notices: slots on relevant columns see the last targets of all."""
    X, Y = stream(300)
    gaps = Y.copy()
    gaps[np.random.default_rng(0).random(300) < 0.5, 1] = np.nan
    bank, trace = learned(X, Y)
    with_missing, other = learned(X, gaps)
    for name in ("predictions", "lower"):
        apart = getattr(trace, name)[200:, 0] - getattr(other, name)[200:, 0]
        assert np.abs(apart).max() < 0.1 * Y[:, 0].std()
    assert np.isfinite(other.predictions[20:]).all()  # missing ones are predicted
    full = np.sqrt(np.mean((trace.predictions - Y)[200:, 1] ** 2))
    half = np.sqrt(np.mean((other.predictions - Y)[200:, 1] ** 2))
    assert half < 3 * full
    assert with_missing.ledger.mean_loss[0] == pytest.approx(bank.ledger.mean_loss[0], rel=0.2)
    assert np.array_equal(with_missing._model.scaling.columns, bank._model.scaling.columns)
    assert with_missing._model.scaling.statistics.target_scale(
        0
    ) == bank._model.scaling.statistics.target_scale(0)
    assert with_missing.bank.ledger.missing.tolist()[0] == 0


def test_a_target_that_comes_late_is_unknown_before_and_learned_then():
    X, Y = stream(400)
    Y[:200, 1] = np.nan
    bank, trace = learned(X, Y)
    begin = 200 + CHANGE_AFTER  # so many values have a mean and a scale
    assert np.isnan(trace.predictions[:begin, 1]).all()
    assert np.isnan(trace.upper[:begin, 1]).all()
    assert np.isfinite(trace.predictions[begin:, 1]).all()
    errors = (trace.predictions - Y)[:, 1]
    assert np.sqrt(np.mean(errors[250:] ** 2)) < 0.5 * Y[250:, 1].std()
    assert bank.ledger.mean_loss[1] == pytest.approx(np.mean(errors[begin:] ** 2))
    inside = (trace.lower <= Y) & (trace.upper >= Y)
    assert inside[250:, 1].mean() > 0.8
    assert not any(change.what.startswith("target level") for change in bank.ledger.changes)


def test_status_has_a_line_for_each_target():
    X, Y = stream(150)
    bank, _ = learned(X, pd.DataFrame(Y, columns=NAMES))
    text = repr(bank)
    assert text.startswith("AutoBank('regression', size='small'; 2 targets; ")
    assert "targets        2: 'load', 'price'" in text
    for k, name in enumerate(NAMES):
        assert f"RMSE of {name}" in text
        assert f"{np.sqrt(bank.ledger.mean_loss[k]):.4g}" in text
    assert "weights, mean of 2 targets" in text
    assert "RMSE of price" in bank._repr_html_()


# --- what is refused ------------------------------------------------------------------------------


def test_bounds_hold_for_all_targets():
    X, Y = stream()
    bank = kb.AutoBank(lower=0, upper=2000, **SMALL)
    trace = bank.run(X, np.abs(Y - Y.mean(axis=0)))
    values = np.stack([trace.predictions, trace.lower, trace.upper])[:, 1:]
    assert values.min() >= 0
    assert values.max() <= 2000
    refuses("'y' must be at least lower=0; got -1", bank.learn_one, X[0], [1.0, -1.0])


def test_settings_that_cannot_leave_targets_out_are_refused_at_the_first_row():
    X, Y = stream(20)
    simplex = kb.combiners.Simplex()
    for settings in (
        {"window": 3},
        {"combiner": simplex},
        {"horizons": [1, 3]},
    ):
        bank = kb.AutoBank(**SMALL, **settings)
        refuses("AutoBank for each target", bank.run, X, Y)
        assert (bank.samples, bank.target_names) == (0, ())
        bank.run(X, Y[:, 0])  # one target is possible


@pytest.fixture(scope="module")
def named_bank():
    """A bank that no test changes."""
    X, Y = stream(40)
    return learned(X, pd.DataFrame(Y, columns=NAMES))[0]


WRONG_ROWS = {
    "too many": ([1.0, 2.0, 3.0], r"'y' must have the shape \(2,\); got \(3,\)"),
    "one number": (1.0, r"'y' must have the shape \(2,\); got \(\)"),
    "infinite": ([1.0, np.inf], "'y' must be finite"),
    "text": ([1.0, "x"], "'y' must hold numbers"),
    "text by name": ({"load": "x"}, "'y' must hold numbers for 'load'; got 'x'"),
    "unknown name": ({"cost": 1.0}, r"'y' must have the targets 'load', 'price'.*got \['cost'\]"),
    "ragged": ([[1.0], [1.0, 2.0]], "'y' must be a rectangular array"),
}


WRONG_TABLES = {
    "too few columns": (np.ones((3, 1)), r"'y' must have the shape \(3, 2\); got \(3, 1\)"),
    "too few rows": (np.ones((2, 2)), r"'y' must have the shape \(3, 2\); got \(2, 2\)"),
    "ragged": ([[1, 2], [3], [4, 5]], "'y' must be a rectangular array"),
    "missing column": (pd.DataFrame({"load": [1.0] * 3}), r"got \['load'\].*NaN where a target"),
    "other column": (pd.DataFrame({"load": [1.0] * 3, "cost": 1.0}), "'y' must have the targets"),
    "text": (pd.DataFrame({"load": ["a", "b", "c"], "price": 1.0}), "numbers for 'load'; got 'a'"),
    "infinite": (np.full((3, 2), np.inf), "'y' must be finite"),
}


def test_wrong_targets_are_refused_and_change_nothing(named_bank):
    X, before = stream(3)[0], named_bank.to_bytes()
    for y, message in WRONG_ROWS.values():
        refuses(message, named_bank.learn_one, X[0], y)
    for y, message in WRONG_TABLES.values():
        refuses(message, named_bank.run, X[:3], y)
    assert named_bank.to_bytes() == before


def test_a_bank_of_one_target_refuses_several():
    X, Y = stream(20)
    bank, _ = learned(X, Y[:, 0])
    refuses("'y' must be one number", bank.learn_one, X[0], Y[0])
    refuses(r"'y' must have the shape \(n,\)", bank.run, X, Y)
