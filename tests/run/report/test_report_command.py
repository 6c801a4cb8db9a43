"""`kernelbank report` and `kernelbank run --report`: the file, and what is refused."""

import contextlib
import io
import json
import math
import re

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.cli import commands
from kernelbank.errors import FileRefused
from kernelbank.io import checkpoint
from kernelbank.run.report.data import ReportData
from kernelbank.run.status import RunStatus
from support.run_command import make_rows, refusal, run, succeed, write_csv

ROWS = 700
X, Y = make_rows(ROWS)


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    source = write_csv(folder / "s.csv", ["a", "b", "y"], np.column_stack([X, Y]))
    succeed(source, "--target", "y", "--state", folder / "state", "--coverage", 0.8)
    source.unlink()  # no row is read again
    return folder / "state"


def command(*words):
    """Exit code and standard error of `kernelbank report` with these words."""
    errors = io.StringIO()
    code = 0
    with contextlib.redirect_stderr(errors):
        try:
            commands.cli.main(["report", *map(str, words)], prog_name="kernelbank")
        except SystemExit as ended:
            code = ended.code
    return code, errors.getvalue()


def parts_in(path):
    """The parts in the file of a page."""
    text = path.read_text(encoding="utf-8")
    (found,) = re.findall(r'<script type="application/json" id="report">(.*?)</script>', text, re.S)
    return json.loads(found)


def test_report_command_writes_the_parts_of_the_state(state, tmp_path):
    out = tmp_path / "page.html"
    code, text = command(state, "--out", out)
    assert (code, text) == (0, f"Wrote {out}\n")
    assert parts_in(out) == {
        name: json.loads(text)
        for name, text in ReportData().parts(RunStatus.of_state(state)).items()
    }
    assert out.stat().st_size < 2e6
    assert sorted(tmp_path.iterdir()) == [out]
    assert command(state, "--out", out)[0] == 0  # again


def test_run_with_report_option_writes_the_page(tmp_path):
    source = write_csv(tmp_path / "s.csv", ["a", "b", "y"], np.column_stack([X, Y]))
    out = tmp_path / "page.html"
    done = succeed(source, "--target", "y", "--report", out)
    assert str(out) in done.err
    parts = parts_in(out)
    assert parts["status"]["phase"] == "ended"
    assert parts["status"]["rows"] == ROWS


def test_run_stopped_at_a_bad_row_writes_the_page(tmp_path):
    rows = np.column_stack([X, Y]).astype(object)
    rows[200, 0] = "oh"
    source = write_csv(tmp_path / "s.csv", ["a", "b", "y"], rows)
    out = tmp_path / "page.html"
    refusal(source, "--target", "y", "--report", out)
    assert parts_in(out)["status"]["phase"] == "stopped"
    assert parts_in(out)["status"]["rows"] == 200


@pytest.mark.parametrize(
    ("place", "word"),
    [("page.csv", ".html"), ("nowhere/page.html", "no folder"), ("folder.html", "is a folder")],
)
def test_report_path_that_cannot_be_written_is_refused(state, tmp_path, place, word):
    (tmp_path / "folder.html").mkdir()
    source = write_csv(tmp_path / "s.csv", ["a", "y"], np.zeros((3, 2)))
    code, text = command(state, "--out", tmp_path / place)
    assert (code, text.count("\n")) == (2, 1)
    assert word in text
    assert word in refusal(source, "--target", "y", "--report", tmp_path / place)


def test_folder_without_a_run_state_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        code, text = command(folder, "--out", tmp_path / "page.html")
        assert (code, text.count("\n")) == (2, 1)
        assert "--state" in text
    kb.AutoBank().save(tmp_path / "state.kb")
    code, text = command(tmp_path, "--out", tmp_path / "page.html")
    assert "not the state of a run" in text
    assert not (tmp_path / "page.html").exists()


FORGED = [
    ("options", {}),
    ("options.coverage", "much"),
    ("options.coverage", 2.0),
    ("options.delay", "1"),
    ("options.preset", "other"),
    ("options.task", "cooking"),
    ("options.features", 5),
    ("options.more", 5),
    ("source", 5),
    ("predictions", None),
    ("features", 7),
    ("bank.columns", {"columns": [["a", "colour"]]}),
    ("rows", [1]),
    ("rows", "a"),
    ("rejected_rows", {"count": 3, "first": [], "last": []}),
    ("timings", {}),
    ("timings.seconds", 5),
    ("timings.started", "now"),
    ("timings.versions", 5),
    ("timings.updated", 5),
    ("history.slots", 2),
    ("bank", {}),
]


@pytest.mark.parametrize(("name", "value"), FORGED)
def test_forged_state_is_refused(state, tmp_path, name, value):
    header, arrays = checkpoint.read(state / "state.kb")
    place = header
    *path, last = name.split(".")
    for one in path:
        place = place[one]
    place[last] = value
    checkpoint.write(tmp_path / "state.kb", header, arrays)
    with pytest.raises(FileRefused):
        ReportData().parts(RunStatus.of_state(tmp_path))


def test_run_without_rows_has_a_page(tmp_path):
    (tmp_path / "s.csv").write_text("a,y\n")
    out = tmp_path / "page.html"
    assert run(tmp_path / "s.csv", "--target", "y", "--report", out).code == 2
    parts = parts_in(out)
    assert parts["status"]["points"] == 0
    assert parts["run"]["slots"] == []
    assert math.isfinite(parts["status"]["seconds"])


def test_page_that_cannot_be_written_is_named_without_its_temporary_name(
    state, tmp_path, monkeypatch
):
    def full(self, *_, **__):
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr("pathlib.Path.write_text", full)
    code, said = command(state, "--out", tmp_path / "page.html")
    assert code == 2
    assert (
        said == f"kernelbank: {tmp_path}/page.html cannot be written to: No space left on device.\n"
    )
