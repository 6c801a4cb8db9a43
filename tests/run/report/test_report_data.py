"""The data of a report: they are those of the model, in few and stable parts."""

import json

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.run.history import EXTREMES, TOTALS, History
from kernelbank.run.report.data import MOST_INPUTS, report_text
from kernelbank.run.status import RunStatus, change_groups
from support.run_command import make_rows, read_csv, succeed, write_csv

ROWS = 700
X, Y = make_rows(ROWS)


def report_of(folder):
    """The report of a run's state."""
    return report(RunStatus.of_state(folder))


def report(status):
    return json.loads(report_text(status), parse_constant=pytest.fail)


def near(shown, wanted, digits):
    """Whether numbers are those, rounded to so many digits."""
    wanted = np.asarray(wanted)
    # Rounding to d digits errs by at most half a unit of the last one: 0.5 * 10^(1-d) of the value.
    return (
        np.abs(np.array(shown) - wanted) <= 0.5000001 * 10.0 ** (1 - digits) * abs(wanted)
    ).all()


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    source = write_csv(folder / "s.csv", ["a", "b", "y"], np.column_stack([X, Y]))
    succeed(source, "--target", "y", "--state", folder / "state", "--coverage", 0.8)
    source.unlink()  # nothing is read again
    return folder / "state"


def test_points_of_a_regression_are_those_of_the_model(state):
    parts = report_of(state)
    trace = kb.AutoBank(size="small").run(X, Y, record="all", coverage=0.8)
    stride = parts["status"]["stride"]
    cuts = np.arange(stride, ROWS, stride)
    assert parts["status"]["rows"] == ROWS
    assert stride == 2
    assert parts["points"]["rows"] == [len(part) for part in np.split(Y, cuts)]
    errors = (trace.predictions - Y) ** 2
    before = (np.concatenate([Y[:1], Y[:-1]]) - Y) ** 2
    slots = (trace.slot_predictions - Y[:, None]) ** 2
    inside = ((trace.lower <= Y) & (trace.upper >= Y)).astype(float)
    errors[0] = before[0] = slots[0] = inside[0] = 0.0  # predicted before any target was known
    width = trace.upper - trace.lower
    width[0] = 0.0
    for name, rows, digits in (
        ("loss", errors, 7),
        ("baseline_loss", before, 7),
        ("covered", inside, 12),
        ("width", width, 7),
        ("losses", slots, 5),
    ):
        assert near(parts["points"][name], [p.sum(axis=0) for p in np.split(rows, cuts)], digits), (
            name
        )
    answers = trace.predictions[1:]
    for name, rows, extreme in (
        ("worst_loss", errors[1:], np.max),
        ("prediction_high", answers, np.max),
        ("prediction_low", answers, np.min),
    ):
        wanted = [extreme(part) for part in np.split(rows, cuts - 1)]
        assert near(parts["points"][name], wanted, 6), name
    assert near(parts["points"]["target_low"], [part.min() for part in np.split(Y, cuts)], 6)
    assert near(parts["points"]["target_high"], [part.max() for part in np.split(Y, cuts)], 6)
    for name, extreme in (("weights", np.mean), ("weights_high", np.max)):
        wanted = [extreme(part, axis=0) for part in np.split(trace.weights, cuts)]
        assert np.abs(np.array(parts["points"][name]) / 1e4 - wanted).max() <= 0.5001e-4


def test_curves_are_those_of_the_model(state):
    parts = report_of(state)
    assert parts["run"]["inputs"] == ["a", "b"]
    bank = kb.AutoBank(size="small")
    bank.run(X, Y)
    for k, line in enumerate(parts["curves"]):
        where = np.linspace(X[:, k].min(), X[:, k].max(), 24)
        points = np.tile(np.median(X, axis=0), (24, 1))
        points[:, k] = where
        expected = bank.predict_at(points, 0.8)
        assert near(line["x"], where, 6)
        for column, name in enumerate(("prediction", "low", "high")):
            assert near(line[name], expected[:, column], 6), (name, k)


