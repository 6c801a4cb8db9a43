"""Rows that the model refuses are bad rows: stopped at or set aside with their place, as others."""

import json

import pytest

import kernelbank as kb
from kernelbank.errors import InvalidArgument
from kernelbank.run import session
from kernelbank.run.status import RunStatus
from support.marks import slow
from support.run_command import (
    make_rows,
    one_slot_model,
    read_csv,
    read_jsonl,
    read_state,
    refusal,
    succeed,
    write_csv,
    write_jsonl,
)

COUNT = 130
X, _ = make_rows(COUNT)
OPTIONS = ("--target", "y", "--task", "classification")
SKIP = ("--on-bad-row", "skip")


@pytest.fixture(autouse=True)
def light(monkeypatch):
    """One cheap slot: it is the rows that are tried here."""
    monkeypatch.setattr(session, "make_model", one_slot_model)


def labelled(path, labels, write=write_csv):
    rows = [(x, label) for (x, _), label in zip(X[: len(labels)].tolist(), labels, strict=True)]
    return write(path, ["a", "y"], rows)


def outputs(folder):
    return ("--predictions", folder / "out.csv", "--state", folder / "state")


def files(folder):
    """What a run has written: predictions, bad rows and the facts of its state."""
    header, arrays = read_state(folder / "state")
    header.pop("timings")
    predictions = header.pop("predictions")
    assert predictions == [str(folder / "out.csv")]
    content = [(folder / name).read_bytes() for name in ("out.csv", "state/bad-rows.jsonl")]
    return content, header, {name: array.tobytes() for name, array in arrays.items()}


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
    assert files(stopped) == files(straight)
    skipped = read_jsonl(straight / "state/bad-rows.jsonl")
    assert [(one["row"], one["where"], one["value"]) for one in skipped] == [
        (41, "s.csv, line 42", "x"),
        (43, "s.csv, line 44", "x"),
        (45, "s.csv, line 46", "z"),
    ]
    assert {(one["column"], one["reason"]) for one in skipped} == {
        ("y", "is one label more than 6")
    }
    assert "--max-classes" in skipped[0]["advice"]
    kept = [n for n in range(len(labels)) if labels[n] not in ("x", "z")]
    assert [int(row[0]) - 1 for row in read_csv(straight / "out.csv")[1]] == kept

    # Resumed with a higher limit: nothing before is lost, and the rows count.
    raised = tmp_path / "raised"
    raised.mkdir()
    refusal(path, *OPTIONS, *limit, *outputs(raised))
    succeed(path, *OPTIONS, "--max-classes", 8, *limit[2:], *outputs(raised))
    rows = read_csv(raised / "out.csv")[1]
    assert len(rows) == len(labels)
    assert rows[:40] == read_csv(straight / "out.csv")[1][:40]


def test_101st_label_is_a_bad_row_by_default(tmp_path):
    path = labelled(tmp_path / "s.jsonl", [f"k{n}" for n in range(120)], write_jsonl)
    message = refusal(path, *OPTIONS, *outputs(tmp_path))
    assert "s.jsonl, line 101, column 'y': 'k100' is one label more than 100." in message
    assert "begin anew with --task regression and another --state;" in message
    assert read_state(tmp_path / "state")[0]["rows"] == 100
    succeed(path, *OPTIONS, *outputs(tmp_path), *SKIP)
    assert len(read_jsonl(tmp_path / "state/bad-rows.jsonl")) == 20


