"""Scores of labels against their definitions, and however the rows came."""

import math

import numpy as np
import pytest

from kernelbank.errors import FileRefused
from kernelbank.run.scores import LEAST_PROBABILITY, STEPS, LabelScores, log_loss
from support.run_command import same_bits

DRAW = np.random.default_rng(0)
COUNT, CLASSES = 400, 3
LABELS = DRAW.integers(CLASSES, size=COUNT)
SCORES = DRAW.normal(size=(COUNT, CLASSES)) + 1.5 * np.eye(CLASSES)[LABELS]
PROBABILITIES = np.exp(SCORES) / np.exp(SCORES).sum(axis=1, keepdims=True)
PREDICTED = PROBABILITIES.argmax(axis=1)


def filled(cuts=()):
    scores = LabelScores()
    for some in np.split(np.arange(COUNT), cuts):
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


def test_area_is_the_share_of_pairs_in_the_right_order():
    """Up to pairs within one step, a quarter of log odds, which count half."""
    areas = filled().areas()
    for k in range(CLASSES):
        p = PROBABILITIES[:, k]
        step = np.floor(4 * np.log(p / (1 - p)))
        own, others = step[k == LABELS][:, None], step[k != LABELS][None]
        assert areas[k] == pytest.approx(np.mean((own > others) + 0.5 * (own == others)))
        exact = np.mean(p[k == LABELS][:, None] > p[k != LABELS][None])
        assert abs(areas[k] - exact) < 0.01
    assert filled().area == pytest.approx(areas.mean())


def test_area_of_perfect_and_of_useless_probabilities():
    labels = np.arange(100) % 2
    perfect, useless = LabelScores(), LabelScores()
    sure = np.where(labels[:, None] == [0, 1], 0.9, 0.1)
    perfect.add(labels, labels, sure)
    useless.add(labels, np.zeros(100, dtype=int), np.full((100, 2), 0.5))
    assert perfect.area == 1.0
    assert useless.area == 0.5
    assert math.isnan(LabelScores().area)


def test_rows_before_the_first_with_a_label_do_not_count_for_its_area():
    scores = LabelScores()
    scores.add(np.array([0, 0, 1]), np.array([0, 0, 0]), np.ones((3, 1)))  # 1 is new
    scores.add(np.array([-2, 1]), np.array([0, 1]), np.array([[0.7, 0.3], [0.2, 0.8]]))
    assert scores.odds[1, 0].sum() == 1  # the row of a label that has no number yet
    assert scores.odds[1, 1].sum() == 2
    assert scores.confusion[0, 1] == 1
    assert scores.areas()[1] == 0.5


@pytest.mark.parametrize("cuts", [[1], [7, 8, 200], list(range(1, COUNT))])
def test_scores_do_not_depend_on_blocks(cuts):
    whole, cut = filled().arrays(), filled(cuts).arrays()
    assert all(same_bits(whole[name], cut[name]) for name in whole)


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
