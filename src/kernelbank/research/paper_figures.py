"""The paper's two figures and a drawing of the online setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import plots
from .paper import EXACT, PRINTED, SCHEME, WINDOW, Estimates, PaperRun, widths

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@plots.styled
def cumulative_cost(run: PaperRun) -> Figure:
    """Figure 2 of the paper, and beside it the same as distance to the best NORMA."""
    figure, (axes, lead) = plots.new_figure(10.5, 4.8, 2, width_ratios=[1.55, 1])
    n = run.x
    curves = (
        (SCHEME, "the scheme", plots.BLUE, "-", 2.6, 4),
        (EXACT, EXACT, plots.RED, "--", 1.6, 3),
        (PRINTED, PRINTED, plots.ORANGE, ":", 1.8, 3),
    )
    for name, label, colour, line, width, layer in curves:
        style = {"color": colour, "ls": line, "lw": width, "zorder": layer}
        axes.plot(n, run.cumulative_cost[name], label=label, **style)
        lead.plot(n, run.cumulative_cost[name] - run.slot_cumulative_cost.min(axis=1), **style)
    best = run.best_by_cost
    axes.plot(
        n,
        run.slot_cumulative_cost[:, best],
        color=plots.GREEN,
        lw=1.6,
        label=f"best NORMA (width {widths()[best]:.2f})",
    )
    lines = axes.plot(n, run.slot_cumulative_cost, color=plots.GREY, lw=0.8, zorder=1)
    lines[0].set_label("every NORMA alone")
    axes.plot(n, WINDOW * n, color=plots.INK, lw=1.0, ls="-.", zorder=1, label="L·n, for reference")
    axes.set(
        xlabel="step n",
        ylabel="cumulative cost",
        xlim=(0, n[-1]),
        ylim=(0, max(run.slot_cumulative_cost[-1].max(), 1.0) * 1.12),
        title=f"Cumulative cost up to step n (seed {run.seed})",
    )
    axes.legend(loc="upper left")
    lead.axhline(0, color=plots.GREEN, lw=1.6, zorder=2)
    for name, label, colour, *_ in curves[:2]:
        step = run.overtakes(name)
        if step is not None:
            dot = {"ls": "none", "marker": "o", "mfc": "white", "mec": colour, "mew": 1.6, "ms": 7}
            lead.plot(step, 0, zorder=5, label=f"{label}: ahead from step {step} on", **dot)
    lead.legend(loc="lower left")
    lead.set(
        xlabel="step n",
        xlim=(0, n[-1]),
        title="minus the best NORMA's so far",
    )
    return figure


@plots.styled
def reconstruction(run: PaperRun, estimates: Estimates) -> Figure:
    """Figure 3 of the paper: the estimates at one step."""
    figure, axes = plots.new_figure(8.0, 4.6)
    step = estimates.step
    size = widths()
    grid = estimates.grid
    axes.axvspan(max(step - WINDOW, 1) - 0.5, step - 0.5, color=plots.PALE, lw=0, zorder=0)
    scheme, exact = estimates.curves[SCHEME], estimates.curves[EXACT]
    axes.plot(grid, scheme, color=plots.BLUE, lw=2.6, zorder=4, label="the scheme")
    axes.plot(grid, exact, color=plots.RED, lw=1.4, ls="--", zorder=3, label=EXACT)
    norma = (
        ("best", estimates.best, estimates.best_curve, plots.GREEN),
        ("worst", estimates.worst, estimates.worst_curve, plots.PURPLE),
    )
    for word, slot, curve, colour in norma:
        label = f"{word} NORMA so far (width {size[slot]:.2f})"
        axes.plot(grid, curve, color=colour, lw=1.6, label=label)
    past = slice(0, step - 1)
    dots = {"color": plots.INK, "ls": "none", "marker": "o", "zorder": 5}
    axes.plot(run.x[past], run.y[past], ms=3.5, label="samples so far", **dots)
    axes.plot(run.x[step - 1], run.y[step - 1], mfc="white", ms=6, label="the next one", **dots)
    low = min(run.y[:step].min(), estimates.worst_curve.min(), scheme.min())
    high = max(run.y[:step].max(), estimates.worst_curve.max(), scheme.max())
    axes.set(
        xlabel="x",
        ylabel="y",
        xlim=(0, grid[-1]),
        ylim=(low - 0.3, high + 1.5),
        title=f"The estimates at step {step} (seed {run.seed}; window shaded)",
    )
    axes.legend(loc="upper center", ncols=3, fontsize=9)
    return figure


@plots.styled
def online_setting() -> Figure:
    """The run of one step, on a timeline of samples."""
    figure, axes = plots.new_figure(8.0, 4.3)
    now, length = 9, 5
    x = np.arange(1, 13)
    y = np.sin(0.75 * x) * 0.55 + np.cos(2.1 * x) * 0.18 + 2.0
    fine = np.linspace(0.6, now + 0.45, 300)
    estimate = np.interp(fine, x[:now], y[:now] * 0.85 + 0.3)
    smooth = np.convolve(np.pad(estimate, 15, mode="edge"), np.ones(31) / 31, mode="valid")
    axes.axvspan(now - length + 0.5, now + 0.5, ymin=0.36, ymax=0.84, color=plots.PALE, lw=0)
    axes.plot(fine, smooth, color=plots.BLUE, lw=2.6)
    axes.plot(x[: now - 1], y[: now - 1], "o", color=plots.INK, ms=5)
    axes.plot(x[now - 1], y[now - 1], "o", color=plots.RED, ms=8)
    axes.plot(x[now:], y[now:], "o", mfc="white", mec=plots.GREY, ms=5)
    middle = {"ha": "center", "va": "center"}
    axes.text(now - length / 2 + 0.5, 1.15, "the window: the last L samples", **middle)
    axes.text(2.6, 3.2, "1  predict  f⁽ⁿ⁾ = Σ wₚ fₚ", color=plots.BLUE, **middle)
    axes.text(now, 3.2, "2  reveal sample n", color=plots.RED, **middle)
    axes.plot([now, now], [3.05, y[now - 1] + 0.12], color=plots.RED, lw=0.8)
    axes.text(11.4, 3.2, "still unknown", color=plots.GREY, **middle)
    steps = (
        ("3  charge", "the loss of f⁽ⁿ⁾ on the window\nand half its squared norm"),
        ("4  learn", "every slot alone,\nfrom the window"),
        ("5  combine", "new weights, from every\nslot's loss and norm"),
    )
    for x_text, (title, text) in zip((2.4, 6.5, 10.6), steps, strict=True):
        axes.text(x_text, 0.52, title, weight="bold", **middle)
        axes.text(x_text, 0.08, text, fontsize=9, **middle)
    for x_arrow in (4.55, 8.55):
        arrow = {"arrowstyle": "-|>", "color": plots.INK}
        axes.annotate("", (x_arrow + 0.4, 0.52), (x_arrow - 0.4, 0.52), arrowprops=arrow)
    axes.text(6.5, -0.42, "then n + 1: the new f predicts before its sample is known", **middle)
    axes.set(xlim=(0.2, 12.8), ylim=(-0.6, 3.5), title="One step")
    axes.axis("off")
    return figure
