"""Rows that cannot be used, and everything else that cannot be: one line, and nothing is lost."""

import itertools
import json
import signal

import numpy as np
import pyarrow.parquet
import pytest

from kernelbank.cli.run import StopFlag
from kernelbank.io import text as io_text
from kernelbank.run import session
from support.run_command import (
    make_rows,
    one_slot_model,
    read_column,
    read_csv,
    read_jsonl,
    read_state,
    refusal,
    run,
    same_bits,
    succeed,
    write_csv,
)


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    """A file that ends with an open quote is not waited for."""
    monkeypatch.setattr(io_text, "SETTLE_SECONDS", 0.0)


COUNT = 20
X, Y = make_rows(COUNT)

CSV = {
    "text": ("{x},b?,{y}", "b", "b?", "is not a number"),
    "nan": ("{x},NaN,{y}", "b", "NaN", "is missing"),
    "infinite": ("{x},-inf,{y}", "b", "-inf", "is an overflow"),
    "overflow": ("{x},1e999,{y}", "b", "1e999", "is an overflow"),
    "empty": ("{x},,{y}", "b", "", "is missing"),
    "short": ("{x},{x}", None, "{x},{x}", "has 2 cells under 3 columns"),
    "long": ("{x},{x},{y},7", None, "{x},{x},{y},7", "has 4 cells under 3 columns"),
    "target": ("{x},{x},", "y", "", "is missing"),
    "target text": ("{x},{x},high", "y", "high", "is not a number"),
    # Not closed; or, if another one follows, with text after what then closes it.
    "quote": ('{x},"{x},{y}', None, '{x},"{x},{y}', "has "),
    "bytes": ("{x},\udcff,{y}", "b", "\\udcff", "is not a number"),
}
JSON = {
    "text": ('{{"a": {x}, "b": "b?", "y": {y}}}', "b", "b?", "is not a number"),
    "nan": ('{{"a": {x}, "b": NaN, "y": {y}}}', "b", "nan", "is missing"),
    "infinite": ('{{"a": {x}, "b": -Infinity, "y": {y}}}', "b", "-inf", "is an overflow"),
    "overflow": ('{{"a": {x}, "b": 1e999, "y": {y}}}', "b", "inf", "is an overflow"),
    "null": ('{{"a": {x}, "b": null, "y": {y}}}', "b", "None", "is missing"),
    "nested": ('{{"a": {x}, "b": [1], "y": {y}}}', "b", "[1]", "is nested"),
    "missing": ('{{"a": {x}, "y": {y}}}', "b", "None", "is missing"),
    "target": ('{{"a": {x}, "b": {x}}}', "y", "None", "is missing"),
    "broken": ('{{"a": {x}, "b": ', None, '{{"a": {x}, "b":', "is broken JSON"),
    "list": ("[{x}, {x}, {y}]", None, "[{x}, {x}, {y}]", "is not a JSON object"),
}
PLACES = {"first": [0], "middle": [9], "last": [COUNT - 1], "several": [4, 5, 6, 11]}
CASES = [  # every kind of bad row at one of the places, in turn
    pytest.param(kind, name, PLACES[word], id=f"{kind}-{name}-{word}")
    for kind, names in (("csv", CSV), ("jsonl", JSON))
    for name, word in zip(names, itertools.cycle(PLACES))
]


@pytest.fixture(autouse=True)
def light(monkeypatch):
    """One cheap slot: it is the rows that are tried here."""
    monkeypatch.setattr(session, "make_model", one_slot_model)


def written(folder, kind, name, places):
    """A file with bad rows at `places`, and what must be said about the first of them."""
    line, where, value, reason = (CSV if kind == "csv" else JSON)[name]
    lines = ["a,b,y"] if kind == "csv" else []
    for n, (x, y) in enumerate(zip(X.tolist(), Y.tolist(), strict=True)):
        if n in places:
            lines.append(line.format(x=x[0], y=y))
        elif kind == "csv":
            lines.append(f"{x[0]!r},{x[1]!r},{y!r}")
        else:
            lines.append(json.dumps({"a": x[0], "b": x[1], "y": y}))
    path = folder / f"rows.{kind}"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogateescape")
    x, y = X[places[0], 0].item(), Y[places[0]].item()
    return path, where, value.format(x=x, y=y), reason


