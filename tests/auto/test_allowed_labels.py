"""Labels that a bank refuses: nothing changes, and more may be allowed without a loss."""

import re
import warnings

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument, LargeModel

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


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"max_classes": 1}, "'max_classes' of AutoBank must be a whole number >= 2"),
        ({"max_classes": 9, "classes": [1, 2]}, "'max_classes' of AutoBank must be left out"),
        (
            {"max_classes": 9, "task": "regression"},
            "'max_classes' of AutoBank must be left out for",
        ),
    ],
)
def test_wrong_max_classes_is_refused(given, words):
    with pytest.raises(InvalidArgument, match=words):
        kb.AutoBank(**{"task": "classification", **given})


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
