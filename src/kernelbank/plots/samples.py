"""What was answered, sample by sample, beside what came."""

from __future__ import annotations

from typing import Any

import numpy as np

from .fields import AnyTrace, are_labels, labels, need, numbers
from .style import BLUE, COLUMN, GREEN, GREY, INK, ORANGE, PURPLE, RED, SKY, picture
from .thinning import COLUMNS, ends_of_stretches, mean_of_stretches, starts, thinned

DOTS = 400
"""Up to so many targets are dots, more are a line."""

CLASS_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED)


@picture(COLUMN, 2.6)
def predictions(axes: Any, trace: AnyTrace, y: Any = None) -> None:
    """The predictions, with their intervals where the trace has them, and the targets.

    For labels: the probabilities of the classes, one above the other, and below them a mark for
    every sample whose label was not the one predicted. Means over stretches of a long run.

    Parameters
    ----------
    trace : with "predictions" (numbers) or "probabilities" (labels).
    y : the targets or labels that the bank was run on; without them, what was answered alone.
    ax : Axes to draw into, instead of a figure of its own.

    >>> import numpy as np, kernelbank as kb
    >>> x = np.arange(100) / 10
    >>> trace = kb.AutoBank(size="small").run(x, np.sin(x))
    >>> figure = kb.plots.predictions(trace, np.sin(x))
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['target', 'prediction', 'interval']
    """
    if are_labels(trace):
        _classes(axes, trace, y)
    else:
        _numbers(axes, trace, y)
    axes.set(xlabel="sample", xlim=(0, max(len(trace) - 1, 1)))


def _numbers(axes: Any, trace: AnyTrace, y: Any) -> None:
    need(trace, "predictions")
    said = trace.predictions
    if y is not None:
        target = numbers(y, trace)
        x = thinned(target)
        look = {"color": INK, "ls": "none", "marker": "o", "ms": 2.2, "mew": 0.0}
        if len(target) > DOTS:
            look = {"color": GREY, "lw": 0.8}
        axes.plot(x, target[x], label="target", zorder=2, **look)
        axes.set_ylabel("target")
    x = thinned(said)
    axes.plot(x, said[x], color=BLUE, lw=1.3, label="prediction", zorder=3)
    if "lower" in trace.fields and "upper" in trace.fields:
        band = ends_of_stretches(trace.lower, trace.upper)  # type: ignore[union-attr]
        # Below the targets where these are a line, which would else be hidden.
        axes.fill_between(*band, color=BLUE, alpha=0.22, lw=0, label="interval", zorder=1)
    # The first answers know nothing, and their intervals may be far wider than all that follows.
    settled = slice(min(10, len(said) // 4), None)
    shown = [said[settled]] + ([] if y is None else [target])
    if "lower" in trace.fields and "upper" in trace.fields:
        shown += [trace.lower[settled], trace.upper[settled]]  # type: ignore[union-attr]
    values = np.concatenate(shown)
    values = values[np.isfinite(values)]
    if len(values) and values.max() > values.min():
        low, high = values.min(), values.max()
        axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    _above(axes)


def _classes(axes: Any, trace: AnyTrace, y: Any) -> None:
    from matplotlib.patches import Patch

    need(trace, "probabilities")
    sure = mean_of_stretches(trace.probabilities)  # type: ignore[union-attr]
    begin = starts(len(trace), COLUMNS)
    edges = np.append(begin, len(trace)) - 0.5
    known = trace.classes  # type: ignore[union-attr]
    shown = list(known[: len(CLASS_COLOURS)])
    tops = np.cumsum(sure, axis=1)
    floor = np.zeros(len(sure))
    keys = []
    for place, label in enumerate(shown):
        top = tops[:, place]
        _steps(axes, edges, floor, top, CLASS_COLOURS[place])
        keys.append(Patch(color=CLASS_COLOURS[place], lw=0, label=str(label)))
        floor = top
    if len(known) > len(shown):
        _steps(axes, edges, floor, tops[:, -1], GREY)
        keys.append(Patch(color=GREY, lw=0, label=f"{len(known) - len(shown)} others"))
    axes.set(ylim=(0, 1), ylabel="probability")
    if y is not None:
        need(trace, "predictions")
        pairs = zip(trace.predictions.tolist(), labels(y, trace), strict=True)
        wrong = np.flatnonzero([said != true for said, true in pairs])
        look = {"color": INK, "ls": "none", "marker": "|", "ms": 4, "mew": 0.6}
        line = axes.plot(wrong, np.full(len(wrong), -0.045), clip_on=False, label="wrong", **look)
        keys += line
        axes.set_ylim(-0.09, 1)
    _above(axes, handles=keys, handlelength=1.0)


def _above(axes: Any, **options: Any) -> None:
    """A legend above the picture, where it hides nothing."""
    place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
    axes.legend(ncols=4, **place, **options)


def _steps(axes: Any, edges: Any, low: Any, high: Any, colour: str) -> None:
    axes.stairs(high, edges, baseline=low, fill=True, color=colour, lw=0, rasterized=True)
