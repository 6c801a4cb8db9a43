"""`kernelbank run`: which columns and rows the bank sees, and how."""

import json
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.app.runner import model_session
from kernelbank.app.runner.feature_encoder import MAX_CATEGORIES, PERIODS, encode_time
from kernelbank.io.times import parse_time
from support import run_command
from support.run_command import (
    ROWS,
    X,
    Y,
    check_predictions,
    one_slot_model,
    read_column,
    read_csv,
    read_state,
    refusal,
    same_bits,
    succeed,
    write_csv,
)

folder, source = run_command.folder, run_command.source


# --- columns --------------------------------------------------------------------------------------


def test_features_have_the_order_of_the_option(source, tmp_path):
    succeed(source, "--target", "y", "--features", " b, a", "--predictions", tmp_path / "o.csv")
    check_predictions(tmp_path / "o.csv", kb.AutoBank(size="small").run(X[:, ::-1], Y), Y)
    succeed(source, "--target", "y", "--features", "b", "--predictions", tmp_path / "one.csv")
    check_predictions(tmp_path / "one.csv", kb.AutoBank(size="small").run(X[:, 1:], Y), Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--target", "z"), "--target: there is no column 'z'. There are: a, b, y."),
        (("--target", "y", "--features", "a,c"), "--features: there is no column 'c'"),
        (("--target", "y", "--categorical", "c"), "--categorical: there is no column 'c'"),
        (("--target", "y", "--time", "c"), "--time: there is no column 'c'"),
        (("--target", "y", "--features", "a,a"), "--features: column 'a' is named twice"),
        (("--target", "y", "--features", "y"), "--target and --features: column 'y'"),
        (("--target", "y", "--categorical", "y"), "--target and --categorical: column 'y'"),
        (("--target", "y", "--categorical", "a,a"), "--categorical: column 'a'"),
        (("--target", "y", "--time", "y"), "--target and --time: column 'y'"),
    ],
)
def test_unknown_or_repeated_columns_are_refused(options, message, source, tmp_path):
    assert message in refusal(source, *options)
    # A state that nothing was written to does not hold the mistake.
    more = ("--state", tmp_path / "state", "--predictions", tmp_path / "out.csv")
    assert message in refusal(source, *options, *more)
    succeed(source, "--target", "y", "--max-rows", 5, *more)


