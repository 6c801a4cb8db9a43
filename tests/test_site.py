"""The pages of the docs: what they must have, and the site that `make docs` builds of them."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import click
import combiner_table
import pytest

import command_pages
import kernelbank as kb
import reference_pages
from docstring_markdown import as_markdown
from kernelbank import combiners
from kernelbank.cli.commands import cli
from kernelbank.research import paper

ROOT = Path(__file__).parents[1]
README, PAPER, COMBINERS, RELIABILITY, ARCHITECTURE = (
    (ROOT / name).read_text(encoding="utf-8")
    for name in (
        "README.md",
        "docs/paper.md",
        "docs/combiners.md",
        "docs/reliability.md",
        "docs/architecture.md",
    )
)

# --- pages ----------------------------------------------------------------------------------------

LINKED = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")),
]


def test_links_lead_somewhere():
    for page in LINKED:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), (page, target)


def test_files_that_the_explanation_of_the_code_names_exist_and_are_few():
    """A name may have some of its folders before it."""
    folders = ("src", "tests", "benchmarks", "docs/generate")
    there = [f"/{path}" for name in folders for path in (ROOT / name).rglob("*.*")]
    named = set(re.findall(r"[\w/]*\w\.(?:py|cpp|hpp)\b", ARCHITECTURE))
    assert 20 < len(named) <= 50
    assert len(ARCHITECTURE.splitlines()) <= 120
    assert len(README.splitlines()) <= 130
    assert [name for name in named if not any(path.endswith(f"/{name}") for path in there)] == []


def test_site_has_every_page():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    for page in sorted((ROOT / "docs").rglob("*.md")):
        path = page.relative_to(ROOT / "docs").as_posix()
        assert re.search(rf"[ :]{re.escape(path)}$", nav, re.MULTILINE), (
            f"{path} is not in mkdocs.yml"
        )


def test_reliability_names_tests_that_exist_in_every_row():
    lines = [line for line in RELIABILITY.splitlines() if "TODO" not in line]
    named = set(re.findall(r"`([a-z_/]+\.(?:py|c))`", "\n".join(lines)))
    assert len(named) > 15
    assert not [name for name in named if not (ROOT / "tests" / name).exists()]
    faults = [row for row in lines if row.startswith("| ") and not row.startswith("| fault |")]
    assert faults
    assert not [row for row in faults if ".py`" not in row.rpartition(" | ")[2]]


@pytest.mark.parametrize("rule", combiners.BUILT_IN, ids=lambda rule: rule.__name__)
def test_page_has_every_combiner(rule):
    name = rule.__name__
    section = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", COMBINERS, re.MULTILINE | re.DOTALL)
    assert section, f"docs/combiners.md needs a section '## {name}'"
    for part in ("*Cost*: ", "*Guaranteed*: "):
        assert part in section[1], f"the section on {name} needs a line '- {part}...'"
    row = f"| [`{name}`](#{name.lower()}) |"
    assert row in COMBINERS, f"the table 'In one table' needs a row that begins {row}"


@pytest.fixture(scope="module")
def runs():
    readings = paper.READINGS
    return {noise: list(paper.run_seeds(20, paper.LENGTHS[-1], noise)) for noise in readings}


def cells(row):
    return [cell.strip() for cell in row.strip("|").split("|")]


def table(page, head):
    """The rows below the line that begins with `head` and the line of dashes, as cells."""
    lines = page.partition(f"\n{head}")[2].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            return rows
        rows.append(cells(line))
    return rows


@pytest.mark.slow
def test_verdict_of_the_pages_is_what_is_computed(runs):
    longest = paper.LENGTHS[-1]
    generator = [paper.run_signal(0, *paper.generator_stream(longest))]
    shown = table(PAPER, "| 0.71519837 is")
    expected = []
    for group in (*runs.values(), generator):
        standings = paper.standings(group, paper.LENGTHS)
        for samples in paper.LENGTHS:
            row = [s for s in standings if s.samples == samples]
            below = [f"{s.below}, " if len(group) > 1 else "" for s in row]
            margins = [f"{b}{100 * s.margin:+.1f} %" for b, s in zip(below, row, strict=True)]
            expected.append([str(samples), *margins])
    assert [row[1:] for row in shown] == expected
    for noise, group in zip(("variance", "standard deviation"), runs.values(), strict=True):
        standings = paper.standings(group, paper.LENGTHS)
        below = [str(s.below) for s in standings if s.rival == paper.EXACT]
        (shown,) = re.findall(rf"noise as {noise} \| lower on ([\d, ]+) of 20 seeds", README)
        assert shown.split(", ") == below


@pytest.mark.slow
def test_measured_table_of_the_combiners_is_what_is_computed(runs):
    results = combiner_table.results([run.until(1000) for run in runs["variance"]])
    expected = [cells(result.line) for result in results]
    assert table(COMBINERS, "| rule | cost, seed 0") == expected


# --- generated pages ------------------------------------------------------------------------------

COMMANDS = command_pages.command_reference()["reference/command-line.md"]


def test_page_has_every_command_and_option():
    commands = {name: cli.commands[name] for name in cli.list_commands(click.Context(cli))}
    assert {"compare", "reproduce", "run"} <= set(commands)
    for name, command in commands.items():
        part = COMMANDS.partition(f"\n## kernelbank {name}\n")[2].partition("\n## ")[0]
        assert command.help.split("\n")[0] in part
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert any(f"`{o}" in part for o in parameter.opts), parameter
            else:
                assert parameter.make_metavar(click.Context(command)) in part
    assert "**Learning**\n\n- `--task [regression|classification]`: " in COMMANDS
    assert "\\[default: regression\\]" in COMMANDS


PAGES = reference_pages.reference()
ANCHOR = r'(?:\{#|<span id=")([\w.]+)(?:\}|">)'


def test_reference_has_every_public_name():
    assert set(reference_pages.MODULES) == set(kb._MODULES)
    shown = {name for page in PAGES.values() for name in re.findall(ANCHOR, page)}
    wanted = {f"kb.{name}" for name in kb.__all__ if not inspect.ismodule(getattr(kb, name))}
    for module in kb._MODULES:
        public = reference_pages.public_names(getattr(kb, module))
        assert public, module
        wanted |= {f"kb.{module}.{name}" for name in public}
    assert wanted <= shown
    assert len(wanted) > 120
    for name, address in reference_pages.addresses().items():
        path, _, anchor = address.partition("#")
        assert not anchor or anchor in re.findall(ANCHOR, PAGES[path]), name


def test_reference_has_every_method_and_argument_with_text():
    page = PAGES["reference/index.md"]
    for owner in (kb.AutoBank, kb.KernelBank):
        for name, member in inspect.getmembers(owner):
            if not name.startswith("_") and (callable(member) or isinstance(member, property)):
                assert f"{{#kb.{owner.__name__}.{name}}}" in page
    bank = page.partition("## kb.AutoLedger")[0]
    for argument in list(inspect.signature(kb.AutoBank).parameters):
        assert re.search(rf"^- .*`{argument}`", bank, re.MULTILINE), argument
    for page in PAGES.values():
        for entry in re.split(r"^#{2,3} ", page, flags=re.MULTILINE)[1:]:
            heading, _, rest = entry.partition("\n")
            text = re.sub(r"```.*?```", "", rest, flags=re.DOTALL)
            assert re.search(r"\w{3,}", text), heading


@pytest.mark.parametrize(
    ("docstring", "markdown"),
    [
        ("Text of *two*\nlines.", "Text of \\*two\\*\nlines.\n"),
        ("A `*code*` [0, 1] <b>.", "A `*code*` \\[0, 1\\] &lt;b>.\n"),
        ("Sum:\n\n    a + b\n\n    = c", "Sum:\n\n```text\na + b\n\n= c\n```\n"),
        (">>> 1 + 1\n2", "```pycon\n>>> 1 + 1\n2\n```\n"),
        ("All:\n- one\n  line\n- two", "All:\n\n- one\n  line\n- two\n"),
        (
            "Parameters\n----------\na, b : two\n    numbers.\nc : one.",
            "**Parameters**\n\n- `a`, `b`: two numbers.\n- `c`: one.\n",
        ),
        ("Returns\n-------\nThe sum.", "**Returns**\n\nThe sum.\n"),
        ("added : how many\n    are new.", "- `added`: how many are new.\n"),
    ],
)
def test_docstring_as_markdown(docstring, markdown):
    assert as_markdown(docstring) == markdown


# --- the site -------------------------------------------------------------------------------------

LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?([^\s\">]+)"
    r"|<link\b[^>]*rel=\"?(?:stylesheet|icon|preload)\"?[^>]*href=\"?([^\s\">]+)"
)
HREF = re.compile(r"<a\b[^>]*\bhref=\"?([^\s\">]+)")
ID = re.compile(r"\bid=\"?([^\s\">]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout == ""
    return folder


@pytest.fixture(scope="module")
def pages(site):
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html"))}
    pages.pop(site / "404.html")  # for servers; its links are absolute
    assert len(pages) > 40
    return pages


@pytest.mark.slow
def test_site_loads_nothing_from_elsewhere(pages):
    for path, html in pages.items():
        for sources in LOADED.findall(html):
            target = sources[0] or sources[1]
            assert "//" not in target, (path.name, target)
            assert (path.parent / unquote(target.partition("?")[0])).exists(), (path.name, target)


@pytest.mark.slow
def test_site_links_lead_somewhere(pages):
    engines = '<a href="../reference/engines.html#kb.engines.Ray">'
    assert any(engines in html for html in pages.values())
    for path, html in pages.items():
        for href in HREF.findall(html):
            if re.match(r"https?:|mailto:", href):
                continue
            file, _, anchor = unquote(href.replace("&amp;", "&")).partition("#")
            target = (path.parent / file).resolve() if file else path
            if target.is_dir():
                target /= "index.html"
            assert target.exists(), (path.name, href)
            if anchor and anchor != "__comments" and target in pages:
                assert anchor in ID.findall(pages[target]), (path.name, href)
