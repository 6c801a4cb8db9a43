"""The paper's experiment: an AR(1) signal, twenty Gaussian kernels, the scheme against OMKR.

Settings as printed: squared loss, widths linear in [0.1, 10], window 10, budget 100, learning rate
0.05, regularisation 0.01, y_n = 0.5488135 y_{n-1} + u_n with u ~ N(0, 0.71519837), x_n = n.

The paper fixes neither the number of samples nor whether 0.71519837 is a variance or a standard
deviation, and the comparison with OMKR depends on both.

Reference: Ruiz-Moreno and Beferull-Lozano, An online multiple kernel parallelizable learning
scheme, IEEE Signal Processing Letters 31, 2024 (arXiv:2308.10101).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..bank.bank import KernelBank
from ..combiners import OMKR, Combiner, Simplex
from ..kernels import gaussian_grid
from ..learners import Norma
from ..utils.validation import Floats
from . import plots
from .datasets import ar1, autoregressive

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WINDOW = 10
LENGTHS = (300, 500, 1000, 2000, 5000)  # numbers of samples: the paper does not say how many it ran
READINGS = ("variance", "std")
"""What 0.71519837 may be of the noise u: its variance or its standard deviation."""

SCHEME, EXACT, PRINTED = "scheme", "OMKR", "OMKR (printed gradient)"
COMBINERS: dict[str, Combiner] = {
    SCHEME: Simplex(),
    EXACT: OMKR(gradient="exact"),
    PRINTED: OMKR(gradient="printed"),
}
BEST = "best NORMA"
RIVALS = (EXACT, PRINTED, BEST)


def generator_stream(samples: int) -> tuple[Floats, Floats]:
    """The signal that the authors' public generator draws with seed 0.

    `emrumo/VARdatagenerator` on GitHub, made for earlier papers of the authors, draws the
    coefficient and the covariance of its process uniformly, then the noise. With one series, one
    lag and seed 0 they are 0.5488135 and 0.71518937: the paper's numbers, up to two digits that
    are swapped. So this may be the paper's signal; the paper does not name the generator, and two
    uniform numbers of NumPy with seed 0 are always these.
    """
    draw = np.random.RandomState(0)
    feedback, variance = draw.random_sample(2)
    innovations = draw.normal(0, np.sqrt(variance), samples)
    return np.arange(1.0, samples + 1), autoregressive(feedback, innovations)


KERNELS = gaussian_grid(0.1, 10, 20, spacing="linear")


def bank(combiner: Combiner) -> KernelBank:
    """A bank in the paper's setting."""
    learner = Norma(learning_rate=0.05, budget=100)
    return KernelBank(KERNELS, learner, combiner, "squared", WINDOW, regularization=0.01)


@dataclass(frozen=True)
class PaperRun:
    """One seed, run by the scheme, by OMKR in both forms, and by every NORMA alone.

    - cost, loss: (n,) by combiner, the cumulative cost, and the losses one step ahead
    - slot_cost, slot_loss: (n, P), the same of every NORMA
    """

    seed: int
    x: Floats
    y: Floats
    cost: dict[str, Floats]
    loss: dict[str, Floats]
    slot_cost: Floats
    slot_loss: Floats

    def until(self, samples: int) -> PaperRun:
        """The run up to this sample: the same bits as a run of that length."""
        cost, loss = (
            {name: values[:samples] for name, values in series.items()}
            for series in (self.cost, self.loss)
        )
        arrays = (self.slot_cost[:samples], self.slot_loss[:samples])
        return PaperRun(self.seed, self.x[:samples], self.y[:samples], cost, loss, *arrays)

    @property
    def best_by_cost(self) -> int:
        return int(np.argmin(self.slot_cost[-1]))

    @property
    def worst_by_cost(self) -> int:
        return int(np.argmax(self.slot_cost[-1]))

    @property
    def best_by_loss(self) -> int:
        return int(np.argmin(self.slot_loss.sum(axis=0)))

    def cost_after(self, samples: int, name: str) -> float:
        """The cumulative cost of a combiner, or of the NORMA that is best up to this sample."""
        if name == BEST:
            return float(self.slot_cost[samples - 1].min())
        return float(self.cost[name][samples - 1])

    def mean_loss(self, of: str | int) -> float:
        """Mean squared error one step ahead, of a combiner or of one NORMA."""
        losses = self.loss[of] if isinstance(of, str) else self.slot_loss[:, of]
        return float(losses.mean())

    def overtakes(self, name: str) -> float:
        """The step from which on the cost stays below the best NORMA's so far; infinite if none."""
        behind = np.flatnonzero(self.cost[name] >= self.slot_cost.min(axis=1))
        step = float(behind[-1]) + 2 if behind.size else 1.0
        return step if step <= len(self.x) else math.inf


def run_signal(seed: int, x: Floats, y: Floats) -> PaperRun:
    """Run a signal; `seed` only names it."""
    fields = ["cumulative_cost", "loss", "slot_cost", "slot_loss"]
    traces = {name: bank(rule).run(x, y, record=fields) for name, rule in COMBINERS.items()}
    return PaperRun(
        seed,
        x,
        y,
        {name: trace.cumulative_cost for name, trace in traces.items()},
        {name: trace.loss for name, trace in traces.items()},
        np.cumsum(traces[SCHEME].slot_cost, axis=0),  # slots do not depend on the combiner
        traces[SCHEME].slot_loss,
    )


