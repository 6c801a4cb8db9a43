"""The critical-difference diagram: mean ranks of methods, and which of them do not differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from math import inf, isfinite
from typing import TYPE_CHECKING

from ...utils import validation as check
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
    new_figure,
    plain,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


# Heights below the axis of ranks, in rows of text.
_FIRST_BAR, _BAR_STEP = 0.45, 0.32
_ABOVE = 1.9


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
    count = check.count("streams", streams, owner, "Give how many streams were ranked.", least=2)
    means = {
        str(name): check.number("ranks", value, owner, remedy, least=1, most=len(ranks))
        for name, value in sorted(ranks.items(), key=lambda item: item[1])
    }
    difference = difference_of(len(means), count, level)
    bars = _levels(groups(means, difference))
    left = list(means)[: math.ceil(len(means) / 2)]
    right = list(means)[: len(left) - 1 : -1]
    first = _FIRST_BAR + _BAR_STEP * (max((row for row, _ in bars), default=-1) + 1) + 0.35
    below = first + len(left) - 0.4
    with canvas(ax, PAGE, 0.24 * (below + _ABOVE) + 0.1) as axes:
        axes.set_xlim(1, len(means))
        axes.set_ylim(below, -_ABOVE)
        axes.axis("off")
        what = f"level {level:g}, {count} streams"
        _draw_difference(axes, difference, len(means), what)
        _draw_axis(axes, len(means))
        for row, joined in bars:
            height = _FIRST_BAR + _BAR_STEP * row
            ends = (means[joined[0]], means[joined[-1]])
            axes.plot(ends, (height, height), color=BLUE, lw=3.0, solid_capstyle="butt")
        for side, edge, names in (("right", 1, left), ("left", len(means), right)):
            for row, name in enumerate(names):
                _draw_name(axes, name, means[name], first + row, edge, side)
        return figure_of(axes)


def _levels(sets: Sequence[tuple[str, ...]]) -> list[tuple[int, tuple[str, ...]]]:
    """Each set with the row of its bar: sets that share a method have bars in different rows."""
    ends: list[set[str]] = []  # the methods in each row so far
    levels = []
    for names in sets:
        free = (row for row, used in enumerate(ends) if not used & set(names))
        row = next(free, len(ends))
        if row == len(ends):
            ends.append(set())
        ends[row] |= set(names)
        levels.append((row, names))
    return levels


def _draw_difference(axes: Axes, difference: float, last: int, what: str) -> None:
    """The critical difference as a length on the axis of ranks, above its left end.

    If it is longer than the axis, so that no two methods can differ, an arrow ends it.
    """
    end = min(1 + difference, last)
    axes.plot((1, end), (-1.15, -1.15), color=INK, lw=1.0, clip_on=False)
    axes.plot((1, 1), (-1.3, -1.0), color=INK, lw=1.0, clip_on=False)
    if 1 + difference > last:
        axes.plot(end, -1.15, color=INK, marker=">", markersize=4, clip_on=False)
    else:
        axes.plot((end, end), (-1.3, -1.0), color=INK, lw=1.0, clip_on=False)
    axes.annotate(
        f"critical difference {difference:.2f} ({what})", (1, -1.4), ha="left", va="bottom"
    )


def _draw_axis(axes: Axes, count: int) -> None:
    axes.plot((1, count), (0, 0), color=INK, lw=1.0, clip_on=False)
    step = max(1, math.ceil(count / 12))
    for rank in range(1, count + 1):
        numbered = (rank - 1) % step == 0 or rank == count
        axes.plot((rank, rank), (0, -0.25 if numbered else -0.12), color=INK, lw=1.0, clip_on=False)
        if numbered:
            axes.annotate(str(rank), (rank, -0.3), ha="center", va="bottom", fontsize="small")


def _draw_name(axes: Axes, name: str, rank: float, row: float, edge: float, side: str) -> None:
    """A line from the rank down and out to the name, which stands beside the axis."""
    axes.plot((rank, rank, edge), (0, row, row), color=INK, lw=0.7, clip_on=False)
    gap = -4 if side == "right" else 4
    text = f"{rank:.2f}  {plain(name)}" if side == "left" else f"{plain(name)}  {rank:.2f}"
    axes.annotate(text, (edge, row), (gap, 0), textcoords="offset points", ha=side, va="center")


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
    styles: dict[str, Style] = {}
    for index, name in enumerate(others):
        dash = ("-", "--", ":", "-.")[index // len(colours) % 4]
        styles[name] = {"color": colours[index % len(colours)], "ls": dash, "lw": 1.6}
    for index, name in enumerate(dict.fromkeys(plain)):
        styles[name] = {"color": GREY, "ls": ("--", ":")[index % 2], "lw": 1.2}
    across = min(len(panels), 3)
    down = -(-len(panels) // across)
    size = (4.2 * across + 1.8, 3.4 * down)
    figure, axes = new_figure(*size, across, rows=down, squeeze=False)
    axes = axes.ravel()
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    lines: dict[str, Line2D] = {}
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
