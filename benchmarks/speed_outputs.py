"""Several outputs: the time and memory of K targets per sample, against one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from measuring import Measurement, interleaved, microseconds, noise

import kernelbank as kb

K, L, C = kb.kernels, kb.learners, kb.combiners

OUTPUTS = (1, 3, 10)
WARM_UP, SAMPLES = 1024, 1024
GRID = kb.gaussian_grid(0.3, 3, 20)
FOUR = [K.Matern(width) for width in (0.5, 1.0, 2.0, 4.0)]
TREES = [K.TreeKernel(0.7, 10), K.TreeKernel(0.8, 12)]


def _bank(kernels: Any, learner: Any, **options: Any) -> Callable[[int], kb.KernelBank]:
    return lambda outputs: kb.KernelBank(kernels, learner, outputs=outputs, **options)


BANKS: dict[str, tuple[Callable[[int], Any], float | None]] = {
    "20 x FourierRLS(100)": (_bank(GRID, L.FourierRLS(100), window=1), 1.8),
    "20 x FourierRLS(100), window 10": (_bank(GRID, L.FourierRLS(100)), 1.8),
    "20 x FourierRLS(100), Stacking": (
        _bank(GRID, L.FourierRLS(100), combiner=C.Stacking(), window=1),
        2.0,
    ),
    "20 x FourierRLS(100), Stacking, window 10": (
        _bank(GRID, L.FourierRLS(100), combiner=C.Stacking()),
        2.0,
    ),
    "4 x NearestNeighborGP()": (_bank(FOUR, L.NearestNeighborGP(), window=1), 1.8),
    "20 x FourierSGD(100)": (_bank(GRID, L.FourierSGD(100), window=1), None),
    "20 x Norma(), window 10": (_bank(GRID, L.Norma()), None),
    "2 x PartitionTree()": (_bank(TREES, L.PartitionTree(), window=1), None),
    "AutoBank()": (lambda outputs: kb.AutoBank(), 4.0),
}
"""A bank for a number of outputs, and the goal for ten against one."""


def several_outputs(repeats: int) -> Iterator[Measurement]:
    """Time per sample with 3 and 10 outputs against 1; memory of the state."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(WARM_UP + SAMPLES, 5))
    directions = draw.normal(size=(5, max(OUTPUTS)))
    Y = np.sin(X @ directions) + 0.1 * draw.normal(size=(len(X), max(OUTPUTS)))
    for name, (make, goal) in BANKS.items():
        sizes: dict[int, int] = {}
        runs = {str(k): partial(_seconds, make, X, Y, k, sizes) for k in OUTPUTS}
        times = interleaved(runs, repeats)
        figures = ", ".join(
            f"K = {k}: {microseconds(times[str(k)])}, {sizes[k] / 2**20:.2f} MB" for k in OUTPUTS
        )
        yield Measurement(
            f"10 outputs against 1: {name}",
            times["10"] / times["1"],
            "ratio",
            goal,
            detail=f"{figures} (per sample; state)",
            noise=noise(times),
        )


def _seconds(
    make: Callable[[int], Any],
    X: np.ndarray,
    Y: np.ndarray,
    outputs: int,
    sizes: dict[int, int],
) -> float:
    """Seconds of the processor per sample, of a bank that has learned for a while."""
    bank = make(outputs)
    y = Y[:, 0] if outputs == 1 else np.ascontiguousarray(Y[:, :outputs])
    bank.run(X[:WARM_UP], y[:WARM_UP], record="light")
    arrays = bank.describe()[1] if isinstance(bank, kb.AutoBank) else bank.state()
    sizes[outputs] = sum(array.nbytes for array in arrays.values())
    start = time.process_time()
    bank.run(X[WARM_UP:], y[WARM_UP:], record="light")
    return (time.process_time() - start) / SAMPLES
