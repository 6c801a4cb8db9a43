"""Run `kernelbank run` in this process, on small files."""

import contextlib
import csv
import io
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.cli import commands
from kernelbank.io import checkpoint
from kernelbank.io.sinks import CsvSink, JsonLinesSink
from kernelbank.io.sources import open_source
from kernelbank.run.options import RunOptions, prediction_columns
from kernelbank.run.runner import Runner
from kernelbank.run.state_folder import CheckpointDir


class CommandOutput(NamedTuple):
    code: int
    out: str
    err: str


def run(source, *options, size="small", stdin=None, terminal=None):
    """The command's exit code and what it printed; other exceptions are raised.

    `terminal` is a file that takes the place of standard error.
    """
    words = ["run", str(source), *map(str, options), *(("--size", size) if size else ())]
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(terminal or err))
        stack.enter_context(mock.patch.object(sys, "argv", ["kernelbank", *words]))
        if stdin is not None:
            file = stack.enter_context(open(stdin, encoding="utf-8"))
            stack.enter_context(mock.patch.object(sys, "stdin", file))
        try:
            commands.cli.main(words, prog_name="kernelbank")
        except SystemExit as ended:
            code = ended.code
    return CommandOutput(code, out.getvalue(), err.getvalue())


def succeed(source, *options, **more):
    """The same, for a command that must succeed."""
    done = run(source, *options, **more)
    assert done.code == 0, done.err
    assert done.out == ""
    return done


def refusal(source, *options, code=2, **more):
    """The one line that a command prints that must fail."""
    done = run(source, *options, **more)
    assert done.code == code, done
    assert done.out == ""
    assert done.err.startswith("kernelbank: ")
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    return done.err


def options_of(**given):
    """Options of a small model for column y."""
    return RunOptions(source="", target="y", **{"size": "small", **given})


def one_slot_model(options=None, engine="serial"):
    """A model of one cheap slot, to replace `make_model` in tests of rows."""
    slots = [kb.Slot(kb.kernels.Linear(), kb.learners.LinearRLS())]
    if options is None:
        return kb.AutoBank(size="small", slots=slots, engine=engine)
    labels = {"classes": options.labels, "max_classes": options.max_classes}
    return kb.AutoBank(options.task, options.lags, "small", slots=slots, engine=engine, **labels)


def make_rows(count, seed=0):
    """Inputs a and b and a target."""
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(count, 2))
    return X, 20 + 5 * np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1]


def write_csv(path, columns, rows, delimiter=","):
    """A table as a file; floats with all their digits."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_plain(cell) for cell in row] for row in rows)
    return path


def write_jsonl(path, columns, rows):
    lines = [json.dumps(dict(zip(columns, map(_plain, row), strict=True))) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def _plain(cell):
    return cell.item() if isinstance(cell, np.generic) else cell


def read_csv(path):
    """A .csv file as its header and rows of text."""
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return header, rows


def read_column(path, name):
    """A column of predictions as floats, empty ones as NaN."""
    header, rows = read_csv(path)
    place = header.index(name)
    return np.array([float(row[place] or "nan") for row in rows])


def read_jsonl(path):
    """The objects of a file of JSON lines, which end with line feeds and nothing else."""
    text = path.read_text(encoding="utf-8")
    assert not text or text.endswith("\n")
    return [json.loads(line) for line in text.split("\n")[:-1]]


def read_state(folder):
    """The header and arrays of a run's state."""
    return checkpoint.read(folder / "state.kb")


def leftovers(folder):
    """All that a run leaves in a folder but times and places: what must not depend on how it ran."""
    header, arrays = read_state(folder / "state")
    del header["times"], header["predictions"], header["source"]["address"]
    bits = {name: (array.shape, array.tobytes()) for name, array in arrays.items()}
    bad_rows = (folder / "state/bad-rows.jsonl").read_bytes()
    return (folder / "out.csv").read_bytes(), bad_rows, header, bits


def same_bits(mine, other):
    """Whether two arrays agree in every bit."""
    mine, other = np.asarray(mine), np.asarray(other)
    return mine.shape == other.shape and mine.tobytes() == other.tobytes()


def check_predictions(path, trace, targets):
    """The file of predictions holds the predictions of a trace, bit for bit."""
    header, rows = read_csv(path)
    assert header == ["row", "prediction", "lower", "upper", "target"]
    assert [row[0] for row in rows] == [str(n + 1) for n in range(len(targets))]
    assert same_bits(read_column(path, "prediction"), trace.predictions)
    assert same_bits(read_column(path, "lower"), trace.lower)
    assert same_bits(read_column(path, "upper"), trace.upper)
    assert same_bits(read_column(path, "target"), targets)


ROWS = 300
X, Y = make_rows(ROWS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sources")


@pytest.fixture(scope="module")
def source(folder):
    """The rows as a file; tests take it by `source = run_command.source`."""
    return write_csv(folder / "plain.csv", ["a", "b", "y"], np.column_stack([X, Y]))


# --- A run in this process, without the command ---


@contextmanager
def open_run(root, source, options):
    """A run whose predictions and state are in a folder; it ends as after an error."""
    checkpoints = CheckpointDir(root / "state")
    predictions = CsvSink(root / "few-predictions.csv", prediction_columns(options))
    bad_rows = JsonLinesSink(checkpoints.folder / "bad-rows.jsonl")
    run = Runner(options, open_source(source), [predictions], bad_rows, checkpoints)
    try:
        yield run
    finally:
        run.close(complete=False)
        checkpoints.close()


def run_to_end(run):
    """Predict and learn all rows of the source, and commit."""
    run.run(lambda: False, lambda _: None)
    run.commit()


def run_script(script, folder):
    """Run a script of commands in a folder, with the package's own commands first; it must succeed."""
    places = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"set -e\n{script}"],
        cwd=folder,
        env={**os.environ, "PATH": places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done
