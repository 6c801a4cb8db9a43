"""Pictures with matplotlib, which is imported when the first one is drawn."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
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
