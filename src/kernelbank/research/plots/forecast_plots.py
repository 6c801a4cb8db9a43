"""Plots of forecasts: the fan of their quantiles, and which slots matter at which distance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...auto import AutoBank
from ...auto.forecaster import Forecast
from ...utils import validation as check
from ...utils.validation import Floats
from .style import BLUE, COLUMN, INK, ORANGE, PAGE, RED, SKY, canvas, figure_of, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BANDS = ((0.05, 0.95, "#D3E4F0"), (0.1, 0.9, "#ABCDE3"), (0.25, 0.75, "#78AFD3"))
"""Levels of the ends of each band, and its colour; each lies on the one before."""

_FEW = 12
"""Up to this many forecasts have dots."""

_LONGEST = 200
"""How many of the last targets are drawn at most."""

_LABELS = 13
"""The most numbers below the columns of an image."""

_ABOVE, _BELOW = (SKY, BLUE, "#001F33"), ("#3D1A00", RED, ORANGE)


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
            style = {"color": colour, "lw": 0, "zorder": 1}
            label = f"{high - low:.0%}"
            axes.fill_between(*_from_last(ahead, lower, upper, past), label=label, **style)
        marker = {"marker": "o", "ms": 2.5} if len(forecast) <= _FEW else {}
        style = {"color": BLUE, "lw": 1.3, "zorder": 3, "label": "forecast"}
        axes.plot(ahead, forecast.point, **style, **marker)
        axes.axvline(0.0, color=INK, lw=0.5, ls=":", zorder=0)
        axes.set(xlabel="rows after the last target", ylabel="target")
        axes.margins(x=0.01)
        position = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
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
        from matplotlib.colors import LinearSegmentedColormap

        signed, largest = bool((image < 0).any()), float(np.abs(image).max()) or 1.0
        ramp = [*_BELOW, "white", *_ABOVE] if signed else ["white", *_ABOVE]
        drawn = axes.imshow(
            image,
            aspect="auto",
            interpolation="nearest",
            cmap=LinearSegmentedColormap.from_list("weights", ramp),
            vmin=-largest if signed else 0.0,
            vmax=largest,
        )
        count = len(bank.horizons)
        shown = range(0, count, -(-count // _LABELS))
        axes.set_xticks(shown, [str(bank.horizons[k]) for k in shown])
        axes.set_yticks(range(len(names)), [plain(name[:60]) for name in names])
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("rows ahead")
        axes.spines[:].set_visible(True)
        bar = axes.figure.colorbar(drawn, ax=axes, pad=0.01, aspect=20)
        bar.set_label("weight")
        bar.outline.set(linewidth=0.6, edgecolor=INK)
    return figure_of(axes)


def _forecast_weights(bank: Any) -> dict[str, Floats]:
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
