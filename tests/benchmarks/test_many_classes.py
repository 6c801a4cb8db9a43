"""`make classes`: the scores, files with labels, kept rivals, and AutoBank without fitted curves."""

import json
import math

import many_classes
import numpy as np
import pytest
from many_classes import LabelledRows, Scores

import kernelbank as kb
from kernelbank.auto.calibration import calibration, softmax
from support.auto_streams import SMALL


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


def test_calibrated_probabilities_have_a_small_calibration_error():
    draw = np.random.default_rng(0)
    p = draw.dirichlet([0.5] * 4, size=20_000)
    labels = (draw.random(len(p))[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(max=3)
    assert many_classes.expected_calibration_error(p, labels) < 0.02
    sharper = p**2 / (p**2).sum(axis=1, keepdims=True)
    assert many_classes.expected_calibration_error(sharper, labels) > 0.08


@pytest.mark.parametrize(
    "text",
    [
        "b,1,2\na,3,4\n\nb,5,6\n",  # as in the UCI repository
        "letter,u,v\nb,1,2\na,3,4\nb,5,6\n",
        "u,y,v\n1,b,2\n3,a,4\n5,b,6\n",
    ],
    ids=["no header", "label first", "label named y"],
)
def test_file_with_labels_is_read(text, tmp_path):
    (tmp_path / "some.csv").write_text(text)
    stream = many_classes.read_labelled(tmp_path / "some.csv")
    assert stream.name == "some"
    assert stream.X.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert stream.labels.tolist() == [1, 0, 1]
    assert stream.classes == 2


def test_two_classes_are_the_halves_of_all():
    labels = np.arange(5)
    assert LabelledRows("", np.zeros((5, 1)), labels).halved().labels.tolist() == [0, 0, 0, 1, 1]


class CountingModel:
    """Gives every class the share of its rows."""

    runs = 0

    def __init__(self):
        CountingModel.runs += 1
        self._counts = {}

    def predict_proba_one(self, x):
        total = sum(self._counts.values())
        return {label: count / total for label, count in self._counts.items()}

    def learn_one(self, x, label):
        self._counts[label] = self._counts.get(label, 0) + 1


def test_model_runs_row_by_row_and_its_scores_are_kept(tmp_path):
    CountingModel.runs = 0
    stream = LabelledRows("counted", np.zeros((4, 2)), np.array([1, 1, 0, 1]))
    path = tmp_path / "rivals.json"
    found = many_classes.RivalScores(path).get("counts", CountingModel, stream)
    assert found.error == 0.5  # the first row is even, and the lower class is predicted
    losses = [math.log(2), 0.0, -math.log(1e-6), -math.log(2 / 3)]
    assert found.log_loss == pytest.approx(np.mean(losses))
    again = many_classes.RivalScores(path)
    assert again.get("counts", CountingModel, stream) == found
    assert CountingModel.runs == 1
    other = LabelledRows("counted", np.ones((4, 2)), stream.labels)
    again.get("counts", CountingModel, other)
    assert CountingModel.runs == 2
    assert len(json.loads(path.read_text())) == 2


def small_stream():
    draw = np.random.default_rng(1)
    X = draw.normal(size=(200, 2))
    return LabelledRows("small", X, np.digitize(X[:, 0], [-0.5, 0.5]))


def test_curves_of_an_unfitted_bank_stay_at_their_start():
    stream = small_stream()
    kept = calibration.probability_and_update_rows, calibration.update_platt_rows
    fitted, start = (kb.AutoBank("classification", **SMALL) for _ in range(2))
    with many_classes.unfitted():
        start.run(stream.X[:150], stream.labels[:150])
        start.learn_one(stream.X[150], int(stream.labels[150]))
    assert (calibration.probability_and_update_rows, calibration.update_platt_rows) == kept
    fitted.run(stream.X, stream.labels)
    assert start._model.common_slopes.tolist() == list(softmax.COMMON_START)
    assert fitted._model.common_slopes.tolist() != list(softmax.COMMON_START)


def test_columns_of_a_bank_are_put_in_the_order_of_the_classes(monkeypatch):
    """Classes are found in the order of the stream; the scores need that of their numbers."""
    monkeypatch.setattr(many_classes, "SKIP", 50)
    stream = small_stream()
    bank = kb.AutoBank("classification")
    trace = bank.run(stream.X, stream.labels)
    assert list(trace.classes) != [0, 1, 2]
    found = many_classes.run_auto_bank(stream)
    assert found.error == np.mean(trace.predictions[50:] != stream.labels[50:])


def test_line_of_the_table_has_units():
    line = many_classes.table_line("A", Scores(0.05, 0.25, 0.01, 0.0012))
    assert line == "| A | 5.00 % | 0.2500 | 1.00 % | 1,200 us |"


def test_calibration_alone_is_timed():
    assert many_classes.calibration_seconds(3, rows=20) > 0.0
