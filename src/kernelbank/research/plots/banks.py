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
    BLUE,
    CLASS_COLOURS,
    COLUMN,
    GREY,
    INK,
    PAGE,
    RED,
    Style,
    canvas,
    draw_weights,
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
    with canvas(ax, COLUMN, 2.6) as axes:
        _check_bank(bank)
        limit = check.count("most", most, "bars", "Give how many slots to show, such as 15.")
        weights, names = _present_weights(bank)
        order = np.argsort(-np.abs(weights), kind="stable")
        nonzero = int((weights != 0).sum())
        shown = np.sort(order[: min(nonzero, limit)])
        others = order[len(shown) : nonzero]
        sizes = weights[shown]
        colours = [BLUE if size >= 0 else RED for size in sizes]
        rows = np.arange(len(shown))
        axes.barh(rows, sizes, color=colours, height=0.72)
        axes.set_yticks(rows, [plain(names[slot][:60]) for slot in shown])
        axes.set_ylim(max(len(shown), 4) - 0.4, -0.6)  # bars of two slots are not too thick
        axes.tick_params(axis="y", length=0)
        for row, size in zip(rows, sizes, strict=True):
            side: Style = {"ha": "left", "va": "center", "color": INK, "fontsize": "small"}
            axes.annotate(
                short(float(size)),
                (max(size, 0.0), row),
                (3, 0),
                textcoords="offset points",
                **side,
            )
        axes.margins(x=0.18)
        rest = []
        if len(others):
            rest.append(f"{short(float(weights[others].sum()))} on {len(others)} others")
        if nonzero < len(weights):
            rest.append(f"{len(weights) - nonzero} slots have none")
        axes.set_xlabel("weight" + (f" ({', '.join(rest)})" if rest else ""))
    return figure_of(axes)


def _present_weights(bank: AnyBank) -> tuple[Floats, tuple[str, ...]]:
    """The present weights and the names of the slots."""
    if isinstance(bank, KernelBank):
        weights = bank.weights
        return weights if weights.ndim == 1 else weights.mean(axis=0), bank.names
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
    with canvas(ax, COLUMN, 2.6) as axes:
        _check_bank(bank)
        usual = _usual_inputs(bank, at, between)
        remedy = f"Give a number from 0 to {len(usual) - 1}."
        names = bank.input_names if isinstance(bank, AutoBank) else ()
        if isinstance(along, str) and along in names:
            along = names.index(along)
        column = check.count("along", along, "function", remedy, least=0, most=len(usual) - 1)
        output = _output_index(bank, target)
        rows = np.tile(usual[:, 0], (POINTS, 1))
        grid = rows[:, column] = np.linspace(*_ends(between, usual[column]), POINTS)
        if isinstance(bank, KernelBank):
            shown = np.atleast_2d(bank.weights)[output] != 0
            slots = _of_output(bank.predict_slots(rows), 3, output)[:, shown]
            lines = axes.plot(
                grid, slots, color=GREY, lw=0.5, zorder=1, rasterized=slots.shape[1] > 99
            )
            if lines:
                lines[0].set_label("slots with weight")
            curve = _of_output(bank.predict(rows), 2, output)
            axes.plot(grid, curve, color=BLUE, lw=1.5, zorder=3, label="the bank")
            axes.set_ylabel("prediction")
        elif bank.task == "regression":
            value, low, high = _of_output(bank.predict_inputs(rows, coverage), 3, output).T
            axes.plot(grid, value, color=BLUE, lw=1.5, zorder=3, label="prediction")
            style: Style = {"color": BLUE, "alpha": 0.22, "lw": 0}
            axes.fill_between(grid, low, high, label=f"interval of {coverage:.0%}", **style)
            of = f" of {plain(bank.target_names[output])}" if bank.target_names else ""
            axes.set_ylabel(f"prediction{of}")
        else:
            for index, (label, curve) in enumerate(
                zip(bank.classes, bank.predict_inputs(rows, coverage).T, strict=True)
            ):
                colour = CLASS_COLOURS[index % len(CLASS_COLOURS)]
                dash = ("-", "--", "-.", ":")[index % 4]
                axes.plot(grid, curve, color=colour, ls=dash, lw=1.5, label=plain(label))
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
    """Values of one output, from those of all, which have so many axes, or of the only one."""
    return values[:, output] if values.ndim == axes else values


