"""The tutorials, followed to the letter: every command, and what it prints."""

from pathlib import Path

import pytest

import tutorials

PAGES = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.md"))


def test_there_is_a_tutorial_for_each_user():
    assert len(PAGES) == 3


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
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
"""


@pytest.mark.parametrize(
    ("printed", "agrees"),
    [("one 5\n/home/you", True), ("one 6\n/home/you", False), ("one 5", False)],
)
def test_step_agrees_only_with_what_is_printed(printed, agrees, tmp_path):
    first, second = tutorials.follow(TEXT.format(printed=printed), tmp_path)
    assert first.agrees is agrees
    assert second.agrees
    assert second.code == 1


def test_step_that_fails_or_does_not_fail_unexpectedly_disagrees(tmp_path):
    text = "```sh\nfalse\n```\n\n```sh\ntrue   # stops\n```\n"
    assert [step.agrees for step in tutorials.follow(text, tmp_path)] == [False, False]
