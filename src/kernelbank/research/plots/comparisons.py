"""The critical-difference diagram: mean ranks of methods, and which of them do not differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from ...utils import validation as check
from ..competitors import BASELINE
from ..significance import LEVEL, groups
from ..significance import critical_difference as difference_of
from .style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PAGE,
    PURPLE,
    RED,
    SKY,
    Style,
    canvas,
    figure_of,
    line_indices,
    new_figure,
    plain,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from ..results import Comparison


def critical_difference(
    ranks: Mapping[str, float], streams: int, level: float = LEVEL, ax: Axes | None = None
) -> Figure:
    """Mean ranks on an axis, the best on the left; a bar joins methods that do not differ.

    Two methods differ at the level if their mean ranks differ by more than Nemenyi's critical
    difference, which is drawn above the axis.

    Parameters
    ----------
    ranks : mean rank of each method, by name.
    streams : on how many streams they were ranked.
    level : the probability that any pair of equal methods is said to differ.
    ax : Axes to draw into, instead of a figure of its own.

    Reference: Demsar, Statistical comparisons of classifiers over multiple data sets, Journal of
    Machine Learning Research 7 (2006), section 3.2.4.

    >>> import kernelbank as kb
    >>> ranks = {"C4.5": 3.143, "C4.5+m": 2.0, "C4.5+cf": 2.893, "C4.5+m+cf": 1.964}
    >>> figure = kb.plots.critical_difference(ranks, streams=14)
    >>> figure.axes[0].texts[0].get_text()
    'critical difference 1.25 (level 0.05, 14 streams)'
    """
    owner = "critical_difference"
    remedy = "Give the mean rank of each method, at least two of them."
    if not isinstance(ranks, Mapping) or len(ranks) < 2:
        raise check.refuse("ranks", "name two or more methods", ranks, remedy, owner)
    last = len(ranks)
    count = check.count("streams", streams, owner, "Give how many streams were ranked.", least=2)
    means = {
        str(name): check.number("ranks", value, owner, remedy, least=1, most=last)
        for name, value in sorted(ranks.items(), key=lambda item: item[1])
    }
    difference = difference_of(last, count, level)
    bars = _bar_rows(groups(means, difference))
    left = list(means)[: math.ceil(last / 2)]
    right = list(means)[: len(left) - 1 : -1]
    first = 0.8 + 0.32 * (max((row for row, _ in bars), default=-1) + 1)  # row of the first name
    below = first + len(left) - 0.4
    with canvas(ax, PAGE, 0.24 * (below + 1.9) + 0.1) as axes:
        axes.set(xlim=(1, last), ylim=(below, -1.9))
        axes.axis("off")
        thin: Style = {"color": INK, "lw": 1.0, "clip_on": False}
        # The critical difference as a length above the left end of the axis of ranks. If it is
        # longer than the axis, so that no two methods can differ, an arrow ends it.
        end = min(1 + difference, last)
        axes.plot((1, end), (-1.15, -1.15), **thin)
        axes.plot((1, 1), (-1.3, -1.0), **thin)
        if 1 + difference > last:
            axes.plot(end, -1.15, marker=">", markersize=4, **thin)
        else:
            axes.plot((end, end), (-1.3, -1.0), **thin)
        text = f"critical difference {difference:.2f} (level {level:g}, {count} streams)"
        axes.annotate(text, (1, -1.4), ha="left", va="bottom")
        # The axis of ranks.
        axes.plot((1, last), (0, 0), **thin)
        for rank in range(1, last + 1):
            numbered = (rank - 1) % math.ceil(last / 12) == 0 or rank == last
            axes.plot((rank, rank), (0, -0.25 if numbered else -0.12), **thin)
            if numbered:
                axes.annotate(str(rank), (rank, -0.3), ha="center", va="bottom", fontsize="small")
        for row, joined in bars:
            ends, height = (means[joined[0]], means[joined[-1]]), 0.45 + 0.32 * row
            axes.plot(ends, (height, height), color=BLUE, lw=3.0, solid_capstyle="butt")
        # A line from each rank down and out to the name, which stands beside the axis.
        for side, edge, names in (("right", 1, left), ("left", last, right)):
            for row, name in enumerate(names):
                mean, height = means[name], first + row
                axes.plot((mean, mean, edge), (0, height, height), **thin | {"lw": 0.7})
                parts = (plain(name), f"{mean:.2f}")
                text = "  ".join(parts if side == "right" else reversed(parts))
                where: Style = {"xytext": (-4 if side == "right" else 4, 0), "ha": side}
                axes.annotate(
                    text, (edge, height), textcoords="offset points", va="center", **where
                )
        return figure_of(axes)


def _bar_rows(sets: Sequence[tuple[str, ...]]) -> list[tuple[int, tuple[str, ...]]]:
    """Each set with the row of its bar: sets that share a method have bars in different rows."""
    used: list[set[str]] = []  # the methods in each row so far
    rows = []
    for names in sets:
        row = next((row for row, methods in enumerate(used) if not methods & set(names)), len(used))
        if row == len(used):
            used.append(set())
        used[row] |= set(names)
        rows.append((row, names))
    return rows


# --- losses over time -----------------------------------------------------------------------------

COLOURS = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, "#8C564B", INK)


@styled
def running_means(comparison: Comparison) -> Figure:
    """The mean loss so far: one panel per stream, one colour per competitor.

    Baselines, which the others should beat, are grey and dashed.
    """
    baselines = {result.name for result in comparison.results if result.kind == BASELINE}
    others = [name for name in comparison.names if name not in baselines]
    styles: dict[str, Style] = {
        name: {"color": GREY, "ls": dash, "lw": 1.2}
        for name, dash in zip(sorted(baselines), ("--", ":"), strict=False)
    }
    for index, name in enumerate(others):
        dash = ("-", "--", ":", "-.")[index // len(COLOURS) % 4]
        styles[name] = {"color": COLOURS[index % len(COLOURS)], "ls": dash, "lw": 1.6}
    across = min(len(comparison.streams), 3)
    down = -(-len(comparison.streams) // across)
    size = (4.2 * across + 1.8, 3.4 * down)
    figure, grid = new_figure(*size, across, rows=down, squeeze=False)
    lines: dict[str, Line2D] = {}
    for axes, stream in zip(grid.flat, comparison.streams, strict=False):
        top = low = inf
        for result in comparison.of(stream):
            scored = result.losses[comparison.skip :]
            means = np.cumsum(scored) / np.arange(1, len(scored) + 1)
            x = line_indices(means)
            style = styles[result.name]
            (lines[result.name],) = axes.plot(comparison.skip + x + 1, means[x], **style)
            low = min(low, *means[len(means) // 10 :])  # the start is noise
            if result.name in baselines:
                top = 4 * means[-1]
        if 0 < low < top < inf:  # what diverges must not make the others a flat line
            axes.set_yscale("log")
            axes.set_ylim(0.8 * low, top)
        axes.set(title=stream, xlabel="samples")
    for axes in grid.flat[len(comparison.streams) :]:
        axes.set_visible(False)
    grid.flat[0].set_ylabel(f"mean loss so far, {comparison.loss}")
    names = [*others, *sorted(baselines)]
    figure.legend([lines[name] for name in names], names, loc="outside right upper")
    return figure
