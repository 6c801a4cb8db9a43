"""What must not be learned silently: other names, values under a mask, no numbers; and memory."""

import gc
import weakref

import numpy as np
import pandas as pd
import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument
from kernelbank.river import KernelBankRegressor as RiverRegressor
from kernelbank.sklearn import KernelBankClassifier, KernelBankRegressor
from support.auto_streams import SMALL, numbers

X, Y = numbers(40)
LABELS = np.where(np.median(Y) < Y, "a", "b")

# --- names ----------------------------------------------------------------------------------------


def test_the_name_of_one_target_is_that_of_all_rows():
    bank = kb.AutoBank(**SMALL)
    bank.learn_one(X[0], {"u": Y[0]})
    assert bank.target_names == ("u",)
    for other in (bank, kb.from_bytes(bank.to_bytes())):
        with pytest.raises(InvalidArgument, match="must have the target 'u', as in the rows"):
            other.learn_one(X[1], {"w": 2.0})
        with pytest.raises(InvalidArgument, match="must have the target 'u', as in the rows"):
            other.run(X[1:3], pd.DataFrame({"w": Y[1:3]}))
        other.learn_one(X[1], {"u": Y[1]})
        other.learn_one(X[2], Y[2])  # a number has no other place
        assert (other.samples, other.target_names) == (3, ("u",))
    assert "targets" not in repr(bank)


def test_target_that_is_named_later_keeps_that_name():
    bank = kb.AutoBank(**SMALL)
    bank.run(X[:10], Y[:10])
    assert bank.target_names == ()
    bank.run(X[10:20], pd.DataFrame({"u": Y[10:20]}))
    with pytest.raises(InvalidArgument, match="must have the target 'u'"):
        bank.learn_one(X[20], {"w": 2.0})


def test_dictionaries_after_arrays_are_read_by_names_only():
    bank = kb.AutoBank(**SMALL)
    bank.run(X, Y)
    row = {"c": 3.0, "b": 2.0, "a": 1.0}
    for use in (bank.predict_one, lambda row: bank.learn_one(row, 1.0)):
        with pytest.raises(InvalidArgument, match="Name them in their order"):
            use(row)
    bank.name_columns(["a", "b", "c"])
    assert bank.predict_one(row) == bank.predict_one([1.0, 2.0, 3.0])
    bank.learn_one(row, 1.0)
    assert bank.samples == len(X) + 1


# --- masks ----------------------------------------------------------------------------------------


def masked(array):
    return np.ma.masked_array(array, mask=np.arange(array.size).reshape(array.shape) == 3)


def fitted(model):
    return model.fit(X, LABELS if isinstance(model, KernelBankClassifier) else Y)


FACES = {
    "AutoBank.run X": lambda: kb.AutoBank(**SMALL).run(masked(X), Y),
    "AutoBank.run list": lambda: kb.AutoBank(**SMALL).run([*X[1:], masked(X[0].repeat(2))], Y),
    "AutoBank.run y": lambda: kb.AutoBank(**SMALL).run(X, masked(Y)),
    "AutoBank.run objects": lambda: kb.AutoBank(**SMALL).run(X, masked(Y.astype(object))),
    "AutoBank.learn_one": lambda: kb.AutoBank(**SMALL).learn_one(masked(np.ones(4)), 1.0),
    "AutoBank labels": lambda: kb.AutoBank("classification", **SMALL).run(X, masked(LABELS)),
    "AutoBank label": lambda: kb.AutoBank("classification").learn_one([1.0], np.ma.masked),
    "KernelBank.run X": lambda: kb.KernelBank().run(masked(X), Y),
    "KernelBank.run y": lambda: kb.KernelBank().run(X, masked(Y)),
    "sklearn X": lambda: KernelBankRegressor(**SMALL).fit(masked(X), Y),
    "sklearn y": lambda: KernelBankRegressor(**SMALL).fit(X, masked(Y)),
    "sklearn labels": lambda: KernelBankClassifier(**SMALL).fit(X, masked(LABELS)),
    "sklearn partial_fit": lambda: KernelBankRegressor(**SMALL).partial_fit(masked(X), Y),
    "sklearn predict": lambda: fitted(KernelBankRegressor(**SMALL)).predict(masked(X)),
    "sklearn proba": lambda: fitted(KernelBankClassifier(**SMALL)).predict_proba(masked(X)),
}


@pytest.mark.parametrize("face", FACES)
def test_what_is_under_a_mask_is_refused(face):
    with pytest.raises(ValueError, match=r"masked|rectangular|missing label"):
        FACES[face]()


