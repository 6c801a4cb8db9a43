"""Plots of predictions, sample by sample, beside the targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...bank.trace import Trace
from ...utils import validation as check
from ...utils.validation import Floats
from .downsample import interval_band, interval_means, interval_starts, line_indices
from .style import (
    BLUE,
    CLASS_COLOURS,
    COLUMN,
    GREY,
    INK,
    canvas,
    figure_of,
    plain,
)
from .validation import are_labels, check_trace, labels, numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DOTS = 400
"""Up to this many targets are drawn as dots, more as a line."""

MARKERS = ("o", "s", "^", "D", "v")


def predictions(trace: Trace, y: Any = None, ax: Axes | None = None) -> Figure:
    """The predictions, with their intervals where the trace has them, and the targets.

    For labels: the probability of the true label of each sample, and its mean over the last ones;
    without `y`, the probabilities of all classes, one above the other.

    Parameters
    ----------
    trace : with "predictions" (numbers) or "probabilities" (labels).
    y : the targets or labels that the bank was run on; by default only predictions are drawn.
    ax : Axes to draw into, instead of a figure of its own.

    >>> import numpy as np, kernelbank as kb
    >>> x = np.arange(100) / 10
    >>> trace = kb.AutoBank(size="small").run(x, np.sin(x))
    >>> figure = kb.plots.predictions(trace, np.sin(x))
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['target', 'prediction', 'interval']
    """
    with canvas(ax, COLUMN, 2.6) as axes:
        if are_labels(trace):
            _classes(axes, trace, y)
        else:
            _numbers(axes, trace, y)
        axes.set(xlabel="sample", xlim=(0, max(len(trace) - 1, 1)))
        # Above the axes, where it hides nothing.
        position = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
        axes.legend(ncols=4, handlelength=1.4, columnspacing=1.2, **position)
    return figure_of(axes)


def _numbers(axes: Any, trace: Trace, y: Any) -> None:
    check_trace(trace, "predictions")
    predicted = trace.predictions
    if y is not None:
        target = numbers(y, trace)
        x = line_indices(target)
        style = {"color": INK, "ls": "none", "marker": "o", "ms": 2.2, "mew": 0.0}
        if len(target) > DOTS:
            style = {"color": GREY, "lw": 0.8}
        axes.plot(x, target[x], label="target", zorder=2, **style)
        axes.set_ylabel("target")
    x = line_indices(predicted)
    width = 1.3 if len(predicted) <= DOTS else 0.7
    axes.plot(x, predicted[x], color=BLUE, lw=width, label="prediction", zorder=3)
    if "lower" in trace.fields and "upper" in trace.fields:
        band = interval_band(trace.lower, trace.upper)  # type: ignore[union-attr]
        axes.fill_between(*band, color=BLUE, alpha=0.22, lw=0, label="interval", zorder=1)
    # The first predictions know nothing, and their intervals may be far wider than all later ones.
    settled = slice(min(10, len(predicted) // 4), None)
    shown = [predicted[settled]] + ([] if y is None else [target])
    if "lower" in trace.fields and "upper" in trace.fields:
        shown += [trace.lower[settled], trace.upper[settled]]  # type: ignore[union-attr]
    values = np.concatenate(shown)
    values = values[np.isfinite(values)]
    if len(values) and values.max() > values.min():
        low, high = values.min(), values.max()
        axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))


def _classes(axes: Any, trace: Trace, y: Any) -> None:
    check_trace(trace, "probabilities")
    probabilities = np.nan_to_num(trace.probabilities, nan=0.0)  # before any class is known
    if y is None:
        _stack(axes, probabilities, trace.classes)
    else:
        _probability_of_truth(axes, probabilities, trace.classes, labels(y, trace))


def _probability_of_truth(
    axes: Any, probability: Floats, classes: Sequence[Any], truth: Sequence[Any]
) -> None:
    """One dot per sample: the probability of its true label; and the running mean."""
    indices = {label: index for index, label in enumerate(classes)}
    own = np.array([indices.get(label, -1) for label in truth])
    if (own < 0).any():
        unknown = truth[int(np.flatnonzero(own < 0)[0])]
        remedy = "Give the labels that the bank was run on."
        raise check.refuse("y", f"hold labels from {list(classes)}", unknown, remedy)
    height = probability[np.arange(len(own)), own]
    for index, label in enumerate(classes):
        colour, marker = CLASS_COLOURS[index % 6], MARKERS[index % len(MARKERS)]
        x = np.flatnonzero(own == index)
        x = x[line_indices(height[x])]
        style = {"ls": "none", "marker": marker, "ms": 2.6, "mew": 0.0, "alpha": 0.75}
        axes.plot(x, height[x], color=colour, label=plain(label), rasterized=len(x) > 999, **style)
    length = max(len(own) // 20, 20)
    sums = np.concatenate([[0.0], np.cumsum(height)])
    end = np.arange(1, len(own) + 1)
    mean = (sums[end] - sums[np.maximum(end - length, 0)]) / np.minimum(end, length)
    x = line_indices(mean)
    axes.plot(x, mean[x], color=INK, lw=1.2, label=f"mean of the last {length}")
    axes.set(ylim=(-0.02, 1.02), ylabel="probability of the true label")


def _stack(axes: Any, probability: Floats, classes: Sequence[Any]) -> None:
    """The probabilities of all classes, one above the other."""
    tops = np.cumsum(interval_means(probability), axis=1)
    edges = np.append(interval_starts(len(probability), len(tops)), len(probability)) - 0.5
    floor = np.zeros(len(tops))
    shown = len(CLASS_COLOURS)
    layers = [(plain(label), tops[:, index]) for index, label in enumerate(classes[:shown])]
    if len(classes) > shown:
        layers.append((f"{len(classes) - shown} others", tops[:, -1]))
    for (label, top), colour in zip(layers, (*CLASS_COLOURS, GREY), strict=False):
        style = {"fill": True, "color": colour, "lw": 0, "rasterized": True}
        axes.stairs(top, edges, baseline=floor, label=label, **style)
        floor = top
    axes.set(ylim=(0, 1), ylabel="probability")