def test_category_that_appears_late_becomes_a_new_input(tmp_path):
    words = np.array(["north", "south"], dtype=object)[(X[:, 1] > 0).astype(int)]
    words[200:] = 'été, "2"'
    path = write_csv(tmp_path / "s.csv", ["a", "site", "y"], zip(X[:, 0], words, Y, strict=True))
    options = ("--target", "y", "--categorical", "site")
    succeed(path, *options, "--predictions", tmp_path / "out.csv")
    bank = kb.AutoBank(size="small")
    is_level = [words == level for level in dict.fromkeys(words)]
    inputs = np.column_stack([X[:, 0], *is_level]).astype(float)
    second = int(np.flatnonzero(words != words[0])[0])
    parts = [
        bank.run(inputs[:second, :2], Y[:second]),
        bank.run(inputs[second:200, :3], Y[second:200], added=1),
        bank.run(inputs[200:], Y[200:], added=1),
    ]
    found = read_column(tmp_path / "out.csv", "prediction")
    assert same_bits(found, np.concatenate([part.predictions for part in parts]))
    # Gone on with in the middle of a block, before a category that is in the same block.
    state = ("--state", tmp_path / "state", "--predictions", tmp_path / "two.csv")
    succeed(path, *options, *state, "--max-rows", 150)
    succeed(path, *options, *state)
    assert (tmp_path / "two.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()


def test_categories_beyond_the_limit_have_no_input(tmp_path, monkeypatch):
    words = [f"k{n % 130}" for n in range(ROWS)]
    path = write_csv(tmp_path / "s.csv", ["a", "k", "y"], zip(X[:, 0], words, Y, strict=True))
    monkeypatch.setattr(model_session, "make_model", one_slot_model)
    out = tmp_path / "out.csv"
    options = ("--target", "y", "--categorical", "k", "--state", tmp_path / "state")
    succeed(path, *options, "--predictions", out)
    header, _ = read_state(tmp_path / "state")
    assert header["categories"] == [["k", f"k{n}"] for n in range(MAX_CATEGORIES)]
    assert header["bank"]["dimension"] == 1 + MAX_CATEGORIES
    bank, found = one_slot_model(), []
    for n, word in enumerate(words):
        known = min(n + 1, MAX_CATEGORIES)
        x = [X[n, 0], *(float(word == f"k{level}") for level in range(known))]
        found.append(bank.run([x], Y[n : n + 1], added=int(0 < n < MAX_CATEGORIES)).predictions[0])
    assert same_bits(read_column(out, "prediction"), found)


def test_time_in_every_format_gives_the_same_inputs(tmp_path):
    start = datetime(2024, 2, 28, 22, 30, tzinfo=UTC)
    moments = [start + timedelta(minutes=17 * n) for n in range(ROWS)]
    east = timezone(timedelta(hours=5, minutes=30))
    forms = {
        "epoch": [repr(moment.timestamp()) for moment in moments],
        "zulu": [moment.isoformat().replace("+00:00", "Z") for moment in moments],
        "none": [moment.replace(tzinfo=None).isoformat(sep=" ") for moment in moments],
        "east": [moment.astimezone(east).isoformat() for moment in moments],
        "digits": [moment.strftime("%Y%m%d%H%M%S") for moment in moments],
        "milliseconds": [f"{moment.timestamp() * 1000:.0f}" for moment in moments],
        "microseconds": [f"{moment.timestamp() * 1000:.0f}000" for moment in moments],
        "nanoseconds": [f"{moment.timestamp() * 1000:.0f}000000" for moment in moments],
    }
    waves = np.array([encode_time(moment.timestamp()) for moment in moments])
    trace = kb.AutoBank(size="small").run(np.column_stack([X[:, 0], waves]), Y)
    for name, cells in forms.items():
        path = write_csv(
            tmp_path / f"{name}.csv", ["t", "a", "y"], zip(cells, X[:, 0], Y, strict=True)
        )
        succeed(path, "--target", "y", "--time", "t", "--predictions", tmp_path / f"{name}.out.csv")
        check_predictions(tmp_path / f"{name}.out.csv", trace, Y)


def test_encode_time_gives_day_week_and_year():
    assert list(PERIODS) == ["day", "week", "year"]
    noon = encode_time(parse_time("1970-01-01T12:00:00"))
    assert np.allclose(noon[:2], [0, -1])
    six = parse_time("2024-01-01T08:00:00+02:00")
    assert np.allclose(encode_time(six), encode_time(1704067200 + 6 * 3600))


# --- how many rows --------------------------------------------------------------------------------


def test_max_rows_ends_the_run_there(source, tmp_path):
    succeed(source, "--target", "y", "--max-rows", 123, "--predictions", tmp_path / "out.csv")
    assert same_bits(
        read_column(tmp_path / "out.csv", "prediction"),
        kb.AutoBank(size="small").run(X, Y).predictions[:123],
    )


@pytest.mark.parametrize("delay", [0, 5])
def test_rows_without_a_target_are_predicted_not_learned(delay, tmp_path):
    targets = [repr(y) if n % 10 else "" for n, y in enumerate(Y.tolist())]
    path = write_csv(tmp_path / "s.csv", ["a", "b", "y"], zip(*X.T, targets, strict=True))
    options = ("--target", "y", "--delay", delay)
    assert "line 2, column 'y': '' is missing" in refusal(path, *options)
    out = tmp_path / "out.csv"
    done = succeed(path, *options, "--predict-missing", "--predictions", out, "--log-json")
    assert json.loads(done.err.splitlines()[-1])["rows_without_target"] == ROWS // 10
    _, rows = read_csv(out)
    assert len(rows) == ROWS
    assert [row[4] for row in rows] == targets
    bank, found, waiting = kb.AutoBank(size="small"), [], []
    for n, x in enumerate(X):
        if n % 10:
            found.append(bank.predict_trace_one(x).predictions[0])
        else:
            found.append(bank.predict(x[None])[0])
        waiting.append(n)
        if len(waiting) > delay and (late := waiting.pop(0)) % 10:
            bank.learn_one(X[late], Y[late])
    assert same_bits(read_column(out, "prediction"), found)


def test_labels_without_a_target_are_predicted(tmp_path):
    rows = [(0.5, ""), (1.0, "up"), (2.0, ""), (1.5, "up"), (0.1, "down"), (0.2, "")]
    path = write_csv(tmp_path / "s.csv", ["a", "y"], rows)
    out = tmp_path / "out.csv"
    succeed(
        path, "--target", "y", "--task", "classification", "--predict-missing", "--predictions", out
    )
    _, found = read_csv(out)
    assert found[0] == ["1", "", "", ""]
    assert found[1] == ["2", "", "", "up"]
    assert found[2] == ["3", "up", "1.0", ""]
    assert len(found) == 6


def test_missing_inputs_are_refused_or_given_to_the_model(tmp_path):
    inputs = X.copy()
    inputs[5::7, 0] = np.nan
    cells = [["" if np.isnan(x) else repr(x) for x in row] for row in inputs.tolist()]
    cells[12][0], cells[19][0] = "NaN", "null"
    rows = [(*row, y) for row, y in zip(cells, Y.tolist(), strict=True)]
    path = write_csv(tmp_path / "s.csv", ["a", "b", "y"], rows)
    assert "line 7, column 'a': '' is missing" in refusal(path, "--target", "y")
    succeed(path, "--target", "y", "--allow-missing", "--predictions", tmp_path / "out.csv")
    check_predictions(tmp_path / "out.csv", kb.AutoBank(size="small").run(inputs, Y), Y)


def test_missing_category_is_nan_in_all_its_inputs(tmp_path):
    words = ["u" if n % 2 else "" if n % 6 == 4 else "v" for n in range(100)]
    path = write_csv(
        tmp_path / "s.csv", ["a", "k", "y"], zip(X[:100, 0], words, Y[:100], strict=True)
    )
    out = tmp_path / "out.csv"
    succeed(path, "--target", "y", "--categorical", "k", "--allow-missing", "--predictions", out)
    coded = {"v": (1.0, 0.0), "u": (0.0, 1.0), "": (np.nan, np.nan)}
    inputs = np.array([[x, *coded[word]] for x, word in zip(X[:100, 0], words, strict=True)])
    bank = kb.AutoBank(size="small")
    first = bank.run(inputs[:1, :2], Y[:1]).predictions
    rest = bank.run(inputs[1:], Y[1:100], added=1).predictions
    assert same_bits(read_column(out, "prediction"), np.concatenate([first, rest]))
