"""One step ahead on the Lorenz attractor: the benchmark of the Kernel Adaptive Filtering Toolbox.

The toolbox keeps its series in a file and does not say how it was made. Its numbers are the z
component of

    dx/dt = 10 (y - x),  dy/dt = x (28 - z) - y,  dz/dt = x y - 8/3 z

from (10, 7, 35) by Euler's rule with a step of 0.01. With the terms added in the right order the
last of ten thousand steps, too, has the six digits of the file, although the system is chaotic; so
this is the same task and needs no file. (By Runge-Kutta the attractor is visibly smaller: it
reaches 45 instead of 50.)

As in the toolbox: inputs of the last six values (zeros before the first), a Gaussian kernel of
width 32, and the mean squared error of the predictions after the first thousand samples, each made
before the sample is learned, in decibels.

Reference: Van Vaerenbergh and Santamaria, A comparative study of kernel adaptive filtering
algorithms, IEEE DSP/SPE 2013.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from .. import learners
from ..bank.bank import KernelBank
from ..combiners import Uniform
from ..errors import InvalidArgument
from ..kernels import Gaussian, Kernel, Linear, TreeKernel
from ..learners import Learner
from ..utils.validation import Floats
from .datasets.synthetic import embedded, lorenz_path

START = (10.0, 7.0, 35.0)
STEP = 0.01
EMBEDDING = 6
WIDTH = 32.0
POINTS = 10_001
UNSCORED = 1_000
"""Predictions after this many samples are scored."""


@dataclass(frozen=True)
class LearnerSetup:
    """A learner's settings, the bank's regularisation and kernel, and the toolbox's figure."""

    settings: Mapping[str, float]
    regularization: float = 0.0
    published: float | None = None
    kernel: Kernel = field(default_factory=lambda: Gaussian(WIDTH))


# The toolbox's own settings where it has the method. Its first-order methods step along y - f; the
# derivative of the squared loss is twice that, so their rates are halved here. It lets KRLS and
# QKLMS grow; the budgets here are beyond what they need (31 and 246 terms). Its KLMS stops growing
# at 5000 terms; here nothing is dropped, which is a little better.
SETUPS: dict[str, tuple[LearnerSetup, ...]] = {
    "Norma": (LearnerSetup({"learning_rate": 0.05, "budget": 500}, 2e-4, 10.96),),
    "KLMS": (LearnerSetup({"learning_rate": 0.05, "budget": 10_000}, published=-3.07),),
    "KNLMS": (
        LearnerSetup(
            {"learning_rate": 0.25, "coherence": 0.95, "epsilon": 1e-6, "budget": 200},
            published=-1.32,
        ),
    ),
    "QKLMS": (
        LearnerSetup({"learning_rate": 0.3, "quantization": 2.0, "budget": 1000}, published=-10.73),
    ),
    "KRLS": (LearnerSetup({"novelty": 1e-4, "budget": 200}, published=-40.17),),
    "SlidingWindowKRLS": (LearnerSetup({"budget": 100, "ridge": 1e-6}, published=-37.85),),
    "FixedBudgetKRLS": (LearnerSetup({"budget": 100, "ridge": 1e-6}, published=-55.0),),
    "KRLSTracker": (
        LearnerSetup({"budget": 50, "noise": 1e-6}),
        LearnerSetup({"budget": 100, "noise": 1e-6}, published=-56.82),
    ),
    "POLK": (LearnerSetup({"learning_rate": 0.25, "compression": 0.01, "budget": 100}),),
    "NystromSGD": (LearnerSetup({"learning_rate": 0.25, "novelty": 1e-6}),),
    "FourierSGD": (LearnerSetup({"learning_rate": 0.25, "features": 200}),),
    "FourierRLS": (LearnerSetup({"ridge": 1e-6, "features": 200}),),
    # Methods with kernels of their own; the variance of the signal is about 75.
    "LinearRLS": (LearnerSetup({"ridge": 1e-6}, kernel=Linear(1.0)),),
    "PartitionTree": (
        LearnerSetup({"noise": 0.01, "nodes": 4095}, kernel=TreeKernel(levels=20, scale=75.0)),
    ),
}


@dataclass(frozen=True)
class LearnerResult:
    """One learner: its squared errors sample by sample, before each was learned."""

    learner: Learner
    errors: Floats
    seconds_per_sample: float
    published: float | None

    @property
    def name(self) -> str:
        return type(self.learner).__name__

    @property
    def decibels(self) -> float:
        """Mean squared error of the predictions after the first thousand samples."""
        return decibels(float(self.errors[min(UNSCORED, len(self.errors) // 2) :].mean()))


def decibels(power: float) -> float:
    """10 log10 of a mean squared error."""
    if not math.isfinite(power):
        return math.inf
    return 10 * math.log10(power) if power > 0 else -math.inf


def stream(points: int = POINTS) -> tuple[Floats, Floats]:
    """The toolbox's task: the last six values, and the next one."""
    path = lorenz_path(START, points, STEP, method="euler")
    return embedded(path[:, 2], EMBEDDING, padded=True)


def setups() -> list[tuple[Learner, LearnerSetup]]:
    """Every built-in learner that takes the squared loss, with its settings.

    A learner that is not in the list above has its own defaults.
    """
    pairs = []
    for kind in learners.standalone():
        for setup in SETUPS.get(kind.__name__, (LearnerSetup({}),)):
            learner = kind(**setup.settings)
            try:
                bank(learner, setup)
            except InvalidArgument:  # it is for labels
                continue
            pairs.append((learner, setup))
    return pairs


def bank(learner: Learner, setup: LearnerSetup) -> KernelBank:
    """One slot, so that the bank's predictions are the learner's."""
    return KernelBank(
        [setup.kernel],
        learner,
        Uniform(),
        window=1,
        regularization=setup.regularization,
    )


def run_learners(points: int = POINTS) -> Iterator[LearnerResult]:
    """Run the learners, one after the other."""
    X, y = stream(points)
    for learner, setup in setups():
        bank(learner, setup).run(X[:2], y[:2], record=())  # compiles outside the timer
        alone = bank(learner, setup)
        start = time.perf_counter()
        predictions = alone.run(X, y, record=["predictions"]).predictions
        seconds = (time.perf_counter() - start) / len(y)
        errors = np.where(np.isfinite(predictions), predictions - y, math.inf)
        yield LearnerResult(learner, errors * errors, seconds, setup.published)
