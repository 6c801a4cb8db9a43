"""Arguments of AutoBank that are refused, and change nothing."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument
from support.auto_streams import SMALL, assert_same_state, numbers


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"task": "ranking"}, "'task' of AutoBank must be one of"),
        ({"lags": -1}, "'lags' of AutoBank"),
        ({"size": "huge"}, "'size' of AutoBank"),
        ({"classes": ["a", "b"]}, "be left out for regression"),
        ({"task": "classification", "classes": "ab"}, "be a list of labels"),
        ({"task": "classification", "classes": ["a", "a"]}, "different labels"),
        ({"slots": []}, "at least one Slot"),
        ({"combiner": 3}, "be a combiner"),
        ({"scalings": ["log"]}, "'scalings' of AutoBank"),
        ({"scalings": []}, "name at least one"),
        ({"seed": -1}, "'seed' of AutoBank"),
    ],
)
def test_wrong_settings_are_refused_with_the_rule(wrong, words):
    with pytest.raises(InvalidArgument, match=words):
        kb.AutoBank(**wrong)


def test_wrong_rows_are_refused_and_change_nothing(tmp_path):
    X, y = numbers(60)
    bank, twin = kb.AutoBank(**SMALL), kb.AutoBank(**SMALL)
    bank.run(X[:40], y[:40])
    twin.run(X[:40], y[:40])
    missing = y[40:].copy()
    missing[5] = np.nan
    wrong = [
        lambda: bank.run(X[40:], missing),
        lambda: bank.run(np.where(X[40:] > 2, np.inf, X[40:] + 9e200), y[40:]),
        lambda: bank.run(X[40:, :2], y[40:]),
        lambda: bank.run(X[40:], y[41:]),
        lambda: bank.run(X[40:], y[40:], record="most"),
        lambda: bank.run(X[40:], y[40:], record=["probabilities"]),
        lambda: bank.run(X[40:], y[40:], delay=-1),
        lambda: bank.run(X[40:], y[40:], coverage=1.0),
        lambda: bank.learn_one(X[40], float("nan")),
        lambda: bank.learn_one(X[40], "3"),
        lambda: bank.learn_one(X[40, :2], 1.0),
        lambda: bank.predict_proba_one(X[0]),
        lambda: bank.predict_interval_one(X[0], 0.0),
    ]
    for call in wrong:
        with pytest.raises(InvalidArgument):
            call()
    assert_same_state(bank, twin)
    labels = kb.AutoBank("classification", **SMALL)
    labels.run(X[:40], ["a", "b"] * 20)
    for call in (
        lambda: labels.run(X[40:42], ["a", None]),
        lambda: labels.run(X[40:42], ["a"]),
        lambda: labels.learn_one(X[40], float("nan")),
        lambda: labels.learn_one(X[40], ["a"]),
        lambda: labels.predict_interval_one(X[0]),
        lambda: labels.run(X[:40].repeat(4, axis=0), list(range(160))),
    ):
        with pytest.raises(InvalidArgument):
            call()
    assert labels.samples == 40
    assert labels.classes == ("a", "b")
    named = kb.AutoBank("classification", classes=["a", "b"], **SMALL)
    with pytest.raises(InvalidArgument, match="at most 2 different labels"):
        named.learn_one(X[0], "c")
