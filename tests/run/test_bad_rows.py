"""Rows that cannot be used, and errors in the midst of a run: one line, and nothing is lost."""

import itertools
import json

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.io.source import RowBlock
from kernelbank.run.status import RunStatus
from support.marks import slow
from support.run_command import (
    leftovers,
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

pytestmark = pytest.mark.usefixtures("light")


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
    "quote": ('{x},"{x},{y}', None, '{x},"{x},{y}', "has a quote that is not closed"),
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
        rows = read_csv(target)[1] if target.exists() else []
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


def test_bad_row_after_max_rows_is_ignored(tmp_path):
    path = write_csv(tmp_path / "s.csv", ["a", "y"], [(1, 2), (2, 3), ("x", 4), (4, 5)])
    for every in (1, 10_000):
        succeed(path, "--target", "y", "--max-rows", 2, "--checkpoint-every", every)


def test_bad_time_is_named_with_its_line_and_column(tmp_path):
    rows = [("2024-01-01", 1), ("yesterday", 2), ("1e300", 3), ("", 4), ("1704153600", 5)]
    path = write_csv(tmp_path / "s.csv", ["t", "y"], rows)
    options = ("--target", "y", "--time", "t")
    assert "line 3, column 't': 'yesterday' is not a time" in refusal(path, *options)
    succeed(path, *options, "--on-bad-row", "skip", "--state", tmp_path / "s")
    skipped = read_jsonl(tmp_path / "s" / "bad-rows.jsonl")
    assert [one["value"] for one in skipped] == ["yesterday", "1e300", ""]


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


# --- advice ---------------------------------------------------------------------------------------

TEXT = "If the column is text, use --categorical k"
TIME = "If it is a time, use --time k; if the column is text, use --categorical k"
OUT = "to leave the column out, name the others: --features a"
ADVICE = {
    "text": ("a,k,y\n1,north,2\n", (), f"{TEXT}; {OUT}."),
    "a time": ("a,k,y\n1,2024-01-31 12:00,2\n", (), f"{TIME}; {OUT}."),
    "a time whose format has to be named": (
        "a,k,y\n1,13/6/2024,2\n",
        (),
        f"If it is a time, use --time k --time-format '%d/%m/%Y'; if the column is text, use "
        f"--categorical k; {OUT}.",
    ),
    "a word for nothing": (
        "a,k,y\n1,---,2\n",
        (),
        f"{TEXT}; if it means that there is no value, use --missing ---; {OUT}.",
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
    "a comma": ('a,y\n"0,94",2\n', (), "If the comma is its decimal point, use --decimal ','."),
    "a point": ("a,y\n0.5,2\n", ("--decimal", ","), "leave out --decimal ','."),
    "semicolons": ("a;b;y\n1;2;3\n", (), "use --delimiter ';'."),
    "tabs": ("a\tb\ty\n1\t2\t3\n", (), "use --delimiter tab."),
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


def test_run_that_can_use_no_row_stops_with_an_error(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("a,y\n" + "x,1\n" * 3)
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
    assert "To go on all the same, give the same command again." in message
    assert len(read_jsonl(tmp_path / "state" / "bad-rows.jsonl")) == 501
    assert len(read_csv(tmp_path / "o.csv")[1]) == 300
    succeed(path, *more)
    assert len(read_csv(tmp_path / "o.csv")[1]) == 700


# --- other refusals -------------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path):
    return write_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([X, Y]))


def test_source_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "s.csv.gz").write_text("a,y\n1,2\n")
    (tmp_path / "twice.csv").write_text("a,a,y\n1,2,3\n")
    for name, message in {
        "none.csv": "no such file",
        "empty.csv": "is empty",
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
    done = succeed(path, "--target", "y", *options, "--allow-empty")
    assert "nan" not in done.err
    with path.open("a") as file:  # and then some rows come
        file.write("1,2\n3,4\n")
    succeed(path, "--target", "y", "--predictions", tmp_path / "o.csv", "--state", tmp_path / "s")
    assert len(read_csv(tmp_path / "o.csv")[1]) == 2


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


# --- Rows that the model refuses are bad rows: stopped at or set aside with their place, as others ---


LONG = 130
LONG_X, _ = make_rows(LONG)
OPTIONS = ("--target", "y", "--task", "classification")
SKIP = ("--on-bad-row", "skip")


def labelled(path, labels, write=write_csv):
    rows = [
        (x, label) for (x, _), label in zip(LONG_X[: len(labels)].tolist(), labels, strict=True)
    ]
    return write(path, ["a", "y"], rows)


def outputs(folder):
    return ("--predictions", folder / "out.csv", "--state", folder / "state")


@pytest.mark.parametrize(
    ("delay", "every"), [(7, 1), (0, 9), (0, 10_000), slow(0, 1), slow(7, 9), slow(7, 10_000)]
)
def test_label_beyond_the_limit_is_a_bad_row(delay, every, tmp_path):
    # Labels 0 to 5 come, then x (the seventh) twice among known ones.
    labels = [f"k{n % 6}" for n in range(40)] + ["x", "k1", "x", "k2", "z"] + ["k3"] * 10
    path = labelled(tmp_path / "s.csv", labels)
    limit = ("--max-classes", 6, "--delay", delay, "--checkpoint-every", every)

    stopped = tmp_path / "stopped"
    stopped.mkdir()
    message = refusal(path, *OPTIONS, *limit, *outputs(stopped))
    assert "s.csv, line 42, column 'y': 'x' is one label more than 6. " in message
    assert "raise --max-classes (6), or name them all with --classes." in message
    assert "Everything before it is saved." in message
    assert [row[0] for row in read_csv(stopped / "out.csv")[1]] == [str(n + 1) for n in range(40)]
    assert read_state(stopped / "state")[0]["rows"] == 40

    # Resumed with skip, and skipping from the start: the same, to the byte.
    succeed(path, *OPTIONS, *limit, *outputs(stopped), *SKIP)
    straight = tmp_path / "straight"
    straight.mkdir()
    done = succeed(path, *OPTIONS, *limit, *outputs(straight), *SKIP)
    assert "3 skipped, in" in done.err
    assert leftovers(stopped) == leftovers(straight)
    skipped = read_jsonl(straight / "state/bad-rows.jsonl")
    assert [(one["row"], one["value"]) for one in skipped] == [(41, "x"), (43, "x"), (45, "z")]
    kept = [n for n in range(len(labels)) if labels[n] not in ("x", "z")]
    assert [int(row[0]) - 1 for row in read_csv(straight / "out.csv")[1]] == kept

    # With a higher limit the rows count.
    succeed(path, *OPTIONS, "--max-classes", 8, *limit[2:], "--predictions", tmp_path / "all.csv")
    assert len(read_csv(tmp_path / "all.csv")[1]) == len(labels)


@pytest.mark.parametrize("delay", [0, 3])
def test_label_that_was_not_named_is_a_bad_row(delay, tmp_path):
    path = labelled(tmp_path / "s.csv", ["cat", "dog", "1.0", "catt", "2", "1", "dog"])
    named = (*OPTIONS, "--delay", delay, *outputs(tmp_path))
    message = refusal(path, *named, "--classes", "cat,dog,1")
    assert "line 5, column 'y': 'catt' is not one of the 3 classes that were named." in message
    assert "Perhaps 'cat' is meant. If it is a label of its own, give --classes" in message
    # All are known from the start, and the resumed run may name more, but not fewer.
    assert RunStatus.of_state(tmp_path / "state").bank.classes == ("cat", "dog", "1")
    succeed(path, *named, *SKIP, "--classes", "cat,dog,1.0,2")
    assert RunStatus.of_state(tmp_path / "state").bank.classes == ("cat", "dog", "1", "2")
    assert len(read_csv(tmp_path / "out.csv")[1]) == 6
    assert "--classes must name every label" in refusal(path, *named, "--classes", "cat,dog")


# --- everything else that a model refuses is a bad row before it comes there ----------------------

REFUSED = {
    "label beyond the limit": (
        ["0", "1"] * 3 + ["2"],
        (*OPTIONS, "--max-classes", 2),
        "one label more",
    ),
    "label not named": (["0", "1"] * 3 + ["2"], (*OPTIONS, "--classes", "0,1"), "not one of the 2"),
    "missing label": (["0", "1"] * 3 + [""], OPTIONS, "is missing"),
    "label that is no text": (["0", "1"] * 3 + ["\udcff"], OPTIONS, "is not UTF-8 text"),
    "target below": ([0, 1] * 3 + [-2], ("--target", "y", "--lower", 0), "is below --lower 0"),
    "target above": ([0, 1] * 3 + [2], ("--target", "y", "--upper", 1), "is above --upper 1"),
    "target too large": ([0, 1] * 3 + ["1e151"], ("--target", "y"), "is an overflow"),
    "infinite target": ([0, 1] * 3 + ["-inf"], ("--target", "y"), "is an overflow"),
    "missing target": ([0, 1] * 3 + ["nan"], ("--target", "y"), "is missing"),
}


@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize("name", REFUSED)
def test_every_target_that_a_bank_refuses_is_a_bad_row(name, delay, tmp_path):
    labels, options, words = REFUSED[name]
    path = tmp_path / "s.csv"
    lines = [f"{x!r},{label}" for x, label in zip(LONG_X[:, 0].tolist(), labels, strict=False)]
    text = "\n".join(["a,y", *lines, f"1.0,{labels[0]}"]) + "\n"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    options += ("--delay", delay)
    message = refusal(path, *options, *outputs(tmp_path))
    assert f"s.csv, line {len(labels) + 1}, column 'y': " in message
    assert words in message
    assert read_state(tmp_path / "state")[0]["rows"] == len(labels) - 1
    succeed(path, *options, *outputs(tmp_path), *SKIP)
    (skipped,) = read_jsonl(tmp_path / "state/bad-rows.jsonl")
    assert skipped["row"] == len(labels)
    assert words in skipped["reason"]
    assert len(read_csv(tmp_path / "out.csv")[1]) == len(labels)


# --- Errors in the midst of a run: they name their place, and the rows before them are committed ---


class Broken(Exception):
    """An error that is not ours."""


@pytest.fixture
def long_source(tmp_path):
    rows = np.column_stack([LONG_X, LONG_X[:, 0]])
    return write_csv(tmp_path / "s.csv", ["a", "b", "y"], rows)


def message_of(error, *words):
    """What a run that this error ends says: in one line, or as notes of an error of our own."""
    if not isinstance(error, Broken):
        return refusal(*words)
    with pytest.raises(Broken) as caught:
        refusal(*words)
    return " ".join(caught.value.__notes__)


@pytest.mark.parametrize(
    ("error", "predictions"),
    [(Broken("?"), "out.csv"), (OSError(5, "Input/output error"), "out.parquet")],
)
def test_any_error_names_its_place_and_loses_no_row_before(
    error, predictions, long_source, tmp_path, monkeypatch
):
    monkeypatch.setattr("kernelbank.run.runner.BLOCK_ROWS", 50)
    options = ("--target", "y", "--predictions", tmp_path / predictions, "--state", tmp_path / "st")
    parse = RowBlock.parse

    def fail(self, *words, **more):
        if self.first >= 100:
            raise error
        return parse(self, *words, **more)

    with monkeypatch.context() as patched:
        patched.setattr(RowBlock, "parse", fail)
        message = message_of(error, long_source, *options)
    assert "From s.csv, line 102 to s.csv, line 131." in message
    assert "Nothing is lost. To resume, give the same command again" in message
    header = read_state(tmp_path / "st")[0]
    assert header["rows"] == 100
    succeed(long_source, *options)
    assert read_state(tmp_path / "st")[0]["rows"] == LONG


def test_error_of_the_model_leaves_the_last_checkpoint(long_source, tmp_path, monkeypatch):
    """In the midst of a batch the model may be ahead of the predictions: nothing is committed."""
    options = ("--target", "y", "--predictions", tmp_path / "out.csv", "--state", tmp_path / "st")
    options += ("--checkpoint-every", 40)
    with monkeypatch.context() as patched:
        run = kb.AutoBank.run

        def fail(self, *words, **more):
            found = run(self, *words, **more)
            if self.samples > 100:
                raise MemoryError("not enough memory")
            return found

        patched.setattr(kb.AutoBank, "run", fail)
        message = refusal(long_source, *options)
    assert "From s.csv, line " in message
    assert 40 <= read_state(tmp_path / "st")[0]["rows"] <= 100
    succeed(long_source, *options)
    other = tmp_path / "other.csv"
    succeed(long_source, "--target", "y", "--predictions", other)
    assert other.read_bytes() == (tmp_path / "out.csv").read_bytes()
