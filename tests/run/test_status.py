"""Figures of a run: scores of labels, timings, bad rows."""

import math

import numpy as np
import pytest

from kernelbank.errors import FileRefused
from kernelbank.io.sources import RejectedRow
from kernelbank.run.runner import SHOWN, RejectedRows
from kernelbank.run.scores import LEAST_PROBABILITY, STEPS, LabelScores, log_loss
from support.run_command import same_bits

DRAW = np.random.default_rng(0)

# --- Scores of labels against their definitions, and however the rows came ---


LABELLED, CLASSES = 400, 3
LABELS = DRAW.integers(CLASSES, size=LABELLED)
SCORES = DRAW.normal(size=(LABELLED, CLASSES)) + 1.5 * np.eye(CLASSES)[LABELS]
PROBABILITIES = np.exp(SCORES) / np.exp(SCORES).sum(axis=1, keepdims=True)
PREDICTED = PROBABILITIES.argmax(axis=1)


def filled(cuts=()):
    scores = LabelScores()
    for some in np.split(np.arange(LABELLED), cuts):
        scores.add(LABELS[some], PREDICTED[some], PROBABILITIES[some])
    return scores


def test_confusion_counts_labels_and_predicted_ones():
    confusion = filled().confusion
    for a in range(CLASSES):
        for b in range(CLASSES):
            assert confusion[a + 1, b + 1] == np.sum((a == LABELS) & (b == PREDICTED))
    assert not confusion[0].any()


def test_reliability_has_mean_probability_and_correct_share_of_each_step():
    rows, probability, correct = filled().reliability
    highest = PROBABILITIES.max(axis=1)
    for step in range(STEPS):
        inside = (highest >= step / STEPS) & (highest < (step + 1) / STEPS)
        assert rows[step] == inside.sum()
        assert probability[step] == pytest.approx(highest[inside].sum())
        assert correct[step] == np.sum((LABELS == PREDICTED)[inside])


def test_label_that_has_no_number_yet_is_counted_as_unknown():
    scores = LabelScores()
    scores.add(np.array([0, 0, 1]), np.array([0, 0, 0]), np.ones((3, 1)))  # 1 is new
    scores.add(np.array([-2, 1]), np.array([0, 1]), np.array([[0.7, 0.3], [0.2, 0.8]]))
    assert scores.confusion.tolist() == [[0, 1, 0], [0, 2, 0], [0, 1, 1]]


def test_restored_scores_are_the_same_and_forged_ones_are_refused():
    state = filled().arrays()
    again = LabelScores.restore(state).arrays()
    assert all(same_bits(state[name], again[name]) for name in state)
    for name in state:
        for forged in (state[name][:-1], state[name] - 1e9, state[name] * np.nan):
            with pytest.raises(FileRefused):
                LabelScores.restore({**state, name: forged})


def test_log_loss_of_an_unknown_label_is_bounded():
    assert log_loss(0.25) == pytest.approx(math.log(4))
    assert log_loss(0.0) == -math.log(LEAST_PROBABILITY)


# --- Rejected rows: counted, and the first kept ---


def taken(count):
    rejected = RejectedRows()
    for n in range(count):
        rejected.add(RejectedRow(n, f"line {n}", "a", str(n), "is bad"), 101 + n, "Repair it.")
    return rejected


@pytest.mark.parametrize("count", [0, 1, SHOWN, SHOWN + 1, 5 * SHOWN])
def test_rejected_rows_are_counted_and_the_first_kept(count):
    rejected = taken(count)
    assert rejected.count == count
    assert [record["row"] for record in rejected.first] == [
        101 + n for n in range(min(count, SHOWN))
    ]
    other = RejectedRows()
    other.restore(rejected.to_json())
    assert other.to_json() == rejected.to_json()


def test_forged_rejected_rows_are_refused():
    plain = taken(31).to_json()
    for forged in ({"count": 31.0}, {"first": []}, {"first": [{"row": 1}] * SHOWN}):
        with pytest.raises(FileRefused):
            RejectedRows().restore({**plain, **forged})
