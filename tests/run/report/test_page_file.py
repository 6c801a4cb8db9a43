"""The page as a file: `kernelbank report`, `kernelbank run --report`, and data that is hostile."""

import contextlib
import io
import itertools
import json
import re
import subprocess
import sys

import numpy as np
import pytest

import kernelbank as kb
from kernelbank.cli import commands
from kernelbank.run.report.data import report_text
from kernelbank.run.report.page import content_security_policy, render_page
from kernelbank.run.status import RunStatus
from support import browser
from support.browser import press, readout
from support.run_command import make_rows, refusal, succeed, write_csv
from support.sample_reports import sample_report

chromium, show = browser.chromium, browser.show


def test_file_holds_no_url_and_is_small():
    text = render_page(json.dumps(sample_report()))
    assert len(text.encode()) < 2_000_000
    assert re.findall("(?i)http.{8}", text) == ['http-equiv="']
    assert "://" not in text


def test_special_texts_are_kept_and_escaped():
    texts = ["</script>", "<!--<script>", "&lt;&amp;", "\u2028\u2029", "{{script}}", "\ud800"]
    texts += ["\\", '"']
    report = {"run": {"title": "".join(texts), "slots": texts}}
    for ascii_only in (True, False):
        text = render_page(json.dumps(report, ensure_ascii=ascii_only))
        text.encode()
        assert json.loads(embedded(text)) == report
        assert not set(embedded(text)) & set("<>&\u2028\u2029")


def test_policy_allows_only_the_scripts_of_the_page():
    assert content_security_policy(live=False) in render_page("{}").replace("&#x27;", "'")
    assert "connect-src" not in content_security_policy(live=False)
    assert content_security_policy(live=True).endswith("connect-src 'self'")
    assert "unsafe" not in content_security_policy(live=True)
    assert content_security_policy(live=True).startswith("default-src 'none'; script-src 'sha256-")


def test_address_of_later_reports_is_in_live_pages_only():
    assert "data-address" not in re.sub("(?s)<script>.*?</script>", "", render_page("{}"))
    assert 'data-address="report&amp;&quot;"' in render_page("{}", 'report&"')


def test_page_module_does_not_import_numpy():
    code = "import sys, kernelbank.run.report.page; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_scripts_never_write_html():
    script = render_page("{}").split("<script>")[-1]
    writes = r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function"
    assert not re.search(writes, script)


def embedded(text):
    return re.search('(?s)id="report"[^>]*>(.*?)</script>', text)[1]


ATTACKS = [
    "</script><script>window.attacked = 1</script>",
    "<img src=x onerror='window.attacked = 1'>",
    '"><svg onload="window.attacked = 1">',
    "\u2028window.attacked = 1\u2029",
    "javascript:window.attacked=1",
    "\u202eright to left\u202d\u0000\u0007",
    "{{report}}${window.attacked = 1}",
    "long " * 2000,
]


def hostile(value, attacks):
    """A report in which every text is an attack, except the few that are part of the format."""
    if isinstance(value, str):
        return next(attacks)
    if isinstance(value, list):
        return [hostile(each, attacks) for each in value]
    if isinstance(value, dict):
        kept = ("task", "phase", "started", "updated")
        return {
            name: each if name in kept else hostile(each, attacks) for name, each in value.items()
        }
    return value


@pytest.mark.slow
@pytest.mark.parametrize("attacks", [ATTACKS[:1], ATTACKS], ids=["one", "all"])
@pytest.mark.parametrize("kind", ["numbers", "labels"])
def test_scripts_in_the_data_are_shown_as_text_and_never_run(show, kind, attacks):
    report = hostile(sample_report(kind), itertools.cycle(attacks))
    run, bad = report["run"], report["bad_rows"]["examples"][0]
    if kind == "labels":
        report["labels"]["labels"] = run["classes"]
    shown = show(report, width=360)
    shown.page.locator("#weights-table summary").click()
    press(shown, "weights", *["ArrowUp"] * len(run["slots"]), "ArrowDown")
    assert run["slots"][1] in readout(shown, "weights")
    assert shown.text("#title") == run["title"]
    texts = shown.page.locator("#curves-input option").all_text_contents()
    assert texts == run["inputs"]
    cells = shown.page.locator("#bad-rows-list tbody tr").first.locator("td").all_text_contents()
    assert cells[1:] == [bad[name] for name in ("where", "column", "value", "reason")]
    facts = [text for _, pairs in run["details"] for pair in pairs for text in pair]
    assert shown.page.locator("#details-list :is(dt, dd)").all_text_contents() == facts
    cell = shown.page.locator("#worst-list tbody tr").last.locator("td").first
    assert cell.text_content() == report["categories"][0]["rows"][-1][0]
    if kind == "labels":
        headings = shown.page.locator(".confusion tbody th").all_text_contents()
        assert headings == run["classes"]
    assert shown.page.evaluate("window.attacked") is None
    assert shown.page.locator("main img, main svg, main script").count() == 0
    assert shown.page.evaluate("document.documentElement.scrollWidth") == 360


# --- `kernelbank report` and `kernelbank run --report`: the file, and what is refused ---


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
    return json.loads(embedded(path.read_text(encoding="utf-8")))


def test_report_command_writes_the_parts_of_the_state(state, tmp_path):
    out = tmp_path / "page.html"
    code, text = command(state, "--out", out)
    assert (code, text) == (0, f"Wrote {out}\n")
    assert parts_in(out) == json.loads(report_text(RunStatus.of_state(state)))
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
