"""The River estimators: River's own checks, features that come and go, models inside models."""

import copy
import pickle
import random
import signal
import warnings

import numpy as np
import pandas as pd
import pytest
from river import (
    checks,
    datasets,
    evaluate,
    linear_model,
    metrics,
    optim,
    preprocessing,
    tree,
)

import kernelbank as kb
from kernelbank.errors import FeaturesIgnored
from kernelbank.river import (
    KernelBankClassifier,
    KernelBankMultiTargetRegressor,
    KernelBankRegressor,
)
from support.marks import refuses

QUICK = {"slots": (kb.Slot(kb.kernels.Linear(1.0), kb.learners.LinearRLS()),)}
"""One slot: for what does not depend on the slots."""


def river_checks():
    """Every check of River with the model it is for; ids that say which data they run on.

    Banks of one slot on the first data set of each check, small ones (slow) on all of them.
    """
    for settings in (QUICK, {"size": "small"}):
        for kind in (KernelBankRegressor, KernelBankClassifier, KernelBankMultiTargetRegressor):
            counts = {}
            estimator = kind(**settings)
            for check in checks.yield_checks(estimator):
                number = counts[check.__name__] = counts.get(check.__name__, 0) + 1
                name = f"{kind.__name__}-{next(iter(settings))}-{check.__name__}-{number}"
                long = check.__name__ == "check_bounded_memory_growth"
                quick = settings is QUICK and not long
                if number == 1 or settings is not QUICK:
                    marks = [] if quick else [pytest.mark.slow]
                    yield pytest.param(estimator, check, id=name, marks=marks)


@pytest.mark.parametrize(("estimator", "check"), [*river_checks()])
def test_estimator_passes_the_checks_of_river(estimator, check):
    random.seed(1)
    check(estimator.clone())


# --- the bank behind it ---------------------------------------------------------------------------


def trump(count=None):
    return list(datasets.TrumpApproval())[:count]


def predict_and_learn(model, rows):
    """Predictions, one by one."""
    found = []
    for x, y in rows:
        found.append(model.predict_one(x))
        model.learn_one(x, y)
    return found


def test_delayed_targets_are_learned_with_their_predictions():
    """River learns row t with the dictionary that it predicted, any number of rows later."""
    data = list(datasets.TrumpApproval())[:150]
    model = KernelBankRegressor(**QUICK)
    score = evaluate.progressive_val_score(data, model, metrics.MAE(), delay=3)
    names = sorted(data[0][0])
    bank = kb.AutoBank(**QUICK)
    X = np.array([[x[name] for name in names] for x, _ in data])
    trace = bank.run(
        X, [y for _, y in data], delay=2
    )  # row t is learned before row t + 3 is predicted
    errors = np.abs(np.nan_to_num(trace.predictions) - [y for _, y in data])
    assert score.get() == pytest.approx(errors.mean())
    assert model.bank.ledger.mean_loss == bank.ledger.mean_loss


def two_targets(count=200):
    """Rows with the targets "a" and 7; one, or both, may be missing."""
    draw = np.random.default_rng(3)
    for n in range(count):
        x = {"wind": draw.normal(), 3: draw.normal(), "3": n, ("a",): True, None: 1}
        y = {"a": 100 * np.sin(x["wind"]), 7: 3 - x[3]}
        if n and n % 5 == 0:
            del y["a" if n % 2 else 7]
        if n and n % 41 == 0:
            y = {}
        yield x, y


@pytest.mark.parametrize(
    ("kind", "rows", "frame"),
    [
        (KernelBankRegressor, trump(120), pd.Series),
        (KernelBankMultiTargetRegressor, list(two_targets(120)), pd.DataFrame),
    ],
)
def test_learn_many_equals_learn_one_whatever_the_order_of_a_dictionary(kind, rows, frame):
    single, many = kind(**QUICK), kind(**QUICK)
    predict_and_learn(single, [(dict(reversed(x.items())), y) for x, y in rows])
    X, y = pd.DataFrame([x for x, _ in rows]), frame([y for _, y in rows])
    for start, end in ((0, 3), (3, 50), (50, 120), (120, 120)):
        many.learn_many(X.iloc[start:end], y.iloc[start:end])
    predicted = many.predict_many(X.iloc[10:20])
    assert predicted.index.tolist() == list(range(10, 20))
    values = predicted.tolist() if frame is pd.Series else predicted.to_dict("records")
    assert values == [single.predict_one(x) for x, _ in rows[10:20]]
    assert len(many.predict_many(X.iloc[:0])) == 0


def test_predict_proba_many_equals_predict_proba_one():
    rows = list(datasets.Phishing().take(150))
    model = KernelBankClassifier(**QUICK)
    X, y = pd.DataFrame([x for x, _ in rows]), pd.Series([y for _, y in rows])
    assert model.predict_proba_many(X).shape == (150, 0)
    assert model.predict_one(rows[0][0]) is None
    model.learn_many(X, y)
    shares = model.predict_proba_many(X)
    assert set(shares.columns) == {True, False}
    assert model.predict_many(X).tolist() == [model.predict_one(x) for x, _ in rows]
    assert shares.iloc[3].to_dict() == model.predict_proba_one(rows[3][0])


