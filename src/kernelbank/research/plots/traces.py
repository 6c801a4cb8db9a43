"""Plots of costs, losses and weights of every slot, sample by sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...bank.trace import Trace
from ...utils import validation as check
from ...utils.validation import Floats
from .. import regret as regrets
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
    PURPLE,
    RED,
    SKY,
    SMALL,
    Style,
    canvas,
    figure_of,
    fix_tick_style,
    interval_band,
    interval_means,
    line_indices,
    need_matplotlib,
    new_figure,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


NAMED = 40
"""Up to this many slots have their names at the left of an image; more have numbers."""

ROWS = 250
"""The most rows of an image: beyond that, several slots share one."""

VECTOR_LINES = 100
"""More lines are an image inside a vector file, which would otherwise be huge."""


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
                remedy = "Only a KernelBank records it; see kb.plots.cumulative_loss(trace, y)."
            raise check.refuse("trace", f"hold {field!r}", list(trace.fields), remedy)
    if not len(trace):
        raise check.refuse("trace", "have at least one sample", trace, "Run the bank on some.")
    return trace


def _targets(trace: Trace, y: object) -> Floats:
    """Targets that are numbers, one for each sample."""
    remedy = "Give the targets that the bank was run on."
    array = check.floats("y", y, remedy)
    if array.shape != (len(trace),):
        rule = f"have one target for each of the trace's {len(trace)} samples"
        raise check.refuse("y", rule, array.shape, remedy)
    return array


def _labels(trace: Trace, y: object) -> list[object]:
    """Targets that are labels, one for each sample."""
    remedy = "Give the labels that the bank was run on."
    if y is None:
        raise check.refuse("y", "be given", y, remedy)
    labels = y.tolist() if isinstance(y, np.ndarray) else list(y)  # type: ignore[call-overload]
    if len(labels) != len(trace):
        rule = f"have one label for each of the trace's {len(trace)} samples"
        raise check.refuse("y", rule, len(labels), remedy)
    return list(labels)


def _are_labels(trace: Trace) -> bool:
    return trace.task == "classification"


def _losses(trace: Trace, y: object) -> tuple[Floats, Floats | None, str]:
    """The losses of the bank, of the slots if the trace has them, and the label of the axis."""
    _check_trace(trace, "loss" if trace.task is None else "predictions")
    if trace.task is None:
        alone = trace.slot_loss if "slot_loss" in trace.fields else None
        return trace.loss, alone, "cumulative loss, one step ahead"
    if y is None:
        remedy = "The trace of an AutoBank has no losses: give the targets it was run on."
        raise check.refuse("y", "be given", y, remedy)
    # Before the first target there is no prediction, and so no loss; likewise where one of several
    # targets is missing.
    if _are_labels(trace):
        pairs = zip(trace.predictions.tolist(), _labels(trace, y), strict=True)
        wrong = [label is not None and label != true for label, true in pairs]
        return np.array(wrong, dtype=float), None, "wrong labels so far"
    target = _targets(trace, y)
    missing = np.isnan(trace.predictions) | np.isnan(target)
    alone = None
    if "slot_predictions" in trace.fields:
        alone = np.where(missing[:, None], 0.0, (trace.slot_predictions - target[:, None]) ** 2)
    squares = np.where(missing, 0.0, (trace.predictions - target) ** 2)
    return squares, alone, "cumulative squared error"


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


def cumulative_loss(trace: Trace, y: object = None, ax: Axes | None = None) -> Figure:
    """The sum of losses one step ahead, of the bank and of every slot.

    Parameters
    ----------
    trace : of a `KernelBank`, with "loss" (and "slot_loss"); or of an `AutoBank`, with
        "predictions" (and, for numbers, "slot_predictions"): then the loss is the squared error, or
        1 for a wrong label.
    y : the targets; for a trace of an `AutoBank` only.
    ax : Axes to draw into, instead of a figure of its own.

    >>> import numpy as np, kernelbank as kb
    >>> draw = np.random.default_rng(0)
    >>> X = draw.normal(size=(60, 2))
    >>> y = X[:, 0] > 0
    >>> trace = kb.AutoBank("classification", size="small").run(X, y)
    >>> figure = kb.plots.cumulative_loss(trace, y)
    >>> figure.axes[0].get_ylabel()
    'wrong labels so far'
    """
    losses, alone, label = _losses(_check_trace(trace), y)
    with canvas(ax, COLUMN, 2.6) as axes:
        _sums(axes, losses, alone, trace.names)
        axes.set_ylabel(label)
    return figure_of(axes)


def _sums(axes: Axes, bank: Floats, slots: Floats | None, names: tuple[str, ...]) -> None:
    """Running sums of the bank, and of the slots behind it."""
    from matplotlib.collections import LineCollection

    total = np.cumsum(bank)
    x = line_indices(total)
    axes.plot(x, total[x], color=BLUE, lw=1.8, zorder=4, label="the bank")
    top = total[-1]
    if slots is not None:
        lines, last = [], np.empty(slots.shape[1])
        for slot in range(slots.shape[1]):  # one at a time: all of them may be gigabytes
            with np.errstate(over="ignore", invalid="ignore"):
                sums = np.cumsum(slots[:, slot])
            sums[~np.isfinite(sums)] = np.nan
            last[slot] = np.inf if np.isnan(sums[-1]) else sums[-1]
            indices = line_indices(sums, 800)
            lines.append(np.column_stack([indices, sums[indices]]))
        finite = last[np.isfinite(last)]
        limit = 4 * max(np.median(finite) if len(finite) else top, top)
        beyond = int((last > limit).sum())
        top = max(top, *last[last <= limit])
        label = "every slot alone" + (f" ({beyond} of {len(last)} go beyond)" if beyond else "")
        many = len(lines) > VECTOR_LINES
        style: Style = {"colors": GREY, "linewidths": 0.2 if many else 0.6, "rasterized": many}
        axes.add_collection(LineCollection(lines, zorder=1, label=label, **style))
        best = int(np.argmin(last))
        if np.isfinite(last[best]):
            style = {"color": GREEN, "lw": 1.2, "ls": "--", "zorder": 3}
            axes.plot(*lines[best].T, label=f"best slot: {plain(names[best])}", **style)
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
    count = trace.weights.shape[1]
    together = -(-count // ROWS)
    image = interval_means(trace.weights).T
    if together > 1:
        starts = np.arange(0, count, together)
        low, high = (end.reduceat(image, starts, axis=0) for end in (np.minimum, np.maximum))
        image = np.where(-low > high, low, high)
    with canvas(ax, PAGE, 3.2) as axes:
        length = len(trace) / image.shape[1]
        label = "weight" if length == 1 else f"weight (means over {length:.3g} samples)"
        extent = (-0.5, len(trace) - 0.5, together * len(image) - 0.5, -0.5)
        _draw_image(axes, image, label, extent)
        axes.set_ylim(count - 0.5, -0.5)  # the last row of the image may stand for fewer slots
        axes.set_xlabel("sample")
        if count <= NAMED:
            axes.set_yticks(range(count), [plain(name[:60]) for name in trace.names])
            if count > 16:  # names must not overlap
                axes.tick_params(axis="y", labelsize=max(4.5, 8 - count / 10))
        else:
            axes.set_ylabel("slot" if together == 1 else f"slot (the largest of each {together})")
    return figure_of(axes)


def _draw_image(
    axes: Axes, image: Floats, label: str, extent: tuple[float, float, float, float]
) -> None:
    """Weights with a colour bar; white is no weight. The bar has an arrow if weights go beyond it.

    Darker is more, in grey and for every kind of colour vision.
    """
    from matplotlib.colors import LinearSegmentedColormap

    largest, signed = _darkest(image), bool((image < 0).any())
    below, above = ["#3D1A00", RED, ORANGE], [SKY, BLUE, "#001F33"]
    ramp = [*below, "white", *above] if signed else ["white", *above]
    style: Style = {"aspect": "auto", "interpolation": "nearest", "extent": extent}
    colours = LinearSegmentedColormap.from_list("weights", ramp)
    drawn = axes.imshow(
        image, cmap=colours, vmin=-largest if signed else 0.0, vmax=largest, **style
    )
    axes.spines[:].set_visible(True)
    sides = (bool((image < -largest).any()), bool((image > largest).any()))
    extend = ("neither", "max", "min", "both")[2 * sides[0] + sides[1]]
    bar = axes.figure.colorbar(drawn, ax=axes, pad=0.01, aspect=30, extend=extend)
    bar.set_label(label)
    bar.outline.set(linewidth=0.6, edgecolor=INK)


def _darkest(image: Floats) -> float:
    """The size that has the darkest colour.

    A few cells far above all others must not make the others pale: they are just as dark.
    """
    sizes = np.abs(image[image != 0])
    if not len(sizes):
        return 1.0
    largest, most = float(sizes.max()), float(np.quantile(sizes, 0.998))
    return most if largest > 1.5 * most else largest


DOTS = 400
"""Up to this many targets are drawn as dots, more as a line."""

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
    draw = _probability_of_truth if _are_labels(_check_trace(trace)) else _numbers
    with canvas(ax, COLUMN, 2.6) as axes:
        draw(axes, trace, y)
        axes.set(xlabel="sample", xlim=(0, max(len(trace) - 1, 1)))
        axes.legend(ncols=4, handlelength=1.4, columnspacing=1.2, **ABOVE)
    return figure_of(axes)


def _numbers(axes: Axes, trace: Trace, y: object) -> None:
    _check_trace(trace, "predictions")
    predicted = trace.predictions
    shown = [predicted]
    if y is not None:
        target = _targets(trace, y)
        x = line_indices(target)
        style: Style = {"color": INK, "ls": "none", "marker": "o", "ms": 2.2, "mew": 0.0}
        if len(target) > DOTS:
            style = {"color": GREY, "lw": 0.8}
        axes.plot(x, target[x], label="target", zorder=2, **style)
        axes.set_ylabel("target")
        shown.append(target)
    x = line_indices(predicted)
    width = 1.3 if len(predicted) <= DOTS else 0.7
    axes.plot(x, predicted[x], color=BLUE, lw=width, label="prediction", zorder=3)
    if "lower" in trace.fields and "upper" in trace.fields:
        x, low, high = interval_band(trace.lower, trace.upper)
        axes.fill_between(x, low, high, color=BLUE, alpha=0.22, lw=0, label="interval", zorder=1)
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
    probability = np.nan_to_num(trace.probabilities, nan=0.0)  # before the first label
    indices = {label: index for index, label in enumerate(trace.classes)}
    true_class = np.array([indices.get(label, -1) for label in truth])
    if (true_class < 0).any():
        remedy = "Give the labels that the bank was run on."
        unseen = truth[int(np.flatnonzero(true_class < 0)[0])]
        raise check.refuse("y", f"hold labels from {list(trace.classes)}", unseen, remedy)
    height = probability[np.arange(len(true_class)), true_class]
    for index, label in enumerate(trace.classes):
        x = np.flatnonzero(true_class == index)
        x = x[line_indices(height[x])]
        style: Style = {"color": CLASS_COLOURS[index % 6], "marker": MARKERS[index % len(MARKERS)]}
        style |= {"ls": "none", "ms": 2.6, "mew": 0.0, "alpha": 0.75, "rasterized": len(x) > 999}
        axes.plot(x, height[x], label=plain(label), **style)
    length = max(len(true_class) // 20, 20)
    sums = np.concatenate([[0.0], np.cumsum(height)])
    end = np.arange(1, len(true_class) + 1)
    mean = (sums[end] - sums[np.maximum(end - length, 0)]) / np.minimum(end, length)
    x = line_indices(mean)
    axes.plot(x, mean[x], color=INK, lw=1.2, label=f"mean of the last {length}")
    axes.set(ylim=(-0.02, 1.02), ylabel="probability of the true label")


def regret(
    trace: Trace,
    y: object = None,
    *,
    comparators: Mapping[str, object] | None = None,
    length: int | None = None,
    ax: Axes | None = None,
) -> Figure:
    """How much more the bank has lost than the best slot, the best slot per interval, comparators.

    See `kb.regret` for the definitions. Below the line of 0 the bank was better.

    Parameters
    ----------
    trace : of a `KernelBank`, with "loss" and "slot_loss"; or of an `AutoBank` for numbers, with
        "predictions" and "slot_predictions".
    y : the targets; for a trace of an `AutoBank` only.
    comparators : (n,) losses by name, as `kb.regret.comparator_loss` returns them.
    length : samples of an interval; by default a tenth of the trace.
    ax : Axes to draw into, instead of a figure of its own.

    >>> import numpy as np, kernelbank as kb
    >>> x, y = kb.datasets.sine(seed=0, samples=300)
    >>> trace = kb.KernelBank(kb.gaussian_grid(0.1, 1, 5), kb.learners.FourierSGD()).run(x, y)
    >>> drifting = np.sin(2 * np.pi * (x[:, 0] + np.arange(300) / 300))
    >>> losses = kb.regret.comparator_loss(drifting, y)
    >>> figure = kb.plots.regret(trace, comparators={"the drifting sine": losses})
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['best slot so far', 'best slot per 30 samples', 'the drifting sine']
    """
    if _are_labels(_check_trace(trace)):
        remedy = "A trace of labels holds no losses of slots; kb.regret takes arrays of your own."
        raise check.refuse("trace", "hold losses of slots", trace, remedy)
    _check_trace(trace, "slot_loss" if trace.task is None else "slot_predictions")
    bank_loss, alone, _ = _losses(trace, y)
    unit = "loss" if trace.task is None else "squared error"
    size = max(1, len(bank_loss) // 10) if length is None else length
    lines = {
        "best slot so far": regrets.best_slot(bank_loss, alone),
        f"best slot per {size:,} samples": regrets.best_slot_per_interval(bank_loss, alone, size),
    }
    for name, losses in (comparators or {}).items():
        remedy = "Give what kb.regret.comparator_loss returned, one column each."
        values = check.floats("comparators", losses, remedy)
        if values.shape != bank_loss.shape:
            rule = f"hold {bank_loss.shape} losses for {name!r}"
            raise check.refuse("comparators", rule, values.shape, remedy)
        lines[str(name)] = np.cumsum(bank_loss - values)
    colours = (GREEN, BLUE, RED, ORANGE, PURPLE, SKY)
    with canvas(ax, COLUMN, 2.6) as axes:
        axes.axhline(0, color=GREY, lw=0.8, zorder=1)
        for index, (name, values) in enumerate(lines.items()):
            x = line_indices(values)
            above = 5 - min(index, 3)  # dashes above a line that may be the same
            style: Style = {"color": colours[index % 6], "ls": ("--", "-", ":", "-.")[index % 4]}
            axes.plot(x, values[x], lw=1.4, zorder=above, label=plain(name), **style)
        axes.set(xlabel="sample", ylabel=f"regret ({unit})", xlim=(0, max(len(bank_loss) - 1, 1)))
        axes.legend(loc="upper left")
    return figure_of(axes)


Panel = tuple[float, Callable[..., object], tuple[object, ...]]
"""Height, the function that draws it, and its arguments."""


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
    >>> [axes.get_ylabel() for axes in figure.axes[:3]]
    ['target', 'cumulative squared error', 'slot']
    """
    panels = _panels(_check_trace(trace), y)
    heights = [height for height, *_ in panels]
    with need_matplotlib().rc_context(SMALL):
        figure, all_axes = new_figure(
            PAGE,
            sum(heights) + 0.3,
            rows=len(panels),
            sharex=True,
            height_ratios=heights,
            squeeze=False,
        )
        column = all_axes[:, 0]
        for axes, (_, draw, arguments) in zip(column, panels, strict=True):
            fix_tick_style(axes)
            draw(*arguments, ax=axes)
            if axes is not column[-1]:
                axes.set_xlabel("")
        fix_tick_style(*(axes for axes in figure.axes if axes not in column))
    return figure


def _panels(trace: Trace, y: object) -> list[Panel]:
    """Predictions, costs or losses, and weights, as far as the trace holds them."""
    fields, labels = trace.fields, _are_labels(trace)
    panels: list[Panel] = []
    if ("probabilities" if labels else "predictions") in fields and not (labels and y is None):
        panels.append((2.0, predictions, (trace, y)))
    if "cost" in fields and "slot_cost" in fields:
        panels.append((2.0, cumulative_cost, (trace,)))
    elif "loss" in fields:
        panels.append((2.0, cumulative_loss, (trace,)))
    elif trace.task is not None and y is not None and "predictions" in fields:
        panels.append((2.0, cumulative_loss, (trace, y)))
    if "weights" in fields:
        count = trace.weights.shape[1]
        panels.append((2.0 if count > NAMED else max(1.6, 0.11 * count), weights, (trace,)))
    if not panels:
        remedy = 'Run with record="all", or with one of these names in the list.'
        rule = "hold 'predictions', 'cost' and 'slot_cost', 'loss' or 'weights'"
        raise check.refuse("trace", rule, list(fields), remedy)
    return panels
