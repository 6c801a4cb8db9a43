"""A whole trace in one figure: predictions, costs and weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...bank.trace import Trace
from ...utils import validation as check
from .prediction_plots import predictions
from .style import PAGE, fix_tick_style, in_small_style, new_figure, plain
from .traces import NAMED, cumulative_cost, cumulative_loss, weights
from .validation import are_labels, check_is_trace, check_trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_TARGETS = 4
"""The most targets with a panel each."""

Panel = tuple[float, Any, tuple[Any, ...]]
"""Height, the function that draws it, and its arguments."""


@in_small_style
def trace(trace: Trace, y: Any = None) -> Figure:
    """A trace in panels, one below the other, for the fields that it holds.

    Predictions (see `predictions`), then the sum of costs or losses (see `cumulative_cost` and
    `cumulative_loss`), then the weights (see `weights`). With several targets, up to four, there is
    a panel of predictions for each; `trace.of_output(0)` has all panels of one.

    Parameters
    ----------
    trace : of a `KernelBank` or an `AutoBank`; record="all" shows all panels.
    y : the targets or labels that the bank was run on.

    >>> import numpy as np, kernelbank as kb
    >>> x = np.arange(100) / 10
    >>> trace = kb.AutoBank(size="small").run(x, np.sin(x), record="all")
    >>> figure = kb.plots.trace(trace, np.sin(x))
    >>> [axes.get_ylabel() for axes in figure.axes[:3]]
    ['target', 'cumulative squared error', 'slot']
    """
    check_is_trace(trace)
    panels = _panels(trace, y) if trace.outputs == 1 else _target_panels(trace, y)
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
    for axes, name in zip(all_axes[:, 0], trace.target_names, strict=False):
        axes.set_ylabel(plain(name))
    fix_tick_style(*(one for one in figure.axes if one not in all_axes))
    return figure


def _target_panels(trace: Trace, y: Any) -> list[Panel]:
    """The predictions of each of several targets."""
    if trace.outputs > MOST_TARGETS:
        remedy = "Draw one of them, such as kb.plots.trace(trace.of_output(0), y[:, 0])."
        rule = f"have at most {MOST_TARGETS} outputs"
        raise check.refuse("trace", rule, f"{trace.outputs} outputs", remedy)
    targets: list[Any] = [None] * trace.outputs
    if y is not None:
        remedy = "Give the targets that the bank was run on."
        array = check.floats("y", y, remedy)
        if array.shape != (len(trace), trace.outputs):
            rule = f"have the shape ({len(trace)}, {trace.outputs})"
            raise check.refuse("y", rule, array.shape, remedy)
        targets = list(array.T)
    each = [trace.of_output(k) for k in range(trace.outputs)]
    check_trace(each[0], "predictions")
    return [(2.0, predictions, pair) for pair in zip(each, targets, strict=True)]


def _panels(trace: Trace, y: Any) -> list[Panel]:
    """Predictions, costs or losses, and weights, as far as the trace holds them."""
    check_trace(trace)
    held = trace.fields
    panels: list[Panel] = []
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
    return panels
