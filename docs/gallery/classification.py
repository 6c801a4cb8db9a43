"""Three spirals: labels learned one by one, and what the bank thinks of the whole plane."""

import argparse
from pathlib import Path

import numpy as np

import kernelbank as kb

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path(__file__).parent)
out = parser.parse_args().out

random = np.random.default_rng(0)
arm = random.integers(0, 3, 1500)
way = np.sqrt(random.uniform(0.02, 1, 1500))
turn = 4.2 * way + 2 * np.pi * arm / 3
X = (way * np.stack([np.cos(turn), np.sin(turn)])).T + 0.05 * random.normal(size=(1500, 2))
y = np.array(["first arm", "second arm", "third arm"])[arm]

bank = kb.AutoBank("classification", classes=sorted(set(y)))
trace = bank.run(X, y)
right = trace.predictions == y
for start in (0, 100, 500, 1000):
    end = {0: 100, 100: 500, 500: 1000, 1000: 1500}[start]
    print(f"correct predictions, labels {start + 1} to {end}: {right[start:end].mean():.1%}")


@kb.plots.styled
def draw():
    figure, (left, history) = kb.plots.new_figure(
        kb.plots.PAGE * 1.1, 3.3, 2, width_ratios=[1, 1.35]
    )
    side = np.linspace(-1.15, 1.15, 120)
    plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    colours = [kb.plots.BLUE, kb.plots.ORANGE, kb.plots.GREEN]
    shades = np.array([[int(c[k : k + 2], 16) / 255 for k in (1, 3, 5)] for c in colours])
    sure = bank.predict_at(plane) @ (0.45 * shades + 0.55)
    ends = (-1.15, 1.15, -1.15, 1.15)
    left.imshow(sure.reshape(120, 120, 3), origin="lower", extent=ends, interpolation="bilinear")
    for label, colour, marker in zip(bank.classes, colours, "os^", strict=True):
        of = y == label
        left.plot(*X[of].T, marker, ms=1.8, mew=0, color=colour)
    left.set(xlabel="input 0", ylabel="input 1", title="probabilities at the end")
    kb.plots.predictions(trace, y, ax=history)
    history.legend(loc="lower right", fontsize=8, markerscale=1.5)
    return figure


kb.plots.save(draw(), out, "classification", ["png"], dpi=115, palette=True)
