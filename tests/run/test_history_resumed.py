"""The history of a run that was resumed is that of a run in one go, to the bit."""

import numpy as np
import pytest

from kernelbank.run import session
from kernelbank.run.report.data import ReportData
from kernelbank.run.status import RunStatus
from support.run_command import make_rows, one_slot_model, read_state, same_bits, succeed, write_csv

ROWS = 300
X, Y = make_rows(ROWS)
KINDS = np.array(["low", "middle", "high"])
NUMBERS = (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)


def table(targets):
    sites = np.array(["north", "south", "hill"])[np.arange(ROWS) // 40 % 3]
    times = [f"2024-01-{1 + n // 24:02}T{n % 24:02}:00" for n in range(ROWS)]
    columns = [X[:, 0].astype(object), sites, np.array(times, dtype=object), targets]
    return np.column_stack(columns)


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_history_of_a_resumed_run_has_the_same_bits(task, delay, tmp_path, monkeypatch):
    monkeypatch.setattr(session, "make_model", one_slot_model)
    targets = (Y if task == "regression" else KINDS[NUMBERS]).astype(object)
    targets[[50, 51, 200]] = ""
    source = write_csv(tmp_path / "s.csv", ["a", "site", "when", "y"], table(targets))
    options = ["--target", "y", "--task", task, "--delay", delay, "--predict-missing"]
    options += ["--time", "when", "--categorical", "site"]
    for name, cuts in (("whole", [ROWS]), ("pieces", [1, 52, 65, 130, 255, ROWS])):
        for rows in cuts:
            succeed(source, *options, "--state", tmp_path / name, "--max-rows", rows)
    (mine, arrays), (other, others) = (read_state(tmp_path / name) for name in ("whole", "pieces"))
    assert mine["history"] == other["history"]
    names = [name for name in arrays if name.startswith("history/")]
    assert {"history/recent", "history/odds", "history/seen_clock"} <= set(names)
    assert arrays.keys() == others.keys()
    assert all(same_bits(arrays[name], others[name]) for name in arrays)
    parts = [
        ReportData().parts(RunStatus.of_state(tmp_path / name)) for name in ("whole", "pieces")
    ]
    assert {name for name in parts[0] if parts[0][name] != parts[1][name]} <= {"status", "run"}


def test_last_rows_are_those_of_the_predictions(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "make_model", one_slot_model)
    targets = KINDS[NUMBERS].astype(object)
    targets[290] = ""
    source = write_csv(tmp_path / "s.csv", ["a", "site", "when", "y"], table(targets))
    options = ["--target", "y", "--task", "classification", "--predict-missing", "--time", "when"]
    succeed(source, *options, "--categorical", "site", "--state", tmp_path / "state")
    status = RunStatus.of_state(tmp_path / "state")
    recent, classes = status.history.recent, list(status.bank.classes)
    assert len(recent) == 200
    numbers = [classes.index(label) if label else np.nan for label in targets[-200:]]
    assert np.array_equal(recent["target"], numbers, equal_nan=True)
    assert np.isnan(recent["baseline"][-10])
    known = ~np.isnan(recent["target"])
    assert np.array_equal(recent["baseline"][known][1:], recent["target"][known][:-1])
    assert recent["time"][-1] - recent["time"][-2] == 3600.0
    wrong = recent["prediction"][known] != recent["target"][known]
    assert 0 < wrong.mean() < 0.6
    assert ((recent["low"] > 0.3) & (recent["low"] <= 1)).all()


def test_first_of_the_last_rows_has_no_baseline(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "make_model", one_slot_model)
    source = write_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([X, Y]))
    succeed(source, "--target", "y", "--state", tmp_path / "state", "--max-rows", 50)
    recent = RunStatus.of_state(tmp_path / "state").history.recent
    assert len(recent) == 50
    assert np.isnan(recent["baseline"][0])
    assert same_bits(recent["baseline"][1:], Y[:49])
    assert same_bits(recent["target"], Y[:50])
    assert ((recent["low"] <= recent["prediction"]) & (recent["prediction"] <= recent["high"]))[
        1:
    ].all()
