"""`--target a,b`: predictions, logs, pages and checkpoints of a run with several targets."""

import json

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.cli.console import status_line
from kernelbank.run.history import DRAWN_TARGETS
from kernelbank.run.report.data import report_text
from kernelbank.run.status import RunStatus
from support.run_command import make_rows, read_column, read_csv, refusal, run, succeed, write_csv

COUNT = 300
X, LOAD = make_rows(COUNT)
PRICE = 1000 - 300 * X[:, 1]
Y = np.column_stack([LOAD, PRICE])
Y[::7, 0] = np.nan
Y[3::5, 1] = np.nan
NONE = np.isnan(Y).all(axis=1)
HEADER = [
    "row",
    *(
        f"{field}:{name}"
        for name in ("load", "price")
        for field in ("prediction", "lower", "upper", "target")
    ),
]
OPTIONS = ("--target", "load,price", "--predict-missing")


def cells(values):
    return ["" if np.isnan(value) else value for value in values]


def write(path, Y=Y):
    rows = [[*x, *cells(y)] for x, y in zip(X, Y, strict=True)]
    return write_csv(path, ["a", "b", "load", "price"], rows)


@pytest.fixture
def source(tmp_path):
    return write(tmp_path / "source.csv")


def test_predictions_of_all_targets_are_those_of_the_model(source, tmp_path):
    out = tmp_path / "out.csv"
    succeed(source, *OPTIONS, "--predictions", out)
    header, rows = read_csv(out)
    assert header == HEADER
    assert len(rows) == COUNT
    bank = kb.AutoBank(size="small")
    trace = bank.run(X[~NONE], Y[~NONE])
    for k, name in enumerate(("load", "price")):
        for column, values in (
            ("prediction", trace.predictions),
            ("lower", trace.lower),
            ("upper", trace.upper),
            ("target", Y[~NONE]),
        ):
            found = read_column(out, f"{column}:{name}")
            assert np.array_equal(found[~NONE], values[:, k], equal_nan=True), (column, name)
        without = read_column(out, f"prediction:{name}")[NONE]
        assert np.isfinite(without[1:]).all()  # predicted, though nothing was learned
    assert rows[0][1:4] == ["", "", ""]  # nothing was known before the first


# --- what it tells --------------------------------------------------------------------------------


def expected_errors(out, name):
    """The errors of a target, from the file of predictions."""
    columns = ("target", "prediction", "lower", "upper")
    target, predicted, low, high = (read_column(out, f"{column}:{name}") for column in columns)
    scored = ~np.isnan(target + predicted)
    known = target[~np.isnan(target)]
    last = known[np.cumsum(~np.isnan(target))[scored] - 2]  # before each that is scored
    return {
        "scored": int(scored.sum()),
        "error": np.sqrt(np.mean((predicted - target)[scored] ** 2)),
        "baseline_error": np.sqrt(np.mean((last - target[scored]) ** 2)),
        "coverage": ((low <= target) & (target <= high))[scored].mean(),
    }


def test_log_and_summary_have_the_errors_of_each_target(source, tmp_path):
    out = tmp_path / "out.csv"
    done = succeed(source, *OPTIONS, "--log-json", "--predictions", out, "--checkpoint-every", 50)
    end = json.loads(done.err.splitlines()[-1])
    assert end["rows"] == COUNT
    assert end["rows_without_target"] == NONE.sum()
    assert "error" not in end
    expected = {name: expected_errors(out, name) for name in ("load", "price")}
    assert list(end["targets"]) == ["load", "price"]
    for name, own in expected.items():
        for field, value in own.items():
            assert end["targets"][name][field] == pytest.approx(value), (name, field)
        assert end["targets"][name]["weights"]
    text = succeed(source, *OPTIONS).err
    for name, own in expected.items():
        assert f"RMSE of {name}" in text
        assert f"{own['error']:.4g}  over {own['scored']} predictions" in text
    assert text.count("baseline (last value)") == 2


def test_summary_of_many_targets_is_short(tmp_path, light):
    names = [f"t{k}" for k in range(11)]
    rows = [[*x, *(x[0] * (k + 1) for k in range(11))] for x in X[:30]]
    source = write_csv(tmp_path / "s.csv", ["a", "b", *names], rows)
    text = succeed(source, "--target", ",".join(names)).err
    assert text.count("RMSE of") == 8
    assert "and 3 more targets: --log-json lists all" in text
    succeed(source, "--target", ",".join(names), "--state", tmp_path / "state")
    details = json.loads(report_text(RunStatus.of_state(tmp_path / "state")))["run"]
    assert len(details["targets"]) == DRAWN_TARGETS
    assert details["more_targets"] == 3
    assert details["title"] == "t0, t1, t2 and 8 more from s.csv"


