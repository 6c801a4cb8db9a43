"""Figures for papers, with matplotlib, which is imported when the first one is drawn.

Each function draws one figure and returns it. With `ax=` it draws into your Axes, in your style,
and returns their figure. No window is opened and pyplot is not used: save a figure by
`kb.plots.save` or `figure.savefig`, or show it in a notebook.

Figures have the widths of two-column papers, colours that stay apart for every kind of colour
vision, and lines that stay apart in grey too.
"""

from .banks import bars, forecast, function
from .style import (
    BLUE,
    COLUMN,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PAGE,
    PALE,
    PURPLE,
    RED,
    SKY,
    new_figure,
    save,
    styled,
)
from .traces import cumulative_cost, cumulative_loss, predictions, trace, weights

__all__ = [
    "BLUE", "COLUMN", "GREEN", "GREY", "INK", "ORANGE", "PAGE", "PALE", "PURPLE", "RED", "SKY",
    "bars", "cumulative_cost", "cumulative_loss", "forecast", "function",
    "new_figure", "predictions", "save", "styled", "trace", "weights",
]  # fmt: skip
