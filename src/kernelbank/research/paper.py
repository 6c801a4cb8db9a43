"""The paper's experiment: an AR(1) signal, twenty Gaussian kernels, the scheme against OMKR.

Settings as printed: squared loss, widths linear in [0.1, 10], window 10, budget 100, learning rate
0.05, regularisation 0.01, y_n = 0.5488135 y_{n-1} + u_n with u ~ N(0, 0.71519837), x_n = n.

The paper fixes neither the number of samples nor whether 0.71519837 is a variance or a standard
deviation, and the comparison with OMKR depends on both (`paper_verdict`).

Reference: Ruiz-Moreno and Beferull-Lozano, An online multiple kernel parallelizable learning
scheme, IEEE Signal Processing Letters 31, 2024 (arXiv:2308.10101).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..bank.bank import KernelBank
from ..bank.trace import Trace
from ..combiners import OMKR, Combiner, Simplex
from ..kernels.elementary import gaussian_grid
from ..learners import Norma
from ..utils.validation import Floats
from . import plots
from .datasets import ar1, autoregressive

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WINDOW = 10
SHOWN_STEP = 42
"""The paper shows the 42nd estimate."""

READINGS = ("variance", "std")
"""What 0.71519837 may be of the noise u: its variance or its standard deviation."""

SCHEME, EXACT, PRINTED = "scheme", "OMKR", "OMKR (printed gradient)"
COMBINERS: dict[str, Combiner] = {
    SCHEME: Simplex(),
    EXACT: OMKR(gradient="exact"),
    PRINTED: OMKR(gradient="printed"),
}


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


def bank(combiner: Combiner) -> KernelBank:
    """A bank in the paper's setting."""
    return KernelBank(
        dictionary=gaussian_grid(0.1, 10, 20, spacing="linear"),
        learner=Norma(learning_rate=0.05, budget=100),
        combiner=combiner,
        loss="squared",
        window=WINDOW,
        regularization=0.01,
    )


@dataclass(frozen=True)
class PaperRun:
    """One seed, run by the scheme, by OMKR in both forms, and by every NORMA alone."""

    seed: int
    x: Floats
    y: Floats
    cumulative_cost: dict[str, Floats]
    loss: dict[str, Floats]
    slot_cumulative_cost: Floats
    slot_loss: Floats

    def until(self, samples: int) -> PaperRun:
        """The run up to this sample: the same bits as a run of so many samples."""
        return PaperRun(
            self.seed,
            self.x[:samples],
            self.y[:samples],
            {name: curve[:samples] for name, curve in self.cumulative_cost.items()},
            {name: losses[:samples] for name, losses in self.loss.items()},
            self.slot_cumulative_cost[:samples],
            self.slot_loss[:samples],
        )

    @property
    def best_by_cost(self) -> int:
        return int(np.argmin(self.slot_cumulative_cost[-1]))

    @property
    def worst_by_cost(self) -> int:
        return int(np.argmax(self.slot_cumulative_cost[-1]))

    @property
    def best_by_loss(self) -> int:
        return int(np.argmin(self.slot_loss.sum(axis=0)))

    def final_cost(self, name: str) -> float:
        return float(self.cumulative_cost[name][-1])

    def mean_loss(self, name: str) -> float:
        """Mean one-step-ahead squared error."""
        return float(self.loss[name].mean())

    def slot_mean_loss(self, slot: int) -> float:
        return float(self.slot_loss[:, slot].mean())

    def overtakes(self, name: str) -> int | None:
        """The step from which on the cost stays below the best NORMA's so far, if any."""
        ahead = self.cumulative_cost[name] < self.slot_cumulative_cost.min(axis=1)
        if not ahead[-1]:
            return None
        behind = np.flatnonzero(~ahead)
        return int(behind[-1]) + 2 if behind.size else 1


def run_seed(seed: int, samples: int, noise: str = "variance") -> PaperRun:
    """Run one seed; `noise` is the reading of 0.71519837, see `ar1`."""
    return run_signal(seed, *ar1(seed, samples, noise))


