"""A thousand kernels at once: how many are needed is for the stream to say."""

import argparse
from pathlib import Path

import numpy as np

import kernelbank as kb

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path(__file__).parent)
out = parser.parse_args().out

x, y = kb.datasets.ar1(seed=0, samples=1000)
learner = kb.learners.Norma(learning_rate=0.05, budget=100)


sizes = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
costs, singles = [], []
for count in sizes:
    kernels = kb.gaussian_grid(0.1, 10, count)
    trace = kb.KernelBank(kernels, learner, window=10, engine="threads").run(x, y)
    costs.append(trace.cumulative_cost[-1])
    singles.append(trace.slot_cost.sum(axis=0).min())
    print(f"{count:4d} kernels: cost {costs[-1]:.0f}, the best of them alone {singles[-1]:.0f}")
carrying = (trace.weights > 0).sum(axis=1)
print(f"of the thousand, {np.median(carrying):.0f} have weight at a time (median)")


@kb.plots.styled
def draw():
    figure, (left, right) = kb.plots.new_figure(kb.plots.PAGE * 1.25, 3.5, 2, width_ratios=[1.9, 1])
    kb.plots.weights(trace, ax=left)
    left.set_yticks([0, 250, 500, 749, 999], [0.1, 0.32, 1, 3.2, 10])
    left.set_ylabel("width of the kernel")
    right.plot(sizes, singles, "s--", color=kb.plots.GREEN, ms=4, label="best of them alone")
    right.plot(sizes, costs, "o-", color=kb.plots.BLUE, ms=4, label="the bank")
    right.set(xscale="log", xlabel="kernels in the dictionary", ylabel="charged for 1000 samples")
    right.legend()
    return figure


kb.plots.save(draw(), out, "thousand_kernels", ["png"], dpi=100, palette=True)
