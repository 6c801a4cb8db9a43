"""A kernel of one's own, in five lines: it knows that the order of five sensors says nothing."""

import argparse
from pathlib import Path

import numpy as np

import kernelbank as kb

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path(__file__).parent)
out = parser.parse_args().out


def unordered(X, Z):
    X, Z = np.sort(X, axis=1), np.sort(Z, axis=1)
    return np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2) / 8)


own = kb.kernels.Custom(unordered, name="unordered")
kb.checks.check_kernel(own)  # symmetric, positive semi-definite, pure: silent if all is well

random = np.random.default_rng(0)
X = random.normal(size=(800, 5))
y = X.max(axis=1) - X.min(axis=1) + 0.1 * random.normal(size=800)  # how far they are apart

usual = [kb.kernels.Gaussian(width) for width in (0.5, 1.0, 2.0, 4.0, 8.0)]
learner = kb.learners.KRLSTracker(budget=100, forgetting=1.0, noise=0.01)
traces, banks = {}, {}
for name, kernels in {"five Gaussians": usual, "and our own": [*usual, own]}.items():
    banks[name] = kb.KernelBank(kernels, learner, kb.combiners.Stacking(), window=1)
    traces[name] = banks[name].run(X, y)
    print(f"{name}: mean squared error of the last 400 {traces[name].loss[400:].mean():.3f}")
print(f"weight of our own at the end: {banks['and our own'].weights[-1]:.2f}")


@kb.plots.styled
def draw():
    figure, (left, right) = kb.plots.new_figure(kb.plots.PAGE * 1.25, 3.3, 2, width_ratios=[1.2, 1])
    styles = {"five Gaussians": (kb.plots.RED, "--"), "and our own": (kb.plots.BLUE, "-")}
    for name, trace in traces.items():
        colour, dash = styles[name]
        mean = np.convolve(trace.loss, np.ones(40) / 40, mode="valid")
        left.plot(np.arange(39, 800), mean, color=colour, ls=dash, label=name)
    left.axhline(0.01, color=kb.plots.GREY, lw=1, ls=":", label="the noise")
    left.set(yscale="log", xlabel="sample", ylabel="squared error, mean of 40", xlim=(0, 800))
    left.legend()
    kb.plots.weights(traces["and our own"], ax=right)
    right.set_yticks(range(6), [*(f"width {kernel.width:g}" for kernel in usual), "our own"])
    return figure


kb.plots.save(draw(), out, "own_kernel", ["png"], dpi=100, palette=True)
