"""Tables and dictionaries given to an AutoBank: read by name, whatever library they come from."""

import copy
import datetime
import pickle
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument
from support.marks import library, slow

ROWS = 150
SMALL = {"size": "small"}


def sensors(rows=ROWS, sites=40):
    """A table of numbers, text, categories and times, and its targets."""
    draw = np.random.default_rng(0)
    site = draw.integers(0, sites, rows)
    load = draw.normal(size=rows)
    load[7] = np.nan
    X = pd.DataFrame(
        {
            "load": load,
            "site": [f"site {n}" for n in site],
            "when": pd.date_range("2024-03-30", periods=rows, freq="47min", tz="Europe/Berlin"),
            "on": draw.random(rows) < 0.5,
            "kind": pd.Categorical(draw.choice(["x", "y"], rows)),
        }
    )
    X.loc[5, "site"] = None
    y = site % 7 + np.nan_to_num(load) + 2 * X["on"] + np.sin(np.arange(rows) / 5)
    return X, y.to_numpy()


def same(one, two):
    one, two = (x.tolist() if isinstance(x, np.ndarray) else x for x in (one, two))
    return [repr(x) for x in one] == [repr(x) for x in two]


X, Y = sensors()
LABELS = np.where(Y > 5, "high", np.where(Y > 2, "mid", "low"))


@pytest.mark.parametrize(
    ("task", "lags"),
    [slow("regression", 0), ("classification", 2)],
)
def test_every_way_to_give_a_table_has_the_same_bits(task, lags, tmp_path):
    y = Y if task == "regression" else LABELS
    expected = kb.AutoBank(task, lags, **SMALL).run(X, y).predictions.tolist()
    # pandas, polars and arrow, and columns in another order.
    bank = kb.AutoBank(task, lags, **SMALL)
    found = [
        *bank.run(library("polars").from_pandas(X[:40]), y[:40]).predictions.tolist(),
        *bank.run(pa.Table.from_pandas(X[40:90]), y[40:90]).predictions.tolist(),
        *bank.run(X[list(X)[::-1]][90:], y[90:]).predictions.tolist(),
    ]
    assert same(found, expected)
    # Row by row, as dictionaries and series, through files and copies.
    bank, found = kb.AutoBank(task, lags, **SMALL), []
    for t in range(ROWS):
        # The first row decides the order of the inputs; later ones may have any.
        row = dict(reversed(X.iloc[t].to_dict().items())) if t % 2 else X.iloc[t]
        found.append(bank.predict_one(row))
        bank.learn_one(row, y[t])
        if t in (1, 30, 99):
            bank.save(tmp_path / "bank.kb")
            bank = kb.load(tmp_path / "bank.kb")
        elif t in (60, 120):
            bank = copy.deepcopy(bank) if t == 60 else pickle.loads(pickle.dumps(bank))
    assert same(found, expected)
    assert bank.feature_names_in_.tolist() == list(X)


@pytest.mark.parametrize("task", ["regression", slow("classification")])
def test_rows_that_were_not_predicted_are_learned_with_the_same_bits(task, tmp_path):
    y = Y if task == "regression" else LABELS
    whole, single = kb.AutoBank(task, **SMALL), kb.AutoBank(task, **SMALL)
    whole.run(X, y)
    for row, target in zip(X.to_dict("records"), y, strict=True):
        single.learn_one(row, target)
    for bank, name in ((whole, "whole"), (single, "single")):
        bank.save(tmp_path / name)
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "single").read_bytes()


def test_numbers_with_names_have_the_bits_of_arrays():
    table = X[["load", "on"]]
    array = table.to_numpy(dtype=float)
    bank = kb.AutoBank(**SMALL)
    assert same(bank.run(table, Y).predictions, kb.AutoBank(**SMALL).run(array, Y).predictions)
    assert same(bank.predict(table[:5]), bank.predict(array[:5]))  # by position
    assert bank.predict_one(array[3]) == bank.predict_one({"on": array[3, 1], "load": array[3, 0]})


@pytest.fixture(scope="module")
def learned():
    """A bank that learned the table; tests do not change it."""
    bank = kb.AutoBank(**SMALL)
    bank.run(X, Y)
    return bank


