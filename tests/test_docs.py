"""Every Python block in the README and the docs runs, and prints what the page says it does."""

import doctest
import re
from pathlib import Path

import pytest

from support.shell import run_script

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
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
        rules = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert doctest.OutputChecker().check_output(printed, told, rules), told


LINKED = [
    *PAGES,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")),
]


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_files_that_the_explanation_of_the_code_names_exist_and_are_few():
    """A name may have some of its folders before it."""
    folders = ("src", "tests", "benchmarks", "docs/generate")
    there = [f"/{path}" for name in folders for path in (ROOT / name).rglob("*.*")]
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"[\w/]*\w\.(?:py|cpp|hpp)\b", page))
    assert 20 < len(named) <= 50
    assert [name for name in named if not any(path.endswith(f"/{name}") for path in there)] == []


@pytest.mark.parametrize(("page", "lines"), [("README.md", 130), ("docs/architecture.md", 120)])
def test_first_pages_stay_short(page, lines):
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= lines


def test_site_has_every_page():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    for page in sorted((ROOT / "docs").rglob("*.md")):
        path = page.relative_to(ROOT / "docs").as_posix()
        assert re.search(rf"[ :]{re.escape(path)}$", nav, re.MULTILINE), (
            f"{path} is not in mkdocs.yml"
        )


@pytest.mark.parametrize(
    ("name", "left"),
    [
        pytest.param("run", "predictions.csv", marks=pytest.mark.slow),
        pytest.param("report", "again.html", marks=pytest.mark.slow),
    ],
)
def test_the_commands_of_a_page(name, left, tmp_path):
    """One shell after the other in one folder, with the package's own commands first."""
    page = (ROOT / "docs" / f"{name}.md").read_text()
    script = "\n".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL))
    script = script.replace("kernelbank run", "kernelbank run --size small")
    run_script(script, tmp_path)
    text = (tmp_path / left).read_text()
    assert len(text.splitlines()) == 3001 if name == "run" else '"rows":3000' in text
