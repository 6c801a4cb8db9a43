"""Figures of `make accuracy`: the running error on each stream, and mean ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from accuracy_competitors import AUTO, competes
from accuracy_tables import as_given

import kernelbank as kb
from kernelbank.research import plots
from kernelbank.research.competitors import BASELINE, PERSISTENCE
from kernelbank.research.datasets.stream import CLASSIFICATION, REGRESSION
from kernelbank.research.results import Result

WINDOW = 200
"""Rows over which a figure averages the error."""

_POINTS = 800
_GAP = 0.042
"""Between two labels, as a share of the axis."""


def draw_ranks(found: kb.Comparison, folder: Path) -> list[Path]:
    """A critical-difference diagram for each task, if there are several streams of it."""
    files: list[Path] = []
    for task in (REGRESSION, CLASSIFICATION):
        own = as_given(found, task)
        if own.overall:
            files += own.plot_ranks(folder / f"ranks_{task}.png")
    return files


def rolling_mean(losses: np.ndarray, window: int = WINDOW) -> np.ndarray:
    """The mean of the last `window` losses, of all so far before that; NaN where not finite."""
    first = losses[: window - 1]
    means = np.cumsum(first) / np.arange(1, len(first) + 1)
    if len(losses) >= window:  # no difference of sums: what has diverged once may come back
        later = np.lib.stride_tricks.sliding_window_view(losses, window).mean(axis=1)
        means = np.concatenate([means, later])
    return np.where(np.isfinite(means), means, np.nan)


@plots.styled
def draw_errors(found: kb.Comparison, stream: str, folder: Path) -> Path:
    """The rolling error of ours and of the rivals over the scored rows, on a logarithmic axis."""
    figure, axis = plots.new_figure(7.2, 4.2)
    shown = [one for one in found.results if one.stream == stream and _is_shown(one)]
    labels = shown[0].task == CLASSIFICATION
    # An error rate of 0 has no place on this axis: it is drawn as half an error in the window.
    floor = 0.5 / WINDOW if labels else 1e-12
    curves = [np.maximum(rolling_mean(one.losses)[found.skip :], floor) for one in shown]
    low, high = _limits(curves, 1.0 if labels else 4.0)
    rows = np.arange(found.skip + 1, found.skip + 1 + shown[0].samples)
    step = max(1, len(rows) // _POINTS)
    rivals = [one for one in shown if competes(one)]
    best = min(rivals, key=lambda one: one.mean_loss, default=None)
    ends: list[tuple[float, Any, Result]] = []
    for one, curve in zip(shown, curves, strict=True):
        style = _line_style(one, one is best)
        inside = np.where(curve <= 3 * high, curve, np.nan)  # what diverges leaves the figure
        axis.plot(rows[::step], inside[::step], **style)
        last = curve[-1]
        beyond = not np.isfinite(last) or last > high
        ends.append((high if beyond else max(float(last), low), style["color"], one))
    axis.set_yscale("log")
    axis.set_ylim(low, high)
    axis.set_xlim(rows[0], rows[-1])
    _label(axis, ends, low, high)
    what = "error rate" if labels else "MSE / variance of the target"
    axis.set(xlabel="row", ylabel=f"{what}, last {WINDOW} rows")
    axis.set_title(stream)
    path = folder / f"{stream.replace(' +', '-lags')}.png"
    figure.savefig(path, metadata={"Software": None})
    return path


def _is_shown(one: Result) -> bool:
    return one.name in (AUTO.name, PERSISTENCE) or competes(one)


def _limits(curves: list[np.ndarray], top: float) -> tuple[float, float]:
    """So that a competitor that diverges does not make the others a flat line."""
    finite = np.concatenate([curve[np.isfinite(curve)] for curve in curves] or [np.ones(1)])
    inside = finite[finite <= top]
    if not inside.size:
        return 0.1, top
    low, high = float(inside.min()), float(inside.max())
    return 0.8 * low, max(1.15 * high, 1.6 * low)


def _line_style(one: Result, best: bool) -> dict[str, Any]:
    if one.name == AUTO.name:
        return {"color": plots.BLUE, "lw": 2.4, "zorder": 4}
    if best:
        return {"color": plots.INK, "lw": 1.4, "zorder": 3}
    dash = "--" if one.kind == BASELINE else "-"
    return {"color": plots.GREY, "lw": 0.9, "ls": dash, "zorder": 2}


def _label(axis: Any, ends: list[tuple[float, Any, Result]], low: float, high: float) -> None:
    """Each name at the end of its line, pushed upwards where there is another one already."""
    span = np.log(high / low)
    ends = sorted(ends, key=lambda end: end[0])
    heights: list[float] = []
    for value, *_ in ends:
        height = float(np.log(value / low) / span)
        heights.append(max(height, heights[-1] + _GAP) if heights else max(height, 0.0))
    if heights and heights[-1] > 1.0:  # pushed out at the top: the upper ones move down again
        for at in range(len(heights) - 1, -1, -1):
            most = 1.0 if at == len(heights) - 1 else heights[at + 1] - _GAP
            heights[at] = min(heights[at], most)
    for (value, colour, one), height in zip(ends, heights, strict=True):
        axis.annotate(
            f"{one.name}  {one.mean_loss:.3g}" + (" \N{UPWARDS ARROW}" if value >= high else ""),
            (1.015, height),
            xycoords="axes fraction",
            color=plots.INK if colour == plots.GREY else colour,
            fontsize=8,
            fontweight="bold" if colour != plots.GREY else "normal",
            va="center",
            annotation_clip=False,
        )
