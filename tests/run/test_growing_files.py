"""`kernelbank run` on a file that is still being written, or followed and rotated."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from kernelbank.io import text as io_text
from kernelbank.run.state_folder import CheckpointDir
from support.crash_scenarios import BAD_ROWS, PREDICTIONS, SAVED, SCENARIOS, STATE
from support.failing_calls import CallFault
from support.run_command import (
    leftovers,
    make_rows,
    read_csv,
    read_jsonl,
    read_state,
    refusal,
    run,
    succeed,
    write_csv,
    write_jsonl,
)
from support.source_fixtures import RedisFixture

X, Y = make_rows(12)
NAMES = ["a", "b", "y"]
ROWS = [[round(float(value), 4) for value in (*x, y)] for x, y in zip(X, Y, strict=True)]


pytestmark = pytest.mark.usefixtures("light")


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    """A file that may still grow is not waited for."""
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


def test_complete_file_ends_with_a_row_that_may_not_grow(tmp_path, whole):
    path, data = whole
    path.write_bytes(data[:-1])
    succeed(path, *options_in(tmp_path))
    done = succeed(path, *options_in(tmp_path, "--complete"))
    assert "note" not in done.err
    header = read_state(tmp_path / "state")[0]
    assert header["rows"] == 12
    assert header["position"]["open"]
    path.write_bytes(data[:-1] + b"5\n")
    assert "had no line end then, and is longer now" in refusal(path, *options_in(tmp_path))
    path.write_bytes(data + data.splitlines(keepends=True)[-1])  # its end and a row have come
    succeed(path, *options_in(tmp_path))
    assert len(read_csv(tmp_path / "out.csv")[1]) == 13


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


def test_input_that_ends_within_a_line_is_sent_again(tmp_path, whole):
    path, data = whole
    more = options_in(tmp_path, "--checkpoint-every", 3)
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


def test_rows_that_were_read_must_stay_as_they_were(tmp_path):
    """Also far behind the first bytes of the file."""
    path = tmp_path / "rows.csv"
    lines = ["a,b,y\n", *(f"{n},{n % 7},{n % 5}\n" for n in range(20_000))]
    path.write_text("".join(lines))
    options = options_in(tmp_path, "--checkpoint-every", 10_000)
    succeed(path, *options, "--max-rows", 19_000)
    before = leftovers(tmp_path)
    path.write_text("".join([*lines[:15_000], "15000,6,9\n", *lines[15_001:]]))
    assert "the first 19000 rows are not those that were read before" in refusal(path, *options)
    assert leftovers(tmp_path) == before


# --- `kernelbank run --follow`, killed and resumed while its file grows and is rotated ---


FOLLOW = "--follow --stop-when-idle 0.1"


class GrowingRun:
    """A run over a log, to which the rows of `messy.csv` are written bit by bit."""

    def __init__(self, scenarios):
        self.scenarios = scenarios
        self.folder = scenarios.folder()
        self.log = self.folder / "log.csv"
        header, *rows = (scenarios.root / "messy.csv").read_text().splitlines(keepends=True)
        self.header, self.rest = header, "".join(rows)
        self._clock = time.time_ns() - 10**13

    def write(self, size):
        """Write so many bytes, which may end within a line."""
        with self.log.open("a") as file:
            file.write(self.rest[:size] if file.tell() else self.header + self.rest[:size])
        self.rest = self.rest[size:]
        self._clock += 10**9
        os.utime(self.log, ns=(self._clock, self._clock))  # no file has to settle

    def rotate(self):
        """Rename, at the end of a line."""
        end = self.rest.find("\n") + 1
        self.write(end if self.log.read_bytes()[-1:] != b"\n" else 0)
        for number in range(9, 0, -1):
            older = Path(f"{self.log}.{number}")
            if older.exists():
                older.rename(f"{self.log}.{number + 1}")
        self.log.rename(f"{self.log}.1")

    def args(self, more=FOLLOW):
        args = SCENARIOS["messy"].args(self.folder, None)
        args[1] = "log.csv"
        return [*args, *more.split()]

    def run(self, fault=None, **how):
        return self.scenarios.forks.run(self.args(), self.folder, fault, **how)

    def outcome(self):
        """All but the places of rows, which depend on the rotation."""
        header, arrays = read_state(self.folder / "state")
        bad = [(one["row"], one["column"], one["value"]) for one in self.bad_rows()]
        model = {name: (array.shape, array.tobytes()) for name, array in arrays.items()}
        return (self.folder / "predictions.csv").read_bytes(), bad, header["rows"], model

    def bad_rows(self):
        return read_jsonl(self.folder / "state/bad-rows.jsonl")


@pytest.fixture(scope="module")
def wanted(scenarios):
    """What a plain run leaves over all rows in one file."""
    plain = GrowingRun(scenarios)
    plain.write(10**6)
    ended = scenarios.forks.run(plain.args(""), plain.folder)
    assert ended.code == 0, ended.stderr
    return plain.outcome()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_followed_run_killed_and_rotated_at_random_leaves_the_same_bytes(scenarios, wanted, seed):
    draw = random.Random(seed)
    growing, before = GrowingRun(scenarios), scenarios.forks.kills
    growing.write(700)
    assert growing.run(
        CallFault("rename", SAVED, 2, "before")
    ).killed  # no row is saved, but the first file is
    while growing.rest:
        growing.write(draw.randint(0, 2000))
        if not growing.rest:
            break
        if draw.random() < 0.3:
            for _ in range(draw.randint(1, 3)):
                growing.rotate()
                growing.write(draw.randint(1, 500))
        call, part = draw.choice(
            [("write", PREDICTIONS), ("fsync", STATE), ("rename", SAVED), ("write", BAD_ROWS)]
        )
        when = draw.choice(["before", "after"] if call != "write" else ["before", "half", "after"])
        fault = CallFault(call, part, draw.randint(1, 3), when)
        ended = growing.run(fault if draw.random() < 0.8 else None)
        assert ended.killed or ended.code == 0, ended.stderr
    growing.write(10**6)
    ended = growing.run()
    assert ended.code == 0, ended.stderr
    assert growing.outcome() == wanted
    assert scenarios.forks.kills > before


def test_rotation_under_a_running_process_loses_nothing(scenarios, wanted):
    growing = GrowingRun(scenarios)
    growing.write(500)
    started = scenarios.forks.start(growing.args("--follow"), growing.folder)
    state = growing.folder / "state/state.kb"
    deadline = time.monotonic() + 60
    while not state.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    written = 0
    while growing.rest:
        growing.write(1500)
        growing.rotate()
        growing.write(400)
        written = sum(path.read_bytes().count(b"\n") for path in growing.folder.glob("log.csv*"))
    while time.monotonic() < deadline:
        if read_state(growing.folder / "state")[0]["position"]["rows"] == 170:
            break
        time.sleep(0.05)
    os.kill(started["pid"], signal.SIGTERM)
    ended = scenarios.forks.wait(started)
    assert ended.code == 143, ended.stderr
    assert written >= 170
    assert growing.outcome() == wanted


# --- `kernelbank run`, killed before it commits its first row: nothing is lost without a word. ---


ROWS_FIRST = 120


class Killed(BaseException):
    """The process ends at once."""


@pytest.fixture
def killed(monkeypatch):
    """Run a command that is killed when it has predicted a block and would commit it."""
    write = CheckpointDir.write

    def killed(*words, **more):
        writes = []

        def counted(folder, header, arrays):
            writes.append(header)
            if len(writes) > 1:
                raise Killed
            write(folder, header, arrays)

        with monkeypatch.context() as patch:
            patch.setattr(CheckpointDir, "write", counted)
            with pytest.raises(Killed):
                run(*words, **more)

    return killed


def rows_file(path, seed=0):
    X, y = make_rows(ROWS_FIRST, seed)
    return write_csv(path, ["a", "b", "y"], np.column_stack([X, y]))


def words(folder, source, *more):
    outputs = ("--predictions", folder / "p.csv", "--state", folder / "run")
    return (source, "--target", "y", *outputs, *more)


def followed(folder):
    return words(folder, folder / "log.csv", "--follow", "--stop-when-idle", "0.5")


@pytest.fixture
def expected(tmp_path):
    """The predictions of a run over two files that nobody killed."""
    folder = tmp_path / "expected"
    folder.mkdir()
    rows_file(folder / "log.csv.1")
    rows_file(folder / "log.csv", seed=1)
    lines = [(folder / name).read_text().splitlines() for name in ("log.csv.1", "log.csv")]
    (folder / "all.csv").write_text("\n".join(lines[0] + lines[1][1:]) + "\n")
    succeed(*words(folder, folder / "all.csv"))
    return (folder / "p.csv").read_bytes()


def renamed(log):
    log.rename(f"{log}.1")
    rows_file(log, seed=1)


def copied_and_cut(log):
    shutil.copy(log, f"{log}.1")
    other = rows_file(log.with_name("other"), seed=1)
    log.write_bytes(other.read_bytes())  # in place: the same inode


@pytest.mark.parametrize("rotate", [renamed, copied_and_cut])
def test_run_killed_before_its_first_rows_are_committed_reads_the_rotated_file(
    killed, expected, tmp_path, rotate
):
    log = rows_file(tmp_path / "log.csv")
    killed(*followed(tmp_path))
    assert len(read_csv(tmp_path / "p.csv")[1]) == ROWS_FIRST
    assert read_state(tmp_path / "run")[0]["rows"] == 0
    rotate(log)
    succeed(*followed(tmp_path))
    assert (tmp_path / "p.csv").read_bytes() == expected


def compressed(log):
    log.with_name("log.csv.1.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    rows_file(log, seed=1)


def cut(log):
    log.write_bytes(rows_file(log.with_name("other"), seed=1).read_bytes())


def emptied(log):
    log.write_text("a,b,y\n")


@pytest.mark.parametrize("change", [compressed, cut, emptied])
def test_rows_that_are_gone_before_their_first_commit_are_refused(killed, tmp_path, change):
    log = rows_file(tmp_path / "log.csv")
    killed(*followed(tmp_path))
    before = (tmp_path / "p.csv").read_bytes()
    change(log)
    assert "It was removed, compressed or rewritten" in refusal(*followed(tmp_path))
    assert (tmp_path / "p.csv").read_bytes() == before


def test_another_file_of_the_same_name_is_refused(killed, tmp_path):
    path = rows_file(tmp_path / "rows.csv")
    killed(*words(tmp_path, path))
    path.rename(tmp_path / "earlier.csv")
    rows_file(path, seed=1)
    assert "the first rows are not those that were read before" in refusal(*words(tmp_path, path))
    (tmp_path / "earlier.csv").rename(path)
    succeed(*words(tmp_path, path))
    assert len(read_csv(tmp_path / "p.csv")[1]) == ROWS_FIRST


def test_other_rows_on_standard_input_are_refused(killed, tmp_path):
    first, second = rows_file(tmp_path / "1.csv"), rows_file(tmp_path / "2.csv", seed=1)
    killed(*words(tmp_path, "-"), stdin=first)
    before = (tmp_path / "p.csv").read_bytes()
    assert "are not those that were read before" in refusal(*words(tmp_path, "-"), stdin=second)
    assert (tmp_path / "p.csv").read_bytes() == before
    succeed(*words(tmp_path, "-"), stdin=first)
    assert (tmp_path / "p.csv").read_bytes() == before


def test_options_may_change_and_a_bad_first_row_may_be_corrected(killed, tmp_path):
    path = rows_file(tmp_path / "rows.csv")
    killed(*words(tmp_path, path))
    succeed(*words(tmp_path, path, "--lags", 1))  # another run: nothing was committed
    folder = tmp_path / "bad"
    folder.mkdir()
    bad = folder / "bad.csv"
    bad.write_text("a,b,y\n1,x,2\n1,2,3\n")
    assert "is not a number" in refusal(*words(folder, bad))
    bad.write_text("a,b,y\n1,5,2\n1,2,3\n")
    succeed(*words(folder, bad))


def test_first_block_is_committed_at_once(tmp_path, monkeypatch):
    path = rows_file(tmp_path / "rows.csv")
    headers = []
    write = CheckpointDir.write

    def counted(folder, header, arrays):
        headers.append((header["rows"], header["before_rows"]))
        write(folder, header, arrays)

    monkeypatch.setattr(CheckpointDir, "write", counted)
    monkeypatch.setattr("kernelbank.run.runner.BLOCK_ROWS", 50)
    succeed(*words(tmp_path, path))
    assert headers == [(0, True), (50, False), (120, False)]


@pytest.mark.parametrize("how", ["trimmed", "made again"])
def test_stream_that_lost_its_first_rows_before_their_commit_is_refused(
    killed, redis_server, tmp_path, how
):
    X, y = make_rows(ROWS_FIRST)
    rows = [dict(zip("aby", (*x, target), strict=True)) for x, target in zip(X, y, strict=True)]
    fixture = RedisFixture(redis_server, rows)
    client, name = redis_server.client, fixture.name
    command = words(tmp_path, fixture.address, "--stop-when-idle", "0.5")
    killed(*command)
    if how == "trimmed":
        client.xtrim(name, maxlen=20, approximate=False)
        loss, count = "100 entries are missing", 20
    else:
        client.delete(name)
        for row in rows:
            client.xadd(name, {key: str(value) for key, value in row.items()})
        loss, count = "entries may be missing", ROWS_FIRST
    before = (tmp_path / "p.csv").read_bytes()
    assert loss in refusal(*command)
    assert (tmp_path / "p.csv").read_bytes() == before
    assert loss in succeed(*command, "--allow-gaps").err
    assert len(read_csv(tmp_path / "p.csv")[1]) == count