def test_line_of_a_terminal_has_the_error_of_the_first_target(source, tmp_path):
    succeed(source, *OPTIONS, "--state", tmp_path / "state")
    status = RunStatus.of_state(tmp_path / "state")
    assert f"RMSE of load {status.scores.error:#.3g}" in " ".join(status_line(status).split())


def test_changes_name_their_target(tmp_path):
    moved = Y.copy()
    moved[200:, 1] += 1e6
    source = write(tmp_path / "s.csv", moved)
    text = succeed(source, *OPTIONS, "--state", tmp_path / "state").err
    assert "(price)" in text
    report = json.loads(report_text(RunStatus.of_state(tmp_path / "state")))
    kinds = [kind for _, _, kinds, _ in report["changes"] for kind in kinds]
    assert ["target level", "price", 1] in kinds


def test_report_has_the_parts_of_each_target(source, tmp_path):
    succeed(source, *OPTIONS, "--lags", 1, "--state", tmp_path / "state")
    status = RunStatus.of_state(tmp_path / "state")
    parts = json.loads(report_text(status))
    assert parts["run"]["targets"] == ["load", "price"]
    assert (parts["run"]["target"], parts["targets/1/run"]["target"]) == ("load", "price")
    first = {name for name in parts if not name.startswith("targets/")}
    second = {name.removeprefix("targets/1/") for name in parts if name.startswith("targets/1/")}
    assert first - second == {"changes", "bad_rows"}
    for k, prefix in enumerate(("", "targets/1/")):
        target = [y for y in parts[f"{prefix}recent"]["target"] if y is not None]
        assert target[-1] == pytest.approx(Y[~np.isnan(Y[:, k]), k][-1], rel=1e-6)
        assert parts[f"{prefix}status"]["error"] == status.of_target(k).scores.error
        line = parts[f"{prefix}curves"][0]
        rows = np.tile([0.0, status.bank.input_ranges()[1, 0]], (len(line["x"]), 1))
        rows[:, 0] = line["x"]
        drawn = status.bank.predict_at(rows)[:, k, 0]
        assert np.allclose(line["prediction"][1:-1], drawn[1:-1], rtol=1e-4)


# --- what is refused ------------------------------------------------------------------------------


def test_rows_without_any_target_are_bad_unless_they_are_to_be_predicted(source):
    line = refusal(source, "--target", "load,price")
    row = int(np.flatnonzero(NONE)[0])
    assert f"line {row + 2}, column 'load'" in line
    assert "--predict-missing" in line
    done = run(source, "--target", "load,price", "--on-bad-row", "skip")
    assert done.code == 0
    assert f"{NONE.sum()}" in done.err


def test_wrong_cells_and_bounds_name_their_column(tmp_path, light):
    rows = [[1.0, 2.0, 3.0], [1.0, "x", 3.0]]
    source = write_csv(tmp_path / "s.csv", ["a", "load", "price"], rows)
    line = refusal(source, "--target", "price,load")
    assert "line 3, column 'load': 'x' is not a number" in line
    assert "classification" not in line
    source = write_csv(tmp_path / "t.csv", ["a", "load", "price"], [[1.0, 2.0, -3.0]])
    line = refusal(source, "--target", "load,price", "--lower", 0)
    assert "column 'price': '-3' is below --lower 0" in line


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--target", "load,cost"), "--target: there is no column 'cost'. There are: a, b"),
        (("--target", "load,load"), "--target: column 'load' is named twice"),
        (("--target", ","), "--target must name a column, or several: A,B"),
        (("--target", 'load,"x'), "--target: 'load,\"x' has a quote that is not closed"),
        (("--target", "load,price", "--features", "a,price"), "column 'price' is named twice"),
        (
            ("--target", "load,price", "--task", "classification"),
            "names 2 columns, which must be numbers; with --task classification name one",
        ),
        (("--target", "load,price", "--seasons", "auto"), "with --seasons name one"),
        (("--target", "load,price", "--horizon", "3"), "with --horizon name one"),
        (("--target", "load,price", "--preset", "paper"), "with --preset name one"),
    ],
)
def test_wrong_targets_are_refused(source, options, words):
    assert words in refusal(source, *options)


def test_saved_bank_has_the_targets_and_others_are_refused(source, tmp_path):
    state = ("--state", tmp_path / "state")
    succeed(source, *OPTIONS, *state, "--max-rows", 20)
    assert kb.load(tmp_path / "state/state.kb").target_names == ("load", "price")
    assert "--target was load,price, now load" in refusal(source, "--target", "load", *state)
