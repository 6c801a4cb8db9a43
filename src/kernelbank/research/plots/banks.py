"""Plots of a bank as it is now: its weights, and the function that it has learned."""

from __future__ import annotations

from collections.abc import Iterable
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
    GREY,
    INK,
    RED,
    Style,
    canvas,
    figure_of,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


AnyBank = KernelBank | AutoBank

POINTS = 300
"""Inputs at which a function is drawn."""


def bars(bank: AnyBank, most: int = 15, ax: Axes | None = None) -> Figure:
    """The present weights as bars, in the order of the slots. Slots without weight have no bar.

    With more than two classes an `AutoBank` has a bank for each: their mean is drawn, as that of
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
    with canvas(ax, COLUMN, 2.6) as axes:
        order = np.argsort(-np.abs(weights), kind="stable")
        nonzero = int((weights != 0).sum())
        shown, others = np.sort(order[: min(nonzero, limit)]), order[limit:nonzero]
        sizes, rows = weights[shown], np.arange(len(shown))
        axes.barh(rows, sizes, color=np.where(sizes >= 0, BLUE, RED), height=0.72)
        axes.set_yticks(rows, [plain(names[slot][:60]) for slot in shown])
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


def _present_weights(bank: AnyBank) -> tuple[Floats, tuple[str, ...]]:
    """The present weights, means over outputs, and the names of the slots."""
    _check_bank(bank)
    if isinstance(bank, KernelBank):
        return np.atleast_2d(bank.weights).mean(axis=0), bank.names
    if not bank.banks:
        remedy = "Let it learn a few rows first; the slots start after the fifth."
        raise check.refuse("bank", "have weights", bank, remedy)
    return bank.weights, bank.names


def function(
    bank: AnyBank,
    along: int | str = 0,
    at: object = None,
    between: tuple[float, float] | None = None,
    coverage: float = 0.9,
    ax: Axes | None = None,
    target: int | str = 0,
) -> Figure:
    """The bank's prediction along one input, while the others are fixed.

    An `AutoBank` is drawn with its interval, or, for labels, with the probability of each class; a
    `KernelBank` with the estimates of the slots that have weight, in grey.

    Parameters
    ----------
    bank : a `KernelBank` or an `AutoBank` that has learned something.
    along : the index of the input that varies, or for an `AutoBank` its name (`input_names`).
    at : (d,), the values of the others. By default, for an `AutoBank`, their medians; a
        `KernelBank` of one input needs none.
    between : the ends of the range. By default, for an `AutoBank`, the range of the last values;
        a `KernelBank` does not know it.
    coverage : of the interval.
    ax : Axes to draw into, instead of a figure of its own.
    target : which of several targets to draw: its index, or for an `AutoBank` its name.

    >>> import numpy as np, kernelbank as kb
    >>> x = np.arange(100) / 10
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.5, 2, 3))
    >>> trace = bank.run(x, np.sin(x))
    >>> figure = kb.plots.function(bank, between=(0, 10))
    >>> figure.axes[0].get_xlabel()
    'input 0'
    """
    _check_bank(bank)
    usual = _usual_inputs(bank, at, between)
    names = bank.input_names if isinstance(bank, AutoBank) else ()
    remedy = f"Give a number from 0 to {len(usual) - 1}."
    if isinstance(along, str) and along in names:
        along = names.index(along)
    column = check.count("along", along, "function", remedy, least=0, most=len(usual) - 1)
    output = _output_index(bank, target)
    rows = np.tile(usual[:, 0], (POINTS, 1))
    grid = rows[:, column] = np.linspace(*_ends(between, usual[column]), POINTS)
    with canvas(ax, COLUMN, 2.6) as axes:
        if isinstance(bank, KernelBank):
            weighted = np.atleast_2d(bank.weights)[output] != 0
            slots = _of_output(bank.predict_slots(rows), 3, output)[:, weighted]
            style: Style = {"color": GREY, "lw": 0.5, "zorder": 1}
            lines = axes.plot(grid, slots, rasterized=slots.shape[1] > 99, **style)
            if lines:
                lines[0].set_label("slots with weight")
            curve = _of_output(bank.predict(rows), 2, output)
            axes.plot(grid, curve, color=BLUE, lw=1.5, zorder=3, label="the bank")
            axes.set_ylabel("prediction")
        elif bank.task == "regression":
            value, low, high = _of_output(bank.predict_inputs(rows, coverage), 3, output).T
            axes.plot(grid, value, color=BLUE, lw=1.5, zorder=3, label="prediction")
            style = {"color": BLUE, "alpha": 0.22, "lw": 0}
            axes.fill_between(grid, low, high, label=f"interval of {coverage:.0%}", **style)
            of = f" of {plain(bank.target_names[output])}" if bank.target_names else ""
            axes.set_ylabel(f"prediction{of}")
        else:
            curves = zip(bank.classes, bank.predict_inputs(rows, coverage).T, strict=True)
            for index, (label, curve) in enumerate(curves):
                style = {"color": CLASS_COLOURS[index % 6], "ls": ("-", "--", "-.", ":")[index % 4]}
                axes.plot(grid, curve, lw=1.5, label=plain(label), **style)
            axes.set(ylabel="probability", ylim=(-0.02, 1.02))
        name = names[column] if names else f"input {column}"
        axes.set(xlabel=plain(name), xlim=(grid[0], grid[-1]))
        axes.legend()
    return figure_of(axes)


def _output_index(bank: AnyBank, target: object) -> int:
    """Which of several outputs is drawn; 0 for one."""
    names = bank.target_names if isinstance(bank, AutoBank) else ()
    outputs = bank.outputs if isinstance(bank, KernelBank) else max(len(names), 1)
    if isinstance(target, str) and target in names:
        return names.index(target)
    remedy = f"Give a number from 0 to {outputs - 1}"
    remedy += f", or one of the names {', '.join(map(repr, names))}." if names else "."
    return check.count("target", target, "function", remedy, least=0, most=outputs - 1)


def _of_output(values: Floats, axes: int, output: int) -> Floats:
    """Values of one output: those of several have an axis more, so this many."""
    return values[:, output] if values.ndim == axes else values


def _usual_inputs(bank: AnyBank, at: object, between: object) -> Floats:
    """(d, 3): the value of each input, and the ends of its range."""
    if not bank.samples:
        remedy = "Let it learn some samples first."
        raise check.refuse("bank", "have learned something", bank.samples, remedy)
    if isinstance(bank, AutoBank):
        usual = bank.input_ranges()
    else:
        usual = np.zeros((bank.dimension or 1, 3))
        if between is None:
            remedy = "Give the ends of the range, such as between=(0, 1)."
            raise check.refuse("between", "be given for a KernelBank", between, remedy)
        if at is None and len(usual) > 1:
            remedy = "Give the values of the other inputs, for example at=numpy.median(X, axis=0)."
            rule = f"be given for a KernelBank of {len(usual)} inputs"
            raise check.refuse("at", rule, at, remedy)
    if at is not None:
        remedy = "Give one number for each input; the one that varies does not matter."
        values = check.floats("at", at, remedy).ravel()
        if len(values) != len(usual):
            raise check.refuse("at", f"hold {len(usual)} numbers", values.shape, remedy)
        usual[:, 0] = values
    return usual


def _ends(between: object, usual: Floats) -> tuple[float, float]:
    """The ends of the range that is drawn."""
    if between is None:
        return float(usual[1]), float(usual[2])
    remedy = "Give the two ends of the range, such as between=(0, 1)."
    if not isinstance(between, Iterable) or len(ends := list(between)) != 2:
        raise check.refuse("between", "be two numbers", between, remedy)
    low, high = (check.number("between", end, "function", remedy) for end in ends)
    if not low < high:
        raise check.refuse("between", "go from low to high", between, remedy)
    return low, high


def _check_bank(bank: object) -> None:
    """Refuse anything but a bank."""
    if not isinstance(bank, (KernelBank, AutoBank)):
        remedy = "Give a kb.KernelBank or a kb.AutoBank; of an estimator, its .bank."
        raise check.refuse("bank", "be a bank", bank, remedy)


_BANDS = ((0.05, 0.95, "#D3E4F0"), (0.1, 0.9, "#ABCDE3"), (0.25, 0.75, "#78AFD3"))
"""Levels of the ends of each band, and its colour; each lies on the one before."""

_FEW = 12
"""Up to this many forecasts have dots."""

_LONGEST = 200
"""How many of the last targets are drawn at most."""


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