def run_signal(seed: int, x: Floats, y: Floats) -> PaperRun:
    """Run a signal; `seed` only names it."""
    traces: dict[str, Trace] = {}
    for name, combiner in COMBINERS.items():
        fields = ["cumulative_cost", "loss"]
        if name == SCHEME:  # the slots do not depend on the combiner: recorded once
            fields += ["slot_cost", "slot_loss"]
        traces[name] = bank(combiner).run(x, y, record=fields)
    return PaperRun(
        seed,
        x,
        y,
        {name: trace.cumulative_cost for name, trace in traces.items()},
        {name: trace.loss for name, trace in traces.items()},
        np.cumsum(traces[SCHEME].slot_cost, axis=0),
        traces[SCHEME].slot_loss,
    )


def run_seeds(seeds: int, samples: int, noise: str = "variance") -> Iterator[PaperRun]:
    """Run seeds 0, 1, ..., one after the other."""
    for seed in range(seeds):
        yield run_seed(seed, samples, noise)


@dataclass(frozen=True)
class Estimates:
    """The estimates at one step, on a fine grid."""

    step: int
    grid: Floats
    curves: dict[str, Floats]
    best: int
    worst: int
    best_curve: Floats
    worst_curve: Floats


def estimates_at(run: PaperRun, step: int = SHOWN_STEP) -> Estimates:
    """The estimates at `step`, made from the samples before it."""
    step = min(step, len(run.x))
    grid = np.linspace(0.0, run.x[step - 1] + 8, 1601)
    curves: dict[str, Floats] = {}
    for name in (SCHEME, EXACT):
        weighted = bank(COMBINERS[name])
        weighted.run(run.x[: step - 1], run.y[: step - 1], record=())
        curves[name] = weighted.predict(grid)
    slots = weighted.predict_slots(grid)
    costs = run.slot_cumulative_cost[step - 1]  # the cost of this estimate included
    best, worst = int(np.argmin(costs)), int(np.argmax(costs))
    return Estimates(step, grid, curves, best, worst, slots[:, best], slots[:, worst])


def widths() -> list[float]:
    """The widths of the dictionary, in the order of the slots."""
    return [kernel.width for kernel in bank(Simplex()).dictionary]  # type: ignore[attr-defined]


LENGTHS = (300, 500, 1000, 2000, 5000)
"""Numbers of samples: the paper does not say how many it ran."""

BEST = "best NORMA"
RIVALS = (EXACT, PRINTED, BEST)


@dataclass(frozen=True)
class Standing:
    """The scheme beside one rival after some samples, over all seeds."""

    samples: int
    rival: str
    below: int
    """On how many seeds the scheme's cumulative cost is lower."""
    margin: float
    """The mean over the seeds of 1 - the scheme's cost / the rival's."""


def standings(runs: Sequence[PaperRun], lengths: Sequence[int]) -> list[Standing]:
    """The scheme beside every rival, after each of these numbers of samples."""
    rows = []
    for samples in lengths:
        scheme = np.array([run.cumulative_cost[SCHEME][samples - 1] for run in runs])
        for rival in RIVALS:
            cost = np.array([_cost(run, rival, samples) for run in runs])
            margin = float(np.mean(1 - scheme / cost))
            rows.append(Standing(samples, rival, int(np.sum(scheme < cost)), margin))
    return rows


def _cost(run: PaperRun, rival: str, samples: int) -> float:
    """The rival's cumulative cost; the best NORMA is the one that is best up to this sample."""
    if rival == BEST:
        return float(run.slot_cumulative_cost[samples - 1].min())
    return float(run.cumulative_cost[rival][samples - 1])


@dataclass(frozen=True)
class SeedRow:
    """One row of the table: a quantity of every seed; None where it has no value."""

    name: str
    values: tuple[float | None, ...]
    digits: int = 1

    def cells(self) -> tuple[str, ...]:
        """Name, seed 0, mean, least and most; `never` where a seed has no value."""
        values = [value for value in self.values if value is not None]
        figures = [self.values[0]]
        if values:
            figures += [float(np.mean(values)), min(values), max(values)]
        texts = ["never" if value is None else f"{value:.{self.digits}f}" for value in figures]
        if not values:
            return self.name, *texts, "never", "", ""
        never = len(self.values) - len(values)
        texts[1] += f" ({never} never)" if never else ""
        return self.name, *texts


