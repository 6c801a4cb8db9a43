"""`kernelbank run` on any text: it counts every row, or says one line; never a traceback."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernelbank.io import text as io_text
from kernelbank.io.sources import open_source
from kernelbank.run import session
from support.run_command import one_slot_model, read_csv, read_jsonl, run

ODD_CELLS = [
    *("", "x", "NaN", "inf", "1e999", "1e150", "1e-320", "-0", '"a', '"1"', '"a\nb"', "été", "1_0"),
    *("\uff12", "true", " 7 ", "null", "2024-01-01", "\x00", "\r", "\u2028"),
]
ODD_VALUES = [
    *("null", "true", '"x"', "NaN", "-Infinity", "1e999", "[1]", "{}", '""', '"\\ud800"', '"3"'),
    "9" * 400,
]
NUMBERS = st.integers(-5, 5).map(str) | st.floats(-1e3, 1e3).map(repr)
CELLS, VALUES = (NUMBERS | st.sampled_from(odd) for odd in (ODD_CELLS, ODD_VALUES))
LINES = st.one_of(
    st.tuples(CELLS, CELLS, CELLS).map(",".join),
    st.lists(CELLS, max_size=5).map(",".join),
    st.text(max_size=20),
)
OBJECTS = st.one_of(
    st.tuples(VALUES, VALUES, VALUES).map(lambda v: f'{{"a": {v[0]}, "k": {v[1]}, "y": {v[2]}}}'),
    st.sampled_from(["{}", "[]", "{", "", '{"a": 1}', '{"y": 1}', '{"a": 1, "a": 2, "y": 3}']),
    st.text(max_size=20),
)
OPTIONS = st.sampled_from(
    [
        "--checkpoint-every 2 --categorical k",
        "--time k",
        "--features a --allow-missing --predict-missing",
        "--categorical k --allow-missing --predict-missing --delay 2",
        "--features a --task classification",
        "--features a --task classification --predict-missing --delay 1",
        "--lags 2 --features=",
    ]
).map(str.split)


@pytest.fixture(scope="module", autouse=True)
def light():
    """One cheap slot: it is the rows that are tried here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "make_model", one_slot_model)
        patch.setattr(io_text, "SETTLE_SECONDS", 0.0)
        yield


NONE_USED = "rows can be used"


def count_rows(path, stdin):
    """The rows of the file, and whether the last one has no end.

    Standard input is JSON lines if it begins with {, else CSV.
    """
    data = path.read_bytes()
    if stdin and not data.strip(b" \t\r\n\xef\xbb\xbf").startswith(b"{"):
        path = path.with_name("input.csv")
        path.write_bytes(data)
    is_last = False
    count = 0
    for block in open_source(path, complete=False).blocks():
        count += len(block)
        is_last = block.provisional and block.is_unended(len(block) - 1)
    return count, is_last


def check(name, text, options, *, skip, stdin=False):
    with tempfile.TemporaryDirectory() as folder:
        path, out, state = Path(folder, name), Path(folder, "out.csv"), Path(folder, "state")
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        more = ["--target", "y", "--predictions", out, "--state", state, *options]
        more += ["--on-bad-row", "skip"] if skip else []
        done = run("-" if stdin else path, *more, "--quiet", stdin=path if stdin else None)
        assert done.out == ""
        written = len(read_csv(out)[1]) if out.exists() and out.stat().st_size else 0
        if done.code == 0 or NONE_USED in done.err:
            skipped = read_jsonl(state / "bad-rows.jsonl")
            rows, has_open_row = count_rows(path, stdin)
            # If it is bad, a row without its end is not a row yet.
            assert written + len(skipped) in ((rows,) if skip else (rows, rows - has_open_row))
            assert skip or not skipped
            assert all(one["reason"] and one["where"] for one in skipped)
            assert (done.code == 0) == bool(written)
        if done.code == 0:
            assert done.err == ""
            if not skip:
                completed = run("-" if stdin else path, *more, "--complete", "--quiet",
                                stdin=path if stdin else None)  # fmt: skip
                assert completed.code == 0 or "kernelbank: " in completed.err
        else:
            assert done.code == 2
            assert done.err.startswith("kernelbank: ")
            assert done.err.count("\n") == 1
            assert done.err.endswith("\n")
        if not skip and done.code and "skip" in done.err:  # a stopped run can be resumed
            again = run("-" if stdin else path, *more, "--on-bad-row", "skip", "--quiet",
                        stdin=path if stdin else None)  # fmt: skip
            assert again.code == 0 or NONE_USED in again.err, again.err
            assert len(read_csv(out)[1] if out.stat().st_size else []) >= written


@settings(max_examples=20)
@given(
    st.lists(LINES, max_size=12),
    OPTIONS,
    st.booleans(),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
)
@example(['1,"a\nb",2', "x,u,3", "4,u,5"], (), True, False, "\n")
def test_random_csv_counts_every_row_or_is_refused(lines, options, skip, stdin, end):
    check("s.csv", end.join(["a,k,y", *lines, ""]), options, skip=skip, stdin=stdin)


@settings(max_examples=20)
@given(st.text(max_size=60), st.booleans())
def test_random_text_counts_every_row_or_is_refused(text, stdin):
    check("s.csv", text, (), skip=True, stdin=stdin)


@settings(max_examples=20)
@given(st.lists(OBJECTS, max_size=12), OPTIONS, st.booleans(), st.booleans())
@example(["{", '{"a": 1, "k": 2, "y": 3}'], (), False, True)
def test_random_json_counts_every_row_or_is_refused(lines, options, skip, stdin):
    check("s.jsonl", "\n".join([*lines, ""]), options, skip=skip, stdin=stdin)
