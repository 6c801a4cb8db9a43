"""Tables and dictionaries given to an AutoBank: read by name, written as numbers."""

import copy
import datetime
import gc
import math
import pickle
import weakref
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import kernelbank as kb
from kernelbank.auto import inputs
from kernelbank.auto.inputs import (
    PERIODS,
    CategoryStatistics,
    ColumnEncoder,
    category_code,
    encode_time,
)
from kernelbank.errors import InvalidArgument
from support.auto_streams import SMALL, numbers
from support.marks import library, refuses, slow

ROWS = 150


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
def test_every_way_to_give_a_table_has_the_same_bits(task, lags):
    y = Y if task == "regression" else LABELS
    expected = kb.AutoBank(task, lags, **SMALL).run(X, y).predictions.tolist()
    # pandas, polars and arrow, and columns in another order.
    bank = kb.AutoBank(task, lags, **SMALL)
    actual = [
        *bank.run(library("polars").from_pandas(X[:40]), y[:40]).predictions.tolist(),
        *bank.run(pa.Table.from_pandas(X[40:90]), y[40:90]).predictions.tolist(),
        *bank.run(X[list(X)[::-1]][90:], y[90:]).predictions.tolist(),
    ]
    assert same(actual, expected)
    # Row by row, as dictionaries and series, through files and copies.
    bank, actual = kb.AutoBank(task, lags, **SMALL), []
    for t in range(ROWS):
        # The first row decides the order of the inputs; later ones may have any.
        row = dict(reversed(X.iloc[t].to_dict().items())) if t % 2 else X.iloc[t]
        actual.append(bank.predict_one(row))
        bank.learn_one(row, y[t])
        if t in (1, 30, 99):
            bank = kb.from_bytes(bank.to_bytes())
        elif t in (60, 120):
            bank = copy.deepcopy(bank) if t == 60 else pickle.loads(pickle.dumps(bank))
    assert same(actual, expected)
    assert bank.feature_names_in_.tolist() == list(X)


@pytest.fixture(scope="module")
def learned():
    """A bank that learned the table; tests do not change it."""
    bank = kb.AutoBank(**SMALL)
    bank.run(X, Y)
    return bank


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
def test_other_columns_are_refused_by_name_and_change_nothing(table, words, learned):
    bank = learned
    before = bank.to_bytes()
    for call in (bank.predict, lambda one: bank.run(one, Y[: len(one)])):
        refuses(words, call, table)
    assert bank.to_bytes() == before


def test_bank_that_learned_arrays_takes_tables_of_numbers_by_position():
    array = X[["load", "on"]].to_numpy(dtype=float)
    bank = kb.AutoBank(**SMALL)
    bank.run(array, Y)
    assert not hasattr(bank, "feature_names_in_")
    assert same(bank.predict(X[["load", "on"]]), bank.predict(array))
    refuses("column 'site' of category values, but this bank", bank.predict, X[["load", "site"]])


def test_every_kind_of_value_is_read():
    """Of pandas' own types and of Python objects, with missing ones."""
    moment = datetime.datetime(2024, 1, 31, 12, tzinfo=datetime.UTC)
    numbers, words, times = [1, None, 3], ["1", None, "3"], pd.Series([moment, None, moment])
    forms = {
        "number": [
            pd.Series(numbers, dtype="Int64"),
            pd.Series(numbers, dtype=float),
            pd.Series(numbers, dtype=object),
            pd.Series([Decimal(1), None, Decimal(3)]),
            pd.to_timedelta(pd.Series(numbers), unit="s"),
        ],
        "category": [
            *(pd.Series(words, dtype=kind) for kind in ("string", object, "category")),
            pd.Series(numbers, dtype="Int64").astype("category"),
        ],
        "time": [
            times,
            times.astype(object),
            times.dt.tz_convert("Asia/Kolkata"),
            times.dt.tz_localize(None),
        ],
    }
    for kind, columns in forms.items():
        states = []
        for column in columns:
            bank = kb.AutoBank(**SMALL)
            bank.run(pd.DataFrame({"c": column, "x": [0.0, 1.0, 2.0]}), [1.0, 2.0, 4.0])
            assert bank._encoder.columns[0] == ("c", kind), column
            arrays = {"inputs": bank._model.core.latest()[0], **bank.encoder.describe()[1]}
            states.append({name: array.tobytes() for name, array in arrays.items()})
        assert all(state == states[0] for state in states)


