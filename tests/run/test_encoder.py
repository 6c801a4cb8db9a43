"""Columns and rows of a source: inputs, targets, and the columns that are kept."""

import json
import math
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
    run,
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
    rows = sum(n % 130 >= OWN_INPUTS for n in range(ROWS))
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
    assert [row[3] for row in rows[:6]] == ["1", "1", "2", "2", "-3", "-3"]


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
    alone = repr(2 / 3)  # another label may come
    assert found[0] == ["1", "", "", "", "", "", ""]
    assert found[1] == ["2", "", "", "up", "", "", ""]
    assert found[2] == ["3", "up", alone, "", alone, "0.0", "0.0"]
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


# --- `kernelbank run` on files whose missing values and times are written in their own way. ---


NOTED_ROWS = 150


def outputs(folder, name):
    return ("--target", "y", "--predictions", folder / f"{name}.csv")


@pytest.fixture
def table():
    X, y = make_rows(NOTED_ROWS)
    X[::7, 0] = math.nan
    y[::11] = math.nan
    return np.column_stack([X, y])


@pytest.mark.parametrize(
    ("words", "missing"), [(("-999", "-999.0", "-9.99e2"), "-999"), (("err", "", "-1"), "err,-1")]
)
def test_words_for_missing_values_are_read_as_empty_cells(tmp_path, table, words, missing):
    rows = [["" if math.isnan(value) else value for value in row] for row in table.tolist()]
    empty = write_csv(tmp_path / "empty.csv", ["a", "b", "y"], rows)
    coded = [
        [words[number % 3] if cell == "" else cell for cell in row]
        for number, row in enumerate(rows)
    ]
    codes = write_csv(tmp_path / "codes.csv", ["a", "b", "y"], coded)
    succeed(empty, *outputs(tmp_path, "p"), "--allow-missing", "--predict-missing")
    succeed(codes, *outputs(tmp_path, "q"), "--missing", missing, "--predict-missing")
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "q.csv").read_bytes()
    refused = refusal(codes, *outputs(tmp_path, "r"), "--missing", missing)
    assert "column 'y'" in refused
    assert "is missing. To predict rows without a target, use --predict-missing." in refused


def test_missing_words_hold_for_categories_and_labels(tmp_path):
    text = "k,y\n" + "north,up\n?,down\nsouth,?\n" * 20
    path, same = tmp_path / "codes.csv", tmp_path / "empty.csv"
    path.write_text(text)
    same.write_text(text.replace("?", ""))
    more = ("--categorical", "k", "--task", "classification", "--predict-missing")
    succeed(path, *outputs(tmp_path, "p"), *more, "--missing", "?")
    succeed(same, *outputs(tmp_path, "q"), *more, "--allow-missing")
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "q.csv").read_bytes()


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("{:%d.%m.%Y %H:%M}", ()),
        ("{:%d/%m/%y %H:%M}", ("--time-format", "%d/%m/%y %H:%M")),
        ("{:%Y-%m-%d %H:%M}", ("--timezone", "Europe/Berlin")),
        ("{:%Y-%m-%dT%H:%M-01:00}", ("--timezone", "Etc/GMT+1")),
    ],
)
def test_times_in_other_formats_give_the_same_predictions(tmp_path, form, options):
    X, y = make_rows(NOTED_ROWS)
    moments = np.datetime64("2024-01-30T00:00") + np.arange(NOTED_ROWS) * np.timedelta64(37, "m")
    for name, write in (("iso", "{:%Y-%m-%dT%H:%M}"), ("other", form)):
        rows = [
            [write.format(moment), *x, target]
            for moment, x, target in zip(moments.tolist(), X.tolist(), y.tolist(), strict=True)
        ]
        path = write_csv(tmp_path / f"{name}-rows.csv", ["when", "a", "b", "y"], rows)
        more = options if name == "other" else ()
        succeed(path, *outputs(tmp_path, name), "--time", "when", *more)
    assert (tmp_path / "iso.csv").read_bytes() == (tmp_path / "other.csv").read_bytes()
    assert np.isfinite(read_column(tmp_path / "iso.csv", "prediction")).sum() == NOTED_ROWS - 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--time-format", "%d.%m.%Y"), "--time-format needs --time"),
        (("--timezone", "Europe/Berlin"), "--timezone needs --time"),
        (("--time", "t", "--time-format", "%H:%M"), "must name at least day, month and year"),
        (("--time", "t", "--time-format", "%d.%m.%q"), "must name at least day, month and year"),
        (("--time", "t", "--timezone", "Berlin"), "must be the name of a time zone"),
        (("--time", "t", "--timezone", "../etc/passwd"), "must be the name of a time zone"),
    ],
)
def test_impossible_formats_and_zones_are_refused(tmp_path, options, text):
    path = tmp_path / "rows.csv"
    path.write_text("t,y\n1.1.2024,2\n")
    assert text in refusal(path, *outputs(tmp_path, "p"), *options)


# --- `kernelbank run` says once what is probably not what its user means, and goes on. ---


def notes(folder, columns, table_noted, *options):
    """What a command notes about a table, without the summary."""
    path = write_csv(folder / "rows.csv", columns, table_noted)
    done = succeed(path, "--target", "y", *options)
    return [line for line in done.err.splitlines() if line.startswith("note: ")]


