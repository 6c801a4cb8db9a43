"""Labels of classes: which values are labels, which are refused, their way back."""

import math
import re
import warnings
from decimal import Decimal

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.auto.targets import MAX_CLASSES, ClassLabels, nearest_label, plain
from kernelbank.errors import InvalidArgument, LargeModel


@pytest.mark.parametrize(
    ("given_as", "value"),
    [
        (True, True),
        (np.bool_(False), False),
        (3, 3),
        (np.int8(-3), -3),
        (np.uint64(2**63), 2**63),
        (2.0, 2),
        (-0.0, 0),
        (np.float32(0.5), 0.5),
        (1e300, 1e300),
        ("yes", "yes"),
        (np.str_("no"), "no"),
        ("", ""),
        (np.array([4]), 4),
        (np.array(2.5), 2.5),
    ],
)
def test_plain_labels(given_as, value):
    actual = plain(given_as, "y")
    assert actual == value
    assert type(actual) is type(value)


@pytest.mark.parametrize("label", [None, math.nan, np.float64("nan"), np.array([np.nan])])
def test_missing_labels_say_what_to_do(label):
    with pytest.raises(InvalidArgument, match=r"'y' has a missing label.*predict_one"):
        plain(label, "y")


@pytest.mark.parametrize(
    "label",
    [
        *(math.inf, -np.inf, b"yes", 1j, [1], (1,), {}, Decimal(1), object),
        *(np.datetime64("2020-01-01"), np.array([1, 2]), np.array([])),
    ],
    ids=repr,
)
def test_what_is_no_label(label):
    with pytest.raises(InvalidArgument, match="must hold labels"):
        plain(label, "y")


def test_order_is_as_named_and_then_as_seen():
    labels = ClassLabels(["no", "yes"])
    labels.named = False
    assert labels.check(["perhaps", "yes", "no", "never", "perhaps"], 5)
    assert labels.known == ["no", "yes"]  # looking adds nothing
    labels.add(["perhaps", "yes", "never", "perhaps"])
    assert labels.known == ["no", "yes", "perhaps", "never"]
    assert [labels.number(label) for label in labels.known] == [0, 1, 2, 3]
    assert len(labels) == 4


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        ("yes", "be a list of labels"),
        (3, "be a list of labels"),
        ([], "at least two labels"),
        (["one"], "at least two labels"),
        ([1, 2, 1.0], "be different labels"),
        ([1, True], "be different labels"),
        ([1, None], "missing label"),
        ([1, [2]], "must hold labels"),
    ],
)
def test_classes_that_are_refused(classes, words):
    with pytest.raises(InvalidArgument, match=words):
        ClassLabels(classes)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ("ab", "be a list of labels"),
        (5, "be a list of labels"),
        ([1], r"as many rows as X \(2\)"),
        ([1, 2, 3], r"as many rows as X \(2\)"),
        (np.ones((2, 2)), r"shape \(n,\)"),
        (np.array(1), r"shape \(n,\)"),
        ([1, None], "missing label"),
        (np.array([1.0, np.nan]), "missing label"),
        ([1, [1]], "must hold labels"),
    ],
)
def test_targets_that_are_refused(y, words):
    labels = ClassLabels(None)
    with pytest.raises(InvalidArgument, match=words):
        labels.check(y, 2)
    assert labels.known == []


def test_too_many_classes_are_refused():
    labels = ClassLabels(None)
    assert len(labels.check(list(range(MAX_CLASSES)), MAX_CLASSES)) == MAX_CLASSES
    rule = f"at most {MAX_CLASSES} different labels; got 100 in row 100. .*max_classes.*add_classes"
    with pytest.raises(InvalidArgument, match=rule):
        labels.check(list(range(MAX_CLASSES + 1)), MAX_CLASSES + 1)
    named = ClassLabels(range(150))  # as many as one likes, if they are named
    assert named.check([149], 1) == [149]
    with pytest.raises(InvalidArgument, match=r"label 150 in row 0, .* not one of the 150 classes"):
        named.check([150], 1)


def test_refused_labels_are_found_in_their_order_and_nothing_changes():
    labels = ClassLabels(None, 3)
    labels.add(["a"])
    actual = labels.refused(["a", "b", "c", "b", "d", "c", "e", "d"])
    assert [(one.row, one.label) for one in actual] == [(4, "d"), (6, "e"), (7, "d")]
    assert actual[0].reason == "is one label more than 3"
    # A label that waits to be learned counts, once.
    assert [one.label for one in labels.refused(["b", "c", "d"], waiting=["d", "a", "d"])] == ["c"]
    assert labels.known == ["a"]


