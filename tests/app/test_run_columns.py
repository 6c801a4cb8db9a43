"""`kernelbank run`: which columns and rows the bank sees, and how."""

import json
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.app.runner import model_session
from kernelbank.app.runner.feature_encoder import MAX_CATEGORIES, PERIODS, encode_time
from support import running
from support.running import (
    ROWS,
    X,
    Y,
    as_csv,
    check_answers,
    column,
    good,
    one_line,
    refused,
    same,
    saved,
    table,
)

folder, source = running.folder, running.source


# --- columns --------------------------------------------------------------------------------------


def test_features_have_the_order_of_the_option(source, tmp_path):
    good(source, "--target", "y", "--features", " b, a", "--predictions", tmp_path / "o.csv")
    check_answers(tmp_path / "o.csv", kb.AutoBank(size="small").run(X[:, ::-1], Y), Y)
    good(source, "--target", "y", "--features", "b", "--predictions", tmp_path / "one.csv")
    check_answers(tmp_path / "one.csv", kb.AutoBank(size="small").run(X[:, 1:], Y), Y)


@pytest.mark.parametrize(
    ("options", "said"),
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
def test_columns_that_cannot_be(options, said, source, tmp_path):
    assert said in refused(source, *options)
    # A state that nothing was written to does not hold the mistake.
    more = ("--state", tmp_path / "state", "--predictions", tmp_path / "out.csv")
    assert said in refused(source, *options, *more)
    good(source, "--target", "y", "--max-rows", 5, *more)


def test_categories_that_come_late(tmp_path):
    words = np.array(["north", "south"], dtype=object)[(X[:, 1] > 0).astype(int)]
    words[200:] = 'été, "2"'
    path = as_csv(tmp_path / "s.csv", ["a", "site", "y"], zip(X[:, 0], words, Y, strict=True))
    options = ("--target", "y", "--categorical", "site")
    good(path, *options, "--predictions", tmp_path / "out.csv")
    bank = kb.AutoBank(size="small")
    is_level = [words == level for level in dict.fromkeys(words)]
    inputs = np.column_stack([X[:, 0], *is_level]).astype(float)
    second = int(np.flatnonzero(words != words[0])[0])
    parts = [
        bank.run(inputs[:second, :2], Y[:second]),
        bank.run(inputs[second:200, :3], Y[second:200], added=1),
        bank.run(inputs[200:], Y[200:], added=1),
    ]
    found = column(tmp_path / "out.csv", "prediction")
    assert same(found, np.concatenate([part.predictions for part in parts]))
    # Gone on with in the middle of a block, before a category that is in the same block.
    state = ("--state", tmp_path / "state", "--predictions", tmp_path / "two.csv")
    good(path, *options, *state, "--max-rows", 150)
    good(path, *options, *state)
    assert (tmp_path / "two.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()


def test_too_many_categories_are_none_of_the_first(tmp_path, monkeypatch):
    words = [f"k{n % 130}" for n in range(ROWS)]
    path = as_csv(tmp_path / "s.csv", ["a", "k", "y"], zip(X[:, 0], words, Y, strict=True))
    monkeypatch.setattr(model_session, "make_model", one_line)
    out = tmp_path / "out.csv"
    options = ("--target", "y", "--categorical", "k", "--state", tmp_path / "state")
    good(path, *options, "--predictions", out)
    header, _ = saved(tmp_path / "state")
    assert header["categories"] == [["k", f"k{n}"] for n in range(MAX_CATEGORIES)]
    assert header["bank"]["dimension"] == 1 + MAX_CATEGORIES
    bank, found = one_line(), []
    for n, word in enumerate(words):
        known = min(n + 1, MAX_CATEGORIES)
        x = [X[n, 0], *(float(word == f"k{level}") for level in range(known))]
        found.append(bank.run([x], Y[n : n + 1], added=int(0 < n < MAX_CATEGORIES)).predictions[0])
    assert same(column(out, "prediction"), found)


def test_times_in_all_their_forms(tmp_path):
    start = datetime(2024, 2, 28, 22, 30, tzinfo=UTC)
    moments = [start + timedelta(minutes=17 * n) for n in range(ROWS)]
    east = timezone(timedelta(hours=5, minutes=30))
    forms = {
        "epoch": [repr(moment.timestamp()) for moment in moments],
        "zulu": [moment.isoformat().replace("+00:00", "Z") for moment in moments],
        "none": [moment.replace(tzinfo=None).isoformat(sep=" ") for moment in moments],
        "east": [moment.astimezone(east).isoformat() for moment in moments],
    }
    waves = np.array([encode_time(repr(moment.timestamp())) for moment in moments])
    trace = kb.AutoBank(size="small").run(np.column_stack([X[:, 0], waves]), Y)
    for name, cells in forms.items():
        path = as_csv(
            tmp_path / f"{name}.csv", ["t", "a", "y"], zip(cells, X[:, 0], Y, strict=True)
        )
        good(path, "--target", "y", "--time", "t", "--predictions", tmp_path / f"{name}.out.csv")
        check_answers(tmp_path / f"{name}.out.csv", trace, Y)


def test_waves_of_a_time():
    assert list(PERIODS) == ["day", "week", "year"]
    noon = encode_time("1970-01-01T12:00:00")
    assert np.allclose(noon[:2], [0, -1])
    assert np.allclose(encode_time("1970-01-01T08:00:00+02:00"), encode_time(str(6 * 3600)))
    assert np.allclose(encode_time("-86400")[:2], [0, 1])
    for cell in ("", "soon", "nan", "inf", "1e300", "1_000", "2024-13-01", None):
        with pytest.raises(ValueError):  # noqa: PT011  (whatever it says, it is told anew)
            encode_time(cell)


# --- how many rows --------------------------------------------------------------------------------


def test_max_rows(source, tmp_path):
    good(source, "--target", "y", "--max-rows", 123, "--predictions", tmp_path / "out.csv")
    assert same(
        column(tmp_path / "out.csv", "prediction"),
        kb.AutoBank(size="small").run(X, Y).predictions[:123],
    )


@pytest.mark.parametrize("delay", [0, 5])
def test_rows_without_a_target(delay, tmp_path):
    targets = [repr(y) if n % 10 else "" for n, y in enumerate(Y.tolist())]
    path = as_csv(tmp_path / "s.csv", ["a", "b", "y"], zip(*X.T, targets, strict=True))
    options = ("--target", "y", "--delay", delay)
    assert "line 2, column 'y': '' is missing" in refused(path, *options)
    out = tmp_path / "out.csv"
    done = good(path, *options, "--predict-missing", "--predictions", out, "--log-json")
    assert json.loads(done.err.splitlines()[-1])["rows_without_target"] == ROWS // 10
    _, rows = table(out)
    assert len(rows) == ROWS
    assert [row[4] for row in rows] == targets
    bank, found, waiting = kb.AutoBank(size="small"), [], []
    for n, x in enumerate(X):
        if n % 10:
            found.append(bank.answer_one(x).predictions[0])
        else:
            found.append(bank.predict(x[None])[0])
        waiting.append(n)
        if len(waiting) > delay and (late := waiting.pop(0)) % 10:
            bank.learn_one(X[late], Y[late])
    assert same(column(out, "prediction"), found)


def test_labels_without_a_target(tmp_path):
    rows = [(0.5, ""), (1.0, "up"), (2.0, ""), (1.5, "up"), (0.1, "down"), (0.2, "")]
    path = as_csv(tmp_path / "s.csv", ["a", "y"], rows)
    out = tmp_path / "out.csv"
    good(
        path, "--target", "y", "--task", "classification", "--predict-missing", "--predictions", out
    )
    _, found = table(out)
    assert found[0] == ["1", "", "", ""]
    assert found[1] == ["2", "", "", "up"]
    assert found[2] == ["3", "up", "1.0", ""]
    assert len(found) == 6


def test_missing_inputs(tmp_path):
    inputs = X.copy()
    inputs[5::7, 0] = np.nan
    cells = [["" if np.isnan(x) else repr(x) for x in row] for row in inputs.tolist()]
    cells[12][0], cells[19][0] = "NaN", "null"
    rows = [(*row, y) for row, y in zip(cells, Y.tolist(), strict=True)]
    path = as_csv(tmp_path / "s.csv", ["a", "b", "y"], rows)
    assert "line 7, column 'a': '' is missing" in refused(path, "--target", "y")
    good(path, "--target", "y", "--allow-missing", "--predictions", tmp_path / "out.csv")
    check_answers(tmp_path / "out.csv", kb.AutoBank(size="small").run(inputs, Y), Y)


def test_missing_categories_say_nothing(tmp_path):
    words = ["u" if n % 2 else "" if n % 6 == 4 else "v" for n in range(100)]
    path = as_csv(tmp_path / "s.csv", ["a", "k", "y"], zip(X[:100, 0], words, Y[:100], strict=True))
    out = tmp_path / "out.csv"
    good(path, "--target", "y", "--categorical", "k", "--allow-missing", "--predictions", out)
    coded = {"v": (1.0, 0.0), "u": (0.0, 1.0), "": (np.nan, np.nan)}
    inputs = np.array([[x, *coded[word]] for x, word in zip(X[:100, 0], words, strict=True)])
    bank = kb.AutoBank(size="small")
    first = bank.run(inputs[:1, :2], Y[:1]).predictions
    rest = bank.run(inputs[1:], Y[1:100], added=1).predictions
    assert same(column(out, "prediction"), np.concatenate([first, rest]))
