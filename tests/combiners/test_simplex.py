"""Simplex: the sums of its prequential evidence."""

import itertools
import math

import numpy as np

from kernelbank.combiners import simplex
from kernelbank.native.phases import Phase, Phases

EPS = np.finfo(float).eps


def test_sliding_sums_after_a_huge_loss_has_left_the_horizon_have_no_rounding():
    draw = np.random.default_rng(0)
    losses = draw.uniform(0, 1, (500, 3))
    losses[50], losses[260, 1] = 1e300, 1e30
    horizon = 17
    sums, out = np.empty_like(losses), np.zeros((250, 3))
    block = np.zeros((250, 3))
    phase = Phase(
        simplex._sliding_sums,
        slots=3,
        horizon=horizon,
        slot_loss=block,
        segment=np.zeros((horizon, 3)),
        suffixes=np.zeros((horizon, 3)),
        prefix=np.zeros(3),
        out=out,
    )
    for start, end in itertools.pairwise([0, 1, 3, 60, 61, 200, 437, 500]):
        block[: end - start] = losses[start:end]
        Phases([phase]).run(start, end - start)
        sums[start:end] = out[: end - start]
    for n in range(500):
        for p in range(3):
            exact = math.fsum(losses[max(0, n - horizon + 1) : n + 1, p])
            assert abs(sums[n, p] - exact) <= horizon * EPS * exact