@pytest.fixture
def table_noted():
    X, y = make_rows(NOTED_ROWS)
    return np.column_stack([X, y])


def test_ordinary_columns_are_not_noted(tmp_path, table_noted):
    flags = np.arange(NOTED_ROWS) % 50 == 0  # 0 and 1, of which one is rare
    rain = np.where(np.arange(NOTED_ROWS) % 4, 0, table_noted[:, 1] ** 2)
    columns = np.column_stack([table_noted, flags, rain])
    assert notes(tmp_path, ["a", "b", "y", "flag", "rain"], columns) == []


@pytest.mark.parametrize(("code", "column"), [(-999, 0), (9999, 1), (-999, 2)])
def test_far_value_that_repeats_is_noted_once(tmp_path, table_noted, code, column):
    table_noted[10::20, column] = code
    name = "aby"[column]
    [note] = notes(tmp_path, ["a", "b", "y"], table_noted, "--missing", "NA")
    assert note.startswith(f"note: {code} has come ")
    assert f"times in {name!r}, far from all other values" in note
    assert note.endswith(f"use --missing NA,{code}.")
    more = ("--missing", f"NA,{code}", "--predict-missing")
    assert notes(tmp_path, ["a", "b", "y"], table_noted, *more) == []


def test_columns_of_one_value_or_none_are_noted(tmp_path, table_noted):
    columns = np.column_stack([table_noted, np.full(NOTED_ROWS, 7), np.full(NOTED_ROWS, np.nan)])
    found = notes(tmp_path, ["a", "b", "y", "seven", "empty"], columns, "--allow-missing")
    assert found == [
        "note: column 'seven' has been 7 in all 150 rows so far.",
        "note: column 'empty' has had no value in 150 rows so far.",
    ]
    table_noted[:, 2] = 3
    [note] = notes(tmp_path, ["a", "b", "y"], table_noted)
    assert note.endswith("'y' has been 3 in all 150 rows so far. Is --target the right column?")


def test_long_numbers_are_noted(tmp_path, table_noted):
    ids = 2**55 + 8 * np.arange(NOTED_ROWS)
    [note] = notes(tmp_path, ["a", "b", "y", "id"], np.column_stack([table_noted, ids]))
    assert "column 'id' has whole numbers beyond 2^53, which are rounded" in note


def test_times_that_repeat_or_run_backwards_are_noted_with_their_row(tmp_path, table_noted):
    times = ["2024-01-01T00:00", "2024-01-01T01:00", "2024-01-01T01:00", "2024-01-01T00:30"]
    times += [f"2024-01-0{2 + n // 24}T{n % 24:02}:00" for n in range(NOTED_ROWS - 4)]
    rows = [[time, *row] for time, row in zip(times, table_noted.tolist(), strict=True)]
    same, back = notes(tmp_path, ["t", "a", "b", "y"], rows, "--time", "t")
    assert same.startswith("note: rows.csv, line 4: its time is that of the row before.")
    assert back.startswith("note: rows.csv, line 5: its time is before that of the row before.")


def test_hours_of_a_changed_clock_are_noted(tmp_path, table_noted):
    days = ("2024-03-31T01:30", "2024-03-31T02:30", "2024-10-27T02:00", "2024-10-27T02:30")
    times = [*days, "2024-10-27T02:00", "2024-10-27T02:30", "2024-10-27T03:00"]
    rows = [[time, *row] for time, row in zip(times, table_noted.tolist(), strict=False)]
    options = ("--time", "t", "--timezone", "Europe/Berlin")
    never, twice = notes(tmp_path, ["t", "a", "b", "y"], rows, *options)
    assert "line 3: the clock of Europe/Berlin shows this time never" in never
    assert "line 4: the clock of Europe/Berlin shows this time twice" in twice


def test_first_line_that_looks_like_a_row_is_noted(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("1.5,2.5\n1,2\n3,4\n")
    done = succeed(path, "--target", "2.5")
    assert "line 1: the first line looks like a row, not like the names" in done.err


def test_folder_that_is_not_there_is_named(tmp_path, table_noted):
    path = write_csv(tmp_path / "rows.csv", ["a", "b", "y"], table_noted)
    place = tmp_path / "nodir" / "p.csv"
    text = refusal(path, "--target", "y", "--predictions", place)
    assert f"there is no folder {place.parent}. Create it, or give another name." in text


def test_refused_run_leaves_no_output_that_only_has_a_header(tmp_path):
    path, place = tmp_path / "rows.csv", tmp_path / "p.csv"
    path.write_text("a,y\nx,1\n2,3\n")
    refusal(path, "--target", "y", "--predictions", place)
    assert not place.exists()
    place.write_text("row,prediction,probability,target\n")  # of a run with other options
    path.write_text("a,y\n1,1\n2,3\n")
    succeed(path, "--target", "y", "--predictions", place)
    assert len(read_csv(place)[1]) == 2
    refusal(path, "--target", "y", "--predictions", place)
    assert len(read_csv(place)[1]) == 2


def test_resume_is_not_an_option_but_explained(tmp_path):
    done = run(tmp_path / "rows.csv", "--target", "y", "--resume")
    assert done.code == 2
    assert "the same command resumes, if it has --state" in done.err
