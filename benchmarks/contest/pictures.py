"""The error as it goes: one picture an entry, ours in colour and the others in grey."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from kernelbank.evaluation import plots

from .entries import CLASSIFICATION
from .players import BASELINE, OURS, PEER
from .scores import Scored

WINDOW = 200
_POINTS = 800
_GAP = 0.042
"""Between two labels, as a share of the axis."""


def running(losses: np.ndarray, window: int = WINDOW) -> np.ndarray:
    """The mean of the last `window` losses, of all so far before that; NaN where not finite."""
    first = losses[: window - 1]
    means = np.cumsum(first) / np.arange(1, len(first) + 1)
    if len(losses) >= window:  # no difference of sums: who has diverged once may come back
        later = np.lib.stride_tricks.sliding_window_view(losses, window).mean(axis=1)
        means = np.concatenate([means, later])
    return np.where(np.isfinite(means), means, np.nan)


@plots.styled
def draw(row: Scored, skip: int, folder: Path) -> Path:
    """The running error of ours and of the peers over the scored rows, on a logarithmic axis."""
    figure, axis = plots.new_figure(7.2, 4.2)
    labels = row.task == CLASSIFICATION
    # An error rate of 0 has no place on this axis: it is drawn as half an error in the window.
    floor = 0.5 / WINDOW if labels else 1e-12
    curves = {
        name: np.maximum(running(row.curves[name])[skip:], floor)
        for name, found in row.figures.items()
        if found.kind in (OURS, PEER, BASELINE)
    }
    low, high = _limits(list(curves.values()), 1.0 if labels else 4.0)
    rows = np.arange(skip + 1, skip + 1 + row.scored)
    step = max(1, row.scored // _POINTS)
    ends: dict[str, tuple[float, Any]] = {}
    for name, curve in curves.items():
        look = _look(row, name)
        shown = np.where(curve <= 3 * high, curve, np.nan)  # what diverges leaves the picture
        axis.plot(rows[::step], shown[::step], **look)
        last = curve[-1]
        away = not np.isfinite(last) or last > high
        ends[name] = (high if away else max(float(last), low), look["color"])
    axis.set_yscale("log")
    axis.set_ylim(low, high)
    axis.set_xlim(rows[0], rows[-1])
    _label(axis, ends, low, high, row)
    what = "error rate" if labels else "MSE / variance of the target"
    axis.set(xlabel="row", ylabel=f"{what}, last {WINDOW} rows")
    axis.set_title(row.name)
    path = folder / f"{row.stream}-{row.view}.png"
    figure.savefig(path, metadata={"Software": None})
    return path


def _limits(curves: list[np.ndarray], top: float) -> tuple[float, float]:
    """So that whoever diverges does not make the others a flat line."""
    finite = np.concatenate([curve[np.isfinite(curve)] for curve in curves] or [np.ones(1)])
    inside = finite[finite <= top]
    if not inside.size:
        return 0.1, top
    low, high = float(inside.min()), float(inside.max())
    return 0.8 * low, max(1.15 * high, 1.6 * low)


def _look(row: Scored, name: str) -> dict[str, Any]:
    kind = row.figures[name].kind
    if kind == OURS:
        return {"color": plots.BLUE, "lw": 2.4, "zorder": 4}
    if name == row.best_peer:
        return {"color": plots.INK, "lw": 1.4, "zorder": 3}
    return {"color": plots.GREY, "lw": 0.9, "ls": "--" if kind == BASELINE else "-", "zorder": 2}


def _label(
    axis: Any, ends: dict[str, tuple[float, Any]], low: float, high: float, row: Scored
) -> None:
    """Each name at the end of its line, pushed upwards where another one stands already."""
    span = np.log(high / low)
    order = sorted(ends, key=lambda name: ends[name][0])
    places = []
    for name in order:
        place = float(np.log(ends[name][0] / low) / span)
        places.append(max(place, places[-1] + _GAP) if places else max(place, 0.0))
    over = (places[-1] if places else 0.0) - 1.0
    if over > 0:  # pushed out at the top: the upper ones move down again, in their order
        for at in range(len(places) - 1, -1, -1):
            most = 1.0 if at == len(places) - 1 else places[at + 1] - _GAP
            places[at] = min(places[at], most)
    for name, place in zip(order, places):
        value, colour = ends[name]
        words = f"{name}  {row.figures[name].figure:.3g}"
        if value >= high:
            words += " \N{UPWARDS ARROW}"
        axis.annotate(
            words,
            (1.015, place),
            xycoords="axes fraction",
            color=plots.INK if colour == plots.GREY else colour,
            fontsize=8,
            fontweight="bold" if colour != plots.GREY else "normal",
            va="center",
            annotation_clip=False,
        )
