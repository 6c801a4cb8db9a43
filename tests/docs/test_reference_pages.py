"""The reference of the site has every public name, and says something about each."""

import inspect
import re

import pytest

import kernelbank as kb
import reference_pages
from benchmark_page import benchmark_page
from docstring_markdown import as_markdown

PAGES = reference_pages.reference()
ANCHOR = r'(?:\{#|<span id=")([\w.]+)(?:\}|">)'


def test_reference_has_every_public_name():
    shown = {name for page in PAGES.values() for name in re.findall(ANCHOR, page)}
    wanted = {f"kb.{name}" for name in kb.__all__ if not inspect.ismodule(getattr(kb, name))}
    for module in kb._MODULES:
        public = reference_pages.public_names(getattr(kb, module))
        assert public, module
        wanted |= {f"kb.{module}.{name}" for name in public}
    assert wanted <= shown
    assert len(wanted) > 120


def test_reference_has_a_page_for_every_public_module():
    assert set(reference_pages.MODULES) == set(kb._MODULES)


def test_reference_lists_every_benchmark():
    (page,) = benchmark_page().values()
    for name, benchmark in kb.datasets.BENCHMARKS.items():
        assert f"| {name} | {benchmark.about} |" in page
        assert f"| {name} | {benchmark.source} | {benchmark.licence} |" in page
        assert (benchmark.file_sha256 or "") in page


def test_reference_addresses_lead_to_anchors():
    for name, address in reference_pages.addresses().items():
        path, _, anchor = address.partition("#")
        assert not anchor or anchor in re.findall(ANCHOR, PAGES[path]), name


def test_reference_has_every_method_of_a_bank():
    page = PAGES["reference/index.md"]
    for owner in (kb.AutoBank, kb.KernelBank):
        for name, member in inspect.getmembers(owner):
            if not name.startswith("_") and (callable(member) or isinstance(member, property)):
                assert f"{{#kb.{owner.__name__}.{name}}}" in page


def test_reference_has_every_entry_of_a_docstring():
    page = PAGES["reference/index.md"].partition("## kb.AutoLedger")[0]
    for argument in list(inspect.signature(kb.AutoBank).parameters):
        assert re.search(rf"^- .*`{argument}`", page, re.MULTILINE), argument


@pytest.mark.parametrize("path", PAGES)
def test_reference_entries_have_text(path):
    for entry in re.split(r"^#{2,3} ", PAGES[path], flags=re.MULTILINE)[1:]:
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
