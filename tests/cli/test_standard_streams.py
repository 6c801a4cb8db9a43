"""Standard error that is full, closed or gone: the run goes on, with the same results."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from support.run_command import make_rows, read_state, write_csv

SOURCE = Path(__file__).parents[3] / "src"
COUNT = 300


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    X, y = make_rows(COUNT)
    path = tmp_path_factory.mktemp("rows") / "s.csv"
    return write_csv(path, ["a", "b", "y"], np.column_stack([X, y]))


def started(folder, source, *more, **streams):
    """`kernelbank run` as a process, with other standard streams."""
    words = [sys.executable, "-m", "kernelbank", "run", source, "--target", "y", "--size", "small"]
    words += ["--predictions", "out.csv", "--state", "state", "--checkpoint-every", "100", *more]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.Popen([str(w) for w in words], cwd=folder, env=environment, **streams)


def results(folder):
    """What a run has left: predictions, bad rows, and the facts of its state."""
    header, arrays = read_state(folder / "state")
    for name in ("timings", "predictions"):
        del header[name]
    content = [(folder / name).read_bytes() for name in ("out.csv", "state/bad-rows.jsonl")]
    return content, header, {name: array.tobytes() for name, array in arrays.items()}


@pytest.fixture(scope="module")
def expected(source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("expected")
    assert started(folder, source, "--log-json", stderr=subprocess.DEVNULL).wait(60) == 0
    return results(folder)


@contextlib.contextmanager
def full_disk():
    with open("/dev/full", "wb") as file:
        yield {"stderr": file}


@contextlib.contextmanager
def closed():
    yield {"preexec_fn": lambda: os.close(2)}


@contextlib.contextmanager
def all_closed():
    yield {"preexec_fn": lambda: os.closerange(0, 3)}


@contextlib.contextmanager
def only_for_reading():
    """Writing to it is an error: EBADF."""
    with open(os.devnull, "rb") as file:
        yield {"stderr": file}


@contextlib.contextmanager
def other_end_closed(reading, writing):
    os.close(reading)
    yield {"stderr": writing}
    os.close(writing)


def reader_gone():
    return other_end_closed(*os.pipe())


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


def hung_up_terminal():
    """Its other end is closed: EIO."""
    return other_end_closed(*pty.openpty())


@contextlib.contextmanager
def full_output():
    with open("/dev/full", "wb") as file:
        yield {"stdout": file, "stderr": file}


STREAMS = {
    "a full disk": full_disk,
    "closed": closed,
    "all closed": all_closed,
    "only for reading": only_for_reading,
    "a pipe whose reader is gone": reader_gone,
    "a full pipe that does not block": full_pipe,
    "a terminal that hung up": hung_up_terminal,
    "full standard output too": full_output,
}
QUICK = ("a full disk", "all closed")
CASES = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow, id=name) for name in STREAMS
]


@pytest.mark.parametrize("name", CASES)
def test_run_is_the_same_whatever_has_become_of_standard_error(name, source, expected, tmp_path):
    with STREAMS[name]() as streams:
        process = started(tmp_path, source, "--log-json", **streams)
        assert process.wait(60) == 0
    assert results(tmp_path) == expected


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


def until(true):
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def feed(pipe, stop):
    """Rows without an end."""
    with contextlib.suppress(OSError), open(pipe, "w") as file:
        file.write("a,y\n")
        while not stop.is_set():
            file.write("1,2\n2,3\n")
            file.flush()


@pytest.fixture
def endless(tmp_path):
    """A FIFO with rows that never end."""
    pipe, stop = tmp_path / "rows", threading.Event()
    os.mkfifo(pipe)
    feeder = threading.Thread(target=feed, args=(pipe, stop))
    feeder.start()
    with open(pipe, "rb") as file:
        yield file
        stop.set()
    feeder.join()


def committed(folder):
    path = folder / "state/state.kb"
    return path.exists() and read_state(folder / "state")[0]["rows"] > 0


@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_hang_up_commits_and_exits_with_its_code(times, endless, tmp_path):
    process = started(tmp_path, "-", stdin=endless, stderr=subprocess.PIPE)
    until(lambda: committed(tmp_path))
    for _ in range(times):  # a terminal that closes may send it twice
        process.send_signal(signal.SIGHUP)
    _, text = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGHUP, text
    assert b"Stopped. Nothing is lost." in text
    rows = read_state(tmp_path / "state")[0]["rows"]
    assert (tmp_path / "out.csv").read_bytes().count(b"\n") == rows + 1


@pytest.mark.slow
def test_hang_up_that_is_ignored_from_the_start_stays_ignored(endless, tmp_path):
    def ignore():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does

    process = started(tmp_path, "-", stdin=endless, stderr=subprocess.DEVNULL, preexec_fn=ignore)
    until(lambda: committed(tmp_path))
    process.send_signal(signal.SIGHUP)
    rows = read_state(tmp_path / "state")[0]["rows"]
    until(lambda: read_state(tmp_path / "state")[0]["rows"] > rows + 2000)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
