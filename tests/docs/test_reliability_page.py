"""The page on reliability names tests that exist."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "reliability.md"


def test_every_named_test_file_exists():
    lines = [line for line in PAGE.read_text().splitlines() if "TODO" not in line]
    named = set(re.findall(r"`([a-z_/]+\.(?:py|c))`", "\n".join(lines)))
    assert len(named) > 15
    assert not [name for name in named if not (TESTS / name).exists()]


def test_every_row_of_its_tables_names_a_test():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    faults = [row for row in rows if not row.startswith("| fault |")]
    assert faults
    assert not [row for row in faults if ".py`" not in row.rpartition(" | ")[2]]
