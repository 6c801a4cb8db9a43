"""`make classes`: the scores, and AutoBank without fitted curves."""

import math

import many_classes
import numpy as np
import pytest
from many_classes import LabelledRows

import kernelbank as kb


@pytest.fixture(autouse=True)
def _all_rows_are_scored(monkeypatch):
    monkeypatch.setattr(many_classes, "SKIP", 0)


def test_scores_are_those_computed_by_hand():
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.68, 0.22], [0.0, 0.5, 0.5], [0.95, 0.05, 0.0]])
    found = many_classes.score(p, np.array([0, 2, 1, 2]), 8.0)
    assert found.error == 0.5
    # The last row gave its class 0, which counts as a millionth.
    losses = [-math.log(0.7), -math.log(0.22), -math.log(0.5), -math.log(1e-6)]
    assert found.log_loss == pytest.approx(np.mean(losses))
    # 0.7 and 0.68 are in one bin of width 1/15; one of its two predictions is right.
    distances = [abs(0.7 + 0.68 - 1), abs(0.5 - 1), abs(0.95 - 0)]
    assert found.calibration_error == pytest.approx(sum(distances) / 4)
    assert found.seconds == 2.0


def test_first_rows_are_not_scored(monkeypatch):
    monkeypatch.setattr(many_classes, "SKIP", 2)
    p = np.eye(3)[[0, 0, 0, 1]]
    found = many_classes.score(p, np.array([1, 1, 0, 1]), 1.0)
    assert (found.error, found.calibration_error) == (0.0, 0.0)
    assert found.log_loss == 0.0


def small_stream():
    draw = np.random.default_rng(1)
    X = draw.normal(size=(200, 2))
    return LabelledRows("small", X, np.digitize(X[:, 0], [-0.5, 0.5]))


def test_columns_of_a_bank_are_put_in_the_order_of_the_classes(monkeypatch):
    """Classes are found in the order of the stream; the scores need that of their numbers."""
    monkeypatch.setattr(many_classes, "SKIP", 50)
    stream = small_stream()
    bank = kb.AutoBank("classification")
    trace = bank.run(stream.X, stream.labels)
    assert list(trace.classes) != [0, 1, 2]
    found = many_classes.run_auto_bank(stream)
    assert found.error == np.mean(trace.predictions[50:] != stream.labels[50:])