def test_masked_feature_of_river_is_missing():
    masked_bank, missing_bank = RiverRegressor(**SMALL), RiverRegressor(**SMALL)
    for model, value in ((masked_bank, np.ma.masked), (missing_bank, None)):
        for n in range(10):
            model.learn_one({"a": X[n, 0], "b": value if n % 2 else X[n, 1]}, Y[n])
    query = {"a": 0.5, "b": 0.5}
    assert masked_bank.predict_one(query) == missing_bank.predict_one(query)


# --- numbers in other clothes ---------------------------------------------------------------------


def test_kernel_bank_takes_nullable_and_object_numbers():
    expected = kb.KernelBank().run(X, Y).predictions
    nullable = pd.DataFrame(X, columns=list("abc")).astype("Float64")
    for rows, targets in (
        (nullable, pd.Series(Y, dtype="Float64")),
        (X.astype(object), Y.astype(object)),
    ):
        np.testing.assert_array_equal(kb.KernelBank().run(rows, targets).predictions, expected)
    nullable.iloc[3, 1] = pd.NA
    with pytest.raises(InvalidArgument, match=r"must hold numbers; got <NA> at index \(3, 1\)"):
        kb.KernelBank().run(nullable, Y)
    with pytest.raises(InvalidArgument, match="must be finite and at most 1e"):
        kb.KernelBank().run(np.array([[10**400]], dtype=object), [1.0])


def test_number_beyond_all_floats_is_refused_by_name_in_river():
    model = RiverRegressor(**SMALL)
    for call in (
        lambda: model.learn_one({"a": 10**400}, 1.0),
        lambda: model.predict_one({"a": 10**400}),
        lambda: model.learn_many(pd.DataFrame({"a": [10**400]}, dtype=object), pd.Series([1.0])),
    ):
        with pytest.raises(InvalidArgument, match="feature 'a' must be finite and at most 1e"):
            call()


def test_none_among_labels_is_refused_in_scikit_learn():
    for missing in (None, float("nan"), pd.NA):
        labels = np.array([missing, *LABELS[1:]], dtype=object)
        with pytest.raises(ValueError, match=r"missing label|contains NaN"):
            KernelBankClassifier(**SMALL).fit(X, labels)


TIMES = pd.date_range("2024-01-01", periods=len(X), freq="h")


@pytest.mark.parametrize(
    "rows",
    [pd.DataFrame({"when": TIMES}), pd.DataFrame({"a": X[:, 0], "when": TIMES})],
    ids=["alone", "with numbers"],
)
def test_times_get_the_message_of_text_in_scikit_learn(rows):
    with pytest.raises(ValueError, match=r"column 'when' must hold numbers.* takes text and times"):
        KernelBankRegressor(**SMALL).fit(rows, Y)
    with pytest.raises(ValueError, match="must hold numbers: its values are times"):
        KernelBankRegressor(**SMALL).fit(TIMES.to_numpy()[:, None], Y)


# --- rows that follow no other --------------------------------------------------------------------


def test_missing_input_to_predict_is_the_median_in_scikit_learn():
    """A stream fills in by its last row; here that is far from all others."""
    rows, targets = numbers(300)
    rows = np.cumsum(rows, axis=0)
    rows[-1] = 100.0
    model = KernelBankRegressor(**SMALL).fit(rows, targets)
    gaps = rows[100:103].copy()
    gaps[:, 1] = np.nan
    filled = gaps.copy()
    filled[:, 1] = np.median(rows[:, 1])
    np.testing.assert_array_equal(model.predict(gaps), model.predict(filled))
    np.testing.assert_array_equal(model.predict_interval(gaps), model.predict_interval(filled))
    stream = KernelBankRegressor(lags=1, **SMALL).fit(rows, targets)
    np.testing.assert_array_equal(stream.predict(gaps), stream.bank_.predict(gaps))


# --- memory ---------------------------------------------------------------------------------------

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
        targets = LABELS if kind == "labels" else Y
        trace = bank.run(X, targets)
        bank.predict_one(X[0])
        bank.learn_one(X[0], targets[0])
        assert "samples" in repr(bank)
        assert bank.ledger.samples == len(X) + 1
        bank.to_bytes()
        parts = [weakref.ref(part) for part in (bank, bank.model, *bank.banks)]
        del bank, trace
        assert [part() for part in parts] == [None] * len(parts)
    finally:
        gc.enable()
