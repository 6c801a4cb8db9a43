"""The lines about compiling: on standard error, whatever that is."""

import contextlib
import io

import pytest

from kernelbank.native import progress as module


class Stream(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self._terminal = terminal

    def isatty(self):
        return self._terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_compiling_is_told_at_its_start_and_end(terminal, monkeypatch):
    stream = Stream(terminal)
    monkeypatch.setattr(module.sys, "stderr", stream)
    progress = module._Progress()
    progress.finished()
    assert stream.getvalue() == ""
    progress.compiling()
    assert stream.getvalue() == "kernelbank compiles its loops for this machine, once ...\n"
    progress.compiling()
    progress.finished()
    assert stream.getvalue().splitlines()[-1] == "kernelbank has compiled 2 functions in 0 s."
    assert ("\r" in stream.getvalue()) == terminal
    assert len(stream.getvalue().split("\n")) == 3
    spent = progress.seconds
    assert spent > 0
    progress.compiling()
    progress.finished()
    assert stream.getvalue().count("once ...") == 1
    assert stream.getvalue().endswith("kernelbank has compiled 1 function in 0 s.\n")
    assert progress.seconds > spent


def test_without_standard_error_nothing_is_printed(monkeypatch, capsys):
    monkeypatch.setattr(module.sys, "stderr", None)
    progress = module._Progress()
    progress.compiling()
    progress.finished()
    assert capsys.readouterr().out == ""


def test_nothing_is_told_by_a_process_whose_parent_reports(monkeypatch):
    stream = Stream(True)
    monkeypatch.setattr(module.sys, "stderr", stream)
    progress = module._Progress()
    progress.quiet = True
    progress.compiling()
    progress.compiling()
    progress.finished()
    assert stream.getvalue() == ""


def test_full_or_closed_standard_error_does_not_matter(monkeypatch):
    closed = io.StringIO()
    closed.close()
    with open("/dev/full", "w") as full:
        for stream in (full, closed):
            monkeypatch.setattr(module.sys, "stderr", stream)
            module.tell("kernelbank: building compiled code ...")
        monkeypatch.undo()
        with contextlib.suppress(OSError):  # what it could not write is written once more
            full.close()
