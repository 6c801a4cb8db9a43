"""The regret of a run in its report: the sums of the trace, in segments that follow from the rows."""

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.run.history import EXTREMES, POINTS, TOTALS, History
from kernelbank.run.report.data import LEAST_ROWS, SEGMENTS, ReportData, run_regret
from kernelbank.run.status import RunStatus
from support import browser
from support.naive import regret as naive
from support.run_command import make_rows, succeed, write_csv
from support.sample_reports import sample_report

chromium, show = browser.chromium, browser.show
DRAW = np.random.default_rng(0)


def history_of(losses, alone):
    history = History(alone.shape[1])
    totals = np.zeros((len(losses), len(TOTALS)))
    totals[:, 0] = totals[:, 1] = 1.0
    totals[:, 2] = losses
    history.add(totals, np.zeros((len(losses), len(EXTREMES))), np.zeros_like(alone), alone)
    return history


@pytest.mark.parametrize("rows", [LEAST_ROWS, 300, POINTS, POINTS + 1, 5000])
def test_regret_is_that_of_the_rows_in_segments(rows):
    losses, alone = DRAW.uniform(0, 1, rows), DRAW.uniform(0, 1.2, (rows, 3))
    alone[rows // 2 :, 1] *= 0.5
    found = run_regret(history_of(losses, alone))
    assert found["best_slot"] == pytest.approx(naive.best_slot(losses, alone))
    length = found["segment"]
    assert SEGMENTS <= -(-rows // length) < 2 * SEGMENTS + 1
    wanted = naive.best_slot_per_interval(losses, alone, length)
    assert found["best_slot_per_segment"] == pytest.approx(wanted)
    assert wanted > found["best_slot"]


def test_short_runs_and_unknown_losses_have_none():
    losses, alone = DRAW.uniform(0, 1, 300), DRAW.uniform(0, 1, (300, 3))
    assert run_regret(history_of(losses[: LEAST_ROWS - 1], alone[: LEAST_ROWS - 1])) is None
    bad = alone.copy()
    bad[7, 0] = np.nan
    bad[8, 1] = np.inf
    found = run_regret(history_of(losses, bad))
    assert found["best_slot"] == pytest.approx(naive.best_slot(losses, alone[:, 2:]))
    bad[9, 2] = np.inf
    assert run_regret(history_of(losses, bad)) is None
    losses[0] = np.nan
    assert run_regret(history_of(losses, alone)) is None


def test_regret_in_the_report_of_a_run_is_that_of_the_model(tmp_path):
    X, y = make_rows(400)
    source = write_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([X, y]))
    succeed(source, "--target", "y", "--state", tmp_path / "state")
    status = RunStatus.of_state(tmp_path / "state")
    found = run_regret(status.history)
    trace = kb.AutoBank(size="small").run(X, y, record="all")
    own = np.nan_to_num((trace.predictions - y) ** 2)
    alone = (trace.slot_predictions - y[:, None]) ** 2
    own[0], alone[0] = 0.0, 0.0  # predicted before any target was known: not scored
    assert found["best_slot"] == pytest.approx(naive.best_slot(own, alone))
    assert found["best_slot_per_segment"] == pytest.approx(
        naive.best_slot_per_interval(own, alone, found["segment"])
    )
    assert f'"segment":{found["segment"]}' in ReportData().parts(status)["status"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "regret", "text"),
    [
        (
            "regression",
            {"segment": 128, "best_slot": -12.345, "best_slot_per_segment": 6.5},
            "Regret: the model's sum of squared errors is 12.35 below that of the best slot of the "
            "whole run, and 6.5 above that of the best slot of each segment of 128 rows, all chosen "
            "in hindsight.",
        ),
        (
            "classification",
            {"segment": 1024, "best_slot": 3.0, "best_slot_per_segment": 70.0},
            "Regret: the model's sum of wrong labels is 3 above that of the best slot of the whole "
            "run, and 70 above that of the best slot of each segment of 1,024 rows, all chosen in "
            "hindsight.",
        ),
        ("regression", None, ""),
    ],
)
def test_page_tells_the_regret(show, task, regret, text):
    report = sample_report(points=20, task=task)
    report["status"]["regret"] = regret
    shown = show(report)
    assert shown.page.locator("#regret").text_content() == text
