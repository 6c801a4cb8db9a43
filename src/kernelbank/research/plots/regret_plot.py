"""The regret of a run over time, against the best slot and against comparators of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...bank.trace import Trace
from ...utils import validation as check
from ...utils.validation import Floats
from .. import regret as regrets
from .downsample import line_indices
from .style import BLUE, COLUMN, GREEN, GREY, ORANGE, PURPLE, RED, SKY, canvas, figure_of, plain
from .traces import losses_of
from .validation import check_trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def regret(
    trace: Trace,
    y: Any = None,
    *,
    comparators: Mapping[str, Any] | None = None,
    length: int | None = None,
    by: str = "loss",
    ax: Axes | None = None,
) -> Figure:
    """How much more the bank has lost than the best slot, the best slot per interval, comparators.

    See `kb.regret` for the definitions. Below the line of 0 the bank was better.

    Parameters
    ----------
    trace : of a `KernelBank`, with "loss" and "slot_loss" (or "cost" and "slot_cost"); or of an
        `AutoBank` for numbers, with "predictions" and "slot_predictions".
    y : the targets; for a trace of an `AutoBank` only.
    comparators : (n,) losses by name, as `kb.regret.comparator_loss` returns them.
    length : samples of an interval; by default a tenth of the trace.
    by : "loss", one step ahead, or "cost", which the paper compares.
    ax : Axes to draw into, instead of a figure of its own.

    >>> import numpy as np, kernelbank as kb
    >>> x, y = kb.datasets.sine(seed=0, samples=300)
    >>> trace = kb.KernelBank(kb.gaussian_grid(0.1, 1, 5), kb.learners.FourierSGD()).run(x, y)
    >>> drifting = np.sin(2 * np.pi * (x[:, 0] + np.arange(300) / 300))
    >>> losses = kb.regret.comparator_loss(drifting, x, y)
    >>> figure = kb.plots.regret(trace, comparators={"the drifting sine": losses})
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['best slot so far', 'best slot per 30 samples', 'the drifting sine']
    """
    own, alone, unit = _figures(trace, y, by)
    remedy = "Give how many samples an interval has."
    size = max(1, len(own) // 10)
    if length is not None:
        size = check.count("length", length, "regret", remedy)
    lines = {
        "best slot so far": regrets.best_slot(own, alone),
        f"best slot per {size:,} samples": regrets.best_slot_per_interval(own, alone, size),
    }
    for name, losses in (comparators or {}).items():
        lines[str(name)] = np.cumsum(own - _comparator(name, losses, len(own)))
    colours = (GREEN, BLUE, RED, ORANGE, PURPLE, SKY)
    with canvas(ax, COLUMN, 2.6) as axes:
        axes.axhline(0, color=GREY, lw=0.8, zorder=1)
        for index, (name, values) in enumerate(lines.items()):
            x = line_indices(values)
            style = ("--", "-", ":", "-.")[index % 4]
            colour = colours[index % len(colours)]
            above = 5 - min(index, 3)  # dashes above a line that may be the same
            axes.plot(x, values[x], color=colour, ls=style, lw=1.4, zorder=above, label=plain(name))
        axes.set(xlabel="sample", ylabel=f"regret ({unit})", xlim=(0, max(len(own) - 1, 1)))
        axes.legend(loc="upper left")
    return figure_of(axes)


def _figures(trace: Trace, y: Any, by: str) -> tuple[Floats, Floats, str]:
    """What the bank and every slot have lost with each sample, and what of."""
    check.choice("by", by, "regret", ("loss", "cost"))
    if by == "cost":
        check_trace(trace, "cost", "slot_cost")
        return trace.cost, trace.slot_cost, "cost"
    check_trace(trace)
    if trace.task is None:
        check_trace(trace, "loss", "slot_loss")
    elif trace.task == "regression":
        check_trace(trace, "predictions", "slot_predictions")
    own, alone, _ = losses_of(trace, y)
    if alone is None:
        remedy = "A trace of labels holds no losses of slots; kb.regret takes arrays of your own."
        raise check.refuse("trace", "hold losses of slots", trace, remedy)
    return own, alone, "loss" if trace.task is None else "squared error"


def _comparator(name: Any, losses: Any, samples: int) -> Floats:
    remedy = "Give what kb.regret.comparator_loss returned, one column each."
    values = check.floats("comparators", losses, remedy)
    if values.shape != (samples,):
        rule = f"hold ({samples},) losses for {name!r}"
        raise check.refuse("comparators", rule, values.shape, remedy)
    return values
