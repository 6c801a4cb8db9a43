"""Follow a tutorial to the letter: write its files, run its commands, read what they print.

    python docs/generate/tutorials.py docs/tutorials/*.md    # writes what is printed to them

In a tutorial, a block of Python with a title is a file that the reader saves, and a block of shell
is run, all in one folder. What it prints is in the block of text that follows it at once. A
command with the comment `# stops` ends with an error.
"""

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
TIMES = re.compile(r"[\d,.]+(?= (?:s|ms|rows/s|samples/s)\b)")
"""What differs from run to run and from machine to machine."""

HOME = "/home/you"
"""Stands in the pages for the folder that they are followed in."""


@dataclass(frozen=True)
class Step:
    """A command of a page, and what stands below it."""

    command: str
    stated: str | None
    printed: str
    code: int

    @property
    def agrees(self) -> bool:
        """Whether the page states what was printed, apart from times."""
        if (self.code != 0) != ("# stops" in self.command):
            return False
        return self.stated is None or _without_times(self.stated) == _without_times(self.printed)


def follow(text: str, folder: Path) -> list[Step]:
    """Do what a page says, in this folder."""
    places = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": places}
    environment.pop("COLUMNS", None)
    steps = []
    blocks = list(BLOCK.finditer(text))
    for at, block in enumerate(blocks):
        language, title, inside = block.groups()
        if language == "python" and title:
            (folder / title).write_text(inside, encoding="utf-8")
        if language != "sh":
            continue
        done = subprocess.run(
            ["bash", "-ec", inside],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            check=False,
        )
        after = blocks[at + 1] if at + 1 < len(blocks) else None
        stated = None
        if after and after[1] == "text" and not text[block.end() : after.start()].strip():
            stated = after[3]
        printed = re.sub(r" +$", "", done.stdout.replace(str(folder), HOME), flags=re.MULTILINE)
        steps.append(Step(inside, stated, printed, done.returncode))
    return steps


def rewritten(text: str, steps: list[Step]) -> str:
    """Return the page with what was printed, where it differs in more than times."""
    for step in steps:
        if step.stated is not None and not step.agrees:
            old = f"```sh\n{step.command}```\n```text\n{step.stated}```"
            new = f"```sh\n{step.command}```\n```text\n{step.printed}```"
            text = text.replace(old, new, 1)
    return text


def _without_times(text: str) -> list[str]:
    return TIMES.sub("...", text).split()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            page = Path(name)
            done = follow(page.read_text(encoding="utf-8"), Path(folder))
        for step in done:
            if not step.agrees:
                print(f"{name}:\n{step.command}\n{step.printed}", step.code)
        page.write_text(rewritten(page.read_text(encoding="utf-8"), done), encoding="utf-8")
