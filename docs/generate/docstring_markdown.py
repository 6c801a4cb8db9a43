"""A docstring of kernelbank as Markdown.

Docstrings here have paragraphs, lists, indented equations, examples with `>>>`, and sections with
a line of dashes below their title. An entry of a section is `name : what it is`.
"""

import re

ENTRY = re.compile(r"(\*{0,2}[A-Za-z_][\w, *]*?) : (.*)")
DASHES = re.compile(r"-{3,}$")


def as_markdown(docstring: str) -> str:
    """Return the Markdown of a docstring whose indentation has been removed."""
    blocks = [block.split("\n") for block in re.split(r"\n\s*\n", docstring.strip("\n"))]
    written = []
    for lines in blocks:
        if len(lines) > 1 and DASHES.match(lines[1].strip()):
            written += [f"**{lines[0].strip()}**", _entries(lines[2:])]
        elif ENTRY.fullmatch(lines[0]):
            written.append(_entries(lines))
        elif lines[0].startswith(">>>"):
            written.append(_fenced("pycon", lines))
        elif lines[0].startswith("    "):
            written.append(_fenced("text", [line.removeprefix("    ") for line in lines]))
        else:
            written.append(_paragraph(lines))
    return "\n\n".join(_joined_fences(written)) + "\n"


def escaped(text: str) -> str:
    """Return text with what Markdown would take for itself escaped, except in `code`."""
    parts = re.split(r"(`[^`\n]*`)", text)
    parts[::2] = [re.sub(r"([*\[\]|])", r"\\\1", part).replace("<", "&lt;") for part in parts[::2]]
    return "".join(parts)


def _fenced(language: str, lines: list[str]) -> str:
    return "\n".join([f"```{language}", *lines, "```"])


def _joined_fences(blocks: list[str]) -> list[str]:
    """Join neighbouring equations, which a blank line parts in the docstring."""
    joined: list[str] = []
    for block in blocks:
        if joined and block.startswith("```text") and joined[-1].startswith("```text"):
            inside = block.removeprefix("```text\n")
            joined[-1] = joined[-1].removesuffix("```") + "\n" + inside
        else:
            joined.append(block)
    return joined


def _paragraph(lines: list[str]) -> str:
    """Return text, with a blank line before a list and continued items kept together."""
    text, written = escaped("\n".join(lines)), []
    for line in text.split("\n"):
        if line.startswith("- ") and written and not written[-1].startswith(("- ", "  ")):
            written.append("")
        written.append(line)
    return "\n".join(written)


def _entries(lines: list[str]) -> str:
    """Return a list of entries, or plain text where the section has none."""
    if not any(ENTRY.match(line) for line in lines):
        return _paragraph(lines)
    items: list[str] = []
    for line in lines:
        entry = ENTRY.match(line)
        if entry:
            names = ", ".join(f"`{name.strip()}`" for name in entry[1].split(","))
            items.append(f"- {names}: {escaped(entry[2])}")
        else:
            items[-1] += " " + escaped(line.strip())
    return "\n".join(items)
