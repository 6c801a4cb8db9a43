"""Figures of a run: recent errors, scores of labels, timings, bad rows."""

import math

import numpy as np
import pytest

from kernelbank.cli import console
from kernelbank.errors import FileRefused
from kernelbank.io.sources import RejectedRow
from kernelbank.run import session
from kernelbank.run.history import EXTREMES, FIELDS, TOTALS, History
from kernelbank.run.runner import SHOWN, RejectedRows, RunTimes
from kernelbank.run.scores import LEAST_PROBABILITY, STEPS, LabelScores, log_loss
from kernelbank.run.status import RunStatus, recent_errors
from support.run_command import make_rows, one_slot_model, read_csv, same_bits, succeed, write_csv

COUNT = 200


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """The status of a run at its end, its folder, and its predictions."""
    found = {}

    def keep(self, status, reason, places):
        found["status"] = status

    monkeypatch.setattr(console.Console, "summary", keep)
    monkeypatch.setattr(session, "make_model", one_slot_model)
    X, y = make_rows(COUNT)
    source = write_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([X, y]))
    out, state = tmp_path / "out.csv", tmp_path / "state"
    succeed(source, "--target", "y", "--state", state, "--predictions", out)
    return found["status"], state, read_csv(out)[1]


def test_status_of_a_run_and_of_its_checkpoint_agree(finished):
    running, state, _ = finished
    saved = RunStatus.of_state(state)
    times = {"seconds", "rows_per_second"}
    mine, other = ({k: v for k, v in s.to_json().items() if k not in times}
                   for s in (running, saved))  # fmt: skip
    assert mine == other
    assert (running.phase, saved.phase) == ("ended", "saved")
    assert running.predictions == saved.predictions
    assert running.features == saved.features == ["a", "b"]


def test_status_errors_are_rmse_over_scored_predictions(finished):
    status, _, rows = finished
    prediction, lower, upper, target = np.array(
        [[cell or "nan" for cell in row[1:]] for row in rows], dtype=float
    ).T
    assert status.scored == COUNT - 1  # the first row has no baseline
    error, baseline = (prediction - target)[1:], np.diff(target)
    assert status.scores.error == pytest.approx(math.sqrt(np.mean(error**2)))
    assert status.scores.baseline_error == pytest.approx(math.sqrt(np.mean(baseline**2)))
    inside = (lower <= target) & (target <= upper)
    assert status.scores.coverage == pytest.approx(np.mean(inside[1:]))
    assert status.scores.best_slot == status.bank.names[0]
    assert [name for name, _ in status.largest_weights] == list(status.bank.names)


# --- The period of the first sentence, and its errors ---


DRAW = np.random.default_rng(0)


def history_of(count, step=None, labels=False):
    """Rows with errors of random size; `step` seconds between them."""
    history = History(1)
    error, baseline = DRAW.exponential(size=(2, count))
    if labels:
        error, baseline = np.floor(error), np.floor(baseline)
    totals = np.zeros((count, len(TOTALS)))
    totals[:, :2] = 1.0
    losses = [(error > 0) * 1.0, (baseline > 0) * 1.0] if labels else [error**2, baseline**2]
    values = {"loss": losses[0], "baseline_loss": losses[1]}
    if not labels:
        values |= {"absolute_error": error, "baseline_absolute_error": baseline}
    for name, value in values.items():
        totals[:, TOTALS.index(name)] = value
    extremes = np.zeros((count, len(EXTREMES)))
    times = np.full(count, np.nan) if step is None else 1e9 + step * np.arange(count)
    extremes[:, EXTREMES.index("time_high")] = extremes[:, EXTREMES.index("time_low")] = times
    history.add(totals, extremes, np.zeros((count, 1)), np.zeros((count, 1)))
    recent = np.zeros((count, len(FIELDS)))
    recent[:, 0], recent[:, 2], recent[:, 5] = times, error, baseline
    history.recent.add_last(recent)
    return history, values