# --- several targets ------------------------------------------------------------------------------


def array_of(rows):
    return np.array([[y.get(name, np.nan) for name in (7, "a")] for _, y in rows])


def test_multi_target_regressor_predicts_as_its_auto_bank():
    rows = list(two_targets())
    X = np.array([[x[name] for name in (None, 3, "3", "wind", ("a",))] for x, _ in rows])
    bank = kb.AutoBank(**QUICK)
    expected = bank.run(X, array_of(rows)).predictions
    model = KernelBankMultiTargetRegressor(**QUICK)
    found = predict_and_learn(model, [(x, dict(reversed(y.items()))) for x, y in rows])
    assert found[0] == {}
    assert np.array_equal([[y[7], y["a"]] for y in found[1:]], expected[1:])
    assert model.target_names == (7, "a")
    assert model.bank.target_names == ("7", "a")
    intervals = model.predict_interval_one(rows[0][0], 0.8)
    assert intervals == {
        name: tuple(ends)
        for name, ends in zip((7, "a"), bank.predict_interval_one(X[0], 0.8).tolist(), strict=True)
    }


def test_named_targets_may_all_be_missing_at_first():
    model = KernelBankMultiTargetRegressor(**QUICK, targets=["load", "price"])
    x = {"n": 1.0}
    assert model.predict_one(x) == {"load": 0.0, "price": 0.0}
    model.learn_one(x, {"price": 5.0})
    assert model.predict_one(x) == {"load": 0.0, "price": 5.0}
    model.learn_one(x, {"load": 1.0, "price": None})
    assert model.predict_one(x) == {"load": 1.0, "price": 5.0}
    assert model.clone().target_names == ("load", "price")


# --- features that come and go --------------------------------------------------------------------


def weather(count=400):
    """Two features from the start, and one, which decides half of the target, from row 200 on."""
    draw = np.random.default_rng(2)
    for n in range(count):
        x = {"wind": draw.normal(), "rain": draw.normal()}
        y = np.sin(x["wind"]) + 0.5 * x["rain"]
        if n >= 200:
            x["sun"] = draw.normal()
            y += x["sun"]
        yield x, y


def test_feature_that_appears_is_learned_and_nothing_is_lost():
    rows = list(weather())
    model = KernelBankRegressor(size="small")
    predict_and_learn(model, rows[:200])
    before = model.predict_one(rows[0][0])
    assert model.predict_one({**rows[0][0], "sun": 5.0}) == before  # never learned from: no matter
    copied = copy.deepcopy(model)
    answers = np.array(predict_and_learn(model, rows[200:]))
    blind = np.array(predict_and_learn(copied, [({**x, "sun": None}, y) for x, y in rows[200:]]))
    y = np.array([y for _, y in rows[200:]])
    assert model.features == ("rain", "wind", "sun")
    assert np.mean((answers - y)[60:] ** 2) < 0.2 * np.mean((blind - y)[60:] ** 2)
    # What was learned without it is still known without it.
    assert model.predict_one(rows[0][0]) == pytest.approx(before, abs=1.0)


def test_absent_features_are_missing_or_have_the_given_value():
    rows = list(weather(260))
    model = KernelBankRegressor(**QUICK)
    predict_and_learn(model, rows)
    x = {"wind": 0.3, "rain": -0.2, "sun": 0.1}
    for name in x:
        rest = {n: v for n, v in x.items() if n != name}
        expected = model.predict_one({**rest, name: None})
        assert model.predict_one(rest) == expected == model.predict_one({**rest, name: np.nan})
        assert model.predict_one(rest) != model.predict_one(x)
    assert np.isfinite(model.predict_one({}))
    counts = KernelBankRegressor(**QUICK, absent=0)
    predict_and_learn(counts, rows)
    assert counts.predict_one({"wind": 1.0}) == counts.predict_one(
        {"wind": 1.0, "rain": 0, "sun": False}
    )