def table(runs: Sequence[PaperRun]) -> list[tuple[str, list[SeedRow]]]:
    """The quantities of all seeds, in three sections."""

    def row(name: str, of: Callable[[PaperRun], float | None], digits: int = 1) -> SeedRow:
        return SeedRow(name, tuple(of(run) for run in runs), digits)

    cost = [SeedRow(name, tuple(run.final_cost(name) for run in runs)) for name in COMBINERS]
    cost.append(row("best NORMA", lambda run: float(run.slot_cumulative_cost[-1].min())))
    cost.append(row("worst NORMA", lambda run: float(run.slot_cumulative_cost[-1].max())))
    steps = [SeedRow(name, tuple(run.overtakes(name) for run in runs), 0) for name in COMBINERS]
    loss = [SeedRow(name, tuple(run.mean_loss(name) for run in runs), 4) for name in COMBINERS]
    loss += [
        row("NORMA best by cost", lambda run: run.slot_mean_loss(run.best_by_cost), 4),
        row("NORMA best by this error", lambda run: run.slot_mean_loss(run.best_by_loss), 4),
        row("NORMA worst by cost", lambda run: run.slot_mean_loss(run.worst_by_cost), 4),
    ]
    return [
        ("cumulative cost at the end", cost),
        ("step from which on it stays below the best NORMA", steps),
        ("mean squared error one step ahead, on unseen samples", loss),
    ]


@dataclass(frozen=True)
class Claim:
    """A statement and the seeds on which it held."""

    statement: str
    held: tuple[int, ...]
    failed: tuple[int, ...]

    def text(self) -> str:
        """The statement, its count, and the seeds on which it held or failed, if they are fewer."""
        total = number_of_seeds(len(self.held) + len(self.failed))
        if not self.held or not self.failed:
            return f"{self.statement}: held on {'all' if self.held else 'none'} of {total}."
        fewer = min(self.held, self.failed, key=len)
        seeds = f"seed{'s' * (len(fewer) > 1)} {', '.join(map(str, fewer))}"
        word = "only" if fewer is self.held else "not on"
        return f"{self.statement}: held on {len(self.held)} of {total}, {word} {seeds}."


def number_of_seeds(count: int) -> str:
    """Such as "1 seed" or "20 seeds"."""
    return f"{count} seed" + ("" if count == 1 else "s")


def claims(runs: Sequence[PaperRun]) -> tuple[list[Claim], list[Claim]]:
    """What the paper claims, and what it does not say."""

    def claim(statement: str, holds: Callable[[PaperRun], bool]) -> Claim:
        results = [(run.seed, holds(run)) for run in runs]
        held = tuple(seed for seed, held in results if held)
        return Claim(statement, held, tuple(seed for seed, held in results if not held))

    def sooner(run: PaperRun) -> bool:
        step, rival_step = run.overtakes(SCHEME), run.overtakes(EXACT)
        return step is not None and (rival_step is None or step < rival_step)

    def grown(run: PaperRun, name: str) -> float:
        """The cost of the second half."""
        return run.final_cost(name) - float(run.cumulative_cost[name][len(run.x) // 2 - 1])

    def below(of: Callable[[PaperRun], float]) -> Callable[[PaperRun], bool]:
        return lambda run: run.mean_loss(SCHEME) < of(run)

    of_paper = [
        claim(
            "The scheme's cost grows more slowly than OMKR's over the second half",
            lambda run: grown(run, SCHEME) < grown(run, EXACT),
        ),
        claim("The scheme overtakes the best NORMA for good sooner than OMKR does", sooner),
    ]
    ahead = "One step ahead, the scheme beats"
    unsaid = [
        claim(
            f"{ahead} the NORMA that is best by cost",
            below(lambda run: run.slot_mean_loss(run.best_by_cost)),
        ),
        claim(
            f"{ahead} the NORMA that is best by that error in hindsight",
            below(lambda run: run.slot_mean_loss(run.best_by_loss)),
        ),
        claim(f"{ahead} OMKR", below(lambda run: run.mean_loss(EXACT))),
    ]
    return of_paper, unsaid


# --- the paper's two figures ----------------------------------------------------------------------


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