@pytest.mark.parametrize("count", [2, 3])
def test_points_of_a_classification_are_those_of_the_model(count, tmp_path):
    labels = np.array(["no", "yes", "perhaps"])[
        1 * (np.abs(X[:, 0]) > 0.7) + (X[:, 1] > 1) * (count > 2)
    ]
    rows = np.column_stack([X.astype(object), labels])
    source = write_csv(tmp_path / "s.csv", ["a", "b", "y"], rows)
    succeed(source, "--target", "y", "--task", "classification", "--state", tmp_path / "state")
    parts = report_of(tmp_path / "state")
    bank = kb.AutoBank("classification", size="small")
    trace = bank.run(X, labels, record="all")
    wrong = (trace.predictions != labels)[1:]
    slots = (
        trace.slot_classes[1:] != np.array([bank.classes.index(one) for one in labels])[1:, None]
    )
    assert sum(parts["points"]["loss"]) == wrong.sum()
    assert sum(parts["points"]["covered"]) == (~wrong).sum()
    assert (np.sum(parts["points"]["losses"], axis=0) == slots.sum(axis=0)).all()
    assert near(sum(parts["points"]["width"]), trace.probabilities.max(axis=1)[1:].sum(), 5)
    assert parts["points"]["target_low"] == [None] * parts["status"]["points"]
    assert parts["run"]["classes"] == list(bank.classes)
    assert parts["run"]["weights_of"] == ("" if count == 2 else bank.classes[0])
    lines = parts["curves"]
    assert len(lines) == 2
    assert all(0 <= share <= 1 for line in lines for share in line["prediction"])


def test_changes_with_delay_have_the_row_at_which_they_were_noticed(tmp_path, light):
    level = Y + 1000 * (np.arange(ROWS) > 400)
    source = write_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([X, level]))
    found = {}
    for delay in (0, 5):
        folder = tmp_path / str(delay)
        succeed(source, "--target", "y", "--state", folder, "--delay", delay)
        changes = kb.load(folder / "state.kb").ledger.changes
        found[delay] = report_of(folder)["changes"]
        signals = [[c.row + delay, c.what, ""] for c in changes]
        groups = change_groups(signals, ROWS, RunStatus.of_state(folder).history)
        assert found[delay] == json.loads(json.dumps(groups))
    assert "target level" in {what for _, _, kinds, _ in found[0] for what, _, _ in kinds}
    assert max(cost for *_, cost in found[0]) > 1000**2  # of the level


def test_cost_of_a_change_is_the_loss_beyond_that_of_the_rows_before():
    history = filled_history(0, 1)
    totals = np.zeros((2000, len(TOTALS)))
    totals[:, :2] = 1.0
    totals[:, 2] = np.where(np.arange(2000) < 900, 1.0, 3.0)
    totals[1000:, 2] = 0.5
    empty = np.zeros((2000, 1))
    history.add(totals, np.full((2000, len(EXTREMES)), np.nan), empty, empty)
    signals = [[30, "weights", ""], [900, "error grew", ""], [1000, "error fell", ""]]
    costs = [group.cost for group in change_groups(signals, 2000, history)]
    # 25 rows at either side: 25 of 1 and 25 of 3 after 50 of 1; 25 of 3 and 25 of 0.5 after 50 of 3.
    assert costs == pytest.approx([0.0, 25 * 2.0, -25 * 2.5])


def test_worst_rows_and_errors_by_category_are_those_of_the_predictions(tmp_path, light):
    words = [f"k{n % 23}" if n % 11 else "" for n in range(ROWS)]
    rows = np.column_stack([X.astype(object), words, Y.astype(object)])
    rows[100, 0], rows[200, 3] = "bad", ""
    source = write_csv(tmp_path / "s.csv", ["a", "b", "k", "y"], rows)
    out = tmp_path / "out.csv"
    options = ("--target", "y", "--categorical", "k", "--allow-missing", "--predict-missing")
    options += ("--on-bad-row", "skip", "--state", tmp_path / "state", "--predictions", out)
    for most in (333, ROWS):  # interrupted
        succeed(source, *options, "--max-rows", most, "--keep", "k")
    parts = report_of(tmp_path / "state")
    _, predictions = read_csv(out)
    errors = {  # by row
        int(row[0]): (float(row[1]) - float(row[4])) ** 2 for row in predictions[1:] if row[4]
    }
    worst = sorted(errors, key=lambda row: -errors[row])[:20]
    assert [row["row"] for row in parts["worst_rows"]] == worst
    (table,) = parts["categories"]
    kinds = {int(row[0]): row[5] or "(missing)" for row in predictions}
    sums = {kind: [] for kind in kinds.values()}
    for row, error in errors.items():
        sums[kinds[row]].append(error)
    order = sorted(sums, key=lambda kind: -sum(sums[kind]))
    assert (table["column"], table["more"]) == ("k", len(sums) - 20)
    for kind, row in zip(order, table["rows"], strict=False):
        error = np.sqrt(np.mean(sums[kind]))
        assert row[:3] == [kind, len(sums[kind]), pytest.approx(error)]


