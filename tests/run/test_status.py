"""The status of a run: the same from the run itself and from its checkpoint."""

import math

import numpy as np
import pytest

from kernelbank.cli import console
from kernelbank.run import session
from kernelbank.run.status import RunStatus
from support.run_command import make_rows, one_slot_model, read_csv, succeed, write_csv

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
    assert status.error == pytest.approx(math.sqrt(np.mean(error**2)))
    assert status.baseline_error == pytest.approx(math.sqrt(np.mean(baseline**2)))
    inside = (lower <= target) & (target <= upper)
    assert status.coverage == pytest.approx(np.mean(inside[1:]))
    assert status.best_slot == (status.bank.names[0], pytest.approx(status.best_slot[1]))
    assert [name for name, _ in status.largest_weights] == list(status.bank.names)


def test_status_holds_the_status_of_the_model(finished):
    status, _, _ = finished
    assert status.model.samples == COUNT
    assert [slot.name for slot in status.model.slots] == list(status.bank.names)
