"""One compiled call per row: the same bits as the path with all checks, and as blocks."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.auto.model_parts.single_row import DECLINED, SingleRowCalls
from kernelbank.auto.task_model import TaskModel

ROWS = 260


def stream(task, missing=False, far=False, rows=ROWS):
    draw = np.random.default_rng(3)
    X = draw.normal(size=(rows, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * draw.normal(size=rows)
    if missing:
        X[::7, 1] = np.nan
    if far:
        y[[150, 180, 181, 200, 201, 202, 203, 204, 205]] += 500.0
    if task == "two classes":
        return X, (y > 0).tolist()
    if task == "three classes":
        return X, [("low", "middle", "high")[int(v > -0.5) + int(v > 0.5)] for v in y]
    return X, y.tolist()


def make(task, **settings):
    kind = "regression" if task == "regression" else "classification"
    return kb.AutoBank(kind, size="small", **settings)


def saved(bank, tmp_path, name):
    bank.save(tmp_path / name)
    return (tmp_path / name).read_bytes()


@pytest.fixture
def quick(monkeypatch):
    """How many rows were learned by one compiled call."""
    count = [0]
    original = SingleRowCalls.learn

    def counted(self, y):
        result = original(self, y)
        count[0] += result != DECLINED
        return result

    monkeypatch.setattr(SingleRowCalls, "learn", counted)
    return count


def slow_path(monkeypatch):
    monkeypatch.setattr(TaskModel, "row_calls", lambda self: None)


TASKS = ("regression", "two classes", "three classes")


def enough(count, task, lags=0):
    """Whether rows were learned by one call: a bank with several outputs has no such calls."""
    return count == 0 if task == "three classes" and not lags else count > 100


@pytest.mark.parametrize("lags", [0, 2])
@pytest.mark.parametrize("task", TASKS)
def test_rows_one_by_one_give_the_bits_of_a_block(task, lags, quick, tmp_path):
    X, y = stream(task, missing=True, far=task == "regression")
    whole, single = make(task, lags=lags), make(task, lags=lags)
    trace = whole.run(X, y)
    predictions = []
    for x, target in zip(X, y, strict=True):
        predictions.append(single.predict_one(x))
        single.learn_one(x, target)
    assert enough(quick[0], task, lags)
    assert predictions[1:] == trace.predictions.tolist()[1:]
    assert saved(single, tmp_path, "one") == saved(whole, tmp_path, "block")


@pytest.mark.parametrize("task", TASKS)
def test_rows_that_were_not_predicted_give_the_same_bits(task, quick, tmp_path):
    X, y = stream(task)
    whole, single = make(task), make(task)
    whole.run(X, y)
    for x, target in zip(X, y, strict=True):
        single.learn_one(x, target)
    assert enough(quick[0], task)
    assert saved(single, tmp_path, "one") == saved(whole, tmp_path, "block")


def play(bank, X, y, task):
    """Predictions in all orders: twice, of other rows, late, and with missing targets."""
    found = []
    for n, (x, target) in enumerate(zip(X, y, strict=True)):
        found.append(bank.predict_one(x))
        if n % 5 == 1:
            found.append(bank.predict_one(X[n - 1]))
        if n % 3 == 1 and task == "regression":
            found.append(bank.predict_interval_one(x, 0.8))
        if n % 11 == 5:
            continue  # this target never comes
        if n % 13 == 7:
            found.append(bank.predict(X[:3]).tolist())
        if n % 17 == 3:
            bank.run(X[n : n + 1], [target])
            continue
        bank.learn_one(list(x), target)
    return found


@pytest.mark.parametrize("task", TASKS)
def test_predictions_in_any_order_give_the_bits_of_the_path_with_all_checks(
    task, quick, monkeypatch, tmp_path
):
    X, y = stream(task, far=task == "regression")
    one = make(task, lags=1)
    found = play(one, X, y, task)
    assert quick[0] > 50
    slow_path(monkeypatch)
    other = make(task, lags=1)
    assert repr(play(other, X, y, task)) == repr(found)  # NaN before the first target
    assert saved(one, tmp_path, "one") == saved(other, tmp_path, "other")


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("taken", [copy.deepcopy, lambda bank: pickle.loads(pickle.dumps(bank))])
def test_a_copy_keeps_the_prediction_that_waits(task, taken, tmp_path):
    X, y = stream(task)
    bank = make(task)
    bank.run(X[:200], y[:200])
    bank.predict_one(X[200])
    other = taken(bank)
    for one in (bank, other):
        one.learn_one(X[201], y[201])
        one.learn_one(X[200], y[200])
    assert saved(bank, tmp_path, "one") == saved(other, tmp_path, "other")


def test_a_prediction_that_waits_survives_a_new_input(tmp_path, monkeypatch):
    X, y = stream("regression")

    def learn():
        bank = make("regression")
        bank.run(X[:200], y[:200])
        bank.predict_one(X[200])
        bank.add_inputs()
        bank.learn_one([*X[200], np.nan], y[200])
        bank.learn_one([*X[201], 1.0], y[201])
        return bank

    quick = saved(learn(), tmp_path, "one")
    slow_path(monkeypatch)
    assert saved(learn(), tmp_path, "other") == quick


@pytest.mark.parametrize("x", [[1.0, 2.0], ["a", 1.0, 2.0], [1e300, 0.0, 0.0], None])
def test_bad_input_is_refused_and_changes_nothing(x, tmp_path):
    X, y = stream("regression")
    bank = make("regression")
    bank.run(X[:200], y[:200])
    before = saved(bank, tmp_path, "before")
    for call in (lambda: bank.predict_one(x), lambda: bank.learn_one(x, 0.0)):
        with pytest.raises(ValueError, match="x"):
            call()
    for target in (np.inf, "text", None):
        with pytest.raises(ValueError, match="y"):
            bank.learn_one(X[0], target)
    assert saved(bank, tmp_path, "after") == before


def test_three_classes_become_four(quick):
    X, y = stream("three classes")
    whole, single = make("three classes"), make("three classes")
    y[200:] = ["highest" if label == "high" else label for label in y[200:]]
    whole.run(X, y)
    for x, label in zip(X, y, strict=True):
        single.learn_one(x, label)
    assert enough(quick[0], "three classes")
    assert single.predict_proba(X[:5]).tolist() == whole.predict_proba(X[:5]).tolist()