@pytest.mark.parametrize(
    ("count", "step", "period", "rows"),
    [
        (3000, 3600, "24 hours", 24),
        (3000, 60, "24 hours", 1440),
        (300, 86400, "30 days", 30),
        (100_000, 300, "7 days", 2016),  # a point is nearly a day
        (3000, 1, None, 300),  # shorter than an hour
        (3000, None, None, 300),
        (100, None, None, 100),
    ],
)
def test_period_is_natural_and_errors_are_those_of_its_rows(count, step, period, rows):
    history, values = history_of(count, step)
    found = recent_errors(history)
    assert found["period"] == period
    assert abs(found["rows"] - rows) <= history.stride
    for name, all_values in values.items():
        assert found[name] == pytest.approx(all_values[-found["rows"] :].mean()), name


def test_labels_are_right_or_wrong():
    history, values = history_of(500, 3600, labels=True)
    found = recent_errors(history)
    assert (found["period"], found["rows"]) == ("24 hours", 24)
    assert found["loss"] == pytest.approx(values["loss"][-24:].mean())


def test_few_rows_are_not_judged():
    assert recent_errors(history_of(19)[0]) is None
    assert recent_errors(history_of(20)[0])["whole"]


def test_times_that_go_back_are_not_used():
    history, _ = history_of(300, -3600)
    assert recent_errors(history)["period"] is None


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


def test_rows_before_the_first_with_a_label_do_not_count_for_its_area():
    scores = LabelScores()
    scores.add(np.array([0, 0, 1]), np.array([0, 0, 0]), np.ones((3, 1)))  # 1 is new
    scores.add(np.array([-2, 1]), np.array([0, 1]), np.array([[0.7, 0.3], [0.2, 0.8]]))
    assert scores.odds[1, 0].sum() == 1  # the row of a label that has no number yet
    assert scores.odds[1, 1].sum() == 2
    assert scores.confusion[0, 1] == 1
    assert scores.areas()[1] == 0.5


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


# --- the times of all processes of a run ---


@pytest.mark.parametrize(
    "forged",
    [
        {"starts": 0},
        {"starts": True},
        {"starts": 1.5},
        {"starts": 2**53},
        {"started": "yesterday"},
        {"started": "<script>"},
        {"seconds": -1.0},
        {"seconds": float("nan")},
        {"seconds": float("inf")},
        {"seconds": "much"},
    ],
)
def test_forged_times_are_refused(forged):
    with pytest.raises((FileRefused, ValueError)):
        RunTimes().restore({**RunTimes().to_json(), **forged})


# --- Rejected rows: counted, and the first and last kept ---


def taken(count):
    rejected = RejectedRows()
    for n in range(count):
        one = RejectedRow(n, f"line {n}", "a", str(n), "is bad")
        words = rejected.add(one, 101 + n, "Repair it.")
        assert words == {
            "row": 101 + n,
            "where": f"line {n}",
            "column": "a",
            "value": str(n),
            "reason": "is bad",
            "advice": "Repair it.",
        }
    return rejected


@pytest.mark.parametrize("count", [0, 1, SHOWN, SHOWN + 1, 2 * SHOWN, 5 * SHOWN])
def test_rejected_rows_keeps_the_first_and_the_last(count):
    rejected = taken(count)
    assert rejected.count == count
    rows = [words["row"] - 101 for words in (*rejected.first, *rejected.last)]
    assert rows == [n for n in range(count) if n < SHOWN or n >= count - SHOWN]
    other = RejectedRows()
    other.restore(rejected.to_json())
    assert other.to_json() == rejected.to_json()


@pytest.mark.parametrize(
    "forged",
    [
        {"count": 5},
        {"count": True},
        {"count": 31.0},
        {"first": []},
        {"last": []},
        {"last": [{"row": 1}] * 11},
        {"last": [{"row": 1, "where": "", "column": "", "value": "", "reason": "", "x": ""}] * 11},
    ],
)
def test_forged_rejected_rows_are_refused(forged):
    plain = taken(31).to_json()
    RejectedRows().restore(plain)
    with pytest.raises(FileRefused):
        RejectedRows().restore({**plain, **forged})