@pytest.mark.parametrize(("kind", "name", "places"), CASES)
def test_bad_row_stops_the_run_or_is_skipped(kind, name, places, tmp_path):
    path, where, value, reason = written(tmp_path, kind, name, places)
    line = places[0] + (2 if kind == "csv" else 1)
    expected = f"rows.{kind}, line {line}" + ("" if where is None else f", column {where!r}")
    out, state = tmp_path / "out.csv", tmp_path / "state"
    options = ("--target", "y", "--features", "a,b")

    # stop, without and with a state: every row before it is kept
    for more in ((), ("--state", state)):
        target = out if more else tmp_path / "alone.csv"
        message = refusal(path, *options, "--predictions", target, *more)
        assert f"kernelbank: {expected}: " in message
        assert f"{' '.join(value.split())!r} {reason}" in message
        assert "--on-bad-row skip" in message
        rows = read_csv(target)[1] if target.stat().st_size else []
        assert [row[0] for row in rows] == [str(n + 1) for n in range(places[0])]
    header, _ = read_state(state)
    assert (header["rows"], header["rejected_rows"]["count"]) == (places[0], 0)

    # resume and skip; then compare with a run that skipped from the start
    skip = ("--on-bad-row", "skip")
    done = succeed(path, *options, "--predictions", out, "--state", state, *skip)
    assert f"{len(places)} skipped, in {state}/bad-rows.jsonl" in done.err
    skipped = read_jsonl(state / "bad-rows.jsonl")
    assert [one["row"] for one in skipped] == [place + 1 for place in places]
    first = {"row": places[0] + 1, "where": f"rows.{kind}, line {line}", "column": where}
    words = {key: skipped[0].pop(key) for key in ("reason", "advice")}
    assert {**first, "value": value} == skipped[0]
    assert words["reason"].startswith(reason)
    assert words["advice"] in message  # what a run that stops here says
    kept = [n for n in range(COUNT) if n not in places]
    trace = one_slot_model().run(X[kept], Y[kept])
    assert same_bits(read_column(out, "prediction"), trace.predictions)
    assert read_column(out, "row").tolist() == [n + 1 for n in kept]


def test_bad_row_after_quoted_line_breaks_has_the_right_line(tmp_path):
    text = 'note,a,y\n"one\ntwo\nthree",1,2\nplain,2,3\n"x\r\ny",3,?\nlast,4,5\n'
    path = tmp_path / "s.csv"
    path.write_bytes(text.encode())
    message = refusal(path, "--target", "y", "--features", "a")
    assert "s.csv, line 6, column 'y': '?' is not a number." in message


def test_bad_first_row_is_not_said_to_come_after_saved_ones(tmp_path):
    path = write_csv(tmp_path / "s.csv", ["a", "y"], [("x", 2), (2, 3)])
    message = refusal(path, "--target", "y", "--state", tmp_path / "state")
    assert "saved" not in message
    assert message.endswith("or skip such rows with --on-bad-row skip.\n")


def test_bad_row_after_max_rows_is_ignored(tmp_path):
    path = write_csv(tmp_path / "s.csv", ["a", "y"], [(1, 2), (2, 3), ("x", 4), (4, 5)])
    for every in (1, 10_000):
        succeed(path, "--target", "y", "--max-rows", 2, "--checkpoint-every", every)


def test_bad_time_is_named_with_its_line_and_column(tmp_path):
    rows = [("2024-01-01", 1), ("yesterday", 2), ("1e300", 3), ("", 4), ("1704067200", 5)]
    path = write_csv(tmp_path / "s.csv", ["t", "y"], rows)
    options = ("--target", "y", "--time", "t")
    assert "line 3, column 't': 'yesterday' is not a time" in refusal(path, *options)
    succeed(path, *options, "--on-bad-row", "skip", "--state", tmp_path / "s")
    skipped = read_jsonl(tmp_path / "s" / "bad-rows.jsonl")
    assert [(one["row"], one["value"]) for one in skipped] == [
        (2, "yesterday"),
        (3, "1e300"),
        (4, ""),
    ]