def test_reordered_columns_are_read_by_name(learned):
    bank = learned
    turned = X[list(X)[::-1]]
    assert same(bank.predict(turned), bank.predict(X))
    assert same(bank.predict_at(turned).ravel(), bank.predict_at(X).ravel())


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (X.rename(columns={"load": "Load"}), "it has no 'load' and has 'Load', not learned"),
        (X.drop(columns="site"), "it has no 'site'. Give these names, in any order"),
        (X.assign(more=1.0), "it has 'more', not learned so far"),
        (X.assign(load="much"), "column 'load' must hold numbers, as in the rows learned so far"),
        (X.assign(load=np.inf), "column 'load' must be finite .* got inf in row 0"),
        (X.assign(when="soon"), "column 'when': 'soon' is not a time"),
        (X.to_numpy(), "'X' must have names, as column 'site' holds categories"),
        (X[:0], "'X' must have at least one row"),
        (pd.concat([X, X[["load"]]], axis=1), "'X' has two columns 'load'"),
    ],
)
def test_other_columns_are_refused_by_name_and_change_nothing(table, words, learned, tmp_path):
    bank = learned
    bank.save(tmp_path / "before.kb")
    for call in (bank.predict, lambda one: bank.run(one, Y[: len(one)])):
        with pytest.raises(InvalidArgument, match=words):
            call(table)
    bank.save(tmp_path / "after.kb")
    assert (tmp_path / "after.kb").read_bytes() == (tmp_path / "before.kb").read_bytes()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["a", 1], "column 'm' must hold values of one kind; got 'a' (category) and 1 (number)"),
        ([[1.0], [2.0]], "column 'm' must hold numbers, text or times; got [1.0]"),
    ],
)
def test_column_of_mixed_values_is_refused(values, words):
    with pytest.raises(InvalidArgument, match=re.escape(words)):
        kb.AutoBank().run(pd.DataFrame({"m": values}), [1.0, 2.0])


def test_bank_that_learned_arrays_takes_tables_of_numbers_by_position():
    array = X[["load", "on"]].to_numpy(dtype=float)
    bank = kb.AutoBank(**SMALL)
    bank.run(array, Y)
    assert not hasattr(bank, "feature_names_in_")
    assert same(bank.predict(X[["load", "on"]]), bank.predict(array))
    with pytest.raises(InvalidArgument, match="column 'site' of category values, but this bank"):
        bank.predict(X[["load", "site"]])


def test_every_kind_of_value_is_read():
    """Of pandas' own types and of Python objects, with missing ones."""
    moment = datetime.datetime(2024, 1, 31, 12, tzinfo=datetime.UTC)
    forms = {
        "number": [
            pd.Series([1, None, 3], dtype="Int64"),
            pd.Series([1.0, np.nan, 3.0]),
            pd.Series([1, None, 3], dtype=object),
            pd.Series([Decimal(1), None, Decimal(3)]),
            pd.to_timedelta(pd.Series([1, None, 3]), unit="s"),
        ],
        "category": [
            pd.Series(["1", None, "3"], dtype="string"),
            pd.Series(["1", None, "3"], dtype=object),
            pd.Series(["1", None, "3"], dtype="category"),
            pd.Series([1, None, 3], dtype="Int64").astype("category"),
            pd.Series([1.0, np.nan, 3.0]).astype("category").astype(object).map(str, "ignore"),
        ],
        "time": [
            pd.Series([moment, None, moment]),
            pd.Series([moment, None, moment], dtype=object),
            pd.Series([moment, None, moment]).dt.tz_convert("Asia/Kolkata"),
            pd.Series([moment, None, moment]).dt.tz_localize(None),
        ],
    }
    for kind, columns in forms.items():
        found = []
        for column in columns[:4] if kind == "category" else columns:
            bank = kb.AutoBank(**SMALL)
            bank.run(pd.DataFrame({"c": column, "x": [0.0, 1.0, 2.0]}), [1.0, 2.0, 4.0])
            assert bank._encoder.columns[0] == ("c", kind), column
            found.append(bank.encoder.describe()[1])
            found.append({"inputs": bank._model.core.latest()[0]})
        arrays = [{n: a.tobytes() for n, a in one.items()} for one in found]
        assert all(one == arrays[0] for one in arrays[2::2])
        assert all(one == arrays[1] for one in arrays[3::2])


