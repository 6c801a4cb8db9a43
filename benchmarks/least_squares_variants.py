"""Two variants of least squares on random features that were tried and not taken.

- The covariance in single precision: its least eigenvalue, and the error, on simulated streams.
- One feature map for all slots of a scaling: the error of AutoBank on real streams.

python benchmarks/least_squares_variants.py [--data FOLDER]
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from unittest.mock import patch

import numpy as np
from accuracy_streams import RowRange, bundled, from_folder

import kernelbank as kb
from kernelbank.checks.bank_fixture import group_of
from kernelbank.learners import fourier
from kernelbank.native.packed_symmetric import unpack
from kernelbank.research.datasets.stream import CLASSIFICATION, Stream

ROWS = 40_000
MEMORIES = {
    "no forgetting": {},
    "forgetting": {"forgetting": 0.9999, "forget": "prior", "constant_forgetting": 0.8},
}


def single_precision() -> None:
    """Round the covariance to single precision at the end of every cycle of eight samples."""
    draw = np.random.default_rng(0)
    inputs = {
        "one input": draw.normal(size=(ROWS, 1)),
        "random walk": np.cumsum(0.01 * draw.normal(size=(ROWS, 2)), axis=0),
        "five values": draw.integers(0, 5, size=(ROWS, 3)).astype(float),
    }
    kernel = kb.kernels.Gaussian(1.5) + kb.kernels.Linear(1.0)
    for name, X in inputs.items():
        y = np.sin(2 * X[:, 0]) + 0.01 * draw.normal(size=ROWS)
        for memory, settings in MEMORIES.items():
            slot = kb.Slot(kernel, kb.learners.FourierRLS(features=192, **settings))
            found = [_error_and_eigenvalue(slot, X, y, rounded=r) for r in (False, True)]
            print(
                f"{name}, {memory}: RMSE {found[0][0]:.6f}, rounded {found[1][0]:.6f}; "
                f"least eigenvalue {found[0][1]:.2g}, rounded {found[1][1]:.2g}"
            )


def _error_and_eigenvalue(slot: kb.Slot, X, y, *, rounded: bool) -> tuple[float, float]:
    bank = kb.KernelBank(slots=[slot], window=1)
    bank.run(X[:8], y[:8])
    state = group_of(bank, 0)[0].state
    errors = []
    for start in range(8, ROWS, 8):
        part = slice(start, start + 8)
        errors.append(y[part] - bank.run(X[part], y[part], record=["predictions"]).predictions)
        if rounded:
            state["covariance"][...] = state["covariance"].astype(np.float32)
    full = unpack(state["covariance"][0], state["coefficients"].shape[1])
    error = np.sqrt(np.mean(np.concatenate(errors) ** 2))
    return float(error), float(np.linalg.eigvalsh(full)[0])


def shared_maps(streams: dict[str, Stream]) -> None:
    """Let the slots of a scaling draw the same features."""
    per_scaling = 13  # default slots of a scaling
    drawn = fourier._draw_features

    def shared(kernel, count, dimension, seed, index):
        return drawn(kernel, count, dimension, seed, index - index % per_scaling)

    ratios = []
    for name, stream in streams.items():
        own = _auto_bank_error(stream)
        with patch.object(fourier, "_draw_features", shared):
            ratios.append(_auto_bank_error(stream) / own)
        print(f"{name}: {ratios[-1]:.4f} of the error with maps of their own")
    mean = float(np.exp(np.mean(np.log(ratios))))
    print(f"shared maps: geometric mean {mean:.4f} over {len(ratios)} rows")


def _auto_bank_error(stream: Stream) -> float:
    classes = stream.task == CLASSIFICATION
    targets = stream.y.astype(int) if classes else stream.y
    bank = kb.AutoBank("classification" if classes else "regression", lags=stream.lags)
    found = bank.run(stream.X, targets).predictions[100:]
    if classes:
        return float(np.mean(found != targets[100:]))
    return float(np.sqrt(np.mean((found - targets[100:]) ** 2)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
    single_precision()
    used = RowRange()
    shared_maps(bundled(used, []) if chosen.data is None else from_folder(chosen.data, used, []))


if __name__ == "__main__":
    main()
