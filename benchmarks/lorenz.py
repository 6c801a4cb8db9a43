"""One step ahead on the Lorenz attractor: the benchmark of the Kernel Adaptive Filtering Toolbox.

    python benchmarks/lorenz.py

The toolbox keeps its series in a file and does not say how it was made. Its numbers are the z
component of

    dx/dt = 10 (y - x),  dy/dt = x (28 - z) - y,  dz/dt = x y - 8/3 z

from (10, 7, 35) by Euler's rule with a step of 0.01. With the terms added in the right order the
last of ten thousand steps, too, has the six digits of the file, although the system is chaotic; so
this is the same task and needs no file.

As in the toolbox: inputs of the last six values (zeros before the first), a Gaussian kernel of
width 32, and the mean squared error of the predictions after the first thousand samples, each made
before the sample is learned, in decibels.

Reference: Van Vaerenbergh and Santamaria, A comparative study of kernel adaptive filtering
algorithms, IEEE DSP/SPE 2013.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator

import numpy as np

import kernelbank as kb

K, L = kb.kernels, kb.learners
GAUSSIAN = K.Gaussian(32.0)
UNSCORED = 1000

# (learner, kernel, regularization of the bank, the toolbox's decibels). The toolbox's own settings
# where it has the method. Its first-order methods step along y - f; the derivative of the squared
# loss is twice that, so their rates are halved here. It lets KRLS and QKLMS grow; the budgets here
# are beyond what they need (31 and 246 terms). Its KLMS stops growing at 5000 terms; here nothing
# is dropped, which is a little better.
SETUPS: list[tuple[L.Learner, K.Kernel, float, float | None]] = [
    (L.Norma(0.05, 500), GAUSSIAN, 2e-4, 10.96),
    (L.KLMS(0.05, 10_000), GAUSSIAN, 0.0, -3.07),
    (L.KNLMS(0.25, coherence=0.95, epsilon=1e-6, budget=200), GAUSSIAN, 0.0, -1.32),
    (L.QKLMS(0.3, quantization=2.0, budget=1000), GAUSSIAN, 0.0, -10.73),
    (L.KRLS(novelty=1e-4, budget=200), GAUSSIAN, 0.0, -40.17),
    (L.SlidingWindowKRLS(budget=100, ridge=1e-6), GAUSSIAN, 0.0, -37.85),
    (L.FixedBudgetKRLS(budget=100, ridge=1e-6), GAUSSIAN, 0.0, -55.0),
    (L.KRLSTracker(budget=50, noise=1e-6), GAUSSIAN, 0.0, None),
    (L.KRLSTracker(budget=100, noise=1e-6), GAUSSIAN, 0.0, -56.82),
    (L.FourierSGD(learning_rate=0.25, features=200), GAUSSIAN, 0.0, None),
    (L.FourierRLS(ridge=1e-6, features=200), GAUSSIAN, 0.0, None),
    (L.NearestNeighborGP(), GAUSSIAN, 0.0, None),
    # Methods with kernels of their own; the variance of the signal is about 75.
    (L.LinearRLS(ridge=1e-6), K.Linear(1.0), 0.0, None),
    (L.PartitionTree(noise=0.01, nodes=4095), K.TreeKernel(levels=20, scale=75.0), 0.0, None),
]


def lorenz_heights(start: tuple[float, float, float], points: int) -> np.ndarray:
    """(points,): z from `start` on, which is included, by Euler's rule with a step of 0.01.

    The sums are written out in plain Python, so that the bits do not depend on a library.
    """
    x, y, z = start
    heights = np.empty(points)
    for n in range(points):
        heights[n] = z
        # In a chaotic system another order of the terms soon gives another path.
        slopes = -10.0 * x + 10.0 * y, 28.0 * x - x * z - y, x * y - 8.0 / 3.0 * z
        x, y, z = x + 0.01 * slopes[0], y + 0.01 * slopes[1], z + 0.01 * slopes[2]
    return heights


def stream(points: int) -> tuple[np.ndarray, np.ndarray]:
    """The toolbox's task: the last six values, newest first, and the next one."""
    heights = lorenz_heights((10.0, 7.0, 35.0), points)
    X = np.zeros((points - 1, 6))
    for lag in range(6):
        X[lag:, lag] = heights[: points - 1 - lag]
    return X, heights[1:]


def run_learners(points: int) -> Iterator[tuple[L.Learner, float, float | None, float]]:
    """Learner, decibels, the toolbox's decibels, seconds per sample."""
    X, y = stream(points)
    for learner, kernel, regularization, published in SETUPS:
        # One slot, so that the bank's predictions are the learner's.
        bank = kb.KernelBank(
            [kernel], learner, kb.combiners.Uniform(), window=1, regularization=regularization
        )
        start = time.perf_counter()
        predictions = bank.run(X, y, record=["predictions"]).predictions
        seconds = (time.perf_counter() - start) / len(y)
        errors = (predictions - y)[min(UNSCORED, len(y) // 2) :]
        yield learner, 10 * np.log10(np.mean(errors**2)), published, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=10_001, help="points of the series")
    points = parser.parse_args().samples
    warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
    print("| learner | dB | toolbox, dB | us per sample |\n|---|---:|---:|---:|")
    for learner, decibels, published, seconds in sorted(run_learners(points), key=lambda r: r[1]):
        theirs = "" if published is None else f"{published:.2f}"
        print(f"| `{learner!r}` | {decibels:.2f} | {theirs} | {1e6 * seconds:.1f} |")


if __name__ == "__main__":
    main()
