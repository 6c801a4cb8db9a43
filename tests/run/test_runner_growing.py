"""`kernelbank run` on a file that is still being written: a line is a row when its end has come."""

import os
import subprocess
import sys
import time

import pytest

from kernelbank.io import text as io_text
from kernelbank.run import session
from support.run_command import (
    make_rows,
    one_slot_model,
    read_csv,
    read_jsonl,
    read_state,
    refusal,
    run,
    succeed,
    write_csv,
    write_jsonl,
)

X, Y = make_rows(12)
NAMES = ["a", "b", "y"]
ROWS = [[round(float(value), 4) for value in (*x, y)] for x, y in zip(X, Y, strict=True)]


@pytest.fixture(autouse=True)
def light(monkeypatch):
    """One cheap slot, and no waiting: it is the rows that are tried here."""
    monkeypatch.setattr(session, "make_model", one_slot_model)
    monkeypatch.setattr(io_text, "SETTLE_SECONDS", 0.0)


@pytest.fixture(params=["csv", "jsonl"])
def whole(request, tmp_path):
    """A file, and its bytes when it is complete."""
    path = tmp_path / f"rows.{request.param}"
    (write_csv if request.param == "csv" else write_jsonl)(path, NAMES, ROWS)
    return path, path.read_bytes()


def options_in(folder, *more):
    outputs = ("--predictions", folder / "out.csv", "--state", folder / "state")
    return ("--target", "y", *outputs, "--checkpoint-every", "5", *more)


def leftovers(folder):
    """Everything that must be as if the file had been complete from the start."""
    header, arrays = read_state(folder / "state")
    del header["timings"], header["predictions"], header["source"]["address"]
    bits = {name: (array.shape, array.tobytes()) for name, array in arrays.items()}
    bad_rows = (folder / "state/bad-rows.jsonl").read_bytes()
    return (folder / "out.csv").read_bytes(), bad_rows, header, bits


def undisturbed(tmp_path, name, data, *more):
    folder = tmp_path / "undisturbed"
    folder.mkdir()
    (folder / name).write_bytes(data)
    succeed(folder / name, *options_in(folder, *more))
    return leftovers(folder)


def test_file_cut_within_a_line_goes_on_as_if_it_had_been_complete(tmp_path, whole):
    path, data = whole
    wanted = undisturbed(tmp_path, path.name, data)
    last = data.rstrip().rfind(b"\n")
    for cut in (last, *range(last + 1, len(data) - 2, 5), len(data) - 2, len(data) - 1):
        folder = tmp_path / f"cut{cut}"
        folder.mkdir()
        path.write_bytes(data[:cut])
        first = run(path, *options_in(folder))
        assert first.code == 0, first.err
        rows = read_csv(folder / "out.csv")[1]
        ended = data[:cut].count(b"\n") - (path.suffix == ".csv")
        is_used = "It is in the results, but not in --state" in first.err
        assert len(rows) == ended + is_used
        assert read_state(folder / "state")[0]["rows"] == ended
        again = run(path, *options_in(folder))  # nothing has changed: the same results
        assert (again.code, read_csv(folder / "out.csv")[1]) == (0, rows)
        path.write_bytes(data)
        done = succeed(path, *options_in(folder))
        assert f"Resuming after {ended} row" in done.err
        assert leftovers(folder) == wanted


def test_last_row_is_in_predictions_summary_and_report(tmp_path, whole):
    path, data = whole
    path.write_bytes(data[:-1])
    done = succeed(path, *options_in(tmp_path, "--report", tmp_path / "page.html"))
    where = f"{path.name}, line {12 + (path.suffix == '.csv')}"
    assert f"note: {where}: the source ends before the end of this row." in done.err
    assert "give --complete" in done.err
    assert "rows                     12" in done.err
    assert len(read_csv(tmp_path / "out.csv")[1]) == 12
    assert (tmp_path / "page.html").exists()
    assert read_state(tmp_path / "state")[0]["rows"] == 11


