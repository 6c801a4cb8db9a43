"""A River model as one slot of a bank, weighed against kernels and a line."""

import argparse
from pathlib import Path

import numpy as np
from river import datasets, tree

import kernelbank as kb

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path(__file__).parent)
out = parser.parse_args().out

rows = [(list(x.values()), target) for x, target in datasets.TrumpApproval()]
X, y = np.array([x for x, _ in rows]), np.array([target for _, target in rows])
learner = kb.learners.KRLSTracker(budget=50)
slots = {f"width {w:g}": kb.Slot(kb.kernels.Gaussian(w), learner) for w in (0.5, 1, 2, 4, 8)}
slots["line"] = kb.Slot(kb.kernels.Linear(1.0), kb.learners.LinearRLS(forgetting=0.99))
without = kb.AutoBank(slots=slots.values()).run(X, y, record="all")
model = kb.learners.Adapter(tree.HoeffdingAdaptiveTreeRegressor(seed=1))
slots["River's tree"] = kb.Slot(kb.kernels.NoKernel(), model)
bank = kb.AutoBank(slots=slots.values())
trace = bank.run(X, y, record="all")

START = 20  # before that, answers know next to nothing
curves = {
    "kernels and a line": np.abs(without.predictions - y),
    "River's tree alone": np.abs(trace.slot_predictions[:, -1] - y),
    "a bank of all of them": np.abs(trace.predictions - y),
}
for name, errors in curves.items():
    print(f"{name}: mean absolute error {errors[START:].mean():.3f}")
print(f"mean weight of the tree {trace.weights[START:, -1].mean():.2f}")


@kb.plots.styled
def draw():
    figure, (above, below) = kb.plots.new_figure(
        kb.plots.PAGE, 4.4, rows=2, sharex=True, height_ratios=[1.4, 1]
    )
    styles = ((kb.plots.RED, "--"), (kb.plots.GREEN, "-."), (kb.plots.BLUE, "-"))
    for (name, errors), (colour, dash) in zip(curves.items(), styles, strict=True):
        total = np.cumsum(np.where(np.arange(len(y)) < START, 0.0, errors))
        above.plot(total, color=colour, ls=dash, lw=1.6, label=name)
    above.set(ylabel="sum of absolute errors", ylim=(0, None))
    above.legend(loc="upper left")
    kb.plots.weights(trace, ax=below)
    below.set_yticks(range(len(slots)), slots)
    below.set(xlabel="day", xlim=(0, len(y) - 1))
    return figure


kb.plots.save(draw(), out, "river_model", ["png"], dpi=125, palette=True)
