"""The scikit-learn estimators: scikit-learn's own checks, its tools, and frames of any kind."""

import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernelbank as kb
from kernelbank.sklearn import KernelBankClassifier, KernelBankRegressor
from support.marks import library, refuses

NAMES = ["north", "south", "east"]
BOTH = [KernelBankRegressor, KernelBankClassifier]


def rows(count=200, labels=False):
    draw = np.random.default_rng(0)
    X = draw.normal(size=(count, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    return X, np.where(y > 0, "up", "down") if labels else y


QUICK = {"slots": (kb.Slot(kb.kernels.Linear(1.0), kb.learners.LinearRLS()),)}
"""One slot: for what does not depend on the slots."""


@parametrize_with_checks([estimator(**QUICK) for estimator in BOTH])
def test_estimator_of_one_slot_passes_the_checks_of_scikit_learn(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.mark.slow
@parametrize_with_checks([estimator() for estimator in BOTH])
def test_default_estimator_passes_the_checks_of_scikit_learn(estimator, check):
    test_estimator_of_one_slot_passes_the_checks_of_scikit_learn(estimator, check)


# --- the bank behind it ---------------------------------------------------------------------------


def test_estimators_predict_as_their_auto_bank():
    X, y = rows()
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    bank = kb.AutoBank(size="small", lags=2, seed=seed)
    bank.run(X[:150], y[:150])
    estimator = KernelBankRegressor(size="small", lags=2).fit(X[:150], y[:150])
    assert np.array_equal(estimator.predict(X[150:]), bank.predict(X[150:]))
    next_row = X[150:151]  # with lags, intervals are of one row
    assert np.array_equal(
        estimator.predict_interval(next_row, 0.5), bank.predict_interval(next_row, 0.5)
    )
    draw = np.random.RandomState(0)
    bank = kb.AutoBank(**QUICK, seed=int(draw.randint(2**31 - 1)))
    order = draw.permutation(len(X))
    bank.run(X[order], y[order])
    estimator = KernelBankRegressor(**QUICK, shuffle=True).fit(X, y)
    assert np.array_equal(estimator.predict(X), bank.predict(X))
    labels = np.where(y > 0, 3, 7)
    bank = kb.AutoBank("classification", size="small", classes=[3, 7], seed=seed)
    bank.run(X, labels)
    estimator = KernelBankClassifier(size="small").fit(X, labels)
    assert np.array_equal(estimator.predict(X), bank.predict(X))
    assert np.array_equal(estimator.predict_proba(X), bank.predict_proba(X))
    assert estimator.classes_.tolist() == [3, 7]


def test_kernelbank_imports_neither_library_and_names_the_command_if_one_is_missing():
    script = (
        "import sys, kernelbank as kb\n"
        "kb.AutoBank(), kb.KernelBank(), kb.checks, kb.compare, kb.load\n"
        "print([n for n in ('sklearn', 'river', 'pandas') if n in sys.modules])\n"
        "sys.modules['sklearn'] = sys.modules['river'] = None\n"
        "for module in ('sklearn', 'river'):\n"
        "    try: getattr(kb, module)\n"
        "    except ModuleNotFoundError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    imported, *told = done.stdout.splitlines()
    assert imported == "[]"
    assert [re.findall(r"\[(\w+)\]'", line) for line in told] == [["sklearn"], ["river"]]


@pytest.mark.parametrize("labels", [False, True])
def test_partial_fit_in_pieces_equals_fit(labels):
    X, y = rows(labels=labels)
    estimator = KernelBankClassifier if labels else KernelBankRegressor
    whole, pieces = estimator(**QUICK).fit(X, y), estimator(**QUICK)
    more = {"classes": ["up", "down"]} if labels else {}
    pieces.partial_fit(X[:7], y[:7], **more)
    for start in range(7, 200, 60):
        pieces.partial_fit(X[start : start + 60], y[start : start + 60])
    assert np.array_equal(whole.predict(X), pieces.predict(X))
    assert whole.bank_.samples == pieces.bank_.samples == 200
    assert pieces.fit(X, y).bank_.samples == 200  # fit forgets


PARTS = {
    "lags": 1,
    "seasons": (7, 24),
    "size": "large",
    "slots": [kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.Norma())],
    "combiner": kb.combiners.Simplex(),
    "loss": "huber",
    "window": 5,
    "regularization": 0.1,
    "scaling": ["rank"],
    "missing": -999,
    "engine": "threads",
    "shuffle": True,
    "random_state": 5,
}


@pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
def test_all_parameters_reach_the_bank():
    X, y = rows()
    assert set(PARTS) == set(KernelBankRegressor().get_params())
    assert KernelBankRegressor(random_state=None).fit(X, y).bank_.config.seed > 0
    estimator = KernelBankRegressor(**PARTS).fit(X, y)
    bank = estimator.bank_
    assert (bank.lags, bank.seasons, bank.size) == (1, (7, 24), "large")
    inner = bank.bank
    assert [type(slot.learner) for slot in inner.slots] == [kb.learners.Norma]
    assert inner.combiner == kb.combiners.Simplex()
    assert (inner.loss, inner.window, inner.regularization) == (kb.losses.Huber(), 5, 0.1)
    assert isinstance(inner._settings.engine, kb.engines.Threads)
    assert bank.config.scalings == ("rank",)
    assert bank.missing_values.numbers == (-999.0,)
    assert bank.config.seed == int(np.random.RandomState(5).randint(2**31 - 1))
    again = pickle.loads(pickle.dumps(clone(estimator).fit(X, y)))
    assert np.array_equal(again.predict(X), estimator.predict(X))


def test_several_targets_are_outputs_of_one_bank():
    X, y = rows()
    Y = np.column_stack([y, 100 - 20 * X[:, 0]])
    estimator = KernelBankRegressor(size="small").fit(X[:150], Y[:150])
    bank = kb.AutoBank(size="small", seed=int(np.random.RandomState(0).randint(2**31 - 1)))
    bank.run(X[:150], Y[:150])
    assert estimator.bank_.target_names == ("target 0", "target 1")
    assert np.array_equal(estimator.predict(X[150:]), bank.predict(X[150:]))
    intervals = estimator.predict_interval(X[150:], 0.5)
    assert intervals.shape == (50, 2, 2)
    assert np.array_equal(intervals, bank.predict_interval(X[150:], 0.5))
    assert estimator.score(X, Y) > 0.8
    with pytest.warns(sklearn.exceptions.DataConversionWarning):
        single = KernelBankRegressor(**QUICK).fit(X, Y[:, :1])
    assert single.predict(X).shape == (200,)
    assert estimator.__sklearn_tags__().target_tags.multi_output
    assert not KernelBankClassifier().__sklearn_tags__().target_tags.multi_output


def test_classes_of_any_type_and_number_are_predicted():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, names = X[order], np.array(["setosa", "versicolor", "virginica"], dtype=object)[y[order]]
    estimator = KernelBankClassifier(size="small").fit(X, names)
    assert estimator.classes_.tolist() == sorted(set(names))
    shares = estimator.predict_proba(X)
    assert shares.shape == (150, 3)
    assert np.allclose(shares.sum(axis=1), 1)
    assert estimator.score(X, names) > 0.95
    yes = KernelBankClassifier(size="small").fit(X, names == "setosa")
    assert yes.classes_.tolist() == [False, True]
    assert yes.predict(X).dtype == bool


def test_wrong_parameters_and_labels_beyond_the_first_classes_are_refused():
    X, y = rows(labels=True)
    estimator = KernelBankClassifier(**QUICK)
    with pytest.raises(NotFittedError):
        estimator.predict_proba(X)
    with pytest.raises(ValueError, match="'size' of AutoBank must be one of"):
        KernelBankClassifier(size="huge").fit(X, y)
    refuses("'classes' must be given in the first call", estimator.partial_fit, X, y)
    with pytest.raises(ValueError, match="'y' must hold the labels in classes"):
        estimator.partial_fit(X, y, classes=["up", "over"])
    assert not hasattr(estimator, "bank_")
    estimator.partial_fit(X[:50], y[:50], classes=["up", "down", "over"])
    assert estimator.predict_proba(X[:2]).shape == (2, 3)
    with pytest.raises(ValueError, match="'classes' must be those of the first call"):
        estimator.partial_fit(X, y, classes=["up", "down"])
    refuses("only; got", estimator.partial_fit, X[:1], ["under"])
    assert estimator.bank_.samples == 50
    estimator.partial_fit(X[50:], y[50:], classes=["down", "over", "up"])
    assert estimator.bank_.samples == 200


# --- tools of scikit-learn ------------------------------------------------------------------------


def polars_frame(X, names):
    return library("polars").DataFrame(X, schema=names)


def arrow_table(X, names):
    return pa.table(dict(zip(names, X.T, strict=True)))


@pytest.mark.parametrize(
    ("frame_of", "estimator"),
    [
        (lambda X, names: pd.DataFrame(X, columns=names), KernelBankClassifier),
        (polars_frame, KernelBankRegressor),
        (arrow_table, KernelBankRegressor),
    ],
    ids=["pandas", "polars", "arrow"],
)
def test_frames_keep_feature_names(frame_of, estimator):
    X, y = rows(labels=estimator is KernelBankClassifier)
    X[3, 1] = np.nan
    estimator = estimator(**QUICK)
    plain = clone(estimator).fit(X, y)
    estimator.fit(frame_of(X, NAMES), y)
    assert estimator.feature_names_in_.tolist() == NAMES
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(estimator.predict(frame_of(X, NAMES)), plain.predict(X))
    refuses("feature names", lambda: estimator.predict(frame_of(X, ["north", "east", "south"])))
    with pytest.raises(ValueError, match="feature names"):
        estimator.partial_fit(frame_of(X, ["north", "south", "west"]), y)
