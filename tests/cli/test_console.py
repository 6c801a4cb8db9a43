"""What a run prints, and standard error in every state."""

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

from kernelbank.cli.run import stop_on_signals
from support.run_command import leftovers, make_rows, read_state, run, succeed, write_csv

CLEAR = "\r\x1b[K"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    X, y = make_rows(3000)
    path = tmp_path_factory.mktemp("rows") / "s.csv"
    write_csv(path, ["a", "b", "y"], np.column_stack([X, y]))
    succeed(path, "--target", "y", "--quiet")  # what has to be compiled is compiled now
    return path


def on_terminal(columns, source, *options):
    """What a terminal of so many columns is sent, and the exit code."""
    reading, writing = pty.openpty()
    fcntl.ioctl(writing, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    sent = []

    def read():
        with contextlib.suppress(OSError):  # Linux's way of saying that nobody writes any more
            while piece := os.read(reading, 65536):
                sent.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    with open(writing, "w", encoding="utf-8") as terminal:
        done = run(source, "--target", "y", *options, terminal=terminal)
    reader.join()
    os.close(reading)
    assert done.out == ""
    return b"".join(sent).decode(), done.code


@pytest.fixture
def often(monkeypatch):
    """A terminal that can, drawn on after every block, and a file that is read little by little."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("kernelbank.cli.console._LINE_PERIOD", 0.0)
    monkeypatch.setattr("kernelbank.io.text.CHUNK_BYTES", 4096)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("columns", [40, 120])
def test_terminal_shows_one_updated_line_and_a_summary(columns, source, tmp_path):
    out = tmp_path / "out.csv"
    sent, code = on_terminal(columns, source, "--predictions", out, "--checkpoint-every", 100)
    assert code == 0
    first, *drawn, last = sent.split(CLEAR)
    assert first == ""
    assert drawn[0].startswith("Starting")
    lives = drawn[1:]
    assert len(lives) > 20
    # One line, within its width, and gone before the table.
    assert [t for t in drawn if not (len(t) < columns and t.isprintable())] == []
    assert last.startswith("rows ")
    assert not re.search(r"[\x00-\x09\x0b\x0c\x0e-\x1f]", last)
    # What matters most is there at any width.
    for text in lives[5:-1]:
        assert re.match(r" *[\d,]+ rows  RMSE +\d", text)
        assert columns < 80 or re.search(r"  baseline +[\d.]+  +[\d,]+/s$", text)
    # Numbers do not jump: as soon as all is there, each part keeps its place.
    starts = {text.index("RMSE") for text in lives[5:]}
    assert len(starts) <= 2
    check_end(last.replace("\r\n", "\n"), columns, out)


def check_end(text, columns, out):
    """The table has two columns: labels, and what they say, which begin at the same place."""
    lines = text.splitlines()
    assert all(len(line) <= columns for line in lines if str(out) not in line)
    place = re.match(r"rows +", lines[0]).end()
    assert all(line[place - 1] == " " and line[place] != " " for line in lines)
    said = {line[:place].strip(): line[place:] for line in lines}
    assert {"time", "RMSE", "bad rows"} <= set(said)
    assert (said["rows"], said["predictions"]) == ("3,000", str(out))


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("more", [("--quiet",), ("--log-json",), ()])
def test_quiet_logged_or_dumb_terminal_has_no_updated_line(more, source, monkeypatch):
    if not more:
        monkeypatch.setenv("TERM", "dumb")
    sent, code = on_terminal(80, source, "--max-rows", 50, *more)
    assert code == 0
    assert "\x1b" not in sent
    assert "Starting" not in sent
    assert ("--quiet" in more) == (sent == "")


@pytest.mark.usefixtures("often")
def test_updated_line_is_cleared_before_an_error(tmp_path):
    path = write_csv(tmp_path / "s.csv", ["a", "y"], [(1, 2), ("x", 3)])
    sent, code = on_terminal(80, path)
    assert code == 2
    assert sent.split(CLEAR)[-1].startswith("kernelbank: s.csv, line 3, column 'a'")


@pytest.mark.usefixtures("often")
def test_output_without_a_terminal_is_plain_text(source, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    state, out = tmp_path / "state", tmp_path / "out.csv"
    options = ("--target", "y", "--predictions", out, "--state", state)
    done = succeed(source, *options, "--max-rows", 600)
    assert done.err.replace("\n", "").isprintable()
    lines = done.err.splitlines()
    assert lines[0].split() == ["rows", "600"]
    assert lines[-2].split() == ["predictions", str(out)]
    assert lines[-1].split() == ["state", str(state)]
    again = succeed(source, *options).err.splitlines()
    assert again[0] == "Resuming after 600 rows."
    assert again[2].split() == ["done", "before", "600"]


# --- Standard error that is full, closed or gone: the run goes on, with the same results ---


SOURCE = Path(__file__).parents[2] / "src"
COUNT = 300


@pytest.fixture(scope="module")
def stream_source(tmp_path_factory):
    X, y = make_rows(COUNT)
    path = tmp_path_factory.mktemp("rows") / "s.csv"
    return write_csv(path, ["a", "b", "y"], np.column_stack([X, y]))


def started(folder, stream_source, *more, **streams):
    """`kernelbank run` as a process, with other standard streams."""
    words = [sys.executable, "-m", "kernelbank", "run", stream_source, "--target", "y"]
    words += ["--size", "small"]
    words += ["--predictions", "out.csv", "--state", "state", "--checkpoint-every", "100", *more]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.Popen([str(w) for w in words], cwd=folder, env=environment, **streams)


@pytest.fixture(scope="module")
def expected(stream_source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("expected")
    assert started(folder, stream_source, "--log-json", stderr=subprocess.DEVNULL).wait(60) == 0
    return leftovers(folder)


@contextlib.contextmanager
def full_disk():
    with open("/dev/full", "wb") as file:
        yield {"stderr": file}


@contextlib.contextmanager
def all_closed():
    yield {"preexec_fn": lambda: os.closerange(0, 3)}


@contextlib.contextmanager
def hung_up_terminal():
    """Its other end is closed: EIO."""
    reading, writing = pty.openpty()
    os.close(reading)
    yield {"stderr": writing}
    os.close(writing)


@contextlib.contextmanager
def full_pipe():
    """A pipe that nobody reads and that does not block: EAGAIN."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, b"x" * 65536)
    yield {"stderr": writing}
    os.close(writing)
    os.close(reading)


STREAMS = {
    "a full disk": full_disk,
    "all closed": all_closed,
    "a full pipe that does not block": full_pipe,
    "a terminal that hung up": hung_up_terminal,
}
QUICK = ("a full disk", "all closed")
CASES = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow, id=name) for name in STREAMS
]