def test_prediction_before_the_first_row_fixes_no_columns():
    bank = kb.AutoBank(**SMALL)
    assert np.isnan(bank.predict_one({"a": 1.0, "b": "text"}))
    bank.learn_one({"c": 1.0}, 2.0)
    assert bank.feature_names_in_.tolist() == ["c"]


def test_columns_of_arrays_can_be_named():
    bank = kb.AutoBank(**SMALL)
    bank.name_columns(["load", "on"])
    bank.run(X[["load", "on"]].to_numpy(dtype=float), Y)
    assert bank.feature_names_in_.tolist() == ["load", "on"]
    assert np.isfinite(bank.predict_one({"on": 1, "load": 0.5}))
    for names in (["a", "b"], "ab", [], ["a", "a"]):
        refuses("'names' must", bank.name_columns, names)
    refuses("names for new columns", bank.add_inputs)


def test_numbers_as_text_in_a_row_are_told():
    """As csv.DictReader gives them."""
    bank = kb.AutoBank(**SMALL)
    with pytest.warns(kb.errors.NumbersAsText, match=r"'a' is the text '93\.85'.*float"):
        bank.learn_one({"a": "93.85", "site": "north"}, 1.0)
    bank.learn_one({"a": "94.1", "site": "north"}, 1.0)  # once


X_MASKS, Y_MASKS = numbers(40)
LABELS_MASKS = np.where(np.median(Y_MASKS) < Y_MASKS, "a", "b")


def test_the_name_of_one_target_is_that_of_all_rows():
    bank = kb.AutoBank(**SMALL)
    bank.learn_one(X_MASKS[0], {"u": Y_MASKS[0]})
    assert bank.target_names == ("u",)
    for other in (bank, kb.from_bytes(bank.to_bytes())):
        refuses("must have the target 'u', as in the rows", other.learn_one, X_MASKS[1], {"w": 2.0})
        with pytest.raises(InvalidArgument, match="must have the target 'u', as in the rows"):
            other.run(X_MASKS[1:3], pd.DataFrame({"w": Y_MASKS[1:3]}))
        other.learn_one(X_MASKS[1], {"u": Y_MASKS[1]})
        other.learn_one(X_MASKS[2], Y_MASKS[2])  # a number has no other place
        assert (other.samples, other.target_names) == (3, ("u",))
    assert "targets" not in repr(bank)


def test_target_that_is_named_later_keeps_that_name():
    bank = kb.AutoBank(**SMALL)
    bank.run(X_MASKS[:10], Y_MASKS[:10])
    assert bank.target_names == ()
    bank.run(X_MASKS[10:20], pd.DataFrame({"u": Y_MASKS[10:20]}))
    refuses("must have the target 'u'", bank.learn_one, X_MASKS[20], {"w": 2.0})


def test_dictionaries_after_arrays_are_read_by_names_only():
    bank = kb.AutoBank(**SMALL)
    bank.run(X_MASKS, Y_MASKS)
    row = {"c": 3.0, "b": 2.0, "a": 1.0}
    for use in (bank.predict_one, lambda row: bank.learn_one(row, 1.0)):
        refuses("Name them in their order", use, row)
    bank.name_columns(["a", "b", "c"])
    assert bank.predict_one(row) == bank.predict_one([1.0, 2.0, 3.0])
    bank.learn_one(row, 1.0)
    assert bank.samples == len(X_MASKS) + 1


BANKS = {
    "numbers": {},
    "lags": {"lags": 2},
    "forecasts": {"lags": 2, "horizons": (1, 3)},
    "quantiles": {"quantiles": (0.1, 0.9)},
    "labels": {"task": "classification"},
}


