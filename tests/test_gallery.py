"""The gallery: every script has its figure, and the page states only numbers that it prints."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
SCRIPTS = sorted(GALLERY.glob("*.py"))
ENTRY = r"\[!\[[^\]]+\]\((\w+)\.png\)\]\(\1\.py\)\n\n(.*?)\n\n\[\1\.py\]\(\1\.py\) prints:\n\n```text\n(.*?)```"
ENTRIES = {
    name: (summary, printed)
    for name, summary, printed in re.findall(ENTRY, (GALLERY / "README.md").read_text(), re.DOTALL)
}
NUMBER = r"\d+(?:\.\d+)?%?"

names = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)


def test_gallery_page_shows_every_script():
    assert set(ENTRIES) == {script.stem for script in SCRIPTS}
    assert len(SCRIPTS) >= 8


@names
def test_gallery_text_states_only_printed_numbers(script):
    summary, printed = ENTRIES[script.stem]
    claimed = re.findall(NUMBER, summary)
    assert claimed
    assert set(claimed) <= set(re.findall(NUMBER, printed))


@pytest.mark.slow
@names
def test_gallery_script_prints_what_the_page_says(script, tmp_path):
    done = subprocess.run(
        [sys.executable, str(script), "--out", str(tmp_path / "new")],
        cwd=tmp_path,
        env={
            **os.environ,
            "MPLBACKEND": "module://none_such",
        },  # a script that wants a window fails
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    printed = ENTRIES[script.stem][1]
    rules = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.OutputChecker().check_output(printed, done.stdout, rules), done.stdout
    assert [path.name for path in (tmp_path / "new").iterdir()] == [f"{script.stem}.png"]
    with (
        Image.open(tmp_path / "new" / f"{script.stem}.png") as new,
        Image.open(script.with_suffix(".png")) as kept,
    ):
        assert new.size == kept.size
