"""The pages on the paper and the combiners have every rule, and the figures that are computed."""

import re
from pathlib import Path

import pytest

from kernelbank import combiners
from kernelbank.research import paper

ROOT = Path(__file__).parents[2]
PAPER = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
COMBINERS = (ROOT / "docs" / "combiners.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


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
    short = [run.until(1000) for run in runs["variance"]]
    results = [*paper.run_rules(short), *paper.single_slots(short)]
    lines = []
    for row in sorted(results, key=lambda result: result.mean_cost):
        name = f"`{row.name}`" if "(" in row.name else row.name
        figures = (
            f"{row.cost[0]:.1f} | {row.mean_cost:.1f} | {row.loss[0]:.4f} | {row.mean_loss:.4f}"
        )
        lines.append(f"| {name} | {figures} |")
    expected = "\n".join(lines)
    shown = [" | ".join(row) for row in table(COMBINERS, "| rule | cost, seed 0")]
    assert shown == [" | ".join(cells(line)) for line in lines], f"should be:\n{expected}"
