"""A whole trace in one figure: predictions, costs and weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...bank.trace import Trace
from ...utils import validation as check
from .prediction_plots import predictions
from .style import PAGE, fix_tick_style, in_small_style, new_figure
from .traces import NAMED, cumulative_cost, cumulative_loss, weights
from .validation import are_labels, check_trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@in_small_style
def trace(trace: Trace, y: Any = None) -> Figure:
    """A trace in panels, one below the other, for the fields that it holds.

    Predictions (see `predictions`), then the sum of costs or losses (see `cumulative_cost` and
    `cumulative_loss`), then the weights (see `weights`).

    Parameters
    ----------
    trace : of a `KernelBank` or an `AutoBank`; record="all" shows all panels.
    y : the targets or labels that the bank was run on.

    >>> import numpy as np, kernelbank as kb
    >>> x = np.arange(100) / 10
    >>> trace = kb.AutoBank(size="small").run(x, np.sin(x), record="all")
    >>> figure = trace.plot(np.sin(x))  # the same as kb.plots.trace(trace, np.sin(x))
    >>> [axes.get_ylabel() for axes in figure.axes[:3]]
    ['target', 'cumulative squared error', 'slot']
    """
    check_trace(trace)
    held = trace.fields
    panels: list[tuple[float, Any, tuple[Any, ...]]] = []
    if ("probabilities" if are_labels(trace) else "predictions") in held:
        panels.append((2.0, predictions, (trace, y)))
    if trace.task is None:
        if "cost" in held and "slot_cost" in held:
            panels.append((2.0, cumulative_cost, (trace,)))
        elif "loss" in held:
            panels.append((2.0, cumulative_loss, (trace,)))
    elif y is not None and "predictions" in held:
        panels.append((2.0, cumulative_loss, (trace, y)))
    if "weights" in held:
        count = trace.weights.shape[1]
        panels.append((2.0 if count > NAMED else max(1.6, 0.11 * count), weights, (trace,)))
    if not panels:
        remedy = 'Run with record="all", or with one of these names in the list.'
        rule = "hold 'predictions', 'cost' and 'slot_cost', 'loss' or 'weights'"
        raise check.refuse("trace", rule, list(held), remedy)
    heights = [height for height, *_ in panels]
    figure, all_axes = new_figure(
        PAGE,
        sum(heights) + 0.3,
        rows=len(panels),
        sharex=True,
        height_ratios=heights,
        squeeze=False,
    )
    for axes, (_, draw, given) in zip(all_axes[:, 0], panels, strict=True):
        fix_tick_style(axes)
        draw(*given, ax=axes)
        if axes is not all_axes[-1, 0]:
            axes.set_xlabel("")
    fix_tick_style(*(one for one in figure.axes if one not in all_axes))
    return figure
