"""The benchmark's data, seeded and built outside the timers."""

from __future__ import annotations

import numpy as np

import kernelbank as kb
from kernelbank.evaluation.experiments import paper

WIDTHS = np.linspace(0.1, 10, 20)


def ar1(samples):
    """The experiment's signal, on a regular and on an irregular grid."""
    x, y = paper.stream(0, samples)
    irregular = np.cumsum(np.random.default_rng(1).uniform(0.5, 1.5, samples))
    return x, irregular, y


def bank(slots=20, budget=100, engine="serial", spacing="linear", dtype="float64"):
    """The paper's objective, with another dictionary, budget or engine."""
    return kb.KernelBank(
        kb.gaussian_grid(0.1, 10, slots, spacing=spacing),
        kb.learners.Norma(0.05, budget),
        window=10,
        regularization=0.01,
        engine=engine,
        dtype=dtype,
    )
