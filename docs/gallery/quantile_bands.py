"""Bands of quantiles, learned online: one bank for each level."""

import argparse
from pathlib import Path

import numpy as np

import kernelbank as kb

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path(__file__).parent)
out = parser.parse_args().out

random = np.random.default_rng(0)
x = random.uniform(0, 10, 3000)
spread = 0.2 + 0.6 * np.exp(-((x - 7) ** 2))  # noise that depends on the input, and leans upwards
y = np.sin(x) + spread * (random.gamma(2.0, 1.0, 3000) - 2)

levels = (0.05, 0.25, 0.5, 0.75, 0.95)
grid = np.linspace(0.1, 9.9, 400)
curves = {}
for level in levels:
    bank = kb.AutoBank(loss=kb.losses.Pinball(level), size="small")
    trace = bank.run(x, y)
    below = np.mean(y[500:] <= trace.predictions[500:])
    print(f"quantile {level:.2f}: {below:.3f} of the targets after the first 500 lay below")
    curves[level] = bank.predict_at(grid)[:, 0]
width = curves[0.95] - curves[0.05]
narrow, wide = width[np.abs(grid - 3) < 0.3].mean(), width[np.abs(grid - 7) < 0.3].mean()
print(f"from 0.05 to 0.95: {narrow:.1f} wide near x = 3, {wide:.1f} near x = 7")


@kb.plots.styled
def draw():
    figure, axes = kb.plots.new_figure(kb.plots.PAGE, 3.4)
    axes.plot(x, y, "o", ms=1.6, mew=0, color=kb.plots.GREY, label="samples")
    style = {"color": kb.plots.BLUE, "lw": 0}
    axes.fill_between(grid, curves[0.05], curves[0.95], alpha=0.2, label="5% to 95%", **style)
    axes.fill_between(grid, curves[0.25], curves[0.75], alpha=0.4, label="25% to 75%", **style)
    axes.plot(grid, curves[0.5], color=kb.plots.BLUE, label="median")
    axes.set(xlabel="x", ylabel="y", xlim=(0, 10))
    axes.legend(loc="upper left", markerscale=2)
    return figure


kb.plots.save(draw(), out, "quantile_bands", ["png"], dpi=125, palette=True)