@pytest.mark.parametrize("name", CASES)
def test_run_is_the_same_whatever_has_become_of_standard_error(
    name, stream_source, expected, tmp_path
):
    with STREAMS[name]() as streams:
        process = started(tmp_path, stream_source, "--log-json", **streams)
        assert process.wait(60) == 0
    assert leftovers(tmp_path) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("log", [(), ("--log-json",)])
def test_exit_code_is_that_of_the_run(name, log, tmp_path):
    """An error that cannot be printed, a bad row, and an option that does not exist."""
    bad = write_csv(tmp_path / "bad.csv", ["a", "y"], [(1, 2), (2, 3), ("x", 4)])
    for more in ((), ("--lags", "many")):
        with STREAMS[name]() as streams:
            assert started(tmp_path, bad, *log, *more, **streams).wait(60) == 2
    assert read_state(tmp_path / "state")[0]["rows"] == 2


# --- hang-up --------------------------------------------------------------------------------------


def test_hang_up_that_is_ignored_from_the_start_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with stop_on_signals() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert not stop.is_set()
    finally:
        signal.signal(signal.SIGHUP, before)


class Dropped:
    """Something that a callback waits for."""


def test_second_signal_inside_a_callback_prints_nothing_and_ends_the_run(capfd):
    with stop_on_signals() as stop:
        signal.raise_signal(signal.SIGTERM)
        assert stop.is_set()
        dropped = Dropped()
        watched = weakref.ref(dropped, lambda _: signal.raise_signal(signal.SIGTERM))
        del dropped
        assert watched() is None
        with pytest.raises(KeyboardInterrupt):
            stop.is_set()
    assert capfd.readouterr().err == ""
