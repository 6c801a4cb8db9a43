"""`kernelbank theory`: bound and measurement side by side, and an exit code that tells."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from kernelbank.cli import commands
from kernelbank.research import theory

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.TruncationMatters")

PAGE = Path(__file__).parents[2] / "docs" / "theory.md"


def run_theory(*arguments):
    return CliRunner().invoke(commands.cli, ["theory", *arguments])


def table_rows(text):
    """The cells of the rows of a table that was printed."""
    rows = [line.strip("│ ").split("│") for line in text.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in row] for row in rows]


def test_theory_prints_every_bound_beside_its_measurement():
    result = run_theory("--seeds", "2", "--samples", "40")
    assert result.exit_code == 0, result.output
    rows = table_rows(result.output)
    runs = list(theory.run_seeds(2, 40))
    assert [row[0] for row in rows] == [one.name for one in runs[0]]
    for row, pair in zip(rows, zip(*runs, strict=True), strict=True):
        assert row[1] == f"{sum(one.bound for one in pair) / 2:.4g}"
        assert row[2] == f"{sum(one.measured for one in pair) / 2:.4g}"
        assert row[4] == "2 of 2"
    assert "Every bound held" in result.output
    assert "2 seeds, 40 samples" in result.output


def test_theory_tells_a_bound_that_did_not_hold(monkeypatch):
    right = theory.hedge_bound
    monkeypatch.setattr(theory, "hedge_bound", lambda *given: 0.1 * right(*given))
    result = run_theory("--seeds", "1", "--samples", "200")
    assert result.exit_code == 1
    assert "0 of 1" in result.output
    assert "Not every bound held: Hedge, the best slot." in result.output


@pytest.mark.parametrize("arguments", [("--seeds", "0"), ("--samples", "3"), ("--samples", "1e9")])
def test_wrong_usage_exits_with_one_message(arguments):
    result = run_theory(*arguments)
    assert result.exit_code == 2
    assert arguments[0] in result.output


@pytest.mark.slow
def test_table_of_the_page_is_what_the_command_prints():
    shown = re.search(r"kernelbank theory\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    result = run_theory()
    assert table_rows(shown[1]) == table_rows(result.output)