@pytest.mark.parametrize("kind", BANKS)
def test_dropped_bank_frees_its_memory_at_once(kind):
    gc.collect()
    gc.disable()
    try:
        bank = kb.AutoBank(**SMALL, **BANKS[kind])
        targets = LABELS_MASKS if kind == "labels" else Y_MASKS
        trace = bank.run(X_MASKS, targets)
        bank.predict_one(X_MASKS[0])
        bank.learn_one(X_MASKS[0], targets[0])
        assert "samples" in repr(bank)
        assert bank.ledger.samples == len(X_MASKS) + 1
        bank.to_bytes()
        parts = [weakref.ref(part) for part in (bank, bank.model, *bank.banks)]
        del bank, trace
        assert [part() for part in parts] == [None] * len(parts)
    finally:
        gc.enable()


def codes_of(words, **columns):
    texts = {category_code(word): word for word in words if word}
    codes = [category_code(word) if word else math.nan for word in words]
    return np.column_stack([codes, *columns.values()]), texts


def test_encode_time_gives_day_week_and_year():
    assert list(PERIODS) == ["day", "week", "year"]
    assert np.allclose(encode_time(43_200.0)[:2], [0, -1])
    assert np.allclose(encode_time(-86_400.0)[:2], [0, 1])
    assert np.isnan(encode_time(math.nan)).all()


def test_own_inputs_come_with_the_third_row_of_a_category():
    encoder = ColumnEncoder([("site", "category")], labels=False)
    words = ["u", "v", "u", "w", "u", "v", "", "x"]
    codes, texts = codes_of(words)
    targets = np.arange(1.0, 9.0)[:, None]
    first, added = encoder.take(codes, targets, texts)
    assert (len(first), added) == (4, 0)  # the fifth row is the third with u
    # Mean of the earlier targets of the category and, once, of all.
    assert first[1:, 0].tolist() == [1.0, (1 + 1.5) / 2, 2.0]
    second, added = encoder.take(codes[4:], targets[4:], texts)
    assert (second.shape, added) == ((1, 4), 3)
    assert encoder.categories == [("site", "u"), ("site", "v"), ("site", "w")]
    rest, added = encoder.take(codes[5:], targets[5:], texts)
    assert added == 0
    assert rest[:, 1:].tolist()[0] == [0.0, 1.0, 0.0]
    assert np.isnan(rest[1]).all()  # missing
    assert rest[2, 1:].tolist() == [0.0, 0.0, 0.0]  # its turn has not come


def fed(words, targets, **more):
    known = CategoryStatistics(1, clipped=True)
    for word, target in zip(words, targets, strict=True):
        known.update(category_code(word), word, [target])
    return known


def test_mean_is_that_of_the_category_and_one_row_of_the_mean_of_all():
    draw = np.random.default_rng(0)
    words = draw.choice(["a", "b", "c"], 90)
    targets = draw.normal(5, 1, 90)
    known = fed(words, targets)
    for word in "abc":
        own = targets[words == word]
        expected = (own.sum() + targets.mean()) / (len(own) + 1)
        assert known.mean(category_code(word)) == [pytest.approx(expected)]
    assert known.mean(category_code("new")) == [pytest.approx(targets.mean())]
    assert math.isnan(known.mean(math.nan)[0])


def test_single_outlier_does_not_stay_in_the_mean():
    targets = np.random.default_rng(0).normal(size=200)
    targets[100] = 1e9
    assert abs(fed(["a"] * 200, targets).mean(category_code("a"))[0]) < 0.5


def test_categories_with_one_code_are_refused():
    facts, arrays = fed(["a", "b"], [1.0, 2.0]).describe()
    arrays["table"][0, 0] = arrays["table"][1, 0]
    restore = CategoryStatistics(1, clipped=True).restore
    refuses("impossible categories", restore, facts, arrays)


def test_categories_beyond_the_limit_share_one_mean(monkeypatch):
    monkeypatch.setattr(inputs, "MOST_CATEGORIES", 3)
    known = fed([f"k{n}" for n in range(10)], np.arange(10.0))
    assert len(known) == 4
    late = known.mean(category_code("k9"))
    assert late == known.mean(category_code("k5"))
    assert late != known.mean(category_code("k1"))