def test_json_input_that_begins_with_broken_rows_is_read(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text('{"a": \n[1]\n{"a": 1, "y": 2}\n{"a": 2, "y": 3}\n')
    message = refusal("-", "--target", "y", stdin=path)
    assert "standard input, line 1" in message
    state = tmp_path / "state"
    succeed("-", "--target", "y", "--on-bad-row", "skip", "--state", state, stdin=path)
    header = read_state(state)[0]
    assert (header["rows"], header["rejected_rows"]["count"]) == (2, 2)
    assert read_state(state)[0]["features"] == ["a"]


@pytest.mark.parametrize("text", ["{}\n", '{}\n{"a": 1, "y": 2}\n'])
def test_json_objects_without_keys_are_bad_rows(text, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(text)
    for source, stdin in ((path, None), ("-", path)):
        refusal(source, "--target", "y", "--predict-missing", stdin=stdin)


# --- advice ---------------------------------------------------------------------------------------

TEXT = "If the column is text, use --categorical k; if it is a time, use --time k"
TIME = "If it is a time, use --time k; if the column is text, use --categorical k"
OUT = "to leave the column out, name the others: --features a"
ADVICE = {
    "text": ("a,k,y\n1,north,2\n", (), f"{TEXT}; {OUT}."),
    "a time": ("a,k,y\n1,2024-01-31 12:00,2\n", (), f"{TIME}; {OUT}."),
    "text beside a time": (
        "a,t,j,k,y\n1,2024-01-31,u,v,2\n",
        ("--time", "t", "--categorical", "j"),
        f"If the column is text, use --categorical j,k; {OUT}.",
    ),
    "a name with a comma": (
        'a,"k, 2",y\n1,north,2\n',
        (),
        """use --categorical '"k, 2"'; if it is a time, use --time '"k, 2"'""",
    ),
    "text in the target": ("a,y\n1,up\n", (), "If the targets are labels, use --task class"),
    "an empty cell": (
        "a,k,y\n1,,2\n",
        (),
        f"If inputs may be missing, use --allow-missing; {OUT}.",
    ),
    "an empty category": ("k,y\n,2\n", ("--categorical", "k"), "use --allow-missing. To go on"),
    "an empty target": (
        "a,y\n1,\n",
        (),
        "To predict rows without a target, use --predict-missing.",
    ),
    "an empty label": ("a,y\n1,\n", ("--task", "classification"), "use --predict-missing."),
    "a comma": ('a,y\n"0,94",2\n', (), "If the comma is its decimal point, use --decimal ','."),
    "a comma in the target": ("a;y\n1;-0,94\n", ("--delimiter", ";"), "use --decimal ','."),
    "a point": ("a,y\n0.5,2\n", ("--decimal", ","), "leave out --decimal ','."),
    "semicolons": ("a;b;y\n1;2;3\n", (), "use --delimiter ';'."),
    "tabs": ("a\tb\ty\n1\t2\t3\n", (), "use --delimiter tab."),
    "commas": ("a,b,y\n1,2,3\n", ("--delimiter", ";"), "use --delimiter ','."),
    "a counter": ("a,k,y\n1,7,2\n", ("--time", "k"), "name it in --features, not in --time"),
}


@pytest.mark.parametrize("name", ADVICE)
def test_advice_names_the_option_that_keeps_the_rows(name, tmp_path):
    text, options, advice = ADVICE[name]
    path = tmp_path / "s.csv"
    path.write_text(text)
    assert advice in refusal(path, "--target", "y", *options)


def test_advice_for_a_first_row_names_the_options_of_all_its_columns(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("when,site,a,b,y\n2024-01-01T00:00,north,1.5,,3\n2024-01-02,south,2,1,4\n")
    text = refusal(path, "--target", "y")
    advice = "--time when --categorical site --allow-missing"
    assert f"not numbers: 'when', 'site', 'b'. Use {advice}." in text
    succeed(path, "--target", "y", *advice.split())


def test_advice_after_good_rows_names_no_option_that_a_state_would_refuse(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("a,y\n1,2\n2,fault\n")
    state = ("--state", tmp_path / "state")
    assert "'fault' is not a number. Everything" in refusal(path, "--target", "y", *state)
    path.write_text("a,y\n1,2\n8b,3\n")
    advice = "If the whole column is text, begin anew with --categorical a"
    assert f"{advice}. To go on" in refusal(path, "--target", "y")
    message = refusal(path, "--target", "y", "--state", tmp_path / "other")
    assert f"{advice} and another --state. Everything before it is saved." in message


def test_advice_for_other_sources_than_csv_names_no_option_of_csv(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text('{"a;b": "0,94", "y": 2}\n')
    assert "--decimal" not in refusal(path, "--target", "y")
    assert "--delimiter" not in refusal(path, "--target", "b")


@pytest.mark.parametrize("predictions", ["out.csv", "out.parquet"])
def test_options_may_change_while_nothing_is_predicted(predictions, tmp_path):
    rows = [(x, "uv"[n % 2], y) for n, (x, y) in enumerate(zip(X[:, 0], Y, strict=True))]
    path = write_csv(tmp_path / "s.csv", ["a", "k", "y"], rows)
    outputs = ("--state", tmp_path / "state", "--predictions", tmp_path / predictions)
    assert "--categorical k" in refusal(path, "--target", "y", *outputs)
    assert "none of the 20 rows" in refusal(path, "--target", "y", *outputs, "--on-bad-row", "skip")
    succeed(path, "--target", "y", *outputs, "--categorical", "k")
    header = read_state(tmp_path / "state")[0]
    assert (header["rows"], header["rejected_rows"]["count"]) == (COUNT, 0)
    assert (tmp_path / "state" / "bad-rows.jsonl").read_text() == ""
    # From now on they may not.
    assert "with other options" in refusal(path, "--target", "y", *outputs)


def mixed_rows(path, bad, good):
    """A file whose bad rows come first."""
    path.write_text("a,y\n" + "x,1\n" * bad + "1,2\n" * good)
    return path


def test_run_that_can_use_no_row_stops_with_an_error(tmp_path):
    path = mixed_rows(tmp_path / "s.csv", 3, 0)
    more = ("--target", "y", "--on-bad-row", "skip", "--predictions", tmp_path / "o.csv")
    message = refusal(path, *more)
    assert "s.csv: none of the 3 rows can be used. The first: s.csv, line 2, column 'a'" in message
    assert "use --categorical a" in message
    assert f"All bad rows are in {tmp_path}/o.csv.bad-rows.jsonl." in message


def test_run_that_can_use_less_than_half_of_the_first_rows_stops_and_goes_on(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("a,y\n" + "1,2\n" * 300 + "x,1\n" * 501 + "1,2\n" * 400)
    more = ("--target", "y", "--on-bad-row", "skip", "--state", tmp_path / "state")
    more += ("--predictions", tmp_path / "o.csv", "--checkpoint-every", 7)
    message = refusal(path, *more)
    assert "s.csv: 501 of the first 801 rows cannot be used. The first: s.csv, line 302" in message
    assert "To go on all the same, give the same command again: kernelbank run" in message
    assert len(read_jsonl(tmp_path / "state" / "bad-rows.jsonl")) == 501
    assert len(read_csv(tmp_path / "o.csv")[1]) == 300
    succeed(path, *more)
    assert len(read_csv(tmp_path / "o.csv")[1]) == 700


@pytest.mark.parametrize(("good", "bad"), [(500, 500), (600, 900)])
def test_run_that_can_use_half_of_the_first_rows_does_not_stop(good, bad, tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("a,y\n" + "1,2\n" * good + "x,1\n" * bad)
    succeed(path, "--target", "y", "--on-bad-row", "skip", "--state", tmp_path / "state")


# --- other refusals -------------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path):
    return write_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([X, Y]))


def test_source_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "blank.csv").write_text("\n\n")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "s.txt").write_text("a,y\n1,2\n")
    (tmp_path / "s.csv.gz").write_text("a,y\n1,2\n")
    (tmp_path / "twice.csv").write_text("a,a,y\n1,2,3\n")
    for name, message in {
        "none.csv": "no such file",
        "empty.csv": "is empty",
        "blank.csv": "no header",
        "folder.csv": "is a folder",
        "s.txt": "this kind of source is not known",
        "s.csv.gz": "not a gzip file",
        "twice.csv": "more than one column",
    }.items():
        more = ("--state", tmp_path / "state", "--predictions", tmp_path / "out.csv")
        refused = refusal(tmp_path / name, "--target", "y", *more)
        assert message in refused
        assert "open_source" not in refused
        assert not (tmp_path / "state").exists()
        assert not (tmp_path / "out.csv").exists()


def test_source_without_rows_gives_an_empty_run(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("a,y\n")
    options = ("--predictions", tmp_path / "o.csv", "--state", tmp_path / "s")
    done = run(path, "--target", "y", *options)
    assert done.code == 2
    *summary, last = done.err.splitlines()
    assert summary[0].split(maxsplit=1) == ["rows", "no rows"]
    assert last == (
        "kernelbank: s.csv: there are no rows. Check the source; if it may be without rows, use "
        "--allow-empty."
    )
    assert (tmp_path / "o.csv").read_text() == "row,prediction,lower,upper,target\n"
    log = run(path, "--target", "y", "--log-json", "--predictions", tmp_path / "o.parquet").err
    assert [json.loads(line)["event"] for line in log.splitlines()] == ["end", "error"]
    table = pyarrow.parquet.read_table(tmp_path / "o.parquet")
    assert (table.num_rows, table.column_names) == (
        0,
        ["row", "prediction", "lower", "upper", "target"],
    )
    done = succeed(path, "--target", "y", *options, "--allow-empty")
    assert "nan" not in done.err
    with path.open("a") as file:  # and then some rows come
        file.write("1,2\n3,4\n")
    succeed(path, "--target", "y", "--predictions", tmp_path / "o.csv", "--state", tmp_path / "s")
    assert len(read_csv(tmp_path / "o.csv")[1]) == 2


@pytest.mark.parametrize("name", ["out.txt", "out", "out.csv.gz", "http://host/out.csv"])
def test_predictions_of_an_unknown_kind_are_refused(name, source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "--predictions must end with" in refusal(source, "--target", "y", "--predictions", name)


def test_output_that_cannot_be_written_is_refused(source, tmp_path):
    block = tmp_path / "block"
    block.write_text("a file in the way")
    target = ("--target", "y")
    assert f"{block} is a file" in refusal(source, *target, "--state", block)
    refusal(source, *target, "--state", block / "state")
    refusal(source, *target, "--predictions", block / "out.csv")
    refusal(source, *target, "--predictions", block / "out.parquet")
    refusal(source, *target, "--predictions", tmp_path / "none" / "out.csv")
    assert block.read_text() == "a file in the way"


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_existing_files_are_refused_and_not_touched(name, source, tmp_path):
    out = tmp_path / name
    if name.endswith("csv"):
        out.write_text("mine\n")
    else:
        out.mkdir()
        (out / "part-000000.parquet").write_text("mine\n")
    for more in ((), ("--state", tmp_path / "state")):
        assert f"{out} exists" in refusal(source, "--target", "y", "--predictions", out, *more)
    assert (out if out.is_file() else out / "part-000000.parquet").read_text() == "mine\n"


def test_predictions_over_the_source_are_refused(source):
    before = source.read_bytes()
    assert "exists" in refusal(source, "--target", "y", "--predictions", source)
    assert source.read_bytes() == before


def test_wrong_usage_is_refused_with_the_option(source):
    for options in (
        (),
        ("--target", "y", "--lags", -1),
        ("--target", "y", "--coverage", 1),
        ("--target", "y", "--checkpoint-every", 0),
        ("--target", "y", "--preset", "other"),
        ("--target", "y", "--stop-when-idle", 0),
    ):
        done = run(source, *options)
        assert done.code == 2
        assert done.err.splitlines()[-1].startswith("Error: ")


def test_resuming_with_other_options_or_source_is_refused(source, tmp_path):
    state = ("--state", tmp_path / "state")
    succeed(source, "--target", "y", *state, "--max-rows", 10)
    message = refusal(source, "--target", "a", "--lags", 2, *state)
    assert "--target was y, now a; --lags was 0, now 2" in message
    other = write_csv(tmp_path / "other.csv", ["a", "b", "y"], np.column_stack([Y, X]))
    assert "not the source" in refusal(other, "--target", "y", *state)
    succeed(source, "--target", "y", *state)


def test_stop_signal_saves_everything_and_says_how_to_resume(source, tmp_path, monkeypatch):
    class Pressed(StopFlag):
        def __init__(self):
            self.signal_number = signal.SIGINT

    monkeypatch.setattr("kernelbank.cli.run.StopFlag", Pressed)
    state = ("--state", tmp_path / "state", "--predictions", tmp_path / "out.csv")
    done = run(source, "--target", "y", *state, "--checkpoint-every", 5)
    assert done.code == 130
    assert done.err.splitlines()[-1].startswith(
        "Stopped. Nothing is lost. To resume, give the same command"
    )
    assert f"kernelbank run {source} --target y" in done.err
    assert len(read_csv(tmp_path / "out.csv")[1]) == 5
    monkeypatch.undo()
    monkeypatch.setattr(session, "make_model", one_slot_model)
    assert succeed(source, "--target", "y", *state).err.startswith("Resuming after 5 rows.\n")
    assert len(read_csv(tmp_path / "out.csv")[1]) == COUNT
    monkeypatch.setattr("kernelbank.cli.run.StopFlag", Pressed)
    assert "Without --state" in run(source, "--target", "y").err


def test_bad_row_may_be_corrected_after_a_stop(tmp_path):
    """What was not read yet may change; what was read may not."""
    text = "a,b,y\n" + "".join(f"{n},{n % 3},{n % 5}\n" for n in range(40))
    path = tmp_path / "s.csv"
    path.write_text(text.replace("\n20,2,0\n", "\n20,two,0\n"))
    options = (
        "--target",
        "y",
        "--state",
        tmp_path / "state",
        "--predictions",
        tmp_path / "out.csv",
    )
    assert "line 22, column 'b': 'two'" in refusal(path, *options)
    path.write_text(text.replace("\n3,0,3\n", "\n3,0,4\n"))
    assert "the first 20 rows are not those that were read before" in refusal(path, *options)
    path.write_text(text)
    succeed(path, *options)
    whole = ("--target", "y", "--predictions", tmp_path / "whole.csv")
    succeed(path, *whole)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
