"""Columns and rows of a source: inputs, targets, and the columns that are kept."""

import json
import re
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest

import kernelbank as kb
from kernelbank.auto.inputs import OWN_INPUTS, encode_time
from kernelbank.run import session
from kernelbank.run.status import RunStatus
from support import run_command
from support.run_command import (
    ROWS,
    X,
    Y,
    check_predictions,
    make_rows,
    one_slot_model,
    options_of,
    read_column,
    read_csv,
    read_state,
    refusal,
    same_bits,
    succeed,
    write_csv,
)
from support.source_fixtures import KafkaFixture, RedisFixture

folder, source = run_command.folder, run_command.source


# --- columns --------------------------------------------------------------------------------------


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


def test_categories_beyond_the_limit_are_counted(tmp_path, monkeypatch):
    words = [f"k{n % 130}" for n in range(ROWS)]
    path = write_csv(tmp_path / "s.csv", ["a", "k", "y"], zip(X[:, 0], words, Y, strict=True))
    monkeypatch.setattr(session, "make_model", one_slot_model)
    out = tmp_path / "out.csv"
    options = ("--target", "y", "--categorical", "k", "--state", tmp_path / "state")
    page = tmp_path / "page.html"
    text = succeed(path, *options, "--predictions", out, "--report", page).err
    # All inputs are taken when the first category comes for the third time.
    rows = sum(n % 130 >= OWN_INPUTS for n in range(260, ROWS))
    beyond = 130 - OWN_INPUTS
    counted = f"{beyond} without an input of their own, in {rows} rows"
    assert re.search(f"categories of k +{counted}", text)
    assert f"{beyond} more, in {rows} rows" in page.read_text()
    status = RunStatus.of_state(tmp_path / "state")
    assert status.categories == [("k", f"k{n}") for n in range(OWN_INPUTS)]
    found = {"k": {"categories": beyond, "rows": rows}}
    assert status.to_json()["categories_beyond_limit"] == found
    trace = one_slot_model().run(pd.DataFrame({"a": X[:, 0], "k": words}), Y)
    assert same_bits(read_column(out, "prediction"), trace.predictions)


@pytest.mark.usefixtures("light")
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
    trace = one_slot_model().run(np.column_stack([X[:, 0], waves]), Y)
    for name, cells in forms.items():
        path = write_csv(
            tmp_path / f"{name}.csv", ["t", "a", "y"], zip(cells, X[:, 0], Y, strict=True)
        )
        succeed(path, "--target", "y", "--time", "t", "--predictions", tmp_path / f"{name}.out.csv")
        check_predictions(tmp_path / f"{name}.out.csv", trace, Y)
    table = pd.DataFrame({"t": moments, "a": X[:, 0]})
    assert same_bits(one_slot_model().run(table, Y).predictions, trace.predictions)


def test_labels_one_and_one_point_zero_are_one_class(tmp_path):
    cells = ["1", "1.0", "2", "2.", "-3.00", "-3", "1.5", "one.0", "01"] * 30
    path = write_csv(tmp_path / "s.csv", ["a", "y"], zip(X[:, 0], cells, strict=False))
    options = ("--target", "y", "--task", "classification", "--predictions", tmp_path / "o.csv")
    succeed(path, *options, "--state", tmp_path / "state")
    header, _ = read_state(tmp_path / "state")
    assert header["bank"]["classes"] == ["1", "2", "-3", "1.5", "one.0", "01"]
    _, rows = read_csv(tmp_path / "o.csv")
    assert [row[-1] for row in rows[:6]] == ["1", "1", "2", "2", "-3", "-3"]


def test_saved_bank_of_a_run_knows_its_columns(tmp_path):
    words = ["north" if x > 0 else "south" for x in X[:, 1]]
    path = write_csv(tmp_path / "s.csv", ["site", "a", "y"], zip(words, X[:, 0], Y, strict=True))
    succeed(path, "--target", "y", "--categorical", "site", "--state", tmp_path / "state")
    bank = kb.load(tmp_path / "state" / "state.kb")
    assert bank.feature_names_in_.tolist() == ["a", "site"]
    near, far = (bank.predict_one({"site": s, "a": 0.0}) for s in ("north", "south"))
    assert near != far


# --- how many rows --------------------------------------------------------------------------------


