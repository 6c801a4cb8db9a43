"""`AutoBank(missing=...)`: values that mean that there is none, in inputs, targets and labels."""

import numpy as np
import pandas as pd
import pytest

import kernelbank as kb
from support.auto_streams import assert_same_state
from support.marks import refuses

draw = np.random.default_rng(0)
X = draw.normal(size=(60, 2))
GAPS = np.array(X)
GAPS[::7, 0] = np.nan
MARKED = np.nan_to_num(GAPS, nan=-999.0)
Y = X @ [2.0, 1.0]
NA = ("NA", -999)


def small(**settings):
    return kb.AutoBank(**{"size": "small", "missing": NA} | settings)


def assert_equal_runs(one, other):
    np.testing.assert_array_equal(one.predictions, other.predictions)
    np.testing.assert_array_equal(one.lower, other.lower)


@pytest.mark.parametrize("missing", [-999, -999.0, "-999", (-1e5, -999), np.float32(-999)])
def test_a_number_that_means_that_there_is_none_is_a_missing_input(missing):
    wanted = kb.AutoBank(size="small").run(GAPS, Y)
    bank, rows = small(missing=missing), MARKED.copy()
    assert_equal_runs(bank.run(rows, Y), wanted)
    assert (rows == MARKED).all()  # the user's array stays
    np.testing.assert_array_equal(bank.predict(MARKED[:8]), bank.predict(GAPS[:8]))
    one = small(missing=missing)
    for x, y in zip(MARKED, Y, strict=True):
        one.predict_one(x)
        one.learn_one(x, y)
    assert_same_state(one, bank)


def as_table(gap, words):
    columns = {"load": pd.Series(GAPS[:, 0], dtype=object).where(~np.isnan(GAPS[:, 0]), gap)}
    hours = [gap if n % 5 == 3 else pd.Timestamp(2026, 1, 1, n % 24) for n in range(60)]
    return pd.DataFrame(columns | {"site": words, "hour": pd.Series(hours, dtype=object)})


@pytest.mark.parametrize("gap", [" NA", "NA"])
def test_texts_in_tables_are_missing_in_columns_of_every_kind(gap):
    words = [["a", "b", gap][n % 3] for n in range(60)]
    clean = as_table(None, [None if word == gap else word for word in words])
    bank, wanted = small(), kb.AutoBank(size="small")
    assert_equal_runs(bank.run(as_table(gap, words), Y), wanted.run(clean, Y))
    assert bank.encoder.columns == wanted.encoder.columns
    assert bank.encoder.categories == [("site", "a"), ("site", "b")]
    row = {"load": -999, "site": gap, "hour": "2026-01-01"}
    assert bank.predict_one(row) == wanted.predict_one({**row, "load": None, "site": None})


def test_categories_of_whole_numbers_may_be_missing_too():
    sites = pd.DataFrame({"site": [[1, 2, -999][n % 3] for n in range(60)]}, dtype="category")
    bank = small()
    bank.run(sites, Y)
    assert bank.encoder.categories == [("site", "1"), ("site", "2")]


def test_of_several_targets_one_may_be_missing():
    targets = np.column_stack([Y, -Y])
    targets[::4, 1] = np.nan
    wanted = kb.AutoBank(size="small")
    trace = wanted.run(X, targets)
    rows = targets.astype(object)
    rows[::4, 1] = [-999, "NA", "-999"] * 5
    for given in (np.nan_to_num(targets, nan=-999.0), rows.tolist(), pd.DataFrame(rows)):
        bank = small()
        assert_equal_runs(bank.run(X, given), trace)
    bank = small()
    bank.learn_one(X[0], {"a": 1.0, "b": 2.0})
    bank.learn_one(X[1], {"a": 1.5, "b": "NA"})
    bank.learn_one(X[2], [-999.0, 2.5])
    assert bank.samples == 3


@pytest.mark.parametrize("y", [-999.0, "NA", {"load": -999.0}, [-999]])
def test_a_target_that_means_that_there_is_none_is_not_learned(y):
    bank = small()
    refuses("A missing target cannot be learned", bank.learn_one, X[0], y)
    refuses("A missing target cannot be learned", bank.run, X[:2], [1.0, -999.0])
    assert bank.samples == 0


def test_a_label_that_means_that_there_is_none_is_not_learned():
    bank = small(task="classification")
    for label in ("NA", -999):
        refuses("missing label", bank.learn_one, X[0], label)
    assert bank.classes == ()


def test_known_inputs_of_the_future_may_be_missing():
    bank = small(horizons=(1, 2), known=[0])
    bank.run(X, Y)
    same = np.testing.assert_array_equal
    same(bank.forecast([-999.0, 1.0]).point, bank.forecast([np.nan, 1.0]).point)
    table = pd.DataFrame({"load": X[:, 0]})
    bank = small(horizons=(1, 2), known=["load"])
    bank.run(table, Y)
    same(*(bank.forecast(pd.DataFrame({"load": [gap, 1.0]})).point for gap in ("NA", None)))


def test_it_is_saved_with_the_bank():
    bank = small()
    bank.run(MARKED[:30], Y[:30])
    again = kb.from_bytes(bank.to_bytes())
    for other in (bank, again):
        other.run(MARKED[30:], Y[30:])
    assert_same_state(again, bank)
    assert again.missing_values == bank.missing_values
