"""The function that a bank has learned, along one of its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...bank.bank import KernelBank
from ...errors import InvalidArgument
from ...utils import validation as check
from ...utils.validation import Floats
from .predictions import CLASS_COLOURS
from .style import BLUE, COLUMN, GREY, canvas, figure_of, plain
from .weight_bars import AnyBank, need_bank

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def function(
    bank: AnyBank,
    along: int = 0,
    at: Any = None,
    between: tuple[float, float] | None = None,
    coverage: float = 0.9,
    points: int = 300,
    ax: Axes | None = None,
) -> Figure:
    """What the bank answers along one input, while the others stand still.

    An `AutoBank` is drawn with its interval, or, for labels, with the probability of each class; a
    `KernelBank` with the estimates of the slots that have weight, in grey.

    Parameters
    ----------
    bank : a `KernelBank` or an `AutoBank` that has learned something.
    along : the number of the input that moves.
    at : (d,), where the others stand. By default, in an `AutoBank`, at their medians; a
        `KernelBank` of one input needs none.
    between : the ends of the range. By default, in an `AutoBank`, those of the last values; a
        `KernelBank` does not know it.
    coverage : of the interval.
    points : how many inputs to ask for.
    ax : Axes to draw into, instead of a figure of its own.

    >>> import numpy as np, kernelbank as kb
    >>> x = np.arange(100) / 10
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.5, 2, 3))
    >>> trace = bank.run(x, np.sin(x))
    >>> figure = kb.plots.function(bank, between=(0, 10))
    >>> figure.axes[0].get_xlabel()
    'input 0'
    """
    with canvas(ax, COLUMN, 2.6) as axes:
        need_bank(bank)
        count = check.count("points", points, "function", "Give how many, such as 300.", least=2)
        usual = _usual(bank, at, between)
        remedy = f"Give a number from 0 to {len(usual) - 1}."
        column = check.count("along", along, "function", remedy, least=0, most=len(usual) - 1)
        rows = np.tile(usual[:, 0], (count, 1))
        grid = rows[:, column] = np.linspace(*_ends(between, usual[column]), count)
        if isinstance(bank, KernelBank):
            carried = bank.weights != 0
            slots = bank.predict_slots(rows)[:, carried]
            lines = axes.plot(
                grid, slots, color=GREY, lw=0.5, zorder=1, rasterized=slots.shape[1] > 99
            )
            if lines:
                lines[0].set_label("slots with weight")
            axes.plot(grid, bank.predict(rows), color=BLUE, lw=1.5, zorder=3, label="the bank")
            axes.set_ylabel("prediction")
        elif bank.task == "regression":
            value, low, high = bank.survey(rows, coverage).T
            axes.plot(grid, value, color=BLUE, lw=1.5, zorder=3, label="prediction")
            look = {"color": BLUE, "alpha": 0.22, "lw": 0}
            axes.fill_between(grid, low, high, label=f"interval of {coverage:.0%}", **look)
            axes.set_ylabel("prediction")
        else:
            for place, (label, curve) in enumerate(
                zip(bank.classes, bank.survey(rows).T, strict=True)
            ):
                colour = CLASS_COLOURS[place % len(CLASS_COLOURS)]
                dash = ("-", "--", "-.", ":")[place % 4]
                axes.plot(grid, curve, color=colour, ls=dash, lw=1.5, label=plain(label))
            axes.set(ylabel="probability", ylim=(-0.02, 1.02))
        axes.set(xlabel=f"input {column}", xlim=(grid[0], grid[-1]))
        axes.legend()
    return figure_of(axes)


def _usual(bank: AnyBank, at: Any, between: Any) -> Floats:
    """(inputs, 3): where each input stands, and the ends of its range."""
    width = bank._dimension
    if width is None:
        remedy = "Let it learn some samples first."
        raise check.refuse("bank", "have learned something", bank.samples, remedy)
    if isinstance(bank, KernelBank):
        if between is None:
            remedy = "Give the ends of the range, such as between=(0, 1)."
            raise check.refuse("between", "be given for a KernelBank", between, remedy)
        if at is None and width > 1:
            remedy = "Say where the other inputs stand, for example at=numpy.median(X, axis=0)."
            raise check.refuse("at", f"be given for a KernelBank of {width} inputs", at, remedy)
        usual = np.zeros((width, 3))
    else:
        usual = bank.typical()
    if at is not None:
        remedy = "Give one number for each input; the one that moves does not matter."
        given = check.floats("at", at, remedy).ravel()
        if len(given) != width:
            raise check.refuse("at", f"hold {width} numbers", given.shape, remedy)
        usual[:, 0] = given
    return usual


def _ends(between: Any, usual: Floats) -> tuple[float, float]:
    if between is None:
        return float(usual[1]), float(usual[2])
    remedy = "Give the two ends of the range, such as between=(0, 1)."
    try:
        low, high = (check.number("between", end, "function", remedy) for end in between)
    except InvalidArgument:
        raise
    except (TypeError, ValueError):
        raise check.refuse("between", "be two numbers", between, remedy) from None
    if not low < high:
        raise check.refuse("between", "go from low to high", between, remedy)
    return low, high