def run_seeds(seeds: int, samples: int, noise: str = "variance") -> Iterator[PaperRun]:
    """Run seeds 0, 1, ...; `noise` is the reading of 0.71519837, see `ar1`."""
    for seed in range(seeds):
        yield run_signal(seed, *ar1(seed, samples, noise))


# --- what is told ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """The scheme beside one rival after some samples, over all seeds.

    - below: on how many seeds the scheme's cumulative cost is lower
    - margin: the mean over the seeds of 1 - the scheme's cost / the rival's
    """

    samples: int
    rival: str
    below: int
    margin: float


def standings(runs: Sequence[PaperRun], lengths: Sequence[int]) -> list[Standing]:
    """The scheme beside every rival, after each of these numbers of samples."""
    rows = []
    for samples in lengths:
        scheme = np.array([run.cost_after(samples, SCHEME) for run in runs])
        for rival in RIVALS:
            cost = np.array([run.cost_after(samples, rival) for run in runs])
            margin = float(np.mean(1 - scheme / cost))
            rows.append(Standing(samples, rival, int(np.sum(scheme < cost)), margin))
    return rows


Row = tuple[str, list[float]]  # the name of a quantity, and its value on each seed


def table(runs: Sequence[PaperRun]) -> list[tuple[str, int, list[Row]]]:
    """Three sections: the heading, the number of decimals, and the rows."""

    def row(name: str, of: Callable[[PaperRun], float]) -> Row:
        return name, [of(run) for run in runs]

    def rows(of: Callable[[PaperRun, str], float]) -> list[Row]:
        return [(name, [of(run, name) for run in runs]) for name in COMBINERS]

    cost = [
        *rows(lambda run, name: run.cost_after(len(run.x), name)),
        row(BEST, lambda run: run.cost_after(len(run.x), BEST)),
        row("worst NORMA", lambda run: float(run.slot_cost[-1].max())),
    ]
    loss = [
        *rows(PaperRun.mean_loss),
        row("NORMA best by cost", lambda run: run.mean_loss(run.best_by_cost)),
        row("NORMA best by this error", lambda run: run.mean_loss(run.best_by_loss)),
        row("NORMA worst by cost", lambda run: run.mean_loss(run.worst_by_cost)),
    ]
    return [
        ("cumulative cost at the end", 1, cost),
        ("step from which on it stays below the best NORMA", 0, rows(PaperRun.overtakes)),
        ("mean squared error one step ahead, on unseen samples", 4, loss),
    ]


def claims(runs: Sequence[PaperRun]) -> dict[str, int]:
    """Two claims of the paper and three that it does not make: on how many seeds each holds."""

    def growth(run: PaperRun, name: str) -> float:
        """The cost of the second half."""
        return float(run.cost[name][-1] - run.cost[name][len(run.x) // 2 - 1])

    def beats(run: PaperRun, rival: str | int) -> bool:
        return run.mean_loss(SCHEME) < run.mean_loss(rival)

    holds: dict[str, list[bool]] = {
        "its cost grows more slowly than OMKR's over the second half": [
            growth(run, SCHEME) < growth(run, EXACT) for run in runs
        ],
        "it overtakes the best NORMA for good sooner than OMKR does": [
            run.overtakes(SCHEME) < run.overtakes(EXACT) for run in runs
        ],
        "one step ahead, it beats the NORMA that is best by cost": [
            beats(run, run.best_by_cost) for run in runs
        ],
        "one step ahead, it beats the NORMA that is best by that error": [
            beats(run, run.best_by_loss) for run in runs
        ],
        "one step ahead, it beats OMKR": [beats(run, EXACT) for run in runs],
    }
    return {statement: sum(seeds) for statement, seeds in holds.items()}


# --- the paper's figure --------------------------------------------------------------------------


@plots.styled
def cumulative_cost(run: PaperRun) -> Figure:
    """Figure 2 of the paper, and next to it the same as distance to the best NORMA."""
    figure, (axes, lead) = plots.new_figure(10.5, 4.8, 2, width_ratios=[1.55, 1])
    n, best = run.x, run.best_by_cost
    styles = ((plots.BLUE, "-", 2.6), (plots.RED, "--", 1.6), (plots.ORANGE, ":", 1.8))
    for name, (colour, line, width) in zip(COMBINERS, styles, strict=True):
        style = {"color": colour, "ls": line, "lw": width, "zorder": 3}
        axes.plot(n, run.cost[name], label=name, **style)
        step = run.overtakes(name)
        label = f"below from step {step:.0f} on" if step < math.inf else None
        lead.plot(n, run.cost[name] - run.slot_cost.min(axis=1), label=label, **style)
    label = f"best NORMA (width {KERNELS[best].width:.2f})"
    axes.plot(n, run.slot_cost[:, best], color=plots.GREEN, lw=1.6, label=label)
    lines = axes.plot(n, run.slot_cost, color=plots.GREY, lw=0.8, zorder=1)
    lines[0].set_label("every NORMA alone")
    top = 1.12 * max(run.slot_cost[-1].max(), 1.0)
    title = f"Cumulative cost up to step n (seed {run.seed})"
    axes.set(xlabel="step n", ylabel="cumulative cost", ylim=(0, top), title=title)
    axes.legend(loc="upper left")
    lead.axhline(0, color=plots.GREEN, lw=1.6, zorder=2)
    lead.legend(loc="lower left")
    lead.set(xlabel="step n", title="minus the best NORMA's so far")
    for panel in (axes, lead):
        panel.set_xlim(0, n[-1])
    return figure
