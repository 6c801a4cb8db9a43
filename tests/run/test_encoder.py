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
from kernelbank.run.status import RunStatus
from support import run_command
from support.run_command import (
    ROWS,
    X,
    Y,
    check_predictions,
    make_rows,
    one_slot_model,
    read_column,
    read_csv,
    read_state,
    refusal,
    run,
    same_bits,
    succeed,
    write_csv,
)
from support.source_fixtures import RedisFixture

folder, source = run_command.folder, run_command.source


# --- columns --------------------------------------------------------------------------------------


TIME = ("--target", "y", "--time", "a")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--target", "z"), "--target: there is no column 'z'. There are: a, b, y."),
        (("--target", "y", "--features", "a,c"), "--features: there is no column 'c'"),
        (("--target", "y", "--time", "c"), "--time: there is no column 'c'"),
        (("--target", "y", "--features", "a,a"), "--features: column 'a' is named twice"),
        (("--target", "y", "--features", "y"), "--target and --features: column 'y'"),
        (("--target", "y", "--keep", "z"), "--keep: there is no column 'z'. There are: a, b, y."),
        (("--target", "y", "--keep", "a,a"), "--keep: the predictions have a column 'a' already."),
        (("--target", "y", "--time-format", "%d.%m.%Y"), "--time-format needs --time"),
        (("--target", "y", "--timezone", "Europe/Berlin"), "--timezone needs --time"),
        ((*TIME, "--time-format", "%H:%M"), "must name at least day, month and year"),
        ((*TIME, "--time-format", "%d.%m.%q"), "must name at least day, month and year"),
        ((*TIME, "--timezone", "../etc/passwd"), "must be the name of a time zone"),
        (("--target", "y", "--categorical", "a,a"), "--categorical: column 'a'"),
    ],
)
def test_columns_and_formats_that_do_not_exist_are_refused(options, message, source, tmp_path):
    assert message in refusal(source, *options)
    # A state that nothing was written to does not hold the mistake.
    more = ("--state", tmp_path / "state", "--predictions", tmp_path / "out.csv")
    assert message in refusal(source, *options, *more)
    succeed(source, "--target", "y", "--max-rows", 5, *more)


def test_categories_beyond_the_limit_are_counted(tmp_path, light):
    words = [f"k{n % 130}" for n in range(ROWS)]
    path = write_csv(tmp_path / "s.csv", ["a", "k", "y"], zip(X[:, 0], words, Y, strict=True))
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
    forms = {  # by name: how a time is written, and options
        "epoch": (lambda t: repr(t.timestamp()), ()),
        "zulu": (lambda t: t.isoformat().replace("+00:00", "Z"), ()),
        "none": (lambda t: t.replace(tzinfo=None).isoformat(sep=" "), ()),
        "east": (lambda t: t.astimezone(east).isoformat(), ()),
        "digits": ("{:%Y%m%d%H%M%S}".format, ()),
        "milliseconds": (lambda t: f"{t.timestamp() * 1000:.0f}", ()),
        "points": ("{:%d.%m.%Y %H:%M}".format, ()),
        "named": ("{:%d/%m/%y %H:%M}".format, ("--time-format", "%d/%m/%y %H:%M")),
        "clock": ("{:%Y-%m-%d %H:%M}".format, ("--timezone", "Europe/Berlin")),
        "zone": ("{:%Y-%m-%dT%H:%M}-01:00".format, ("--timezone", "Etc/GMT+1")),
    }
    waves = np.array([encode_time(moment.timestamp()) for moment in moments])
    trace = one_slot_model().run(np.column_stack([X[:, 0], waves]), Y)
    for name, (form, options) in forms.items():
        rows = zip(map(form, moments), X[:, 0], Y, strict=True)
        path = write_csv(tmp_path / f"{name}.csv", ["t", "a", "y"], rows)
        out = tmp_path / f"{name}.out.csv"
        succeed(path, "--target", "y", "--time", "t", "--predictions", out, *options)
        check_predictions(out, trace, Y)
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


# --- `--keep`: columns of the source beside the predictions ---


COUNT = 40
KEPT_X, KEPT_Y = make_rows(COUNT)
WHEN = [f"2024-01-{1 + n % 28:02d}" for n in range(COUNT)]
SITE = [["north", "", 'a, "b"', "été"][n % 4] for n in range(COUNT)]
OWN = ["row", "prediction", "lower", "upper", "target"]