@pytest.mark.parametrize(
    ("label", "meant"),
    [("catt", "cat"), ("DOG", "dog"), (" dog ", "dog"), ("zebra", None), (1, None), ("", None)],
)
def test_label_that_is_likely_misspelled_names_the_one_that_was_meant(label, meant):
    known = [1, "cat", "dog"]
    assert nearest_label(label, known) == meant
    if label not in known:
        with pytest.raises(
            InvalidArgument, match="Did you mean" if meant else "Correct it, or"
        ) as e:
            ClassLabels(known).check(label, None)
        assert meant is None or f"mean {meant!r}?" in str(e.value)


@pytest.mark.parametrize(
    ("known", "kind"),
    [
        ([True, False], np.bool_),
        ([3, -1], np.int64),
        ([1, 2.5], np.float64),
        (["a", "long"], np.str_),
        (["a", 1], np.object_),
        ([True, 2], np.object_),
        ([2**63 + 1, -1], np.object_),
        ([2**53 + 1, 0.5], np.object_),
        ([2**70, 1], np.object_),
    ],
)
def test_labels_come_back_as_they_were(known, kind):
    labels = ClassLabels(known)
    actual = labels.array(np.array([1, 0, 1]))
    assert np.issubdtype(actual.dtype, kind)
    assert actual.tolist() == [known[1], known[0], known[1]]


# --- labels that a bank refuses -------------------------------------------------------------------


COUNT = 130
LINEAR = kb.Slot(kb.kernels.Linear(), kb.learners.LinearRLS())
X = np.random.default_rng(0).normal(size=(COUNT, 2))


def test_bank_that_refuses_a_label_has_changed_nothing(tmp_path):
    bank = kb.AutoBank("classification", size="small", max_classes=3)
    bank.run(X[:40], np.arange(40) % 3)
    before = tmp_path / "before.kb"
    bank.save(before)
    with pytest.raises(InvalidArgument, match=r"at most 3 different labels; got 3 in row 3\."):
        bank.run(X[:10], np.arange(10) % 5)
    with pytest.raises(InvalidArgument, match=r"add them: bank.add_classes\(\[7\]\)"):
        bank.learn_one(X[0], 7)
    bank.save(tmp_path / "after.kb")
    assert before.read_bytes() == (tmp_path / "after.kb").read_bytes()
    again = kb.load(before)
    with pytest.raises(InvalidArgument, match="at most 3"):
        again.learn_one(X[0], 7)
    again.add_classes([7])
    again.learn_one(X[0], 7)
    assert again.classes == (0, 1, 2, 7)
    assert len(again.predict_proba_one(X[0])) == 4


def test_bank_whose_classes_are_named_takes_more_when_they_are_added(tmp_path):
    bank = kb.AutoBank("classification", size="small", classes=["no", "yes"])
    bank.run(X[:40], ["no", "yes"] * 20)
    bank.save(tmp_path / "b.kb")
    again = kb.load(tmp_path / "b.kb")
    for one in (bank, again):
        with pytest.raises(InvalidArgument, match=r"Did you mean 'yes'\?"):
            one.learn_one(X[0], "Yes")
        one.add_classes(["perhaps", "no"])
        one.run(X[:40], ["no", "yes", "perhaps", "yes"] * 10)
        assert one.classes == ("no", "yes", "perhaps")
        with pytest.raises(InvalidArgument, match="not one of the 3 classes"):
            one.learn_one(X[0], "never")
    assert np.array_equal(bank.predict_proba(X), again.predict_proba(X))


def test_class_that_never_came_has_a_small_probability():
    bank = kb.AutoBank("classification", size="small", classes=["a", "b", "never"])
    assert bank.predict_proba_one(X[0]) == pytest.approx(dict.fromkeys(["a", "b", "never"], 1 / 3))
    bank.run(np.tile(X, (4, 1)), ["a", "b"] * (2 * COUNT))
    assert 0 < bank.predict_proba_one(X[0])["never"] < 0.01


def test_large_model_warns_once(monkeypatch):
    monkeypatch.setattr("kernelbank.auto.model.LARGE_MODEL", 1_000_000)
    bank = kb.AutoBank("classification", size="small")
    labels = np.arange(COUNT) % 2
    with pytest.warns(LargeModel, match=r"\d+ MB for 2 inputs, as a file") as told:
        bank.run(X, labels)
    assert len(told) == 1
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bank.run(X, labels + 1)
        kb.AutoBank("classification", size="small", slots=[LINEAR]).run(X, labels)


def test_warning_of_a_large_model_has_the_size_of_its_file(monkeypatch, tmp_path):
    monkeypatch.setattr("kernelbank.auto.model.LARGE_MODEL", 300_000)
    bank = kb.AutoBank("classification", size="small", classes=range(12))
    with pytest.warns(LargeModel, match="MB for 12 classes and 2 inputs") as told:
        bank.run(X, np.arange(COUNT) // 10 % 12)
    size = re.search(r"([\d,]+) MB for", str(told[0].message))
    bank.save(tmp_path / "b.kb")
    saved = (tmp_path / "b.kb").stat().st_size / 1e6
    assert int(size[1]) == pytest.approx(saved, rel=0.1, abs=0.5)