def test_features_beyond_the_limit_are_ignored_with_a_warning():
    model = KernelBankRegressor(**QUICK, most_features=2)
    model.learn_one({"a": 1.0}, 1.0)
    with pytest.warns(FeaturesIgnored, match=r"'c' and others to come are ignored"):
        model.learn_one({"a": 1.0, "b": 1.0, "c": 3.0}, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn_one({"a": 1.0, "d": 1.0}, 1.0)
    assert model.features == ("a", "b")


@pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
def test_river_model_works_as_a_slot():
    rows = [({"x": n % 7, "z": n % 3}, 2.0 * (n % 7) - n % 3) for n in range(160)]
    line = preprocessing.StandardScaler() | linear_model.LinearRegression(optim.SGD(0.1))
    slots = [
        *(
            kb.Slot(kb.kernels.NoKernel(), kb.learners.Adapter(model))
            for model in (line, tree.HoeffdingTreeRegressor())
        ),
        kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.KRLS()),
    ]
    model = KernelBankRegressor(slots=slots)
    answers = predict_and_learn(model, rows)
    y = np.array([y for _, y in rows])
    assert np.mean((np.array(answers) - y)[120:] ** 2) < 0.01 * y.var()
    again = pickle.loads(pickle.dumps(model))
    assert predict_and_learn(again, rows[:20]) == predict_and_learn(model, rows[:20])
    assert model.clone().bank.samples == 0
    model.learn_one({"x": 1, "z": 1, "new": 1}, 1.0)
    assert predict_and_learn(model, rows[:3])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupted_learning_keeps_features_and_bank_together():
    """Features that appear in the rows that an interrupt cuts off are columns, or are not."""
    draw = np.random.default_rng(0)
    rows = [{f"x{k}": draw.normal() for k in range(1 + n // 6)} for n in range(48)]
    y = [sum(row.values()) for row in rows]
    wanted = KernelBankRegressor(size="small")
    for row, target in zip(rows, y, strict=True):
        wanted.learn_one(row, target)

    class Interrupt(Exception):
        pass

    def interrupt(*_):
        raise Interrupt

    before, interrupts = signal.signal(signal.SIGALRM, interrupt), 0
    try:
        for many in (False, True):
            model = KernelBankRegressor(size="small")
            while (done := model.bank.samples) < len(rows):
                try:
                    try:
                        signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, 0.02))
                        if many:
                            model.learn_many(pd.DataFrame(rows[done:]), pd.Series(y[done:]))
                        else:
                            model.learn_one(rows[done], y[done])
                    finally:
                        signal.setitimer(signal.ITIMER_REAL, 0)
                except Interrupt:
                    interrupts += 1
            assert set(model.features) == set(wanted.features)
            assert len(model.bank.input_names) == len(model.features)
            if not many:
                assert model.predict_one(rows[-1]) == wanted.predict_one(rows[-1])
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupts


SETTINGS = {
    "lags": 1,
    "seasons": 7,
    "size": "large",
    "slots": [kb.Slot(kb.kernels.Gaussian(1.0), kb.learners.Norma())],
    "combiner": kb.combiners.Simplex(),
    "loss": "huber",
    "window": 5,
    "regularization": 0.1,
    "engine": "threads",
    "seed": 3,
    "missing": -999,
}


@pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")
def test_all_parameters_reach_the_bank():
    model = KernelBankRegressor(**SETTINGS, scaling="rank")
    bank = kb.AutoBank(**SETTINGS, scalings="rank")
    for x, y in trump(20):
        model.learn_one(x, y)
        bank.learn_one([x[name] for name in sorted(x)], y)
    assert model.bank._config == bank._config
    assert model.bank.bank.slots == bank.bank.slots
    assert repr(model).startswith("KernelBankRegressor (")
    again = model.clone()
    assert again.bank.samples == 0
    assert again._get_params() == model._get_params()


A_ROW, NEW = {"wind": 1.0}, {"wind": 1.0, "new": 1.0}
WRONG = {
    KernelBankRegressor: [
        ({"wind": "strong"}, 1.0, "feature 'wind' must be a number, a boolean or None; got 'str"),
        ({"wind": 1.0, "new": "text"}, 1.0, "feature 'new' must be a number"),
        ({"wind": [1.0, 2.0]}, 1.0, "feature 'wind' must be a number"),
        ({"wind": np.inf}, 1.0, "'x'"),
        ([1.0, 2.0], 1.0, "'x' must be a dictionary"),
        (NEW, np.nan, "'y'"),
        (pd.DataFrame({"wind": ["1.5"]}), pd.Series([1.0]), "feature 'wind' must be a number"),
        (pd.DataFrame([NEW]), pd.Series([1.0, 2.0]), "'y' must have as many rows"),
    ],
    KernelBankMultiTargetRegressor: [
        (A_ROW, {"b": 1.0}, r"'y' must have the targets '7', 'a'"),
        (A_ROW, {"a": "x"}, "'y' must hold numbers for 'a'; got 'x'"),
        (A_ROW, {"a": np.inf}, "'y' must be finite"),
        (A_ROW, 3.0, "'y' must be a dictionary"),
        (pd.DataFrame([A_ROW]), pd.DataFrame({"b": [1.0]}), "'y' must have the targets"),
    ],
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_rows_are_refused_and_change_nothing(kind):
    model = kind(**QUICK)
    predict_and_learn(model, weather(30) if kind is KernelBankRegressor else two_targets(30))
    before = pickle.dumps(model)
    for x, y, words in WRONG[kind]:
        learn = model.learn_many if isinstance(x, pd.DataFrame) else model.learn_one
        refuses(words, learn, x, y)
    assert pickle.dumps(model) == before


def test_wrong_settings_are_refused_by_name():
    for wrong in ({"absent": "no"}, {"most_features": 0}, {"size": "huge"}):
        refuses(f"'{next(iter(wrong))}'", KernelBankRegressor, **wrong)
    for wrong in ("ab", [], ["a", "a"], 3):
        with pytest.raises(ValueError, match="'targets' must be a list of different names"):
            KernelBankMultiTargetRegressor(targets=wrong)
