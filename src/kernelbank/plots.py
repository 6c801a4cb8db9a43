"""Pictures with matplotlib, which is imported when the first one is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .errors import KernelBankError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

P = ParamSpec("P")
R = TypeVar("R")

# Okabe and Ito's colours, which stay apart for every kind of colour vision.
BLUE, RED, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, INK, GREY, PALE = "#E69F00", "#222222", "#9A9A9A", "#DDE8F0"

_STYLE: Any = {
    "figure.dpi": 150,
    "savefig.dpi": 150,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "svg.hashsalt": "kernelbank",
}


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Let a function draw in the house's style, and ask for matplotlib politely."""

    @wraps(draw)
    def within_style(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            import matplotlib
        except ImportError:
            raise KernelBankError(
                "Pictures need matplotlib. Install it with: pip install 'kernelbank[plot]'"
            ) from None
        with matplotlib.rc_context(_STYLE):
            return draw(*arguments, **named)

    return within_style


def new_figure(width: float, height: float, panels: int = 1, **options: Any) -> tuple[Figure, Any]:
    """A figure in inches and its axes, without any window."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, panels, **options)


@styled
def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG; the same figure gives the same bytes."""
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    figure.savefig(paths[0], dpi=150, metadata={"Software": None})
    figure.savefig(paths[1], metadata={"Date": None, "Creator": None})
    return paths


@styled
def running_means(
    panels: Mapping[str, Mapping[str, Sequence[tuple[int, float]]]],
    players: Sequence[str],
    plain: Sequence[str],
    label: str,
) -> Figure:
    """Curves of a mean so far over samples: a panel for each stream, a colour for each player.

    The players in `plain` are grey and dashed: they are what the others should beat.
    """
    colours = (BLUE, RED, GREEN, ORANGE, PURPLE, "#56B4E9", "#8C564B", INK)
    others = [name for name in players if name not in plain]
    looks: dict[str, Any] = {}
    for place, name in enumerate(others):
        dash = ("-", "--", ":", "-.")[place // len(colours) % 4]
        looks[name] = {"color": colours[place % len(colours)], "ls": dash, "lw": 1.6}
    for place, name in enumerate(dict.fromkeys(plain)):
        looks[name] = {"color": GREY, "ls": ("--", ":")[place % 2], "lw": 1.2}
    across = min(len(panels), 3)
    down = -(-len(panels) // across)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * across + 1.8, 3.4 * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    lines: dict[str, Any] = {}
    for axis, (title, curves) in zip(axes, panels.items(), strict=False):
        ends = {name: curve[-1][1] for name, curve in curves.items() if curve}
        top = 4 * max((ends[name] for name in plain if isfinite(ends[name])), default=inf)
        low = inf
        for name in players:
            points = [(x, y) for x, y in curves.get(name, ()) if y <= 10 * top and isfinite(y)]
            if points:
                (lines[name],) = axis.plot(*zip(*points, strict=True), label=name, **looks[name])
                low = min(low, *(y for _, y in points[len(points) // 10 :]))  # the start is noise
        if 0 < low < top < inf:  # what diverges must not make the others a flat line
            axis.set_yscale("log")
            axis.set_ylim(0.8 * low, top)
        axis.set_title(title)
        axis.set_xlabel("samples")
    axes[0].set_ylabel(label)
    figure.legend(list(lines.values()), list(lines), loc="outside right upper")
    return figure
