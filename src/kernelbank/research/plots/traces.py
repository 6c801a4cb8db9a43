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
    Style,
    are_labels,
    canvas,
    check_is_trace,
    check_trace,
    draw_weights,
    figure_of,
    fix_tick_style,
    interval_band,
    interval_means,
    labels,
    line_indices,
    new_figure,
    numbers,
    plain,
    small_style,
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
    check_trace(trace, "cost", "slot_cost")
    with canvas(ax, COLUMN, 2.6) as axes:
        _sums(axes, trace.cost, trace.slot_cost, trace.names)  # type: ignore[union-attr]
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
    losses, alone, label = losses_of(trace, y)
    with canvas(ax, COLUMN, 2.6) as axes:
        _sums(axes, losses, alone, trace.names)
        axes.set_ylabel(label)
    return figure_of(axes)


def losses_of(trace: Trace, y: object) -> tuple[Floats, Floats | None, str]:
    """The losses of the bank, of the slots if they are known, and the label of the axis."""
    check_trace(trace)
    if trace.task is None:
        check_trace(trace, "loss")
        alone = trace.slot_loss if "slot_loss" in trace.fields else None
        return trace.loss, alone, "cumulative loss, one step ahead"
    check_trace(trace, "predictions")
    if y is None:
        remedy = "The trace of an AutoBank has no losses: give the targets it was run on."
        raise check.refuse("y", "be given", y, remedy)
    if are_labels(trace):
        pairs = zip(trace.predictions.tolist(), labels(y, trace), strict=True)
        # Before any label is known there is no prediction, and so no loss; likewise below, and
        # where one of several targets is missing.
        wrong = np.array([one is not None and one != true for one, true in pairs], dtype=float)
        return wrong, None, "wrong labels so far"
    target = numbers(y, trace)
    alone = None
    unknown = np.isnan(trace.predictions) | np.isnan(target)
    if "slot_predictions" in trace.fields:
        alone = np.where(unknown[:, None], 0.0, (trace.slot_predictions - target[:, None]) ** 2)
    squares = np.where(unknown, 0.0, (trace.predictions - target) ** 2)
    return squares, alone, "cumulative squared error"


