"""What AutoBank, KernelBank, scikit-learn's and River's faces take for input, and refuse alike."""

import numpy as np
import pandas as pd
import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument
from kernelbank.river import KernelBankClassifier as RiverClassifier
from kernelbank.river import KernelBankMultiTargetRegressor as RiverRegressors
from kernelbank.river import KernelBankRegressor as RiverRegressor
from kernelbank.sklearn import KernelBankClassifier, KernelBankRegressor
from support.auto_streams import SMALL, numbers
from support.marks import refuses

X, Y = numbers(40)
LABELS = np.where(np.median(Y) < Y, "a", "b")
GAPS = np.random.default_rng(0).normal(size=(60, 2))
TARGETS = GAPS @ [2.0, 1.0]
GAPS[::7, 0] = np.nan


def masked(array):
    return np.ma.masked_array(array, mask=np.arange(array.size).reshape(array.shape) == 3)


def fitted(model):
    return model.fit(X, LABELS if isinstance(model, KernelBankClassifier) else Y)


FACES = {
    "AutoBank.run X": lambda: kb.AutoBank(**SMALL).run(masked(X), Y),
    "AutoBank.run y": lambda: kb.AutoBank(**SMALL).run(X, masked(Y)),
    "AutoBank.learn_one": lambda: kb.AutoBank(**SMALL).learn_one(masked(np.ones(4)), 1.0),
    "AutoBank labels": lambda: kb.AutoBank("classification", **SMALL).run(X, masked(LABELS)),
    "AutoBank label": lambda: kb.AutoBank("classification").learn_one([1.0], np.ma.masked),
    "River label": lambda: RiverClassifier(**SMALL).learn_one({}, np.ma.array("a", mask=True)),
    "KernelBank.run X": lambda: kb.KernelBank().run(masked(X), Y),
    "sklearn X": lambda: KernelBankRegressor(**SMALL).fit(masked(X), Y),
    "sklearn y": lambda: KernelBankRegressor(**SMALL).fit(X, masked(Y)),
    "sklearn labels": lambda: KernelBankClassifier(**SMALL).fit(X, masked(LABELS)),
    "sklearn classes": lambda: KernelBankClassifier(**SMALL).partial_fit(
        X, LABELS, np.ma.array(["a", "b"], mask=[0, 1])
    ),
    "sklearn predict": lambda: fitted(KernelBankRegressor(**SMALL)).predict(masked(X)),
    "sklearn proba": lambda: fitted(KernelBankClassifier(**SMALL)).predict_proba(masked(X)),
}


@pytest.mark.parametrize("face", FACES)
def test_what_is_under_a_mask_is_refused(face):
    refuses(r"masked|rectangular|missing label", FACES[face])


def test_masked_feature_of_river_is_missing():
    masked_bank, missing_bank = RiverRegressor(**SMALL), RiverRegressor(**SMALL)
    for model, value in ((masked_bank, np.ma.masked), (missing_bank, None)):
        for n in range(10):
            model.learn_one({"a": X[n, 0], "b": value if n % 2 else X[n, 1]}, Y[n])
    query = {"a": 0.5, "b": 0.5}
    assert masked_bank.predict_one(query) == missing_bank.predict_one(query)


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
        refuses("feature 'a' must be finite and at most 1e", call)
    refuses("'missing' of AutoBank must hold finite numbers", RiverRegressor, missing=10**400)


def test_none_among_labels_is_refused_in_scikit_learn():
    for missing in (None, float("nan"), pd.NA):
        labels = np.array([missing, *LABELS[1:]], dtype=object)
        refuses(r"missing label|contains NaN", KernelBankClassifier(**SMALL).fit, X, labels)
    with pytest.raises(ValueError, match="'classes' has a missing label"):
        KernelBankClassifier(**SMALL).partial_fit(X, LABELS, ["a", "b", None])


TIMES = pd.date_range("2024-01-01", periods=len(X), freq="h")


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame({"when": TIMES}),
        pd.DataFrame({"a": X[:, 0], "when": TIMES}),
        pd.DataFrame({"a": X[:, 0], "when": TIMES - TIMES[0]}),
        pd.DataFrame({"a": X[:, 0], "when": TIMES.time}),
    ],
    ids=["alone", "with numbers", "durations", "times of day"],
)
def test_times_get_the_message_of_text_in_scikit_learn(rows):
    with pytest.raises(ValueError, match=r"column 'when' must hold numbers.* takes text and times"):
        KernelBankRegressor(**SMALL).fit(rows, Y)
    for array in (TIMES.to_numpy(), TIMES.to_numpy().astype(object), TIMES.to_pydatetime()):
        with pytest.raises(ValueError, match="must hold numbers: its values are times"):
            KernelBankRegressor(**SMALL).fit(array[:, None], Y)


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


def test_values_that_mean_that_there_is_none_are_handed_through():
    marked, plain = (KernelBankRegressor(size="small", missing=none) for none in (-999, None))
    predictions = [
        marked.fit(np.nan_to_num(GAPS, nan=-999.0), TARGETS).predict(
            np.nan_to_num(GAPS, nan=-999.0)
        ),
        plain.fit(GAPS, TARGETS).predict(GAPS),
    ]
    np.testing.assert_array_equal(*predictions)
    marked, plain = (RiverRegressor(size="small", missing=none) for none in (("NA", -999), None))
    for x, y in zip(GAPS.tolist(), TARGETS, strict=True):
        gap = "NA" if y > 0 else -999.0
        marked.learn_one({"a": gap if np.isnan(x[0]) else x[0], "b": x[1]}, y)
        plain.learn_one(dict(zip("ab", x, strict=True)), y)
    assert marked.predict_one({"a": "NA", "b": 1.0}) == plain.predict_one({"a": None, "b": 1.0})
    both = RiverRegressors(size="small", missing=("NA", -999))
    both.learn_one({"a": 1.0}, {"u": 1.0, "v": -1.0})
    both.learn_one({"a": 2.0}, {"u": 2.0, "v": "NA"})
    both.learn_many(pd.DataFrame({"a": [2.0]}), pd.DataFrame({"u": [-999.0], "v": [3.0]}))
    assert both.bank.samples == 3
    frame = pd.DataFrame({"a": ["NA", 1.0, -999], "b": 1.0})
    wanted = plain.predict_many(pd.DataFrame({"a": [None, 1.0, None], "b": 1.0}))
    np.testing.assert_array_equal(marked.predict_many(frame), wanted)
