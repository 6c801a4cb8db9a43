"""Plots of costs, losses and weights of every slot, sample by sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...bank.trace import Trace
from ...utils import validation as check
from ...utils.validation import Floats
from .style import (
    ABOVE,
    BLUE,
    CLASS_COLOURS,
    COLUMN,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PAGE,
    RED,
    SKY,
    SMALL,
    Style,
    canvas,
    figure_of,
    fix_tick_style,
    need_matplotlib,
    new_figure,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


NAMED = 40  # up to this many slots have their names at the left of an image; more have numbers

ROWS, COLUMNS = 250, 500
"""The most rows of an image, of which several slots share one beyond that, and the least number of
columns, if there are as many samples: each has a pixel in a figure as wide as a page."""

VECTOR_LINES = 100  # more lines are an image inside a vector file, which would otherwise be huge


# --- what is plotted ------------------------------------------------------------------------------


def _check_trace(trace: object, *fields: str) -> Trace:
    """A trace of one output with samples and these fields; anything else is refused."""
    if not isinstance(trace, Trace):
        remedy = "Give what bank.run(X, y) returned."
        raise check.refuse("trace", "be a Trace", trace, remedy)
    if trace.outputs > 1:
        remedy = "Draw one at a time, such as trace.of_output(0) with y[:, 0]."
        raise check.refuse("trace", "have one output", f"{trace.outputs} outputs", remedy)
    for field in fields:
        if field not in trace.fields:
            remedy = 'Run with record="all", or with this name in the list.'
            if field not in trace.possible:
                remedy = "Only a KernelBank records it."
            raise check.refuse("trace", f"hold {field!r}", list(trace.fields), remedy)
    if not len(trace):
        raise check.refuse("trace", "have at least one sample", trace, "Run the bank on some.")
    return trace


def _targets(trace: Trace, y: object) -> Floats:
    """Targets that are numbers, one for each sample."""
    array = check.floats("y", y, "Give the targets that the bank was run on.")
    _check_length(trace, array.shape)
    return array


def _labels(trace: Trace, y: object) -> list[object]:
    """Targets that are labels, one for each sample."""
    if y is None:
        raise check.refuse("y", "be given", y, "Give the labels that the bank was run on.")
    labels = y.tolist() if isinstance(y, np.ndarray) else list(y)  # type: ignore[call-overload]
    _check_length(trace, (len(labels),))
    return list(labels)


def _check_length(trace: Trace, shape: tuple[int, ...]) -> None:
    if shape != (len(trace),):
        rule = f"hold one value for each of the trace's {len(trace)} samples"
        raise check.refuse("y", rule, shape, "Give what the bank was run on.")


# --- figures --------------------------------------------------------------------------------------


def cumulative_cost(trace: Trace, ax: Axes | None = None) -> Figure:
    """What the bank was charged since the trace began, and what every slot alone would have been.

    Figure 2 of the paper: every slot in grey, the best of them in green, the bank in blue. Slots
    that cost many times more than most leave the axes at the top; the legend counts them.

    Parameters
    ----------
    trace : of a `KernelBank`, with "cost" and "slot_cost".
    ax : Axes to draw into, instead of a figure of its own.

    >>> import numpy as np, kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.5, 2, 3))
    >>> trace = bank.run(np.arange(50) / 5, np.sin(np.arange(50) / 5))
    >>> figure = kb.plots.cumulative_cost(trace)
    >>> figure.axes[0].get_ylabel()
    'cumulative cost'
    """
    _check_trace(trace, "cost", "slot_cost")
    with canvas(ax, COLUMN, 2.6) as axes:
        _sums(axes, trace.cost, trace.slot_cost, trace.names)
        axes.set_ylabel("cumulative cost")
    return figure_of(axes)


def cumulative_loss(trace: Trace, ax: Axes | None = None) -> Figure:
    """The sum of losses one step ahead, of the bank and of every slot.

    Parameters
    ----------
    trace : of a `KernelBank`, with "loss" (and "slot_loss").
    ax : Axes to draw into, instead of a figure of its own.

    >>> import numpy as np, kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.5, 2, 3))
    >>> trace = bank.run(np.arange(50) / 5, np.sin(np.arange(50) / 5))
    >>> figure = kb.plots.cumulative_loss(trace)
    >>> figure.axes[0].get_ylabel()
    'cumulative loss'
    """
    _check_trace(trace, "loss")
    with canvas(ax, COLUMN, 2.6) as axes:
        alone = trace.slot_loss if "slot_loss" in trace.fields else None
        _sums(axes, trace.loss, alone, trace.names)
        axes.set_ylabel("cumulative loss")
    return figure_of(axes)


def _sums(axes: Axes, bank: Floats, slots: Floats | None, names: tuple[str, ...]) -> None:
    """Running sums of the bank, and of the slots behind it."""
    total = np.cumsum(bank)
    axes.plot(total, color=BLUE, lw=1.8, zorder=4, label="the bank")
    top = total[-1]
    if slots is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            sums = np.cumsum(slots, axis=0)
        last = np.nan_to_num(sums[-1], nan=np.inf, posinf=np.inf)
        shown = last <= 4 * max(np.median([*last[np.isfinite(last)], top]), top)
        top = max(top, *last[shown])
        beyond = "" if shown.all() else f" ({(~shown).sum()} of {len(last)} go beyond)"
        many = len(last) > VECTOR_LINES
        style: Style = {"color": GREY, "lw": 0.2 if many else 0.6, "rasterized": many}
        for slot, column in enumerate(sums.T):
            label = None if slot else f"every slot alone{beyond}"
            axes.plot(column, zorder=1, label=label, **style)
        best = int(np.argmin(last))
        style = {"color": GREEN, "lw": 1.2, "ls": "--", "zorder": 3}
        axes.plot(sums[:, best], label=f"best slot: {plain(names[best])}", **style)
    axes.set(xlabel="sample", xlim=(0, max(len(total) - 1, 1)))
    if np.isfinite(top) and top > 0:
        axes.set_ylim(0, 1.06 * top)
    axes.legend(loc="upper left")


def weights(trace: Trace, ax: Axes | None = None) -> Figure:
    """The weight of every slot, sample by sample, as an image: one row per slot.

    White is no weight; the bar has an arrow if a few weights go beyond it. From 1,000 samples on
    each column is the mean over an interval, and beyond 250 slots each row is the largest of a few
    neighbours, so that no single slot is lost.

    Parameters
    ----------
    trace : with "weights".
    ax : Axes to draw into, instead of a figure of its own.

    >>> import numpy as np, kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.5, 2, 3))
    >>> trace = bank.run(np.arange(50) / 5, np.sin(np.arange(50) / 5))
    >>> figure = kb.plots.weights(trace)
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['[0] Gaussian(width=0.5)', '[1] Gaussian(width=1)', '[2] Gaussian(width=2)']
    """
    _check_trace(trace, "weights")
    samples, count = trace.weights.shape
    length, together = max(1, samples // COLUMNS), -(-count // ROWS)
    first = np.arange(0, samples, length)
    means = np.add.reduceat(trace.weights, first, axis=0).T / np.diff(first, append=samples)
    rows = -(-count // together)
    groups = np.zeros((rows * together, len(first)))
    groups[:count] = means
    groups = groups.reshape(rows, together, len(first))
    largest = np.abs(groups).argmax(axis=1, keepdims=True)
    image = np.take_along_axis(groups, largest, axis=1)[:, 0]
    with canvas(ax, PAGE, 3.2) as axes:
        label = "weight" if length == 1 else f"weight (means over {length} samples)"
        extent = (-0.5, len(first) * length - 0.5, rows * together - 0.5, -0.5)
        _draw_image(axes, image, label, extent)
        # The last row and column of the image may stand for fewer slots and samples.
        axes.set(xlabel="sample", xlim=(-0.5, samples - 0.5), ylim=(count - 0.5, -0.5))
        if count <= NAMED:
            axes.set_yticks(range(count), [plain(name[:60]) for name in trace.names])
            if count > 16:  # names must not overlap
                axes.tick_params(axis="y", labelsize=max(4.5, 8 - count / 10))
        else:
            axes.set_ylabel("slot" if together == 1 else f"slot (the largest of each {together})")
    return figure_of(axes)


def _draw_image(axes: Axes, image: Floats, label: str, extent: tuple[float, ...]) -> None:
    """Weights with a colour bar: darker is more, in grey and for every kind of colour vision.

    A few cells far above all others must not make the others pale: they are just as dark, and the
    bar has an arrow.
    """
    from matplotlib.colors import LinearSegmentedColormap

    sizes, signed = np.abs(image[image != 0]), bool((image < 0).any())
    most = float(np.quantile(sizes, 0.998)) if len(sizes) else 1.0
    beyond = sizes.max(initial=0.0) > 1.5 * most
    darkest = most if beyond else sizes.max(initial=most)
    style: Style = {"aspect": "auto", "interpolation": "nearest", "extent": extent}
    style |= {"vmin": -darkest if signed else 0.0, "vmax": darkest}
    below, above = ["#3D1A00", RED, ORANGE], [SKY, BLUE, "#001F33"]
    ramp = [*below, "white", *above] if signed else ["white", *above]
    colours = LinearSegmentedColormap.from_list("weights", ramp)
    drawn = axes.imshow(image, cmap=colours, **style)
    axes.spines[:].set_visible(True)
    extend = ("both" if signed else "max") if beyond else "neither"
    bar = axes.figure.colorbar(drawn, ax=axes, pad=0.01, aspect=30, extend=extend)
    bar.set_label(label)
    bar.outline.set(linewidth=0.6, edgecolor=INK)
    fix_tick_style(bar.ax)


DOTS = 400  # up to this many targets are drawn as dots, more as a line
MARKERS = ("o", "s", "^", "D", "v")


def predictions(trace: Trace, y: object = None, ax: Axes | None = None) -> Figure:
    """The predictions, with their intervals where the trace has them, and the targets.

    For labels: the probability of the true label of each sample, and its mean over the last ones.

    Parameters
    ----------
    trace : with "predictions" (numbers) or "probabilities" (labels).
    y : the targets or labels that the bank was run on; for numbers, by default only predictions
        are drawn.
    ax : Axes to draw into, instead of a figure of its own.

    >>> import numpy as np, kernelbank as kb
    >>> x = np.arange(100) / 10
    >>> trace = kb.AutoBank(size="small").run(x, np.sin(x))
    >>> figure = kb.plots.predictions(trace, np.sin(x))
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['target', 'prediction', 'interval']
    """
    labels = _check_trace(trace).task == "classification"
    draw = _probability_of_truth if labels else _numbers
    with canvas(ax, COLUMN, 2.6) as axes:
        draw(axes, trace, y)
        axes.set(xlabel="sample", xlim=(0, max(len(trace) - 1, 1)))
        axes.legend(ncols=4, handlelength=1.4, columnspacing=1.2, **ABOVE)
    return figure_of(axes)


def _numbers(axes: Axes, trace: Trace, y: object) -> None:
    _check_trace(trace, "predictions")
    predicted = trace.predictions
    shown = [predicted]
    style: Style
    if y is not None:
        target = _targets(trace, y)
        style = {"color": INK, "ls": "none", "marker": "o", "ms": 2.2, "mew": 0.0}
        if len(target) > DOTS:
            style = {"color": GREY, "lw": 0.8}
        axes.plot(target, label="target", zorder=2, **style)
        axes.set_ylabel("target")
        shown.append(target)
    width = 1.3 if len(predicted) <= DOTS else 0.7
    axes.plot(predicted, color=BLUE, lw=width, label="prediction", zorder=3)
    if "lower" in trace.fields and "upper" in trace.fields:
        style = {"color": BLUE, "alpha": 0.22, "lw": 0, "rasterized": len(predicted) > 9999}
        x = np.arange(len(predicted))
        axes.fill_between(x, trace.lower, trace.upper, label="interval", zorder=1, **style)
        shown += [trace.lower, trace.upper]
    # The first predictions know nothing, and their intervals may be far wider than all later ones.
    settled = slice(min(10, len(predicted) // 4), None)
    values = np.concatenate([column[settled] for column in shown])
    values = values[np.isfinite(values)]
    if len(values) and values.max() > values.min():
        bottom, top = values.min(), values.max()
        axes.set_ylim(bottom - 0.05 * (top - bottom), top + 0.05 * (top - bottom))


def _probability_of_truth(axes: Axes, trace: Trace, y: object) -> None:
    """One dot per sample: the probability of its true label; and the running mean."""
    _check_trace(trace, "probabilities")
    truth = _labels(trace, y)
    unseen = [label for label in truth if label not in trace.classes]
    if unseen:
        remedy = "Give the labels that the bank was run on."
        raise check.refuse("y", f"hold labels from {list(trace.classes)}", unseen[0], remedy)
    true_class = np.array([trace.classes.index(label) for label in truth])
    probability = np.nan_to_num(trace.probabilities)  # before the first label
    height = probability[np.arange(len(true_class)), true_class]
    for index, label in enumerate(trace.classes):
        x = np.flatnonzero(true_class == index)
        style: Style = {"color": CLASS_COLOURS[index % 6], "marker": MARKERS[index % len(MARKERS)]}
        style |= {"ls": "none", "ms": 2.6, "mew": 0.0, "alpha": 0.75, "rasterized": len(x) > 999}
        axes.plot(x, height[x], label=plain(label), **style)
    length = max(len(true_class) // 20, 20)
    end = np.arange(1, len(true_class) + 1)
    start = np.maximum(end - length, 0)
    sums = np.append(0.0, np.cumsum(height))
    mean = (sums[end] - sums[start]) / (end - start)
    axes.plot(mean, color=INK, lw=1.2, label=f"mean of the last {length}")
    axes.set(ylim=(-0.02, 1.02), ylabel="probability of the true label")


def trace(trace: Trace, y: object = None) -> Figure:
    """A trace in panels, one below the other, for the fields that it holds.

    Predictions (see `predictions`), then the sum of costs or losses (see `cumulative_cost` and
    `cumulative_loss`), then the weights (see `weights`). Of several targets `trace.of_output(0)` is
    the trace of one.

    Parameters
    ----------
    trace : of a `KernelBank` or an `AutoBank`; record="all" shows all panels.
    y : the targets or labels that the bank was run on.

    >>> import numpy as np, kernelbank as kb
    >>> x = np.arange(100) / 10
    >>> trace = kb.AutoBank(size="small").run(x, np.sin(x), record="all")
    >>> figure = kb.plots.trace(trace, np.sin(x))
    >>> [axes.get_ylabel() for axes in figure.axes[:2]]
    ['target', 'slot']
    """
    fields, task = _check_trace(trace).fields, trace.task
    panels: list[tuple[float, Callable[[Axes], object]]] = []  # heights, and what is drawn
    if "predictions" in fields and task != "classification":
        panels.append((2.0, lambda axes: predictions(trace, y, axes)))
    if "probabilities" in fields and y is not None:
        panels.append((2.0, lambda axes: predictions(trace, y, axes)))
    if {"cost", "slot_cost"} <= set(fields):
        panels.append((2.0, lambda axes: cumulative_cost(trace, axes)))
    elif "loss" in fields:
        panels.append((2.0, lambda axes: cumulative_loss(trace, axes)))
    if "weights" in fields:
        count = trace.weights.shape[1]
        height = 2.0 if count > NAMED else max(1.6, 0.11 * count)
        panels.append((height, lambda axes: weights(trace, axes)))
    if not panels:
        remedy = 'Run with record="all", or with one of these names in the list.'
        rule = "hold 'predictions', 'cost' and 'slot_cost', 'loss' or 'weights'"
        raise check.refuse("trace", rule, list(fields), remedy)
    heights, draws = zip(*panels, strict=True)
    layout: Style = {"sharex": True, "height_ratios": heights, "squeeze": False}
    with need_matplotlib().rc_context(SMALL):
        figure, grid = new_figure(PAGE, sum(heights) + 0.3, rows=len(panels), **layout)
        for axes, draw in zip(grid[:, 0], draws, strict=True):
            draw(axes)
        for axes in grid[:-1, 0]:
            axes.set_xlabel("")
    return figure
