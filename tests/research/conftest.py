"""Runs of an AutoBank that several test files plot: (bank, trace, targets)."""

import numpy as np
import pytest

import kernelbank as kb


@pytest.fixture(scope="module")
def regression_run():
    draw = np.random.default_rng(0)
    X = draw.uniform(-2, 2, (200, 2))
    y = 10 + 3 * np.sin(X[:, 0]) + 0.1 * draw.normal(size=200)
    bank = kb.AutoBank(size="small")
    return bank, bank.run(X, y, record="all"), y


@pytest.fixture(scope="module")
def classification_run():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(150, 2))
    y = np.where(X[:, 0] > 0.5, "hot", np.where(X[:, 0] < -0.5, "cold", "fine"))
    bank = kb.AutoBank("classification", size="small")
    return bank, bank.run(X, y, record="all"), y
