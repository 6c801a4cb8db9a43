"""The screen of `kernelbank run`, on a real terminal of several widths, and without one."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import termios
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from kernelbank.cli.commands import run_command
from kernelbank.cli.console import status_line
from support.run_command import make_rows, run, succeed, write_csv

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


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """A terminal that can, drawn on after every block, and a file that is read little by little."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("kernelbank.cli.console._LINE_PERIOD", 0.0)
    monkeypatch.setattr("kernelbank.io.text.CHUNK_BYTES", 4096)


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
    # What matters most is there at any width; time is left, as it is a file.
    for text in lives[5:-1]:
        assert re.match(r" *[\d,]+ rows  ", text)
        assert re.search(r"RMSE +\d", text)
        assert text.rstrip().endswith("left") or columns > 80
    if columns == 120:
        assert all(" baseline " in text and " best slot " in text for text in lives[5:])
        assert all(re.search(r"  0\.\d\d [a-z]+: ", text) for text in lives[5:])
    # Numbers do not jump: as soon as all is there, each part keeps its place.
    starts = {text.index("RMSE") for text in lives[5:]}
    assert len(starts) <= 2
    check_end(last.replace("\r\n", "\n"), columns, out)


def check_end(text, columns, out):
    lines = text.splitlines()
    assert all(text == text.rstrip() for text in lines)
    short = [text for text in lines if str(out) not in text]
    assert all(len(text) <= columns for text in short)
    # Two columns: labels, and what they say, which begin at the same place in every line.
    place = re.match(r"rows +", lines[0]).end()
    assert all(text[place - 1] == " " and text[place] != " " for text in lines)
    labels = [text[:place].strip() for text in lines]
    for label in ("rows", "time", "RMSE", "bad rows", "predictions"):
        assert label in labels
    assert lines[labels.index("rows")].endswith("  3,000")
    assert lines[labels.index("predictions")].endswith(f"  {out}")


@pytest.mark.parametrize("more", [("--quiet",), ("--log-json",)])
def test_terminal_with_quiet_or_log_has_no_updated_line(more, source):
    sent, code = on_terminal(80, source, "--max-rows", 50, *more)
    assert code == 0
    assert "\x1b" not in sent
    assert sent.count("\n") == (0 if "--quiet" in more else 2)


def test_updated_line_is_cleared_before_an_error(tmp_path):
    path = write_csv(tmp_path / "s.csv", ["a", "y"], [(1, 2), ("x", 3)])
    sent, code = on_terminal(80, path)
    assert code == 2
    assert sent.split(CLEAR)[-1].startswith("kernelbank: s.csv, line 3, column 'a'")


def test_dumb_terminal_has_no_control_characters(source, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    sent, _ = on_terminal(80, source, "--max-rows", 50)
    assert "\x1b" not in sent
    assert "Starting" not in sent


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


def status(**changed):
    """What the line reads of a RunStatus."""
    values = {
        "is_classification": False,
        "rows": 12345,
        "options": SimpleNamespace(targets=("y",)),
        "rejected": SimpleNamespace(count=3),
        "error": 0.5,
        "baseline_error": 5.2,
        "best_slot": ("standard: tree", 0.61),
        "largest_weights": [("standard: tree", 0.31), ("rank: line", 0.2)],
    }
    return SimpleNamespace(**{**values, **changed})


@pytest.mark.parametrize("labels", [False, True])
def test_status_line_fits_every_width(labels):
    for width in range(140):
        text = status_line(status(is_classification=labels), 2345.6, 75.0, width)
        assert len(text) <= width
        if width >= 38:
            assert "12,345 rows" in text
            assert ("errors 50.00 %" if labels else "RMSE 0.500") in text
    for part in ("2,346/s", "3 bad", " 75 s left", "0.31 standard: tree"):
        assert part in text


def test_status_line_before_any_score_shows_nan():
    unknown = {"error": np.nan, "baseline_error": np.nan, "best_slot": ("", np.nan)}
    text = status_line(status(**unknown, largest_weights=[]), None, None, 80)
    assert "12,345 rows  RMSE   nan" in text


def test_help_at_80_columns_shows_every_option_in_its_group():
    context = run_command.make_context("run", ["x", "--target", "y"], terminal_width=80)
    text = run_command.get_help(context)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    headings = [text for text in lines if re.fullmatch(r"[A-Z][a-z]+:", text)]
    assert headings == ["Columns:", "Learning:", "Results:", "Rows:", "Other:"]
    shown = re.findall(r"^  (--[a-z-]+)", text, flags=re.MULTILINE)
    assert shown[0] == "--target"
    options = [p.opts[0] for p in run_command.params if p.opts[0].startswith("--")]
    assert sorted(shown) == sorted(options)
    assert shown.index("--quiet") < shown.index("--on-bad-row")
