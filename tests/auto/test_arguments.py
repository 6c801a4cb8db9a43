"""Arguments of AutoBank that are refused, and change nothing."""

import re

import numpy as np
import pytest
from scipy import sparse

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
        ({"task": "classification", "max_classes": 1}, "'max_classes' .* a whole number >= 2"),
        ({"task": "classification", "max_classes": 9, "classes": [1, 2]}, "'max_classes' .* left"),
        ({"max_classes": 9}, "'max_classes' of AutoBank must be left out for"),
        ({"lower": 3, "upper": 1}, "'lower' must be less than upper.* got 3.0"),
        ({"lower": 1, "upper": 1}, "less than upper"),
        ({"upper": "a"}, "'upper'.* finite number .* leave it out"),
        ({"lower": float("nan")}, "'lower'.* finite number"),
        ({"lower": True}, "'lower'.* finite number"),
        ({"task": "classification", "upper": 1}, "'upper'.* left out for classification"),
        ({"horizons": 0}, "'horizons'"),
        ({"horizons": 1001}, "'horizons'"),
        ({"horizons": "24"}, "'horizons'"),
        ({"horizons": ()}, "'horizons'.*at least one"),
        ({"horizons": (1, 1)}, "'horizons'.*none twice"),
        ({"horizons": 3, "task": "classification"}, "'horizons'.*classification"),
        ({"known": [0]}, "'known'.*horizons"),
        ({"horizons": 3, "known": []}, "'known'"),
        ({"horizons": 3, "known": [0, 0]}, "'known'.*none twice"),
        ({"horizons": 3, "known": [-1]}, "'known'"),
        ({"horizons": 3, "known": [True]}, "'known'"),
        ({"quantiles": 0.5}, "'quantiles' of AutoBank .* two levels or more"),
        ({"quantiles": (0.5, 0.5)}, "'quantiles' .* none twice"),
        ({"quantiles": (0.0, 0.5)}, "'quantiles' .*> 0 and < 1"),
        ({"quantiles": (0.5, "high")}, "'quantiles'"),
        ({"quantiles": (0.1, 0.9), "task": "classification"}, "left out for classification"),
        ({"seasons": 1}, "'seasons' .* >= 2 and <= 20000; got 1. .* period, such as 24"),
        ({"seasons": 24.0}, r"'seasons' .* got 24\.0\."),
        ({"seasons": 20_001}, "<= 20000; got 20001."),
        ({"seasons": (24, 24)}, "'seasons' .* none twice"),
        ({"seasons": (2, 3, 4, 5, 6)}, "at most 4 periods"),
        ({"seasons": ()}, r"'seasons' .* got \(\)"),
        ({"seasons": "daily"}, "got 'daily'"),
        ({"missing": True}, "'missing' of AutoBank must hold finite numbers or texts; got True"),
        ({"missing": [None]}, "'missing' .* got None"),
        ({"missing": float("nan")}, "'missing' .* got nan"),
        ({"missing": ""}, "'missing' .* got ''"),
        ({"missing": b"NA"}, "'missing' .* got b'NA'"),
        ({"missing": []}, "'missing' .* at least one"),
        ({"missing": [-1, -1.0]}, "'missing' .* none twice"),
    ],
    ids=repr,
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
    with pytest.raises(InvalidArgument, match="the label 'c', which is not one of the 2 classes"):
        named.learn_one(X[0], "c")


TEXT = "takes text as categories and datetimes as times if columns have names"


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (np.empty((0, 3)), [], "'X' must have at least one row and one column; got (0, 3)"),
        ([[1.0, None]], [1.0], "got None at index (0, 1). Give float('nan') where a value is"),
        ([[1.0, 2.0]], [None], "got nan at index 0. A missing target cannot be learned"),
        (sparse.csr_matrix(np.eye(2)), [1.0, 2.0], "a sparse csr_matrix'. Give X.toarray()"),
        (np.array([[1.0, "a"]], dtype=object), [1.0], f"'a' at index (0, 1). kb.AutoBank {TEXT}"),
        ([["a", "b"]], [1.0], f"got 'a' at index (0, 0). kb.AutoBank {TEXT}"),
        (np.array([["2024-01-01"]], dtype="datetime64[s]"), [1.0], TEXT),
        ([[1.0, 2.0]], ["hot"], "got 'hot' at index 0. Use kb.AutoBank(\"classification\")"),
        ([{"a": 1.0}], [1.0], "Make a table of them: pandas.DataFrame(X)"),
        ({"a": [1.0, 2.0]}, [1.0, 2.0], "Make a table of it, such as pandas.DataFrame(X)"),
    ],
)
def test_messages_say_what_is_wrong_and_what_to_do(X, y, words):
    bank = kb.AutoBank()
    with pytest.raises(InvalidArgument, match=re.escape(words)):
        bank.run(X, y)
    assert bank.samples == 0


def test_labels_one_and_one_point_zero_are_one_class():
    bank = kb.AutoBank("classification", **SMALL)
    bank.run(np.arange(8.0), [1, 1.0, 2, np.float32(2), np.int8(1), 2.0, 1, 2])
    assert bank.classes == (1, 2)
    named = kb.AutoBank("classification", classes=[0, 1], **SMALL)
    named.learn_one([1.0], 1.0)
    assert named.classes == (0, 1)
