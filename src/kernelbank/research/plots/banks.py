"""Plots of a bank as it is now: its weights, and the function that it has learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...auto import AutoBank
from ...auto.forecaster import Forecast
from ...bank.bank import KernelBank
from ...utils import validation as check
from ...utils.rendering import number as short
from ...utils.validation import Floats
from .style import (
    ABOVE,
    BLUE,
    CLASS_COLOURS,
    COLUMN,
    INK,
    PAGE,
    RED,
    Style,
    canvas,
    figure_of,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


POINTS = 300  # inputs at which a function is drawn


def bars(bank: KernelBank | AutoBank, most: int = 15, ax: Axes | None = None) -> Figure:
    """The present weights as bars, in the order of the slots. Slots without weight have no bar.

    With more than two classes an `AutoBank` has a bank for each: their mean is drawn, as of
    several outputs.

    Parameters
    ----------
    bank : a `KernelBank` or an `AutoBank`.
    most : how many slots to show, those of largest weight; the axis label sums up the others.
    ax : Axes to draw into, instead of a figure of its own.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.5, 2, 3))
    >>> figure = kb.plots.bars(bank)
    >>> [f"{bar.get_width():.2f}" for bar in figure.axes[0].patches]
    ['0.33', '0.33', '0.33']
    """
    limit = check.count("most", most, "bars", "Give how many slots to show, such as 15.")
    weights, names = _present_weights(bank)
    order = np.argsort(-np.abs(weights), kind="stable")
    nonzero = int((weights != 0).sum())
    shown, others = np.sort(order[: min(nonzero, limit)]), order[limit:nonzero]
    sizes, rows = weights[shown], np.arange(len(shown))
    labels = [plain(names[slot][:70]) for slot in shown]
    with canvas(ax, PAGE if max(map(len, labels), default=0) > 24 else COLUMN, 2.6) as axes:
        axes.barh(rows, sizes, color=np.where(sizes >= 0, BLUE, RED), height=0.72)
        axes.set_yticks(rows, labels)
        axes.set_ylim(max(len(shown), 4) - 0.4, -0.6)  # bars of two slots are not too thick
        axes.tick_params(axis="y", length=0)
        style: Style = {"ha": "left", "va": "center", "color": INK, "fontsize": "small"}
        for row, size in zip(rows, sizes.tolist(), strict=True):
            end = (max(size, 0.0), row)
            axes.annotate(short(size), end, (3, 0), textcoords="offset points", **style)
        axes.margins(x=0.18)
        rest = []
        if len(others):
            rest.append(f"{short(float(weights[others].sum()))} on {len(others)} others")
        if nonzero < len(weights):
            rest.append(f"{len(weights) - nonzero} slots have none")
        axes.set_xlabel("weight" + (f" ({', '.join(rest)})" if rest else ""))
    return figure_of(axes)


def _present_weights(bank: KernelBank | AutoBank) -> tuple[Floats, tuple[str, ...]]:
    """The present weights, means over outputs, and the names of the slots."""
    if isinstance(bank, KernelBank):
        return np.atleast_2d(bank.weights).mean(axis=0), bank.names
    if not isinstance(bank, AutoBank):
        remedy = "Give a kb.KernelBank or a kb.AutoBank; of an estimator, its .bank."
        raise check.refuse("bank", "be a bank", bank, remedy)
    if not bank.banks:
        remedy = "Let it learn a few rows first; the slots start after the fifth."
        raise check.refuse("bank", "have weights", bank, remedy)
    return bank.weights, bank.names


def function(
    bank: AutoBank,
    along: int | str = 0,
    coverage: float = 0.9,
    ax: Axes | None = None,
    target: int | str = 0,
) -> Figure:
    """An AutoBank's prediction along one input, while the others are at their medians.

    It is drawn with its interval; for labels, the probability of each class. The last values of
    the input give the range.

    Parameters
    ----------
    bank : an `AutoBank` that has learned something.
    along : the input that varies: its number or its name.
    coverage : of the interval.
    ax : Axes to draw into, instead of a figure of its own.
    target : with several targets, the one to draw: its number or its name.

    >>> import numpy as np, kernelbank as kb
    >>> x = np.arange(100) / 10
    >>> bank = kb.AutoBank(size="small")
    >>> trace = bank.run(x, np.sin(x))
    >>> figure = kb.plots.function(bank)
    >>> figure.axes[0].get_xlabel()
    'input 0'
    """
    if not isinstance(bank, AutoBank):
        remedy = "Give a kb.AutoBank; of another bank draw bank.predict(X)."
        raise check.refuse("bank", "be an AutoBank", bank, remedy, "function")
    middle, low, high = bank.input_ranges().T
    names, targets = bank.input_names, bank.target_names
    column = _index("along", along, names, len(middle))
    output = _index("target", target, targets, max(len(targets), 1))
    rows = np.tile(middle, (POINTS, 1))
    grid = rows[:, column] = np.linspace(low[column], high[column], POINTS)
    values = bank.predict_inputs(rows, coverage)
    with canvas(ax, COLUMN, 2.6) as axes:
        if bank.task == "regression":
            # (n, 3), or (n, K, 3) for K targets
            value, lower, upper = (values if values.ndim == 2 else values[:, output]).T
            axes.plot(grid, value, color=BLUE, lw=1.5, zorder=3, label="prediction")
            style: Style = {"color": BLUE, "alpha": 0.22, "lw": 0}
            axes.fill_between(grid, lower, upper, label=f"interval of {coverage:.0%}", **style)
            axes.set_ylabel("prediction" + (f" of {plain(targets[output])}" if targets else ""))
        else:
            for index, (label, curve) in enumerate(zip(bank.classes, values.T, strict=True)):
                style = {"color": CLASS_COLOURS[index % 6], "ls": ("-", "--", "-.", ":")[index % 4]}
                axes.plot(grid, curve, lw=1.5, label=plain(label), **style)
            axes.set(ylabel="probability", ylim=(-0.02, 1.02))
        name = names[column] if names else f"input {column}"
        axes.set(xlabel=plain(name), xlim=(grid[0], grid[-1]))
        axes.legend()
    return figure_of(axes)


def _index(argument: str, value: object, names: Sequence[object], count: int) -> int:
    """The number of an input or target that is named, or given by its number."""
    if isinstance(value, str) and value in names:
        return list(names).index(value)
    remedy = f"Give a number from 0 to {count - 1}"
    remedy += f", or one of the names {', '.join(map(repr, names))}." if names else "."
    return check.count(argument, value, "function", remedy, least=0, most=count - 1)


_BANDS = ((0.05, 0.95, "#D3E4F0"), (0.1, 0.9, "#ABCDE3"), (0.25, 0.75, "#78AFD3"))
"""Levels of the ends of each band, and its colour; each lies on the one before."""

_FEW = 12  # up to this many forecasts have dots
_LONGEST = 200  # how many of the last targets are drawn at most


def forecast(forecast: Forecast, ax: Axes | None = None) -> Figure:
    """The last targets, the forecasts, and bands between their quantiles.

    Parameters
    ----------
    forecast : what `AutoBank.forecast` returned.
    ax : Axes to draw into, instead of a figure of its own.

    >>> import numpy as np, kernelbank as kb
    >>> bank = kb.AutoBank(lags=8, horizons=12, size="small")
    >>> trace = bank.run(np.zeros(200), np.sin(np.arange(200) / 4))
    >>> figure = kb.plots.forecast(bank.forecast())
    >>> figure.axes[0].get_xlabel()
    'rows after the last target'
    """
    if not isinstance(forecast, Forecast):
        remedy = "Give what bank.forecast() returned."
        raise check.refuse("forecast", "be a Forecast", forecast, remedy)
    with canvas(ax, COLUMN, 2.6) as axes:
        past = forecast.history[-_LONGEST:]
        ahead = np.array(forecast.horizons, dtype=float)
        axes.plot(np.arange(1 - len(past), 1), past, color=INK, lw=1.0, label="target", zorder=2)
        # Bands begin at the last target, if there is one.
        x = np.concatenate([np.zeros(len(past[-1:])), ahead])
        for low, high, colour in _BANDS:
            levels = (forecast.quantiles[level] for level in (low, high))
            lower, upper = (np.concatenate([past[-1:], ends]) for ends in levels)
            axes.fill_between(
                x, lower, upper, color=colour, lw=0, zorder=1, label=f"{high - low:.0%}"
            )
        style: Style = {"color": BLUE, "lw": 1.3, "zorder": 3, "label": "forecast"}
        if len(forecast) <= _FEW:
            style |= {"marker": "o", "ms": 2.5}
        axes.plot(ahead, forecast.point, **style)
        axes.axvline(0.0, color=INK, lw=0.5, ls=":", zorder=0)
        axes.set(xlabel="rows after the last target", ylabel="target")
        axes.margins(x=0.01)
        axes.legend(ncols=5, handlelength=1.2, columnspacing=1.0, **ABOVE)
    return figure_of(axes)
