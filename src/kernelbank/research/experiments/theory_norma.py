"""A NORMA slot: its regret against functions chosen in hindsight, and what truncation costs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np

from ...bank.bank import KernelBank
from ...combiners import Simplex
from ...kernels.dictionary import gaussian_grid
from ...learners import Norma
from ...utils.validation import Floats
from ..datasets import sine
from . import paper
from .theory_base import (
    BUDGET,
    LEARNING_RATE,
    REGULARIZATION,
    Certificate,
    bank,
    is_below,
    tightest,
)

INTERVALS = 5
"""Parts of the stream, each with a comparator of its own."""

TRUNCATION_REGULARIZATION = 0.5
"""So that terms have decayed to a tenth when the budget drops them."""


def norma(x: Floats, y: Floats) -> list[Certificate]:
    """Costs of each slot against the best function, and the best of each interval; no truncation.

    sum_n C_n(f_n) - C_n(g_n) <= |g_N|^2 / (2 rate) + max |f_n| V / rate + rate / 2 sum_n |C_n'|^2,
    where g_n is the comparator of sample n and V = sum_n |g_n - g_{n-1}| its path length. The slot
    with the largest share of its bound is returned; `held` is about all.
    """
    own = bank(Simplex(), len(y))
    steps = _norma_steps(own, x, y)
    costs = own.ledger.slot_cumulative_cost
    found: dict[str, list[tuple[float, float]]] = {}
    for p, kernel in enumerate(own.dictionary):
        K = kernel(x, x)
        gradients, largest = steps.gradients(p, K)
        for intervals in (1, INTERVALS):
            least, last, length = _comparators(K, y, own.window, intervals)
            bound = norma_bound(LEARNING_RATE, last, largest, length, gradients)
            name = (
                "the best function" if intervals == 1 else f"the best function of {intervals} parts"
            )
            found.setdefault(f"NORMA, {name}", []).append((bound, float(costs[p]) - least))
    return [tightest(name, certificates) for name, certificates in found.items()]


def norma_bound(rate: float, last: float, largest: float, length: float, gradients: float) -> float:
    """From |g_N|, the largest |f_n|, the path length and the sum of |C_n'|^2."""
    return last**2 / (2 * rate) + largest * length / rate + rate / 2 * gradients


@dataclass(frozen=True)
class _NormaSteps:
    """Of every step n: values and slopes of the slots on the window, (n, L, P); norm^2, (n, P)."""

    values: Floats
    slopes: Floats
    norm2: Floats

    def gradients(self, slot: int, K: Floats) -> tuple[float, float]:
        """The sum of |C_n'|^2, and the largest |f_n|.

        C_n' = sum_i l'_i k(x_i, .) + regularization f, so that
        |C_n'|^2 = l'Kl' + 2 regularization l'f + regularization^2 |f|^2.
        """
        window = self.slopes.shape[1]
        total = 0.0
        for n in range(len(self.slopes)):
            seen = min(n + 1, window)
            rows = slice(n + 1 - seen, n + 1)
            u, f = self.slopes[n, :seen, slot], self.values[n, :seen, slot]
            total += float(u @ K[rows, rows] @ u + 2 * REGULARIZATION * (u @ f))
            total += REGULARIZATION**2 * float(self.norm2[n, slot])
        return total, float(np.sqrt(self.norm2[:, slot].max()))


def _norma_steps(own: KernelBank, x: Floats, y: Floats) -> _NormaSteps:
    """Learn sample by sample, and note what each gradient is made of."""
    shape = (len(y), own.window, len(own.slots))
    values, slopes = np.zeros(shape), np.zeros(shape)
    norm2 = np.zeros((len(y), len(own.slots)))
    for n in range(len(y)):
        rows = slice(max(0, n + 1 - own.window), n + 1)
        seen = rows.stop - rows.start
        values[n, :seen] = own.predict_slots(x[rows])
        slopes[n, :seen] = own.loss.derivative(values[n, :seen], y[rows, None])
        if n:
            norm2[n] = own.evidence()["curvature"] / (REGULARIZATION / 2)
        own.learn_one(x[n], y[n])
    return _NormaSteps(values, slopes, norm2)


def _comparators(K: Floats, y: Floats, window: int, intervals: int) -> tuple[float, float, float]:
    """The best function of each interval: the sum of costs, the norm of the last, the path length.

    The costs of samples s, ..., e - 1 count sample i as often as a window has it, m_i times: their
    minimiser has coefficients c with (2 diag(m) K + (e - s) regularization I) c = 2 diag(m) y.
    """
    samples = len(y)
    cuts = [samples * k // intervals for k in range(intervals + 1)]
    total, length, before = 0.0, 0.0, None
    for start, end in pairwise(cuts):
        counts = np.zeros(samples)
        for n in range(start, end):
            counts[max(0, n + 1 - window) : n + 1] += 1
        ridge = (end - start) * REGULARIZATION
        used = counts > 0
        m = counts[used]
        c = np.zeros(samples)
        system = 2 * m[:, None] * K[np.ix_(used, used)] + ridge * np.eye(len(m))
        c[used] = np.linalg.solve(system, 2 * m * y[used])
        values = K @ c
        total += float(counts @ (values - y) ** 2 + ridge / 2 * (c @ values))
        if before is not None:
            length += _norm(K, c - before)
        before = c
    assert before is not None
    return total, _norm(K, before), length


def _norm(K: Floats, c: Floats) -> float:
    return sqrt(max(0.0, float(c @ K @ c)))


def truncation(seed: int, samples: int) -> Certificate:
    """Predictions of slots with a budget against those of slots that drop nothing.

    |f_n(x) - f'_n(x)| <= sqrt(k(x, x)) d_n with d_{n+1} = (1 - rate regularization) d_n + |e_n|,
    e_n the term dropped after sample n: a step of NORMA brings two functions closer. Needs
    rate (2 trace K + 2 regularization) <= 2 on each window. In the paper's stream time goes on, and
    what is dropped is too far away to be seen; so the inputs here come back (`kb.datasets.sine`).
    The slot with the largest share of its sum of bounds is returned; `held` is about all
    predictions of all slots.
    """
    x, y = sine(seed, samples)
    budget = max(paper.WINDOW, min(BUDGET, samples // 3))
    short, full = (
        KernelBank(
            gaussian_grid(0.05, 1, 8),
            Norma(learning_rate=LEARNING_RATE, budget=terms),
            window=paper.WINDOW,
            regularization=TRUNCATION_REGULARIZATION,
        )
        for terms in (budget, max(paper.WINDOW, samples))
    )
    decay = 1 - LEARNING_RATE * TRUNCATION_REGULARIZATION
    slots = len(short.slots)
    apart, before = np.zeros(slots), np.zeros(slots)  # d; the sum of |e|^2 so far
    measured, bounds = np.zeros((samples, slots)), np.zeros((samples, slots))
    for n in range(samples):
        here = x[n : n + 1]
        if n:
            measured[n] = np.abs(short.predict_slots(here) - full.predict_slots(here))[0]
        bounds[n] = apart  # k(x, x) = 1 for a Gaussian kernel
        for own in (short, full):
            own.learn_one(x[n], y[n])
        dropped = short.ledger.dropped
        apart = decay * apart + np.sqrt(np.maximum(dropped - before, 0.0))
        before = dropped
    sums = list(zip(bounds.sum(axis=0).tolist(), measured.sum(axis=0).tolist(), strict=True))
    closest = tightest("truncation, change of predictions", sums)
    held = all(map(is_below, measured.ravel(), bounds.ravel()))
    return Certificate(closest.name, closest.bound, closest.measured, held)
