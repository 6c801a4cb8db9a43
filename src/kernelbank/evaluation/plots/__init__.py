"""Pictures for papers, with matplotlib, which is imported when the first one is drawn.

Each function draws one picture and returns its Figure. With `ax=` it draws into Axes of yours, in
your style, and returns their figure. No window is opened and pyplot is not touched: save a figure
by `kb.plots.save` or `figure.savefig`, or look at it in a notebook.

Figures have the widths of two-column papers, colours that stay apart for every kind of colour
vision, and lines that stay apart in grey too. Long runs are thinned honestly: lines keep the lowest
and the highest value of each stretch, weights are means over a stretch.
"""

from .curves import running_means
from .dashboard import trace
from .functions import function
from .predictions import predictions
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
from .traces import cumulative_cost, cumulative_loss, weights
from .weight_bars import bars

__all__ = [
    "BLUE",
    "COLUMN",
    "GREEN",
    "GREY",
    "INK",
    "ORANGE",
    "PAGE",
    "PALE",
    "PURPLE",
    "RED",
    "SKY",
    "bars",
    "cumulative_cost",
    "cumulative_loss",
    "function",
    "new_figure",
    "predictions",
    "running_means",
    "save",
    "styled",
    "trace",
    "weights",
]
