"""Single rows, predicted in any order and learned late: copies and new inputs keep what waits."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import kernelbank as kb

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


TASKS = ("regression", "two classes", "three classes")


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
def test_a_loaded_bank_goes_on_in_any_order_with_the_same_bits(task, tmp_path):
    X, y = stream(task, far=task == "regression")
    one = make(task, lags=1)
    play(one, X[:190], y[:190], task)
    one.save(tmp_path / "half")
    other = kb.load(tmp_path / "half")
    assert repr(play(one, X[190:], y[190:], task)) == repr(play(other, X[190:], y[190:], task))
    assert saved(one, tmp_path, "one") == saved(other, tmp_path, "other")


@pytest.mark.parametrize("task", TASKS)
def test_rows_learned_one_by_one_have_the_bits_of_a_run(task, tmp_path):
    X, y = stream(task, missing=True, far=task == "regression")
    one, predicted, block = (make(task, lags=1) for _ in range(3))
    for x, target in zip(X, y, strict=True):
        one.learn_one(x, target)
        predicted.predict_one(x)
        predicted.learn_one(x, target)
    block.run(X, y)
    assert saved(one, tmp_path, "one") == saved(block, tmp_path, "block")
    assert saved(predicted, tmp_path, "predicted") == saved(block, tmp_path, "block")


@pytest.mark.parametrize("task", TASKS)
def test_a_copy_keeps_the_prediction_that_waits(task, tmp_path):
    X, y = stream(task)
    bank = make(task)
    bank.run(X[:200], y[:200])
    bank.predict_one(X[200])
    other = copy.deepcopy(bank)
    for one in (bank, other):
        one.learn_one(X[201], y[201])
        one.learn_one(X[200], y[200])
    assert saved(bank, tmp_path, "one") == saved(other, tmp_path, "other")


def test_a_prediction_that_waits_survives_a_new_input(tmp_path):
    X, y = stream("regression")

    def learn():
        bank = make("regression")
        bank.run(X[:200], y[:200])
        bank.predict_one(X[200])
        bank.add_inputs()
        bank.learn_one([*X[200], np.nan], y[200])
        bank.learn_one([*X[201], 1.0], y[201])
        return bank

    bank = learn()
    assert not bank._pending.items  # it was found by its input, with the new one missing
    bank.save(tmp_path / "bank")
    assert kb.load(tmp_path / "bank").predict_one([0.0] * 4) == bank.predict_one([0.0] * 4)