def _sums(axes: Axes, bank: Floats, slots: Floats | None, names: tuple[str, ...]) -> None:
    """Running sums of the bank, and of the slots behind it."""
    from matplotlib.collections import LineCollection

    total_of_bank = np.cumsum(bank)
    x = line_indices(total_of_bank)
    axes.plot(x, total_of_bank[x], color=BLUE, lw=1.8, zorder=4, label="the bank")
    top = total_of_bank[-1]
    if slots is not None:
        lines = []
        last = np.empty(slots.shape[1])
        for slot in range(slots.shape[1]):  # one at a time: all of them may be gigabytes
            with np.errstate(over="ignore", invalid="ignore"):
                total = np.cumsum(slots[:, slot])
            last[slot] = total[-1] if np.isfinite(total[-1]) else np.inf
            indices = line_indices(total, 800)
            lines.append(
                np.column_stack([indices, np.where(np.isfinite(total), total, np.nan)[indices]])
            )
        best = int(np.argmin(last))
        usual = np.median(last[np.isfinite(last)]) if np.isfinite(last).any() else top
        limit = 4 * max(usual, top)
        beyond = int((last > limit).sum())
        top = max(top, *(last[last <= limit])) if (last <= limit).any() else top
        label = "every slot alone" + (f" ({beyond} of {len(last)} go beyond)" if beyond else "")
        grey = LineCollection(
            lines,
            colors=GREY,
            linewidths=0.6 if len(lines) <= VECTOR_LINES else 0.2,
            zorder=1,
            label=label,
            rasterized=len(lines) > VECTOR_LINES,
        )
        axes.add_collection(grey)
        if np.isfinite(last[best]):
            style: Style = {"color": GREEN, "lw": 1.2, "ls": "--", "zorder": 3}
            axes.plot(*lines[best].T, label=f"best slot: {plain(names[best])}", **style)
    axes.set(xlabel="sample", xlim=(0, max(len(total_of_bank) - 1, 1)))
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
    check_trace(trace, "weights")
    count = trace.weights.shape[1]
    together = -(-count // ROWS)
    image = _image(trace.weights, together)
    with canvas(ax, PAGE, 3.2) as axes:
        length = len(trace) / image.shape[1]
        label = "weight" if length == 1 else f"weight (means over {length:.3g} samples)"
        extent = (-0.5, len(trace) - 0.5, together * len(image) - 0.5, -0.5)
        draw_weights(axes, image, _darkest(image), label, 30, extent=extent)
        axes.set_ylim(count - 0.5, -0.5)  # the last row of the image may stand for fewer slots
        axes.set_xlabel("sample")
        if count <= NAMED:
            axes.set_yticks(range(count), [plain(one[:60]) for one in trace.names])
            if count > 16:  # names must not overlap
                axes.tick_params(axis="y", labelsize=max(4.5, 8 - count / 10))
        else:
            axes.set_ylabel("slot" if together == 1 else f"slot (the largest of each {together})")
    return figure_of(axes)


def _image(rows: Floats, together: int) -> Floats:
    """(n, P) as an image with one row per slot, or per `together` slots."""
    image: Floats = interval_means(rows).T
    if together == 1:
        return image
    begin = np.arange(0, len(image), together)
    low, high = (end.reduceat(image, begin, axis=0) for end in (np.minimum, np.maximum))
    return np.where(-low > high, low, high)


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
    with canvas(ax, COLUMN, 2.6) as axes:
        if are_labels(trace):
            _probability_of_truth(axes, trace, y)
        else:
            _numbers(axes, trace, y)
        axes.set(xlabel="sample", xlim=(0, max(len(trace) - 1, 1)))
        # Above the axes, where it hides nothing.
        position: Style = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
        axes.legend(ncols=4, handlelength=1.4, columnspacing=1.2, **position)
    return figure_of(axes)


def _numbers(axes: Axes, trace: Trace, y: object) -> None:
    check_trace(trace, "predictions")
    predicted = trace.predictions
    if y is not None:
        target = numbers(y, trace)
        x = line_indices(target)
        style: Style = {"color": INK, "ls": "none", "marker": "o", "ms": 2.2, "mew": 0.0}
        if len(target) > DOTS:
            style = {"color": GREY, "lw": 0.8}
        axes.plot(x, target[x], label="target", zorder=2, **style)
        axes.set_ylabel("target")
    x = line_indices(predicted)
    width = 1.3 if len(predicted) <= DOTS else 0.7
    axes.plot(x, predicted[x], color=BLUE, lw=width, label="prediction", zorder=3)
    shown = [predicted] if y is None else [predicted, target]
    if "lower" in trace.fields and "upper" in trace.fields:
        x, low, high = interval_band(trace.lower, trace.upper)  # type: ignore[union-attr]
        axes.fill_between(x, low, high, color=BLUE, alpha=0.22, lw=0, label="interval", zorder=1)
        shown += [trace.lower, trace.upper]  # type: ignore[union-attr]
    # The first predictions know nothing, and their intervals may be far wider than all later ones.
    settled = slice(min(10, len(predicted) // 4), None)
    values = np.concatenate([column[settled] for column in shown])
    values = values[np.isfinite(values)]
    if len(values) and values.max() > values.min():
        low, high = values.min(), values.max()
        axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))


def _probability_of_truth(axes: Axes, trace: Trace, y: object) -> None:
    """One dot per sample: the probability of its true label; and the running mean."""
    check_trace(trace, "probabilities")
    if y is None:
        raise check.refuse("y", "be given", y, "Give the labels that the bank was run on.")
    probability = np.nan_to_num(trace.probabilities, nan=0.0)  # before any class is known
    classes, truth = trace.classes, labels(y, trace)
    indices = {label: index for index, label in enumerate(classes)}
    true_class = np.array([indices.get(label, -1) for label in truth])
    if (true_class < 0).any():
        unknown = truth[int(np.flatnonzero(true_class < 0)[0])]
        remedy = "Give the labels that the bank was run on."
        raise check.refuse("y", f"hold labels from {list(classes)}", unknown, remedy)
    height = probability[np.arange(len(true_class)), true_class]
    for index, label in enumerate(classes):
        colour, marker = CLASS_COLOURS[index % 6], MARKERS[index % len(MARKERS)]
        x = np.flatnonzero(true_class == index)
        x = x[line_indices(height[x])]
        style: Style = {"ls": "none", "marker": marker, "ms": 2.6, "mew": 0.0, "alpha": 0.75}
        axes.plot(x, height[x], color=colour, label=plain(label), rasterized=len(x) > 999, **style)
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
    check_trace(trace)
    if not are_labels(trace):
        check_trace(trace, "slot_loss" if trace.task is None else "slot_predictions")
    bank_loss, alone, _ = losses_of(trace, y)
    if alone is None:
        remedy = "A trace of labels holds no losses of slots; kb.regret takes arrays of your own."
        raise check.refuse("trace", "hold losses of slots", trace, remedy)
    unit = "loss" if trace.task is None else "squared error"
    remedy = "Give how many samples an interval has."
    size = max(1, len(bank_loss) // 10)
    if length is not None:
        size = check.count("length", length, "regret", remedy)
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
            style = ("--", "-", ":", "-.")[index % 4]
            colour = colours[index % len(colours)]
            above = 5 - min(index, 3)  # dashes above a line that may be the same
            axes.plot(x, values[x], color=colour, ls=style, lw=1.4, zorder=above, label=plain(name))
        axes.set(xlabel="sample", ylabel=f"regret ({unit})", xlim=(0, max(len(bank_loss) - 1, 1)))
        axes.legend(loc="upper left")
    return figure_of(axes)


MOST_TARGETS = 4
"""The most targets with a panel each."""

Panel = tuple[float, Callable[..., object], tuple[object, ...]]
"""Height, the function that draws it, and its arguments."""


def trace(trace: Trace, y: object = None) -> Figure:
    """A trace in panels, one below the other, for the fields that it holds.

    Predictions (see `predictions`), then the sum of costs or losses (see `cumulative_cost` and
    `cumulative_loss`), then the weights (see `weights`). With several targets, up to four, there is
    a panel of predictions for each; `trace.of_output(0)` has all panels of one.

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
    check_is_trace(trace)
    panels = _panels(trace, y) if trace.outputs == 1 else _target_panels(trace, y)
    heights = [height for height, *_ in panels]
    with small_style():
        figure, all_axes = new_figure(
            PAGE,
            sum(heights) + 0.3,
            rows=len(panels),
            sharex=True,
            height_ratios=heights,
            squeeze=False,
        )
        for axes, (_, draw, arguments) in zip(all_axes[:, 0], panels, strict=True):
            fix_tick_style(axes)
            draw(*arguments, ax=axes)
            if axes is not all_axes[-1, 0]:
                axes.set_xlabel("")
        for axes, name in zip(all_axes[:, 0], trace.target_names, strict=False):
            axes.set_ylabel(plain(name))
        fix_tick_style(*(one for one in figure.axes if one not in all_axes))
    return figure


def _target_panels(trace: Trace, y: object) -> list[Panel]:
    """The predictions of each of several targets."""
    if trace.outputs > MOST_TARGETS:
        remedy = "Draw one of them, such as kb.plots.trace(trace.of_output(0), y[:, 0])."
        rule = f"have at most {MOST_TARGETS} outputs"
        raise check.refuse("trace", rule, f"{trace.outputs} outputs", remedy)
    targets: list[object] = [None] * trace.outputs
    if y is not None:
        remedy = "Give the targets that the bank was run on."
        array = check.floats("y", y, remedy)
        if array.shape != (len(trace), trace.outputs):
            rule = f"have the shape ({len(trace)}, {trace.outputs})"
            raise check.refuse("y", rule, array.shape, remedy)
        targets = list(array.T)
    each = [trace.of_output(k) for k in range(trace.outputs)]
    check_trace(each[0], "predictions")
    return [(2.0, predictions, pair) for pair in zip(each, targets, strict=True)]


def _panels(trace: Trace, y: object) -> list[Panel]:
    """Predictions, costs or losses, and weights, as far as the trace holds them."""
    check_trace(trace)
    held = trace.fields
    panels: list[Panel] = []
    if ("probabilities" if are_labels(trace) else "predictions") in held and not (
        are_labels(trace) and y is None
    ):
        panels.append((2.0, predictions, (trace, y)))
    if trace.task is None:
        if "cost" in held and "slot_cost" in held:
            panels.append((2.0, cumulative_cost, (trace,)))
        elif "loss" in held:
            panels.append((2.0, cumulative_loss, (trace,)))
    elif y is not None and "predictions" in held:
        panels.append((2.0, cumulative_loss, (trace, y)))
    if "weights" in held:
        count = trace.weights.shape[1]
        panels.append((2.0 if count > NAMED else max(1.6, 0.11 * count), weights, (trace,)))
    if not panels:
        remedy = 'Run with record="all", or with one of these names in the list.'
        rule = "hold 'predictions', 'cost' and 'slot_cost', 'loss' or 'weights'"
        raise check.refuse("trace", rule, list(held), remedy)
    return panels
