"""Mean ranks of methods, and which of them do not differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...utils import validation as check
from ..significance import LEVEL
from ..significance import critical_difference as difference_of
from .style import BLUE, GREY, PAGE, SKY, canvas, figure_of, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def critical_difference(
    ranks: Mapping[str, float], streams: int, level: float = LEVEL, ax: Axes | None = None
) -> Figure:
    """Mean ranks with bars, the best on top: methods differ where their bars do not overlap.

    Each bar is as long as Nemenyi's critical difference. A line marks the end of the best one's.

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
    >>> figure.axes[0].get_xlabel()
    'mean rank; bars: critical difference 1.25 (level 0.05, 14 streams)'
    """
    owner = "critical_difference"
    remedy = "Give the mean rank of each method, at least two of them."
    if not isinstance(ranks, Mapping) or len(ranks) < 2:
        raise check.refuse("ranks", "name two or more methods", ranks, remedy, owner)
    count = check.count("streams", streams, owner, "Give how many streams were ranked.", least=2)
    for rank in ranks.values():
        check.number("ranks", rank, owner, remedy, least=1, most=len(ranks))
    names = sorted(ranks, key=lambda name: ranks[name])
    means, rows = np.array([ranks[name] for name in names]), np.arange(len(names))
    difference = difference_of(len(names), count, level)
    with canvas(ax, PAGE, 0.22 * len(names) + 0.6) as axes:
        axes.barh(rows, difference, 0.5, left=means - difference / 2, color=SKY, alpha=0.5)
        axes.plot(means, rows, "o", color=BLUE, ms=5)
        axes.axvline(means[0] + difference / 2, color=GREY, lw=0.8, ls="--", zorder=0)
        axes.set_yticks(rows, [f"{plain(name)}  {ranks[name]:.2f}" for name in names])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(names) - 0.5, -0.5)
        text = f"critical difference {difference:.2f} (level {level:g}, {count} streams)"
        axes.set_xlabel(f"mean rank; bars: {text}")
    return figure_of(axes)
