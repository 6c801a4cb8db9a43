"""Curves of several competitors on several streams: the figure of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from .style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, SKY, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def running_means(
    panels: Mapping[str, Mapping[str, Sequence[tuple[int, float]]]],
    names: Sequence[str],
    plain: Sequence[str],
    label: str,
) -> Figure:
    """Curves of a mean so far over samples: one panel per stream, one colour per competitor.

    The names in `plain` are grey and dashed: baselines, which the others should beat.

    >>> import kernelbank as kb
    >>> curves = {"ours": [(10, 0.5), (20, 0.3)], "the mean": [(10, 1.0), (20, 1.0)]}
    >>> figure = kb.plots.running_means({"sine": curves}, list(curves), ["the mean"], "mean loss")
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['sine']
    """
    colours = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, "#8C564B", INK)
    others = [name for name in names if name not in plain]
    styles: dict[str, Any] = {}
    for index, name in enumerate(others):
        dash = ("-", "--", ":", "-.")[index // len(colours) % 4]
        styles[name] = {"color": colours[index % len(colours)], "ls": dash, "lw": 1.6}
    for index, name in enumerate(dict.fromkeys(plain)):
        styles[name] = {"color": GREY, "ls": ("--", ":")[index % 2], "lw": 1.2}
    across = min(len(panels), 3)
    down = -(-len(panels) // across)
    from .notebook_figure import NotebookFigure

    figure = NotebookFigure(figsize=(4.2 * across + 1.8, 3.4 * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    lines: dict[str, Any] = {}
    for axis, (title, curves) in zip(axes, panels.items(), strict=False):
        ends = {name: curve[-1][1] for name, curve in curves.items() if curve}
        top = 4 * max((ends[name] for name in plain if isfinite(ends.get(name, inf))), default=inf)
        low = inf
        for name in names:
            points = [(x, y) for x, y in curves.get(name, ()) if y <= 10 * top and isfinite(y)]
            if points:
                (lines[name],) = axis.plot(*zip(*points, strict=True), label=name, **styles[name])
                low = min(low, *(y for _, y in points[len(points) // 10 :]))  # the start is noise
        if 0 < low < top < inf:  # what diverges must not make the others a flat line
            axis.set_yscale("log")
            axis.set_ylim(0.8 * low, top)
        axis.set_title(title)
        axis.set_xlabel("samples")
    axes[0].set_ylabel(label)
    figure.legend(list(lines.values()), list(lines), loc="outside right upper")
    return figure