def _usual_inputs(bank: AnyBank, at: object, between: object) -> Floats:
    """(d, 3): the value of each input, and the ends of its range."""
    if not bank.samples:
        remedy = "Let it learn some samples first."
        raise check.refuse("bank", "have learned something", bank.samples, remedy)
    if isinstance(bank, KernelBank):
        width = bank.dimension or 1
        if between is None:
            remedy = "Give the ends of the range, such as between=(0, 1)."
            raise check.refuse("between", "be given for a KernelBank", between, remedy)
        if at is None and width > 1:
            remedy = "Give the values of the other inputs, for example at=numpy.median(X, axis=0)."
            raise check.refuse("at", f"be given for a KernelBank of {width} inputs", at, remedy)
        usual = np.zeros((width, 3))
    else:
        usual = bank.input_ranges()
        width = len(usual)
    if at is not None:
        remedy = "Give one number for each input; the one that varies does not matter."
        values = check.floats("at", at, remedy).ravel()
        if len(values) != width:
            raise check.refuse("at", f"hold {width} numbers", values.shape, remedy)
        usual[:, 0] = values
    return usual


def _ends(between: object, usual: Floats) -> tuple[float, float]:
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

_LABELS = 13
"""The most numbers below the columns of an image."""


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
        for low, high, colour in _BANDS:
            lower, upper = (forecast.quantiles[level] for level in (low, high))
            style: Style = {"color": colour, "lw": 0, "zorder": 1}
            label = f"{high - low:.0%}"
            axes.fill_between(*_from_last(ahead, lower, upper, past), label=label, **style)
        style = {"color": BLUE, "lw": 1.3, "zorder": 3, "label": "forecast"}
        if len(forecast) <= _FEW:
            style |= {"marker": "o", "ms": 2.5}
        axes.plot(ahead, forecast.point, **style)
        axes.axvline(0.0, color=INK, lw=0.5, ls=":", zorder=0)
        axes.set(xlabel="rows after the last target", ylabel="target")
        axes.margins(x=0.01)
        position: Style = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
        axes.legend(ncols=5, handlelength=1.2, columnspacing=1.0, **position)
    return figure_of(axes)


def _from_last(
    ahead: Floats, lower: Floats, upper: Floats, past: Floats
) -> tuple[Floats, Floats, Floats]:
    """A band that begins at the last target, where that is known."""
    start = [past[-1]] if len(past) else []
    x = np.concatenate([np.zeros(len(start)), ahead])
    return x, np.concatenate([start, lower]), np.concatenate([start, upper])


def horizon_weights(bank: AutoBank, most: int = 12, ax: Axes | None = None) -> Figure:
    """The weights of the forecasts as an image: one row per slot, one column per horizon.

    It shows which kernels matter at which distance. White is no weight. The slots are those with
    the largest weight at any horizon; the last row sums up the others.

    Parameters
    ----------
    bank : an `AutoBank` with horizons that has learned some rows.
    most : how many slots to show.
    ax : Axes to draw into, instead of a figure of its own.

    >>> import numpy as np, kernelbank as kb
    >>> bank = kb.AutoBank(lags=8, horizons=(1, 12), size="small")
    >>> trace = bank.run(np.zeros(200), np.sin(np.arange(200) / 4))
    >>> figure = kb.plots.horizon_weights(bank, most=3)
    >>> [label.get_text() for label in figure.axes[0].get_xticklabels()]
    ['1', '12']
    """
    limit = check.count("most", most, "horizon_weights", "Give how many slots, such as 12.")
    names, image = _image(_forecast_weights(bank), limit)
    with canvas(ax, PAGE, 0.9 + 0.17 * max(len(names), 4)) as axes:
        draw_weights(axes, image, float(np.abs(image).max()) or 1.0, "weight", 20)
        count = len(bank.horizons)
        shown = range(0, count, -(-count // _LABELS))
        axes.set_xticks(shown, [str(bank.horizons[k]) for k in shown])
        axes.set_yticks(range(len(names)), [plain(name[:60]) for name in names])
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("rows ahead")
    return figure_of(axes)


def _forecast_weights(bank: object) -> dict[str, Floats]:
    if not isinstance(bank, AutoBank) or not bank.horizons:
        remedy = "Give a kb.AutoBank(..., horizons=24)."
        raise check.refuse("bank", "be an AutoBank with horizons", bank, remedy)
    weights = bank.forecast_weights if bank.samples else {}
    if not weights:
        first = bank.horizons[-1] + 5
        remedy = f"Let it learn more rows first; the forecasts start after {first}."
        raise check.refuse("bank", "have weights of forecasts", bank.samples, remedy)
    return weights


def _image(weights: dict[str, Floats], most: int) -> tuple[list[str], Floats]:
    """The names of the slots with the largest weights, and these weights (slots, H)."""
    names, values = list(weights), np.array(list(weights.values()))
    sizes = np.abs(values).max(axis=1)
    order = np.argsort(-sizes, kind="stable")
    chosen = np.sort([slot for slot in order[:most] if sizes[slot] > 0])
    others = [slot for slot in order[most:] if sizes[slot] > 0]
    shown, image = [names[slot] for slot in chosen], values[chosen]
    if others:
        shown.append(f"{len(others)} others")
        image = np.vstack([image, values[others].sum(axis=0)])
    return shown, image
