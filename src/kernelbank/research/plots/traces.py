"""Plots of costs, losses and weights of every slot, sample by sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...bank.trace import Trace
from ...utils import validation as check
from ...utils.validation import Floats
from .downsample import interval_means, line_indices
from .style import BLUE, COLUMN, GREEN, GREY, INK, ORANGE, PAGE, RED, SKY, canvas, figure_of, plain
from .validation import are_labels, check_trace, labels, numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMED = 40
"""Up to this many slots have their names at the left of an image; more have numbers."""

ROWS = 250
"""The most rows of an image: beyond that, several slots share one."""

_ABOVE, _BELOW = (SKY, BLUE, "#001F33"), ("#3D1A00", RED, ORANGE)

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


def cumulative_loss(trace: Trace, y: Any = None, ax: Axes | None = None) -> Figure:
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
    own, alone, label = losses_of(trace, y)
    with canvas(ax, COLUMN, 2.6) as axes:
        _sums(axes, own, alone, trace.names)
        axes.set_ylabel(label)
    return figure_of(axes)


def losses_of(trace: Trace, y: Any) -> tuple[Floats, Floats | None, str]:
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
    own = np.where(unknown, 0.0, (trace.predictions - target) ** 2)
    return own, alone, "cumulative squared error"


def _sums(axes: Any, bank: Floats, slots: Floats | None, names: tuple[str, ...]) -> None:
    """Running sums of the bank, and of the slots behind it."""
    from matplotlib.collections import LineCollection

    own = np.cumsum(bank)
    x = line_indices(own)
    axes.plot(x, own[x], color=BLUE, lw=1.8, zorder=4, label="the bank")
    top = own[-1]
    if slots is not None:
        lines = []
        last = np.empty(slots.shape[1])
        for slot in range(slots.shape[1]):  # one at a time: all of them may be gigabytes
            with np.errstate(over="ignore", invalid="ignore"):
                total = np.cumsum(slots[:, slot])
            last[slot] = total[-1] if np.isfinite(total[-1]) else np.inf
            kept = line_indices(total, 800)
            lines.append(np.column_stack([kept, np.where(np.isfinite(total), total, np.nan)[kept]]))
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
            style = {"color": GREEN, "lw": 1.2, "ls": "--", "zorder": 3}
            axes.plot(*lines[best].T, label=f"best slot: {plain(names[best])}", **style)
    axes.set(xlabel="sample", xlim=(0, max(len(own) - 1, 1)))
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
        from matplotlib.colors import LinearSegmentedColormap

        largest, signed = _darkest(image), bool((image < 0).any())
        # Darker is more, in grey and for every kind of colour vision.
        ramp = [*_BELOW, "white", *_ABOVE] if signed else ["white", *_ABOVE]
        drawn = axes.imshow(
            image,
            aspect="auto",
            interpolation="nearest",
            cmap=LinearSegmentedColormap.from_list("weights", ramp),
            vmin=-largest if signed else 0.0,
            vmax=largest,
            extent=(-0.5, len(trace) - 0.5, together * len(image) - 0.5, -0.5),
        )
        axes.set_ylim(count - 0.5, -0.5)  # the last row of the image may stand for fewer slots
        axes.set_xlabel("sample")
        if count <= NAMED:
            axes.set_yticks(range(count), [plain(one[:60]) for one in trace.names])
            if count > 16:  # names must not overlap
                axes.tick_params(axis="y", labelsize=max(4.5, 8 - count / 10))
        else:
            axes.set_ylabel("slot" if together == 1 else f"slot (the largest of each {together})")
        axes.spines[:].set_visible(True)
        sides = (bool((image < -largest).any()), bool((image > largest).any()))
        extend = ("neither", "max", "min", "both")[2 * sides[0] + sides[1]]
        bar = axes.figure.colorbar(drawn, ax=axes, pad=0.01, aspect=30, extend=extend)
        length = len(trace) / image.shape[1]
        bar.set_label("weight" if length == 1 else f"weight (means over {length:.3g} samples)")
        bar.outline.set(linewidth=0.6, edgecolor=INK)
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