def test_signals_close_together_are_one_group_with_counts():
    signals = [[100, "error grew", ""]]
    signals += [[110 + k, "input level", "a"] for k in range(5)]
    signals += [[120, "input level", "b"], [180, "weights", ""], [1000, "weights", ""]]
    assert change_groups(signals, 2000, History(0)) == [
        (100, 120, [("error grew", "", 1), ("input level", "a", 5), ("input level", "b", 1)], 0.0),
        (180, 180, [("weights", "", 1)], 0.0),
        (1000, 1000, [("weights", "", 1)], 0.0),
    ]
    assert [group[:2] for group in change_groups(signals, 50_000, History(0))] == [(100, 1000)]
    assert change_groups([], 10, History(0)) == []


@pytest.mark.parametrize("count", [2, 20])
def test_confusion_matrix_has_the_most_frequent_labels_and_the_others(count, tmp_path, light):
    draw = np.random.default_rng(0)
    labels = np.array([f"l{k}" for k in np.minimum(draw.geometric(0.2, ROWS), count)])
    rows = np.column_stack([X.astype(object), labels])
    source = write_csv(tmp_path / "s.csv", ["a", "b", "y"], rows)
    succeed(source, "--target", "y", "--task", "classification", "--state", tmp_path / "state")
    parts = report_of(tmp_path / "state")
    found, names = np.array(parts["labels"]["confusion"]), parts["labels"]["labels"]
    assert found.sum() == ROWS - 1
    values, counts = np.unique(labels[1:], return_counts=True)
    frequency = dict(zip(values.tolist(), counts.tolist(), strict=True))
    assert len(names) == min(count, 12)
    assert len(found) == len(names) + (count > 12)
    assert found[: len(names)].sum(axis=1).tolist() == [frequency[name] for name in names]
    least = min(frequency[name] for name in names)
    assert all(n <= least for name, n in frequency.items() if name not in names)


def test_report_of_a_run_equals_the_report_of_its_state(tmp_path, monkeypatch):
    last = {}

    def noted(self, run):
        last["run"] = report(RunStatus.of_run(run, "saved"))

    monkeypatch.setattr("kernelbank.cli.console.Console.update", noted)
    source = write_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([X, Y]))
    succeed(source, "--target", "y", "--state", tmp_path / "state", "--checkpoint-every", 90)
    mine, other = last["run"], report_of(tmp_path / "state")
    for name in ("seconds", "rows_per_second", "updated"):
        del mine["status"][name], other["status"][name]
    assert mine == other


def filled_history(rows, slots):
    """A history of random rows whose numbers have as many digits as there can be."""
    draw = np.random.default_rng(0)
    history = History(slots)
    for _ in range(rows // 1000):
        figures = np.abs(draw.normal(size=(1000, len(TOTALS)))) * 1e-9
        figures[:, 0] = 1.0
        extremes = draw.normal(size=(1000, len(EXTREMES))) * 1e-9
        weights = draw.dirichlet(np.ones(slots), 1000)
        history.add(figures, extremes, weights, draw.normal(size=(1000, slots)) * 1e-9)
    return history


def test_report_of_many_rows_and_slots_is_small(state):
    """10^5 rows of as many slots as the largest size has."""
    slots = len(_large().names)
    status = RunStatus.of_state(state)
    status.session.histories = [filled_history(100_000, slots)]
    text = report_text(status)
    curves = len(json.dumps(json.loads(text)["curves"])) / 2  # of two inputs
    assert len(text) + curves * MOST_INPUTS < 1.5e6


def _large():
    bank = kb.AutoBank(size="large")
    bank.learn_one([0.0] * 8, 0.0)
    return bank


def test_numbers_that_are_not_finite_become_null(state):
    history = filled_history(0, 2)
    rows = np.full((3, len(TOTALS)), np.nan)
    rows[:, :2] = 1.0  # rows, and rows that are scored
    wild = np.full((3, 2), np.inf)
    history.add(rows, np.full((3, len(EXTREMES)), np.nan), np.full((3, 2), np.nan), wild)
    status = RunStatus.of_state(state)
    status.session.histories = [history]
    parts = report(status)
    assert parts["points"]["loss"] == [None] * 3
    assert parts["points"]["losses"] == [[None, None]] * 3
    assert parts["points"]["worst_loss"] == [None] * 3
    assert parts["status"]["error"] is None
