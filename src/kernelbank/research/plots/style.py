"""The style of all figures: colours, sizes, and how a figure is made and saved."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ...utils import validation as check
from ...utils.rendering import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Style = dict[str, Any]  # keyword arguments for matplotlib

P = ParamSpec("P")
R = TypeVar("R")

# Okabe and Ito's colours, which stay apart for every kind of colour vision.
BLUE, RED, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, INK, GREY, PALE = "#E69F00", "#56B4E9", "#222222", "#9A9A9A", "#DDE8F0"
CLASS_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED)

ABOVE: Style = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
"""A legend above the axes, where it hides nothing."""

COLUMN, PAGE = 3.5, 7.2  # inches: the width of one column of a two-column paper, and of both

_STYLE: Style = {
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

SMALL: Style = {
    **_STYLE,
    "figure.dpi": 200,
    "savefig.dpi": 200,
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": 7,
}
"""For figures that are printed in a paper at their own size."""

_BARE: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""What to leave out of a file so that the same figure gives the same bytes."""


def need_matplotlib() -> ModuleType:
    """The module matplotlib; an error that names the extra if it is not installed."""
    with check.optional("Plots need", "matplotlib", "plot"):
        import matplotlib
    return matplotlib


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Let a function draw in the style of kernelbank; says how to install matplotlib if missing.

    >>> import kernelbank as kb
    >>> @kb.plots.styled
    ... def line():
    ...     figure, axes = kb.plots.new_figure(kb.plots.COLUMN, 2.0)
    ...     axes.plot([1, 2, 3], color=kb.plots.BLUE)
    ...     return figure
    >>> len(line().axes)
    1
    """

    @wraps(draw)
    def within_style(*arguments: P.args, **named: P.kwargs) -> R:
        with need_matplotlib().rc_context(_STYLE):
            return draw(*arguments, **named)

    return within_style


@contextmanager
def canvas(ax: Axes | None, width: float, height: float) -> Iterator[Axes]:
    """Axes to draw into: the given ones in their own style, or new ones of this size."""
    matplotlib = need_matplotlib()
    if ax is None:
        with matplotlib.rc_context(SMALL):
            yield new_figure(width, height)[1]
        return
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        remedy = "Give Axes that figure.subplots() returned, or leave it out."
        raise check.refuse("ax", "be Axes of matplotlib", ax, remedy)
    yield ax


def plain(name: object) -> str:
    """A name as text for matplotlib: not read as a formula, and not left out of a legend."""
    text = one_line(str(name)).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def figure_of(axes: Axes) -> Figure:
    """The figure of Axes, also if they are in a part of it (a subfigure)."""
    figure: Figure = axes.figure.figure
    return figure


def new_figure(
    width: float, height: float, panels: int = 1, *, rows: int = 1, **options: Any
) -> tuple[Figure, Any]:
    """A figure in inches and its axes, `panels` side by side, without any window.

    There are `rows` of them, one below the other; `options` go to matplotlib's `Figure.subplots`.

    >>> import kernelbank as kb
    >>> figure, (left, right) = kb.plots.new_figure(kb.plots.PAGE, 2.5, 2, sharey=True)
    >>> figure.axes == [left, right]
    True
    """
    need_matplotlib()
    figure: Figure = _notebook_class()(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, panels, **options)
    fix_tick_style(*figure.axes)
    return figure, axes


@cache
def _notebook_class() -> type[Figure]:
    """Figures that a notebook shows without pyplot, which it would else need.

    The class is made when the first figure is: matplotlib is slow to import.
    """
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        def _repr_png_(self) -> bytes:
            file = io.BytesIO()
            self.savefig(file, format="png", metadata={"Software": None})
            return file.getvalue()

    return NotebookFigure


def fix_tick_style(*all_axes: Axes) -> None:
    """Fix what matplotlib would otherwise look up when it draws, outside of the style."""
    settings = need_matplotlib().rcParams
    for axes in all_axes:
        for side in ("x", "y"):
            width = settings[f"{side}tick.major.width"]
            axes.tick_params(axis=side, labelsize=settings["font.size"], width=width)


def save(
    figure: Figure,
    folder: str | os.PathLike[str],
    name: str,
    formats: Sequence[str] = ("png", "svg"),
    dpi: float = 150,
    *,
    palette: bool = False,
) -> list[Path]:
    """Write a figure as `name.png` and `name.svg`; the same figure gives the same bytes.

    Parameters
    ----------
    figure : any figure of matplotlib.
    folder : where to write; it is made if it does not exist.
    name : of the files, without a suffix.
    formats : some of "png", "svg" and "pdf".
    dpi : pixels per inch, for PNG and for images inside the others.
    palette : PNG of 256 colours, which takes about a third of the bytes.

    Returns the paths.

    >>> import tempfile, kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.5, 2, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = kb.plots.save(kb.plots.bars(bank), folder, "weights", ["svg"])
    >>> [path.name for path in paths]
    ['weights.svg']
    """
    matplotlib = need_matplotlib()
    wanted = [formats] if isinstance(formats, str) else formats
    suffixes = [check.choice("formats", suffix, "save", _BARE) for suffix in wanted]
    dots = check.number("dpi", dpi, "save", "Give pixels per inch, such as 150.", above=0)
    directory = Path(folder)
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"{name}.{suffix}" for suffix in suffixes]
    with matplotlib.rc_context(_STYLE):
        for path, suffix in zip(paths, suffixes, strict=True):
            content = _rendered(figure, suffix, dots)
            path.write_bytes(_reduced(content) if suffix == "png" and palette else content)
    return paths


def _rendered(figure: Figure, suffix: str, dpi: float) -> bytes:
    """The figure as a file, drawn until it no longer changes.

    A constrained layout starts from the last drawing, and needs one to three of them to converge.
    So the first file of a figure would differ from the second by fractions of a pixel.
    """
    last = b""
    for _ in range(6):
        file = io.BytesIO()
        figure.savefig(file, format=suffix, dpi=dpi, metadata=_BARE[suffix])
        if file.getvalue() == last:
            break
        last = file.getvalue()
    return last


def _reduced(png: bytes) -> bytes:
    """A PNG with a palette; matplotlib needs Pillow, so it is installed."""
    from PIL import Image

    file = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        few = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(file, "png", optimize=True)
    return file.getvalue()
