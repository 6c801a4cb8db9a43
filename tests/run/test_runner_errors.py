"""Errors in the midst of a run: they name their place, and the rows before them are committed."""

import os

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.io.source import RowBlock
from kernelbank.io.text import TextFile
from kernelbank.run import session
from support.run_command import make_rows, one_slot_model, read_state, refusal, succeed, write_csv

COUNT = 130
X, _ = make_rows(COUNT)


@pytest.fixture(autouse=True)
def light(monkeypatch):
    """One cheap slot: it is the errors that are tried here."""
    monkeypatch.setattr(session, "make_model", one_slot_model)


class Broken(Exception):
    """An error that is not ours."""


@pytest.fixture
def source(tmp_path):
    rows = np.column_stack([X, X[:, 0]])
    return write_csv(tmp_path / "s.csv", ["a", "b", "y"], rows)


def failing_reader(monkeypatch, error, after):
    parse = RowBlock.parse

    def fail(self, *words, **more):
        if self.first >= after:
            raise error
        return parse(self, *words, **more)

    monkeypatch.setattr(RowBlock, "parse", fail)


def message_of(error, *words):
    """What a run that this error ends says: in one line, or as notes of an error of our own."""
    if not isinstance(error, Broken):
        return refusal(*words)
    with pytest.raises(Broken) as caught:
        refusal(*words)
    return " ".join(caught.value.__notes__)


@pytest.mark.parametrize("error", [Broken("?"), OSError(5, "Input/output error"), MemoryError()])
@pytest.mark.parametrize("predictions", ["out.csv", "out.parquet"])
def test_any_error_names_its_place_and_loses_no_row_before(
    error, predictions, source, tmp_path, monkeypatch
):
    monkeypatch.setattr("kernelbank.run.runner.BLOCK_ROWS", 50)
    options = ("--target", "y", "--predictions", tmp_path / predictions, "--state", tmp_path / "st")
    with monkeypatch.context() as patched:
        failing_reader(patched, error, 100)
        message = message_of(error, source, *options)
    assert "From s.csv, line 102 to s.csv, line 131." in message
    assert "Nothing is lost. To resume, give the same command again" in message
    header = read_state(tmp_path / "st")[0]
    assert header["rows"] == 100
    succeed(source, *options)
    assert read_state(tmp_path / "st")[0]["rows"] == COUNT


@pytest.mark.parametrize("error", [Broken("?"), MemoryError("not enough memory")])
def test_error_of_the_model_leaves_the_last_checkpoint(error, source, tmp_path, monkeypatch):
    """In the midst of a batch the model may be ahead of the predictions: nothing is committed."""
    options = ("--target", "y", "--predictions", tmp_path / "out.csv", "--state", tmp_path / "st")
    options += ("--checkpoint-every", 40)
    with monkeypatch.context() as patched:
        run = kb.AutoBank.run

        def fail(self, *words, **more):
            found = run(self, *words, **more)
            if self.samples > 100:
                raise error
            return found

        patched.setattr(kb.AutoBank, "run", fail)
        message = message_of(error, source, *options)
    assert "From s.csv, line " in message
    assert 40 <= read_state(tmp_path / "st")[0]["rows"] <= 100
    succeed(source, *options)
    other = tmp_path / "other.csv"
    succeed(source, "--target", "y", "--predictions", other)
    assert other.read_bytes() == (tmp_path / "out.csv").read_bytes()


def test_error_while_reading_names_the_row_before_it(source, tmp_path, monkeypatch):
    monkeypatch.setattr("kernelbank.run.runner.BLOCK_ROWS", 50)
    blocks = TextFile.blocks

    def fail(self, *words, **more):
        for number, block in enumerate(blocks(self, *words, **more)):
            if number == 2:
                raise OSError(5, os.strerror(5))
            yield block

    options = ("--target", "y", "--state", tmp_path / "st")
    with monkeypatch.context() as patched:
        patched.setattr(TextFile, "blocks", fail)
        message = refusal(source, *options)
    assert "[Errno 5] Input/output error. The last row before was s.csv, line 101." in message
    assert read_state(tmp_path / "st")[0]["rows"] == 100
    succeed(source, *options)