def test_unknown_and_missing_categories_are_predicted():
    bank = kb.AutoBank(**SMALL)
    bank.run(X, Y)
    row = X.iloc[3].to_dict()
    for site in ("nowhere", None, float("nan")):
        assert np.isfinite(bank.predict_one(row | {"site": site}))
    for when in (None, pd.NaT, "2024-05-01T12:00", datetime.date(2024, 5, 1)):
        assert np.isfinite(bank.predict_one(row | {"when": when}))


def test_categories_explain_the_target():
    bank = kb.AutoBank(**SMALL)
    table, y = sensors(600)
    errors = (bank.run(table, y).predictions - y)[300:]
    bare = (kb.AutoBank(**SMALL).run(table.drop(columns="site"), y).predictions - y)[300:]
    assert np.mean(errors**2) < 0.3 * np.mean(bare**2)


def test_prediction_before_the_first_row_fixes_no_columns():
    bank = kb.AutoBank(**SMALL)
    assert np.isnan(bank.predict_one({"a": 1.0, "b": "text"}))
    bank.learn_one({"c": 1.0}, 2.0)
    assert bank.feature_names_in_.tolist() == ["c"]


def test_status_names_columns():
    draw = np.random.default_rng(0)
    table = pd.DataFrame({"calm": draw.normal(size=300), "jump": draw.normal(size=300)})
    table.loc[200:, "jump"] += 100
    bank = kb.AutoBank(**SMALL)
    bank.run(table, table["calm"])
    assert "2 columns" in str(bank)
    changes = [c for c in bank.ledger.changes if c.what == "input level"]
    assert changes
    bank._model.changes = changes
    assert "input level of column 'jump'" in str(bank)


def test_inputs_have_names_for_ranges_and_plots():
    bank = kb.AutoBank(**SMALL)
    assert bank.input_names == ()
    bank.run(X, Y)
    assert len(bank.input_names) == len(bank.input_ranges())
    assert bank.input_names[:2] == ("load", "on")
    figure = kb.plots.function(bank, "on")
    assert figure.axes[0].get_xlabel() == "on"
    plain = kb.AutoBank(**SMALL)
    plain.run(X[["load", "on"]].to_numpy(dtype=float), Y)
    assert plain.input_names == ("input 0", "input 1")


def test_columns_of_arrays_can_be_named():
    bank = kb.AutoBank(**SMALL)
    bank.name_columns(["load", "on"])
    bank.run(X[["load", "on"]].to_numpy(dtype=float), Y)
    assert bank.feature_names_in_.tolist() == ["load", "on"]
    assert np.isfinite(bank.predict_one({"on": 1, "load": 0.5}))
    for names in (["a", "b"], "ab", [], ["a", "a"]):
        with pytest.raises(InvalidArgument, match="'names' must"):
            bank.name_columns(names)
    with pytest.raises(InvalidArgument, match="names for new columns"):
        bank.add_inputs()


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (X, "'x' must be one row; got 'a table of 150 rows'"),
        ({"load": 1.0}, "'x' must have the columns 'load', 'site'"),
        ([1.0, 2.0], "'x' must have names"),
    ],
)
def test_wrong_single_rows_are_refused(x, words):
    bank = kb.AutoBank(**SMALL)
    bank.run(X[:20], Y[:20])
    with pytest.raises(InvalidArgument, match=words):
        bank.predict_one(x)
    with pytest.raises(InvalidArgument, match=words):
        bank.learn_one(x, 1.0)
    assert bank.samples == 20


def test_numbers_as_text_in_a_row_are_told():
    """As csv.DictReader gives them."""
    bank = kb.AutoBank(**SMALL)
    with pytest.warns(kb.errors.NumbersAsText, match=r"'a' is the text '93\.85'.*float"):
        bank.learn_one({"a": "93.85", "site": "north"}, 1.0)
    bank.learn_one({"a": "94.1", "site": "north"}, 1.0)  # once
