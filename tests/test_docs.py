"""What the docs show is run: blocks, commands, tutorials, notebooks, scripts of the gallery."""

import doctest
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

import tutorials
from support.run_command import run_script

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def assert_printed(expected, told):
    rules = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.OutputChecker().check_output(expected, told, rules), told


FENCED = r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?"
"""A block of Python, and what it prints, if a block of text follows it at once."""

BLOCKS = [
    pytest.param(
        block,
        printed,
        id=f"{page.name}-{number}",
        marks=[] if page.name == "README.md" else [pytest.mark.slow],
    )
    for page in PAGES
    for number, (block, printed) in enumerate(re.findall(FENCED, page.read_text(), re.DOTALL))
]


@pytest.mark.parametrize(("block", "printed"), BLOCKS)
def test_blocks_run(block, printed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "block", "exec"), {})
    told = capsys.readouterr().out
    if printed:
        assert_printed(printed, told)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "left"), [("run", "predictions.csv"), ("report", "again.html")])
def test_the_commands_of_a_page(name, left, tmp_path):
    """One shell after the other in one folder, with the package's own commands first."""
    page = (ROOT / "docs" / f"{name}.md").read_text()
    script = "\n".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL))
    script = script.replace("kernelbank run", "kernelbank run --size small")
    run_script(script, tmp_path)
    text = (tmp_path / left).read_text()
    assert len(text.splitlines()) == 3001 if name == "run" else '"rows":3000' in text


@pytest.mark.slow
def test_attack_of_a_few_of_each_kind_passes():
    arguments = ["--kills", "2", "--faults", "2", "--forged", "9", "--sources", "9", "--jobs", "1"]
    command = [sys.executable, str(ROOT / "tests/attack.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^kills kills [2-9]", done.stdout, re.MULTILINE)


# --- tutorials ------------------------------------------------------------------------------------

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_tutorial_prints_what_it_says(page, tmp_path):
    steps = tutorials.follow(page.read_text(encoding="utf-8"), tmp_path)
    assert len(steps) >= 4
    for step in steps:
        assert step.agrees, f"{step.command}{step.printed}exit code {step.code}"


TEXT = """
```python title="one.py"
print("one", 5)
```

```sh
python one.py; pwd
```
```text
{printed}
```

```sh
false   # stops
```

```sh
true   # stops
```
"""


@pytest.mark.parametrize(
    ("printed", "agrees"),
    [("one 5\n/home/you", True), ("one 6\n/home/you", False), ("one 5", False)],
)
def test_step_agrees_only_with_what_is_printed(printed, agrees, tmp_path):
    first, second, third = tutorials.follow(TEXT.format(printed=printed), tmp_path)
    assert first.agrees is agrees
    assert second.agrees
    assert second.code == 1
    assert not third.agrees  # it should have failed


# --- notebooks ------------------------------------------------------------------------------------


def test_notebooks_are_kept_without_outputs():
    assert (len(NOTEBOOKS), len(TUTORIALS)) == (2, 3)
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert len(code) >= 5
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_and_shows_results(path):
    import notebook_pages

    files = notebook_pages.notebook_files(path)
    page = files[f"notebooks/{path.stem}.md"]
    figures = [name for name in files if name.endswith(".png")]
    assert figures
    for name in figures:
        assert f"]({Path(name).name})" in page
    assert "```text\n" in page
    assert "Warning" not in page
    assert "False" not in page  # notebooks print what must hold


# --- the gallery ----------------------------------------------------------------------------------

GALLERY = ROOT / "docs" / "gallery"
SCRIPTS = sorted(GALLERY.glob("*.py"))
ENTRY = r"\[!\[[^\]]+\]\((\w+)\.png\)\]\(\1\.py\)\n\n(.*?)\n\n\[\1\.py\]\(\1\.py\) prints:\n\n```text\n(.*?)```"
ENTRIES = {
    name: (summary, printed)
    for name, summary, printed in re.findall(ENTRY, (GALLERY / "README.md").read_text(), re.DOTALL)
}
NUMBER = r"\d+(?:\.\d+)?%?"


def test_gallery_page_shows_every_script_and_states_only_numbers_that_it_prints():
    assert set(ENTRIES) == {script.stem for script in SCRIPTS}
    for summary, printed in ENTRIES.values():
        claimed = re.findall(NUMBER, summary)
        assert claimed
        assert set(claimed) <= set(re.findall(NUMBER, printed))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_gallery_script_prints_what_the_page_says(script, tmp_path):
    done = subprocess.run(
        [sys.executable, str(script), "--out", str(tmp_path / "new")],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "module://none_such"},  # a window would fail
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert_printed(ENTRIES[script.stem][1], done.stdout)
    assert [path.name for path in (tmp_path / "new").iterdir()] == [f"{script.stem}.png"]
    with (
        Image.open(tmp_path / "new" / f"{script.stem}.png") as new,
        Image.open(script.with_suffix(".png")) as kept,
    ):
        assert new.size == kept.size