def test_numbers_as_labels_stop_a_run_that_skips(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("a,y\n" + "".join(f"{n % 7},{n}.5\n" for n in range(1000)))
    message = refusal(path, *OPTIONS, *SKIP, *outputs(tmp_path))
    assert "501 of the first 601 rows cannot be used. The first: s.csv, line 102" in message
    assert "If the target is a number, begin anew with --task regression" in message


@pytest.mark.parametrize("delay", [0, 3])
def test_label_that_was_not_named_is_a_bad_row(delay, tmp_path):
    labels = ["cat", "dog", "1.0", "catt", "2", "1", "dog"]
    path = labelled(tmp_path / "s.csv", labels)
    named = (*OPTIONS, "--delay", delay, *outputs(tmp_path))
    message = refusal(path, *named, "--classes", "cat,dog,1")
    assert (
        "s.csv, line 5, column 'y': 'catt' is not one of the 3 classes that were named." in message
    )
    assert (
        "Perhaps 'cat' is meant. If it is a label of its own, give --classes cat,dog,1,catt."
        in message
    )
    # All are known from the start, and the resumed run may name more.
    assert RunStatus.of_state(tmp_path / "state").bank.classes == ("cat", "dog", "1")
    succeed(path, *named, *SKIP, "--classes", "cat,dog,1.0,2")
    assert [one["value"] for one in read_jsonl(tmp_path / "state/bad-rows.jsonl")] == ["catt"]
    assert RunStatus.of_state(tmp_path / "state").bank.classes == ("cat", "dog", "1", "2")
    assert len(read_csv(tmp_path / "out.csv")[1]) == len(labels) - 1
    # But not fewer than the model knows.
    message = refusal(path, *named, "--classes", "cat,dog")
    assert "--classes must name every label that the model knows; '1' is not among them." in message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--classes", "a,b"), "--classes needs --task classification."),
        (("--max-classes", 9), "--max-classes needs --task classification."),
        ((*OPTIONS, "--classes", "a,b", "--max-classes", 9), "with --classes leave it out."),
        (
            (*OPTIONS, "--classes", "a"),
            "--classes must name at least two labels, none twice; got a.",
        ),
        ((*OPTIONS, "--classes", "1,1.0"), "none twice; got 1,1.0."),
    ],
)
def test_wrong_options_of_classes_are_refused(options, words, tmp_path):
    path = labelled(tmp_path / "s.csv", ["a", "b"])
    assert words in refusal(path, "--target", "y", *options)


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


def refused_by_a_bank(target, options):
    """Whether an AutoBank with the same settings refuses to learn the target."""
    given = dict(zip(options[::2], options[1::2], strict=True))
    own = {"lower": given.get("--lower"), "upper": given.get("--upper")}
    if "--task" in given:
        named = given.get("--classes")
        own = {
            "classes": None if named is None else named.split(","),
            "max_classes": given.get("--max-classes"),
        }
    bank = kb.AutoBank(given.get("--task", "regression"), size="small", **own)
    if "--task" not in given:
        target = float(target)
    elif not target:
        target = None
    for n in range(6):
        bank.learn_one([X[n, 0]], str(n % 2) if "--task" in given else n % 2)
    try:
        bank.learn_one([X[7, 0]], target)
    except InvalidArgument:
        return True
    return False


@pytest.mark.parametrize("delay", [0, 2])
@pytest.mark.parametrize("name", REFUSED)
def test_every_target_that_a_bank_refuses_is_a_bad_row(name, delay, tmp_path):
    labels, options, words = REFUSED[name]
    if "no text" not in name:  # which is refused for the sake of the files
        assert refused_by_a_bank(labels[-1], options)
    path = tmp_path / "s.csv"
    lines = [f"{x!r},{label}" for x, label in zip(X[:, 0].tolist(), labels, strict=False)]
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


INPUTS = {
    "too large": ("1e151", (), "is an overflow"),
    "infinite": ("inf", (), "is an overflow"),
    "text": ("x", (), "is not a number"),
    "no time": ("1e300", ("--time", "a"), "time"),
    "no text": ("\udcff", ("--categorical", "a"), "is not UTF-8 text"),
}


@pytest.mark.parametrize("name", INPUTS)
def test_every_input_that_a_bank_refuses_is_a_bad_row(name, tmp_path):
    cell, options, words = INPUTS[name]
    path = tmp_path / "s.csv"
    good = "2024-01-01" if "--time" in options else "1"
    text = f"a,b,y\n{good},1,2\n{good},2,3\n{cell},3,4\n{good},4,5\n"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    message = refusal(path, "--target", "y", *options, *outputs(tmp_path))
    assert "s.csv, line 4, column 'a': " in message
    assert words in message
    succeed(path, "--target", "y", *options, *outputs(tmp_path), *SKIP)
    assert len(read_csv(tmp_path / "out.csv")[1]) == 3


def test_json_of_bad_rows_has_the_fields_of_every_other(tmp_path):
    path = labelled(tmp_path / "s.csv", ["a", "b", "c"])
    succeed(path, *OPTIONS, "--classes", "a,b", *SKIP, *outputs(tmp_path))
    line = (tmp_path / "state/bad-rows.jsonl").read_text()
    assert list(json.loads(line)) == ["row", "where", "column", "value", "reason", "advice"]
