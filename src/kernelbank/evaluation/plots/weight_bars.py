"""A bank as it is now: who carries the weight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...auto import AutoBank
from ...bank.bank import KernelBank
from ...utils import validation as check
from ...utils.rendering import figure as short
from ...utils.validation import Floats
from .style import BLUE, COLUMN, INK, RED, canvas, figure_of, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AnyBank = KernelBank | AutoBank


def need_bank(bank: Any) -> None:
    """Refuse what is no bank."""
    if not isinstance(bank, (KernelBank, AutoBank)):
        remedy = "Give a kb.KernelBank or a kb.AutoBank; of an estimator, its .bank."
        raise check.refuse("bank", "be a bank", bank, remedy)


def bars(bank: AnyBank, most: int = 15, ax: Axes | None = None) -> Figure:
    """The present weights as bars, in the order of the slots. Slots without weight have none.

    With more than two classes an `AutoBank` has a bank for each: their mean is drawn.

    Parameters
    ----------
    bank : a `KernelBank` or an `AutoBank`.
    most : how many slots to show, those of largest weight; the axis tells what the others carry.
    ax : Axes to draw into, instead of a figure of its own.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.5, 2, 3))
    >>> figure = kb.plots.bars(bank)
    >>> [f"{bar.get_width():.2f}" for bar in figure.axes[0].patches]
    ['0.33', '0.33', '0.33']
    """
    with canvas(ax, COLUMN, 2.6) as axes:
        need_bank(bank)
        limit = check.count("most", most, "bars", "Give how many slots to show, such as 15.")
        weights, names = present(bank)
        order = np.argsort(-np.abs(weights), kind="stable")
        carrying = int((weights != 0).sum())
        shown = np.sort(order[: min(carrying, limit)])
        others = order[len(shown) : carrying]
        sizes = weights[shown]
        colours = [BLUE if size >= 0 else RED for size in sizes]
        places = np.arange(len(shown))
        axes.barh(places, sizes, color=colours, height=0.72)
        axes.set_yticks(places, [plain(names[p][:60]) for p in shown])
        axes.set_ylim(max(len(shown), 4) - 0.4, -0.6)  # two slots are no two walls
        axes.tick_params(axis="y", length=0)
        for place, size in zip(places, sizes, strict=True):
            side = {"ha": "left", "va": "center", "color": INK, "fontsize": "small"}
            axes.annotate(
                short(float(size)),
                (max(size, 0.0), place),
                (3, 0),
                textcoords="offset points",
                **side,
            )
        axes.margins(x=0.18)
        rest = []
        if len(others):
            rest.append(f"{short(float(weights[others].sum()))} on {len(others)} others")
        if carrying < len(weights):
            rest.append(f"{len(weights) - carrying} slots have none")
        axes.set_xlabel("weight" + (f" ({', '.join(rest)})" if rest else ""))
    return figure_of(axes)


def present(bank: AnyBank) -> tuple[Floats, tuple[str, ...]]:
    """The weights of now, and the slots' names."""
    if isinstance(bank, KernelBank):
        return bank.weights, bank.names
    if not bank.banks:
        remedy = "Let it learn a few rows first; the slots start after the fifth."
        raise check.refuse("bank", "have weights", bank, remedy)
    return np.mean([one.weights for one in bank.banks], axis=0), bank.names
