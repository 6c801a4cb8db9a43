"""Every Python block in the README and the docs runs, and prints what the page says it does."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?"
"""A block of Python, and what it prints, if a block of text follows it at once."""

BLOCKS = [
    pytest.param(block, printed, id=f"{page.name}-{number}")
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target