@pytest.mark.usefixtures("light")
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
    bank, found, waiting = one_slot_model(), [], []
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
    assert found[2] == ["3", "up", repr(2 / 3), ""]  # another label may come
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


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_many_categories_resumed_anywhere_give_the_same_bytes(delay, task, tmp_path, monkeypatch):
    monkeypatch.setattr(session, "make_model", one_slot_model)
    words = [f"k{(n * n) % 61}" for n in range(ROWS)]
    targets = (
        Y if task == "regression" else np.where(Y > 20, "high", np.where(Y > 18, "mid", "low"))
    )
    path = write_csv(tmp_path / "s.csv", ["a", "k", "y"], zip(X[:, 0], words, targets, strict=True))
    options = ("--target", "y", "--categorical", "k", "--task", task, "--delay", delay)
    succeed(path, *options, "--predictions", tmp_path / "whole.csv")
    two = (*options, "--predictions", tmp_path / "two.csv", "--state", tmp_path / "state")
    for rows in (2, 37, 150):
        succeed(path, *two, "--max-rows", rows)
    succeed(path, *two)
    assert (tmp_path / "two.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    model = one_slot_model(options_of(task=task))
    trace = model.run(pd.DataFrame({"a": X[:, 0], "k": words}), targets, delay=delay)
    _, rows = read_csv(tmp_path / "two.csv")
    expected = [None if x is None or x != x else x for x in trace.predictions.tolist()]  # noqa: PLR0124
    assert [row[1] for row in rows] == ["" if x is None else str(x) for x in expected]


# --- `--keep`: columns of the source beside the predictions ---


COUNT = 40
KEPT_X, KEPT_Y = make_rows(COUNT)
light_model = pytest.mark.usefixtures("light")
WHEN = [f"2024-01-{1 + n % 28:02d}" for n in range(COUNT)]
SITE = [["north", "", 'a, "b"', "été"][n % 4] for n in range(COUNT)]
OWN = ["row", "prediction", "lower", "upper", "target"]


@pytest.fixture
def light(monkeypatch):
    monkeypatch.setattr(session, "make_model", one_slot_model)


@pytest.fixture
def kept_source(tmp_path):
    rows = list(zip(WHEN, KEPT_X[:, 0], SITE, KEPT_Y, strict=True))
    rows[7] = ("2024-01-08", "x", "bad", 1.0)
    return write_csv(tmp_path / "s.csv", ["when", "a", "site, 1", "y"], rows)


OPTIONS = ("--target", "y", "--features", "a", "--on-bad-row", "skip", "--keep", 'when,"site, 1",a')


@light_model
def test_kept_columns_are_copied_beside_the_predictions_and_survive_resuming(kept_source, tmp_path):
    out = tmp_path / "out.csv"
    succeed(kept_source, *OPTIONS, "--predictions", out)
    header, rows = read_csv(out)
    assert header == [*OWN, "when", "site, 1", "a"]
    kept = [n for n in range(COUNT) if n != 7]
    assert [row[5:] for row in rows] == [
        [WHEN[n], SITE[n], repr(KEPT_X[n, 0].item())] for n in kept
    ]
    state = ("--state", tmp_path / "state", "--predictions", tmp_path / "two.csv")
    succeed(kept_source, *OPTIONS, *state, "--max-rows", 11)
    succeed(kept_source, *OPTIONS, *state)
    assert (tmp_path / "two.csv").read_bytes() == out.read_bytes()
    assert "--keep was when,site, 1,a, now none" in refusal(kept_source, *OPTIONS[:-2], *state)


@light_model
def test_kept_values_of_every_kind_are_copied_and_reject_no_row(tmp_path):
    values = [1, 0.5, True, None, [1, "é"], {"b": 2}, "\ud800", "text"]
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps({"a": 1, "k": v, "y": 2}) + "\n" for v in values))
    out = tmp_path / "out.csv"
    succeed(path, "--target", "y", "--features", "a", "--keep", "k", "--predictions", out)
    assert [row[5] for row in read_csv(out)[1]] == [
        "1", "0.5", "true", "", '[1, "\\u00e9"]', '{"b": 2}', "\\ud800", "text",
    ]  # fmt: skip


@light_model
def test_kept_columns_of_a_redis_stream_have_its_ids(redis_server, tmp_path):
    rows = [{"a": a, "y": y, "when": w} for a, y, w in zip(KEPT_X[:, 0], KEPT_Y, WHEN, strict=True)]
    fixture = RedisFixture(redis_server, rows)
    target = f"{fixture.address}-out"
    more = ("--target", "y", "--features", "a", "--stop-when-idle", "0.1")
    succeed(fixture.address, *more, "--keep", "when", "--predictions", target)
    succeed(fixture.address, *more, "--keep", "id", "--predictions", tmp_path / "out.csv")
    entries = redis_server.client.xrange(f"{fixture.name}-out")
    sent = [identifier for identifier, _ in redis_server.client.xrange(fixture.name)]
    assert [fields[b"id"] for _, fields in entries] == sent
    assert [fields[b"when"].decode() for _, fields in entries] == WHEN
    header, found = read_csv(tmp_path / "out.csv")
    assert header == [*OWN, "id"]
    assert [row[5].encode() for row in found] == sent


@light_model
def test_kept_columns_of_a_kafka_topic_have_partition_and_offset(kafka_broker, tmp_path):
    rows = [{"a": a, "y": y, "id": 7} for a, y in zip(KEPT_X[:3, 0], KEPT_Y, strict=False)]
    fixture = KafkaFixture(kafka_broker, rows)
    out = tmp_path / "out.csv"
    more = ("--target", "y", "--features", "a", "--stop-when-idle", "0.1", "--keep", "a")
    succeed(fixture.address, *more, "--predictions", out)
    header, found = read_csv(out)
    assert header == [*OWN, "id", "a"]
    assert [row[5:] for row in found] == [[f"0-{n}", repr(KEPT_X[n, 0].item())] for n in range(3)]


@light_model
@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ("nothing", "--keep: there is no column 'nothing'. There are: row, a, y."),
        ("row", "--keep: the predictions have a column 'row' already."),
        ("a,a", "--keep: the predictions have a column 'a' already."),
    ],
)
def test_columns_that_cannot_be_kept_are_refused(keep, message, tmp_path):
    path = write_csv(tmp_path / "s.csv", ["row", "a", "y"], np.ones((3, 3)))
    out = tmp_path / "out.csv"
    assert message in refusal(path, "--target", "y", "--keep", keep, "--predictions", out)
    assert not out.exists()