def test_complete_file_ends_with_a_row(tmp_path, whole):
    path, data = whole
    path.write_bytes(data[:-1])
    succeed(path, *options_in(tmp_path))
    done = succeed(path, *options_in(tmp_path, "--complete"))
    assert "note" not in done.err
    header = read_state(tmp_path / "state")[0]
    assert header["rows"] == 12
    assert header["position"]["open"]
    path.write_bytes(data + data.splitlines(keepends=True)[-1])  # its end and a row have come
    succeed(path, *options_in(tmp_path))
    assert len(read_csv(tmp_path / "out.csv")[1]) == 13


def test_complete_file_that_grows_within_its_last_row_is_refused(tmp_path, whole):
    path, data = whole
    path.write_bytes(data[:-1])
    succeed(path, *options_in(tmp_path, "--complete"))
    with path.open("ab") as file:
        file.write(b"5\n")
    message = refusal(path, *options_in(tmp_path))
    assert "had no line end then, and is longer now" in message
    assert "--complete" in message


@pytest.mark.parametrize("skip", [(), ("--on-bad-row", "skip")])
def test_bad_row_without_its_end_is_not_a_row_yet(tmp_path, whole, skip):
    path, data = whole
    cut = data.rstrip().rfind(b"\n") + 3  # a number without the others, or an object without an end
    path.write_bytes(data[:cut])
    done = succeed(path, *options_in(tmp_path, *skip))
    assert len(read_jsonl(tmp_path / "state/bad-rows.jsonl")) == len(skip) // 2
    if not skip:
        assert "The source ends before its end, so it is not used. If the source is" in done.err
    refused = run(path, *options_in(tmp_path, "--complete"))
    assert refused.code == 2
    assert f"line {11 + (path.suffix == '.csv') + 1}" in refused.err
    path.write_bytes(data)
    succeed(path, *options_in(tmp_path, *skip))
    assert leftovers(tmp_path) == undisturbed(tmp_path, path.name, data, *skip)


def test_quoted_cell_that_is_open_at_the_end_goes_on(tmp_path):
    data = b'a,kind,y\n1,u,2\n2,u,3\n3,"a\nb\nc",4\n4,u,5\n'
    more = ("--categorical", "kind", "--on-bad-row", "skip")
    wanted = undisturbed(tmp_path, "rows.csv", data, *more)
    for cut in range(data.index(b'"'), len(data)):
        folder = tmp_path / f"cut{cut}"
        folder.mkdir()
        path = folder / "rows.csv"
        path.write_bytes(data[:cut])
        succeed(path, *options_in(folder, *more))
        path.write_bytes(data)
        succeed(path, *options_in(folder, *more))
        assert leftovers(folder) == wanted


def test_quote_that_is_never_closed_stops_the_run(tmp_path):
    """Its line has an end, so it is a bad row; what comes after it is not passed over in silence."""
    path = tmp_path / "rows.csv"
    path.write_text('a,b,y\n1,2,3\n"2,3,4\n3,4,5\n')
    assert "line 3: '\"2,3,4' has a quote that is not closed" in refusal(
        path, *options_in(tmp_path)
    )
    path.write_text('a,b,y\n1,2,3\n"2",3,4\n3,4,5\n')
    succeed(path, *options_in(tmp_path))
    assert len(read_csv(tmp_path / "out.csv")[1]) == 3


