"""Several targets in one AutoBank: shapes, names, missing targets, and the same bits every way."""

import copy

import numpy as np
import pandas as pd
import pytest

import kernelbank as kb
from kernelbank.auto.scaling import CHANGE_AFTER
from kernelbank.errors import FileRefused, InvalidArgument
from support.auto_streams import SMALL, assert_same_state, predict_and_learn
from support.forged_files import pack, unpack
from support.marks import library, slow

NAMES = ("load", "price")


def stream(count=200, seed=0):
    """Inputs (n, 3), and two targets of different scale."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(count, 3))
    first = 5 + 2 * np.sin(2 * X[:, 0]) + 0.1 * draw.normal(size=count)
    second = 1000 - 300 * X[:, 1] * X[:, 2] + 10 * draw.normal(size=count)
    return X, np.column_stack([first, second])


def with_gaps(count=200, seed=0):
    """The same with missing targets, rows without any, and a third target that comes late."""
    X, Y = stream(count, seed)
    draw = np.random.default_rng(seed + 1)
    Y = np.column_stack([Y, 3 * Y[:, 0] - 50])
    Y[draw.random(Y.shape) < 0.2] = np.nan
    Y[[0, 3, 40, 41]] = np.nan
    Y[: count * 3 // 4, 2] = np.nan
    return X, Y


def troubled(count=200, seed=0):
    """The same with missing inputs, far targets and a new level."""
    X, Y = with_gaps(count, seed)
    X[np.random.default_rng(seed).random(X.shape) < 0.05] = np.nan
    Y[50, 0], Y[55, 1] = 1e8, -1e7
    Y[count * 4 // 5 :, 0] += 1000
    return X, Y


def learned(X, Y, **settings):
    bank = kb.AutoBank(**{**SMALL, **settings})
    return bank, bank.run(X, Y, record="all")


# --- shapes ---------------------------------------------------------------------------------------


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
    assert bank.predict_interval_one(X[0], 0.5).shape == (2, 2)
    one = bank.predict_trace_one(X[0], record="all")
    assert one.predictions.shape == (1, 2)
    assert one.weights.shape == (1, 2, slots)
    assert bank.weights.shape == (slots,)
    assert bank.ledger.mean_loss.shape == bank.ledger.baseline_loss.shape == (2,)
    assert len(bank.banks) == 1
    assert bank.bank.outputs == 2
    assert bank.input_ranges().shape == (3, 3)
    assert len(bank.input_names) == 3


# --- the same bits --------------------------------------------------------------------------------


@pytest.mark.parametrize(("delay", "count"), [(3, 134), slow(0, 600)])
def test_blocks_and_single_rows_have_the_same_bits(delay, count, tmp_path):
    X, Y = troubled(count)
    bank = kb.AutoBank(lags=2, **SMALL)
    trace = bank.run(X, Y, delay=delay)
    path = tmp_path / "bank.kb"
    answers, other = predict_and_learn(
        kb.AutoBank(lags=2, **SMALL), X, Y, delay, files=(2, 130), path=path
    )
    known = slice(1 + delay, None)
    assert np.array_equal(np.array(answers[known]), trace.predictions[known], equal_nan=True)
    other._pending.clear()
    bank._pending.clear()
    assert_same_state(bank, other)


# --- lags -----------------------------------------------------------------------------------------


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


# --- seasons, far targets ------------------------------------------------------------------------


def test_seasons_of_several_targets_are_found_learned_and_saved(tmp_path):
    X, Y = stream(420)
    levels = np.random.default_rng(1).normal(size=(24, 2)) * Y.std(axis=0)
    Y = 0.05 * Y + levels[np.arange(420) % 24]
    bank, trace = learned(X, Y, seasons="auto")
    assert bank._model.periods == (24,)
    _, plain = learned(X, Y)
    errors = [np.std((one.predictions - Y)[300:], axis=0) for one in (trace, plain)]
    assert (errors[0] < 0.85 * errors[1]).all()
    path = tmp_path / "bank.kb"
    answers, other = predict_and_learn(
        kb.AutoBank(seasons="auto", **SMALL), X, Y, files=(100, 250), path=path
    )
    assert np.array_equal(np.array(answers[1:]), trace.predictions[1:])
    assert_same_state(bank, other)


# --- bounds, levels, changes ----------------------------------------------------------------------


def test_bounds_hold_for_all_targets():
    X, Y = stream()
    Y = np.abs(Y - Y.mean(axis=0))
    bank = kb.AutoBank(lower=0, upper=2000, **SMALL)
    trace = bank.run(X, Y)
    for name in ("predictions", "lower", "upper"):
        values = getattr(trace, name)[1:]
        assert values.min() >= 0
        assert values.max() <= 2000
    before = copy.deepcopy(bank)
    with pytest.raises(InvalidArgument, match="'y' must be at least lower=0; got -1"):
        bank.learn_one(X[0], [1.0, -1.0])
    assert_same_state(bank, before)


# --- names ----------------------------------------------------------------------------------------


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
    X, Y = with_gaps(60)
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


# --- missing targets ------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    "settings",
    [
        {"window": 3},
        {"combiner": kb.combiners.Simplex()},
        {"horizons": [1, 3]},
        {"quantiles": [0.1, 0.9]},
    ],
)
def test_settings_that_cannot_leave_targets_out_are_refused_at_the_first_row(settings):
    X, Y = stream(20)
    bank = kb.AutoBank(**SMALL, **settings)
    with pytest.raises(InvalidArgument, match="AutoBank for each target"):
        bank.run(X, Y)
    assert bank.samples == 0
    assert bank.target_names == ()
    bank.run(X, Y[:, 0])  # one target is possible


# --- what it shows --------------------------------------------------------------------------------


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


@pytest.fixture(scope="module")
def named_bank():
    """A bank that no test changes."""
    X, Y = stream(40)
    return learned(X, pd.DataFrame(Y, columns=NAMES))[0]


WRONG_ROWS = {
    "too many": ([1.0, 2.0, 3.0], r"'y' must have the shape \(2,\); got \(3,\)"),
    "one number": (1.0, r"'y' must have the shape \(2,\); got \(\)"),
    "a matrix": ([[1.0, 2.0]], r"'y' must have the shape \(2,\); got \(1, 2\)"),
    "infinite": ([1.0, np.inf], "'y' must be finite"),
    "text": ([1.0, "x"], "'y' must hold numbers"),
    "text by name": ({"load": "x"}, "'y' must hold numbers for 'load'; got 'x'"),
    "unknown name": ({"cost": 1.0}, r"'y' must have the targets 'load', 'price'.*got \['cost'\]"),
    "ragged": ([[1.0], [1.0, 2.0]], "'y' must be a rectangular array"),
    "nothing": (None, r"'y' must have the shape \(2,\)"),
}


@pytest.mark.parametrize("wrong", WRONG_ROWS)
def test_wrong_targets_of_a_row_are_refused_and_change_nothing(wrong, named_bank):
    X, bank = stream(3)[0], named_bank
    before = copy.deepcopy(bank)
    y, message = WRONG_ROWS[wrong]
    with pytest.raises(InvalidArgument, match=message):
        bank.learn_one(X[0], y)
    assert_same_state(bank, before)


WRONG_TABLES = {
    "too few columns": (np.ones((3, 1)), r"'y' must have the shape \(3, 2\); got \(3, 1\)"),
    "one column": (np.ones(3), r"'y' must have the shape \(3, 2\); got \(3,\)"),
    "too few rows": (np.ones((2, 2)), r"'y' must have the shape \(3, 2\); got \(2, 2\)"),
    "ragged": ([[1, 2], [3], [4, 5]], "'y' must be a rectangular array"),
    "missing column": (pd.DataFrame({"load": [1.0] * 3}), r"got \['load'\].*NaN where a target"),
    "other column": (pd.DataFrame({"load": [1.0] * 3, "cost": 1.0}), "'y' must have the targets"),
    "text": (pd.DataFrame({"load": ["a", "b", "c"], "price": 1.0}), "numbers for 'load'; got 'a'"),
    "infinite": (np.full((3, 2), np.inf), "'y' must be finite"),
}


@pytest.mark.parametrize("wrong", WRONG_TABLES)
def test_wrong_targets_of_a_table_are_refused_and_change_nothing(wrong, named_bank):
    X, bank = stream(3)[0], named_bank
    before = copy.deepcopy(bank)
    y, message = WRONG_TABLES[wrong]
    with pytest.raises(InvalidArgument, match=message):
        bank.run(X[:3], y)
    assert_same_state(bank, before)


def test_a_bank_of_one_target_refuses_several():
    X, Y = stream(20)
    bank, _ = learned(X, Y[:, 0])
    with pytest.raises(InvalidArgument, match="'y' must be one number"):
        bank.learn_one(X[0], Y[0])
    with pytest.raises(InvalidArgument, match=r"'y' must have the shape \(n,\)"):
        bank.run(X, Y)


# --- files ----------------------------------------------------------------------------------------


def with_model(header, **changes):
    return {"model": header["model"] | changes}


FORGED = {
    "one name": lambda header: {"targets": ["load"]},
    "three names": lambda header: {"targets": ["a", "b", "c"]},
    "equal names": lambda header: {"targets": ["a", "a"]},
    "no names": lambda header: {"targets": None},
    "numbers": lambda header: {"targets": [1, 2]},
    "another task": lambda header: {"task": "classification"},
    "seasons": lambda header: {"seasons": [5]},
    "no banks": lambda header: with_model(header, outputs=[]),
    "one output": lambda header: with_model(
        header, bank0=header["model"]["bank0"] | {"outputs": 1}
    ),
}


@pytest.mark.parametrize("change", FORGED)
def test_forged_files_are_refused(change, named_bank, tmp_path):
    path = tmp_path / "bank.kb"
    named_bank.save(path)
    header, body = unpack(path.read_bytes())
    path.write_bytes(pack({**header, **FORGED[change](header)}, body))
    with pytest.raises(FileRefused):
        kb.load(path)