@pytest.fixture
def kept_source(tmp_path):
    rows = list(zip(WHEN, KEPT_X[:, 0], SITE, KEPT_Y, strict=True))
    rows[7] = ("2024-01-08", "x", "bad", 1.0)
    return write_csv(tmp_path / "s.csv", ["when", "a", "site, 1", "y"], rows)


OPTIONS = ("--target", "y", "--features", "a", "--on-bad-row", "skip", "--keep", 'when,"site, 1",a')


@pytest.mark.usefixtures("light")
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


@pytest.mark.usefixtures("light")
def test_kept_values_of_every_kind_are_copied_and_reject_no_row(tmp_path):
    values = [1, 0.5, True, None, [1, "é"], {"b": 2}, "\ud800", "text"]
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps({"a": 1, "k": v, "y": 2}) + "\n" for v in values))
    out = tmp_path / "out.csv"
    succeed(path, "--target", "y", "--features", "a", "--keep", "k", "--predictions", out)
    assert [row[5] for row in read_csv(out)[1]] == [
        "1", "0.5", "true", "", '[1, "\\u00e9"]', '{"b": 2}', "\\ud800", "text",
    ]  # fmt: skip


@pytest.mark.usefixtures("light")
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


# --- `kernelbank run` says once what is probably not what its user means, and goes on. ---


N = np.arange(NOTED_ROWS)
FAR = np.where(N % 20 == 10, -999, np.sin(N))
CLOCK = ["2024-03-31T01:30", "2024-03-31T02:30", "2024-10-27T02:00", "2024-10-27T02:30"]
CLOCK += ["2024-10-27T02:00", "2024-10-27T02:30", "2024-10-27T03:00"]
BACKWARDS = ["2024-01-01T00:00", "2024-01-01T01:00", "2024-01-01T01:00", "2024-01-01T00:30"]
BERLIN = ("--time", "t", "--timezone", "Europe/Berlin")
LONG = r"column 'c' has whole numbers beyond 2\^53, which are rounded"
NOTED = {  # by name: columns besides a, b and y; options; what is noted
    "ordinary columns": ({"flag": N % 50 == 0, "rain": np.where(N % 4, 0, N % 13)}, (), []),
    "far value": (
        {"c": FAR},
        ("--missing", "NA"),
        [r"-999 has come \d+ times in 'c', far from all other values.*use --missing NA,-999\.$"],
    ),
    "far target": ({"y": FAR}, (), ["times in 'y', far from all other values"]),
    "far value that is named": ({"c": FAR}, ("--missing", "NA,-999"), []),
    "one value": ({"c": np.full(NOTED_ROWS, 7)}, (), ["column 'c' has been 7 in all 150 rows"]),
    "no value": (
        {"c": np.full(NOTED_ROWS, math.nan)},
        ("--allow-missing",),
        ["column 'c' has had no value in 150 rows so far"],
    ),
    "one target": ({"y": np.full(NOTED_ROWS, 3)}, (), ["Is --target the right column?"]),
    "long numbers": ({"c": 2**55 + 8 * N}, (), [LONG]),
    "times that repeat or run backwards": (
        {"t": BACKWARDS},
        ("--time", "t"),
        [
            "line 4: its time is that of the row before",
            "line 5: its time is before that of the row",
        ],
    ),
    "hours of a changed clock": (
        {"t": CLOCK},
        BERLIN,
        ["line 3: the clock of Europe/Berlin .* never", "line 4: the clock of .* shows .* twice"],
    ),
}


@pytest.mark.parametrize("name", NOTED)
def test_what_is_probably_not_meant_is_noted_once(tmp_path, name):
    columns, options, expected = NOTED[name]
    X, y = make_rows(NOTED_ROWS)
    columns = {"a": X[:, 0], "b": X[:, 1], "y": y, **columns}
    path = write_csv(tmp_path / "rows.csv", list(columns), zip(*columns.values(), strict=False))
    text = succeed(path, "--target", "y", *options).err
    notes = [line for line in text.splitlines() if line.startswith("note: ")]
    assert len(notes) == len(expected), notes
    for note, words in zip(notes, expected, strict=True):
        assert re.search(words, note)


def test_first_line_that_looks_like_a_row_is_noted(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("1.5,2.5\n1,2\n3,4\n")
    done = succeed(path, "--target", "2.5")
    assert "line 1: the first line looks like a row, not like the names" in done.err


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