def test_header_without_its_end_is_refused(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,y")
    assert "the header has no end yet" in refusal(path, *options_in(tmp_path))
    assert "there are no rows" in run(path, *options_in(tmp_path, "--complete")).err
    path.write_text("a,b,yield\n1,2,3\n")
    succeed(path, "--target", "yield", *options_in(tmp_path)[2:])


def test_first_row_without_its_end_may_have_more_columns_later(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1, "y": 2}')
    succeed(path, *options_in(tmp_path))
    path.write_text('{"a": 1, "y": 2, "b": 7}\n{"a": 2, "y": 3, "b": 8}\n')
    succeed(path, *options_in(tmp_path))
    assert len(read_csv(tmp_path / "out.csv")[1]) == 2
    assert read_state(tmp_path / "state")[0]["features"] == ["a", "b"]


@pytest.mark.parametrize("most", [11, 12, 13])
def test_max_rows_counts_the_row_without_its_end(tmp_path, whole, most):
    path, data = whole
    path.write_bytes(data[:-1])
    more = ("--max-rows", most)
    for _ in range(2):
        succeed(path, *options_in(tmp_path, *more))
        assert len(read_csv(tmp_path / "out.csv")[1]) == min(most, 12)
        assert read_state(tmp_path / "state")[0]["rows"] == 11
    path.write_bytes(data)
    succeed(path, *options_in(tmp_path))
    assert leftovers(tmp_path) == undisturbed(tmp_path, path.name, data)


@pytest.mark.parametrize("every", [1, 3])
def test_input_that_ends_within_a_line_is_sent_again(tmp_path, whole, every):
    path, data = whole
    more = options_in(tmp_path, "--checkpoint-every", every)
    path.write_bytes(data[:-4])
    first = run("-", *more, stdin=path)
    assert first.code == 0, first.err
    assert read_state(tmp_path / "state")[0]["rows"] == 11
    path.write_bytes(data)
    succeed("-", *more, stdin=path)
    rows = (tmp_path / "out.csv").read_bytes()
    assert rows == undisturbed(tmp_path, path.name, data)[0]


def test_redis_gets_the_last_row_when_it_is_complete(tmp_path, redis_server):
    path = tmp_path / "rows.csv"
    path.write_text("a,y\n1,2\n2,3\n3,4")
    place = f"redis://127.0.0.1:{redis_server.port}/{tmp_path.name}"
    options = ("--target", "y", "--predictions", place, "--state", tmp_path / "state")
    done = succeed(path, *options)
    assert f"It is not written to {place}?db=0, which cannot take it back" in done.err
    assert redis_server.client.xlen(tmp_path.name) == 2
    path.write_text("a,y\n1,2\n2,3\n3,456")
    succeed(path, *options, "--complete")
    (*_, last) = redis_server.client.xrange(tmp_path.name)
    assert (redis_server.client.xlen(tmp_path.name), last[1][b"target"]) == (3, b"456.0")


def test_compressed_file_is_complete_by_itself(tmp_path):
    import gzip

    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"a,y\n1,2\n2,3"))
    assert "note" not in succeed(path, *options_in(tmp_path)).err
    assert read_state(tmp_path / "state")[0]["rows"] == 2


def test_rows_that_were_read_must_stay_as_they_were(tmp_path):
    """Also far behind the first bytes of the file."""
    path = tmp_path / "rows.csv"
    lines = [f"{n},{n % 7},{n % 5}\n" for n in range(20_000)]
    path.write_text("a,b,y\n" + "".join(lines))
    options = options_in(tmp_path, "--checkpoint-every", 10_000)
    succeed(path, *options, "--max-rows", 19_000)
    before = leftovers(tmp_path)
    lines[15_000] = "15000,6,9\n"
    path.write_text("a,b,y\n" + "".join(lines))
    message = refusal(path, *options)
    assert "the first 19000 rows are not those that were read before" in message
    assert "Restore them, or start a new run" in message
    assert leftovers(tmp_path) == before
    lines[15_000] = f"{15_000},{15_000 % 7},{15_000 % 5}\n"
    lines[19_500] = "1,2,3\n"  # not read yet: it may be corrected
    path.write_text("a,b,y\n" + "".join(lines))
    succeed(path, *options)


def test_sigterm_stops_a_run_that_waits_for_the_end_of_a_line(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,y\n1,2\n2,3\n3,")
    ahead = time.time() + 1000
    os.utime(path, (ahead, ahead))  # it looks as if it were being written
    script = (
        "from kernelbank.io import text as io_text\n"
        "io_text.SETTLE_SECONDS = 1e9\n"
        "from kernelbank.cli import commands\n"
        "commands.run()\n"
    )
    words = ["run", path, *options_in(tmp_path), "--size", "small", "--log-json"]
    process = subprocess.Popen([sys.executable, "-c", script, *map(str, words)])
    state = tmp_path / "state/state.kb"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (
        state.exists() and read_state(tmp_path / "state")[0]["rows"] == 2
    ):
        time.sleep(0.05)
    process.terminate()
    assert process.wait(60) == 143
    assert read_state(tmp_path / "state")[0]["rows"] == 2
