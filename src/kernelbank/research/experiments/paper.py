"""The paper's experiment: an AR(1) signal, twenty Gaussian kernels, the scheme against OMKR.

Settings as printed: squared loss, widths linear in [0.1, 10], window 10, budget 100, learning rate
0.05, regularisation 0.01, y_n = 0.5488135 y_{n-1} + u_n with u ~ N(0, 0.71519837), x_n = n.

The paper fixes neither the number of samples nor whether 0.71519837 is a variance or a standard
deviation, and the comparison with OMKR depends on both (`paper_verdict`).

Reference: Ruiz-Moreno and Beferull-Lozano, An online multiple kernel parallelizable learning
scheme, IEEE Signal Processing Letters 31, 2024 (arXiv:2308.10101).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...bank.bank import KernelBank
from ...bank.trace import Trace
from ...combiners import OMKR, Combiner, Simplex
from ...kernels.dictionary import gaussian_grid
from ...learners import Norma
from ...utils.validation import Floats
from ..datasets import ar1
from ..datasets.synthetic import autoregressive

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


def stream(seed: int, samples: int, noise: str = "variance") -> tuple[Floats, Floats]:
    """Inputs 1, 2, ... and the AR(1) targets.

    `noise` says whether 0.71519837 is the variance of u, as the notation N(mean, variance) says,
    or its standard deviation.
    """
    return ar1(seed, samples, noise)


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
    """Run one seed."""
    return run_signal(seed, *stream(seed, samples, noise))


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
        own = bank(COMBINERS[name])
        own.run(run.x[: step - 1], run.y[: step - 1], record=())
        curves[name] = own.predict(grid)
    slots = own.predict_slots(grid)
    costs = run.slot_cumulative_cost[step - 1]  # the cost of this estimate included
    best, worst = int(np.argmin(costs)), int(np.argmax(costs))
    return Estimates(step, grid, curves, best, worst, slots[:, best], slots[:, worst])


def widths() -> list[float]:
    """The widths of the dictionary, in the order of the slots."""
    return [kernel.width for kernel in bank(Simplex()).dictionary]  # type: ignore[attr-defined]
