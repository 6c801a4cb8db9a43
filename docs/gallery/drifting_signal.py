"""Which kernel? A slow wave becomes a quick one, and the weights follow."""

import argparse
from pathlib import Path

import numpy as np

import kernelbank as kb

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path(__file__).parent)
out = parser.parse_args().out

CHANGE = 400
x = np.arange(800.0)
turns = np.cumsum(np.where(x < CHANGE, 1 / 80, 1 / 12))  # periods of 80, then of 12 samples
y = np.sin(2 * np.pi * turns) + 0.1 * np.random.default_rng(0).normal(size=800)

kernels = kb.gaussian_grid(0.5, 64, 15)
bank = kb.KernelBank(
    kernels,
    kb.learners.KRLSTracker(budget=40, forgetting=0.98, noise=0.01),
    kb.combiners.Stacking(discount=0.97),
    window=1,
)
trace = bank.run(x, y)

widths = np.array([kernel.width for kernel in kernels])
typical = 2 ** (trace.weights @ np.log2(widths))
moved = int(np.argmax(typical[CHANGE:] < 6))
before, after = typical[CHANGE - 100 : CHANGE].mean(), typical[-100:].mean()
print(f"typical width: {before:.1f} before the change, {after:.1f} at the end")
print(f"below 6 for the first time {moved} samples after the change")
error, alone = trace.loss[50:].mean(), trace.slot_loss[50:].mean(axis=0)
print(f"mean squared error of the bank {error:.3f}")
print(f"of the best single width, {widths[alone.argmin()]:g}: {alone.min():.3f}")


@kb.plots.styled
def draw():
    figure, (above, below) = kb.plots.new_figure(
        kb.plots.PAGE, 4.6, rows=2, sharex=True, height_ratios=[1, 1.3]
    )
    kb.plots.predictions(trace, y, ax=above)
    above.set(xlabel="", ylabel="signal", ylim=(-2, 2))
    kb.plots.weights(trace, ax=below)
    below.set_yticks(range(0, 15, 2), [f"{width:g}" for width in widths[::2]])
    below.set(ylabel="width of the kernel", xlabel="sample", xlim=(0, 799))
    for axes in (above, below):
        axes.axvline(CHANGE, color=kb.plots.RED, lw=1.2, ls="--")
    return figure


kb.plots.save(draw(), out, "drifting_signal", ["png"], dpi=125, palette=True)
