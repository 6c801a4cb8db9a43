"""How a bank is drawn: a title, facts and bars, as text for a terminal and as HTML for a notebook.

Knows no bank: it is given words and numbers. Whatever stands in them, a drawing is one line for one
fact, has nothing a terminal would obey and nothing a browser would run.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from html import escape
from math import isfinite

Pairs = tuple[tuple[str, str], ...]

CELLS = 20
"""Length of the longest bar in a terminal, in characters."""

EIGHTHS = " ▏▎▍▌▋▊▉█"
NEGATIVE = "░"


@dataclass(frozen=True)
class Summary:
    """What is to be seen at a glance.

    title: one line, all there is to see of a bank that has learned nothing; facts: (label, text);
    heading: what the bars are; bars: (name, share), the longest bar for the largest share; rest:
    what is said below the bars; settings: (label, text), folded away in HTML and not in the text.

    >>> print(Summary("Bank(2 slots)", (("loss", "0.1"),), "weights", (("a", 0.8), ("b", 0.2))))
    Bank(2 slots)
      loss  0.1
      weights
        0.800 ████████████████████ a
        0.200 █████                b
    """

    title: str
    facts: Pairs = ()
    heading: str = ""
    bars: tuple[tuple[str, float], ...] = ()
    rest: str = ""
    settings: Pairs = ()

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """For a terminal. The first line is the title, the others are indented."""
        lines = [one_line(self.title)]
        width = max((len(label) for label, _ in self.facts), default=0)
        lines += [f"  {one_line(label):<{width}}  {one_line(text)}" for label, text in self.facts]
        if self.heading:
            lines.append(f"  {one_line(self.heading)}")
        figures = [figure(share) for _, share in self.bars]
        width = max(map(len, figures), default=0)
        for (name, share), shown, length in zip(self.bars, figures, self._lengths(), strict=True):
            bar = _bar(length, negative=share < 0)
            lines.append(f"    {shown:>{width}} {bar:<{CELLS}} {one_line(name)}")
        if self.rest:
            lines.append(f"    {one_line(self.rest)}")
        return "\n".join(lines)

    def html(self) -> str:
        """For a notebook: no script, no address, colours of the page around it, dark or light."""
        parts = [_div("font-family:monospace;font-weight:bold", _safe(self.title))]
        if self.facts:
            parts.append(_table(self.facts))
        if self.heading:
            parts.append(_div("opacity:.7", _safe(self.heading)))
        if self.bars:
            lengths = self._lengths()
            rows = [_row(*bar, length) for bar, length in zip(self.bars, lengths, strict=True)]
            parts.append(f'<table style="{_TABLE}"><tbody>{"".join(rows)}</tbody></table>')
        if self.rest:
            parts.append(_div("", _safe(self.rest)))
        if self.settings:
            summary = '<summary style="cursor:pointer;opacity:.7">settings</summary>'
            parts.append(f"<details>{summary}{_table(self.settings)}</details>")
        return f'<div class="kernelbank-glance" style="{_FRAME}">{"".join(parts)}</div>'

    def _lengths(self) -> list[float]:
        """Of the bars, from 0 to 1."""
        sizes = [abs(share) if isfinite(share) else 0.0 for _, share in self.bars]
        largest = max(sizes, default=0.0)
        return [size / largest if largest else 0.0 for size in sizes]


def figure(value: float) -> str:
    """A share in few characters."""
    plain = value == 0 or 0.0005 <= abs(value) < 1000
    return f"{value:.3f}" if plain else f"{value:.2g}"


def one_line(text: str) -> str:
    """The text without ends of lines, escape sequences and whatever else does not print."""
    if text.isprintable():
        return text
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def shortened(text: str, most: int) -> str:
    """The text, or its beginning if it has more than `most` characters."""
    return text if len(text) <= most else text[: most - 3] + "..."


# --- in a terminal ------------------------------------------------------------------------------


def _bar(length: float, *, negative: bool) -> str:
    eighths = round(length * CELLS * 8)
    if length > 0:
        eighths = max(eighths, 1)  # a little is not nothing
    whole, part = divmod(eighths, 8)
    if not _shows_blocks():
        return ("-" if negative else "#") * (whole + (part > 0))
    if negative:
        return NEGATIVE * (whole + (part > 0))
    return EIGHTHS[8] * whole + (EIGHTHS[part] if part else "")


def _shows_blocks() -> bool:
    """Whether they can be printed: an output in an old code page would raise an error."""
    try:
        (EIGHTHS + NEGATIVE).encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeError, LookupError):
        return False
    return True


# --- in a notebook ------------------------------------------------------------------------------
# Notebooks have rules of their own for tables (stripes, numbers to the right): styles that stand on
# the elements overrule them, and touch nothing else on the page.

_FRAME = "max-width:700px;color:inherit;background:transparent;overflow-wrap:anywhere"
_TABLE = (
    "border-collapse:collapse;border:0;margin:.3em 0;table-layout:auto;color:inherit;"
    "background:transparent"
)
_CELL = "border:0;padding:.1em 1em .1em 0;text-align:left;vertical-align:top;max-width:none"


def _safe(text: str) -> str:
    return escape(one_line(text), quote=True)


def _div(style: str, inside: str) -> str:
    return f'<div style="{style}">{inside}</div>' if style else f"<div>{inside}</div>"


def _table(pairs: Pairs) -> str:
    rows = [
        '<tr style="background:transparent">'
        f'<th scope="row" style="{_CELL};font-weight:normal;opacity:.7;white-space:nowrap">'
        f'{_safe(label)}</th><td style="{_CELL}">{_safe(text)}</td></tr>'
        for label, text in pairs
    ]
    return f'<table style="{_TABLE}"><tbody>{"".join(rows)}</tbody></table>'


def _row(name: str, share: float, length: float) -> str:
    look = "border:1px solid currentColor" if share < 0 else "background:currentColor"
    size = f"box-sizing:border-box;width:{100 * length:.1f}%;height:.7em;margin-top:.35em"
    bar = f'<div aria-hidden="true" style="{size};{look};opacity:.6"></div>'
    return (
        '<tr style="background:transparent">'
        f'<td style="{_CELL};font-family:monospace">{figure(share)}</td>'
        f'<td style="{_CELL};width:9em;min-width:9em">{bar}</td>'
        f'<td style="{_CELL}">{_safe(name)}</td></tr>'
    )
