"""Drawing of a status: title, facts and bars, as text for a terminal and as HTML for a notebook.

Knows no model: it gets words and numbers. Whatever these hold, a drawing has one line per fact,
nothing that a terminal would obey, and nothing that a browser would run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import product
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from .validation import optional

if TYPE_CHECKING:
    import pandas


Pairs = tuple[tuple[str, str], ...]
Bars = Sequence[tuple[str, float]]

CELLS = 20  # length of the longest bar in a terminal, in characters


def render_text(
    title: str, facts: Pairs = (), heading: str = "", bars: Bars = (), rest: str = ""
) -> str:
    """Draw for a terminal. The first line is the title, the others are indented.

    facts: (label, text); heading: what the bars are; bars: (name, value), the longest bar for the
    largest size; rest: a line below the bars.

    >>> print(render_text("Bank", (("loss", "0.1"),), "weights", (("a", 0.8), ("b", 0.2))))
    Bank
      loss  0.1
      weights
        0.800 #################### a
        0.200 #####                b
    """
    lines = [one_line(title)]
    width = max((len(label) for label, _ in facts), default=0)
    lines += [f"  {one_line(label):<{width}}  {one_line(text)}" for label, text in facts]
    if heading:
        lines.append(f"  {one_line(heading)}")
    values = [number(value) for _, value in bars]
    width = max(map(len, values), default=0)
    for (name, value), shown, length in zip(bars, values, _lengths(bars), strict=True):
        # Little is still visible. In ASCII: in an old code page, printing blocks raises.
        bar = ("-" if value < 0 else "#") * max(round(length * CELLS), int(length > 0))
        lines.append(f"    {shown:>{width}} {bar:<{CELLS}} {one_line(name)}")
    if rest:
        lines.append(f"    {one_line(rest)}")
    return "\n".join(lines)


def render_html(text: str) -> str:
    """A text for a notebook: no script, no address, and the page's style only, dark or light."""
    return f'<div class="kernelbank-status" style="overflow-x:auto"><pre>{escape(text)}</pre></div>'


def _lengths(bars: Bars) -> list[float]:
    """The lengths of the bars, from 0 to 1."""
    sizes = [abs(value) if isfinite(value) else 0.0 for _, value in bars]
    largest = max(sizes, default=0.0)
    return [size / largest if largest else 0.0 for size in sizes]


def number(value: float) -> str:
    """A number in few characters."""
    plain = value == 0 or 0.0005 <= abs(value) < 1000
    return f"{value:.3f}" if plain else f"{value:.2g}"


def one_line(text: str) -> str:
    """The text without line ends, escape sequences and other characters that do not print."""
    if text.isprintable():
        return text
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def shortened(text: str, most: int) -> str:
    """The text, or its beginning if it has more than `most` characters."""
    return text if len(text) <= most else text[: most - 3] + "..."


def frame(
    samples: int,
    arrays: Mapping[str, np.ndarray],
    names: Mapping[str, Sequence[Sequence[str]]],
) -> pandas.DataFrame:
    """A data frame with one row per sample.

    An (n,) array is a column with the name of its field, an (n, k) array k columns `field: name`,
    an (n, K, k) array K k columns `field: name: name`. So all columns of a field are
    `frame.filter(regex="^weights: ")`; file formats have no nested columns.

    Parameters
    ----------
    samples : n.
    arrays : (n, ...), by field.
    names : by field, the names along each axis after the first; equal ones get a number, from the
        second on.
    """
    with optional("to_frame() needs", "pandas", ""):
        import pandas
    rows = pandas.RangeIndex(samples, name="sample")
    parts = [pandas.DataFrame(index=rows)]
    for field, array in arrays.items():
        along = [unique(axis_names) for axis_names in names.get(field, ())]
        headings = [": ".join([field, *parts_of]) for parts_of in product(*along)]
        values = array.reshape(samples, len(headings))
        parts.append(pandas.DataFrame(values, index=rows, columns=headings))
    return pandas.concat(parts, axis=1)  # copies: to change the frame does not change the trace


def unique(names: Iterable[str]) -> list[str]:
    """The names in their order, with a number behind each that repeats.

    >>> unique(["a", "b", "a", "a (2)", "a"])
    ['a', 'b', 'a (2)', 'a (2) (2)', 'a (3)']
    """
    seen: Counter[str] = Counter()
    taken: dict[str, None] = {}  # in order
    for name in names:
        candidate = name
        while candidate in taken:
            seen[name] += 1
            candidate = f"{name} ({seen[name] + 1})"
        taken[candidate] = None
    return list(taken)
