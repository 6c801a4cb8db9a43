"""The two figures of the paper: what every step cost, and the estimates of step 42."""

import argparse
from pathlib import Path

import numpy as np

import kernelbank as kb

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path(__file__).parent)
out = parser.parse_args().out

STEP = 42
kernels = kb.gaussian_grid(0.1, 10, 20, spacing="linear")
learner = kb.learners.Norma(learning_rate=0.05, budget=100)
rules = {"the scheme": kb.combiners.Simplex(), "OMKR": kb.combiners.OMKR()}
x, y = kb.datasets.ar1(seed=0, samples=1000)
banks = {n: kb.KernelBank(kernels, learner, rule, window=10) for n, rule in rules.items()}
traces = {name: bank.run(x, y) for name, bank in banks.items()}

scheme = traces["the scheme"]
alone = scheme.slot_cost.sum(axis=0)
for name, trace in traces.items():
    print(f"cumulative cost of {name}: {trace.cumulative_cost[-1]:.1f}")
print(f"of the best kernel alone, {scheme.names[alone.argmin()]}: {alone.min():.1f}")
print(f"of the worst kernel alone, {scheme.names[alone.argmax()]}: {alone.max():.1f}")


@kb.plots.styled
def draw():
    figure, (left, right) = kb.plots.new_figure(kb.plots.PAGE * 1.25, 3.6, 2)
    kb.plots.cumulative_cost(scheme, ax=left)
    style = {"color": kb.plots.RED, "lw": 1.4, "ls": ":", "zorder": 5}
    left.plot(traces["OMKR"].cumulative_cost, label="OMKR", **style)
    left.legend(loc="upper left", fontsize=8)
    young = banks["the scheme"].fresh()
    young.run(x[: STEP - 1], y[: STEP - 1])
    grid = np.linspace(0, STEP + 6, 800)
    slots = young.predict_slots(grid)
    right.axvspan(STEP - 10.5, STEP - 0.5, color=kb.plots.PALE, lw=0)
    right.plot(grid, slots[:, alone.argmax()], color=kb.plots.PURPLE, ls="-.", label="worst kernel")
    right.plot(grid, young.predict(grid), color=kb.plots.BLUE, lw=3.2, label="the bank")
    right.plot(
        grid, slots[:, alone.argmin()], color=kb.plots.ORANGE, ls="--", lw=1.4, label="best kernel"
    )
    right.plot(x[: STEP - 1], y[: STEP - 1], "o", color=kb.plots.INK, ms=3, label="samples so far")
    right.set(xlabel="x", ylabel=f"estimate at step {STEP}", xlim=(0, grid[-1]), ylim=(-2.8, 4.6))
    right.legend(ncols=2, fontsize=8, loc="upper right")
    return figure


kb.plots.save(draw(), out, "paper_figures", ["png"], dpi=100, palette=True)
