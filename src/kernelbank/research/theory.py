"""What theory promises of the parts of the scheme, beside what they do: bound and measurement.

Each function runs one part on a stream and returns a `Certificate`. docs/theory.md has the
statements with their proofs and references, under the same names. The setting is the paper's: its
signal, its twenty kernels, NORMA with its step size, window and regularization.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt

import numpy as np

from ..bank.bank import KernelBank
from ..combiners import Combiner, FixedShare, Hedge, Simplex
from ..kernels.elementary import gaussian_grid
from ..learners import Norma
from ..utils.validation import Floats
from . import paper
from .batch import batch_solution
from .datasets import sine
from .regret import best_slot, best_slot_sequence

SWITCHES = 5


# --- rules for the weights ------------------------------------------------------------------------


def hedge_bound(rate: float, slots: int, ranges: Floats) -> float:
    """log P / rate + rate / 8 sum_n s_n^2; s_n is the range of the losses of sample n."""
    return log(slots) / rate + rate / 8 * float((ranges**2).sum())


def adahedge_bound(slots: int, ranges: Floats) -> float:
    """S sqrt(n log P) + S (16/3 log P + 2), S the largest range."""
    S = float(ranges.max())
    return S * sqrt(len(ranges) * log(slots)) + S * (16 / 3 * log(slots) + 2)


def fixed_share_bound(
    rate: float, share: float, slots: int, switches: int, ranges: Floats
) -> float:
    """-log(prior of the sequence) / rate + rate / 8 sum_n s_n^2.

    Fixed share is exponential weights over sequences of slots, with a prior under which the slot
    changes to a given other one with probability share / P.
    """
    stay, change = log(1 - share + share / slots), log(share / slots)
    prior = -log(slots) + switches * change + (len(ranges) - 1 - switches) * stay
    return -prior / rate + rate / 8 * float((ranges**2).sum())


def _weighted(combiner: Combiner, x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """The weighted losses of the slots, (n,); the losses (n, P); their ranges (n,)."""
    trace = bank(combiner, BUDGET).run(x, y, record=["weights", "slot_loss"])
    losses = trace.slot_loss
    return (trace.weights * losses).sum(axis=1), losses, np.ptp(losses, axis=1)


def hedge(x: Floats, y: Floats) -> Certificate:
    """Hedge with a fixed rate against the best slot."""
    slots = len(paper.widths())
    rate = sqrt(8 * log(slots) / len(y))
    weighted, losses, ranges = _weighted(Hedge(learning_rate=rate), x, y)
    measured = float(best_slot(weighted, losses)[-1])
    return certificate("Hedge, the best slot", hedge_bound(rate, slots, ranges), measured)


def adahedge(x: Floats, y: Floats) -> Certificate:
    """Hedge with the adaptive rate against the best slot."""
    weighted, losses, ranges = _weighted(Hedge(), x, y)
    measured = float(best_slot(weighted, losses)[-1])
    bound = adahedge_bound(losses.shape[1], ranges)
    return certificate("AdaHedge, the best slot", bound, measured)


def fixed_share(x: Floats, y: Floats) -> Certificate:
    """FixedShare against the best sequence of slots with a few switches."""
    slots, switches = len(paper.widths()), min(SWITCHES, len(y) - 1)
    rate, share = sqrt(8 * log(slots) / len(y)), max(switches, 1) / len(y)
    weighted, losses, ranges = _weighted(FixedShare(rate, share), x, y)
    measured = float(best_slot_sequence(weighted, losses, switches)[-1])
    bound = fixed_share_bound(rate, share, slots, switches, ranges)
    return certificate(f"FixedShare, {switches} switches", bound, measured)


# --- the separable bound and the joint problem ----------------------------------------------------


def separable_bounds(x: Floats, y: Floats) -> list[Certificate]:
    """The scheme's cost below both bounds, and above the least cost of whole windows in batch.

    With u_p = sum_i l(f_p(x_i), y_i) and a_p = regularization / 2 |f_p|^2, the direct-sum bound is
    sum_p w_p u_p + w_p^2 a_p, and Jensen's is sum_p w_p (u_p + a_p).
    """
    scheme = bank(Simplex(), BUDGET)
    trace = scheme.run(x, y)
    direct_sum = trace.cost + trace.bound_gap
    jensen = trace.cost + trace.jensen_gap()
    ends = np.arange(scheme.window - 1, len(y), scheme.window)
    least = np.empty(len(ends))
    for k, n in enumerate(ends):
        window = slice(n + 1 - scheme.window, n + 1)
        solution = batch_solution(
            scheme.dictionary, x[window], y[window], scheme.loss, scheme.regularization
        )
        least[k] = solution.cost - solution.gap
    rows = (
        ("cost, direct-sum bound", direct_sum, trace.cost),
        ("cost, Jensen's bound", jensen, trace.cost),
        ("least cost of windows, cost", trace.cost[ends], least),
    )
    return [
        Certificate(
            name,
            float(bound.sum()),
            float(measured.sum()),
            all(is_below(m, b) for m, b in zip(measured, bound, strict=True)),
        )
        for name, bound, measured in rows
    ]


# --- all of them ----------------------------------------------------------------------------------


def run_seed(seed: int, samples: int) -> list[Certificate]:
    """All certificates of one signal."""
    x, y = paper.stream(seed, samples)
    return [
        *norma(x, y),
        hedge(x, y),
        adahedge(x, y),
        fixed_share(x, y),
        *separable_bounds(x, y),
        truncation(seed, samples),
    ]


def run_seeds(seeds: int, samples: int) -> Iterator[list[Certificate]]:
    """Run seeds 0, 1, ..., one after the other."""
    for seed in range(seeds):
        yield run_seed(seed, samples)


LEARNING_RATE, REGULARIZATION, BUDGET = 0.05, 0.01, 100

ROUNDING = 1e-9
"""Of sums of some thousand terms, as a share of the bound."""


@dataclass(frozen=True)
class Certificate:
    """A bound that theory proves, and what was measured."""

    name: str
    bound: float
    measured: float
    held: bool


def certificate(name: str, bound: float, measured: float) -> Certificate:
    """A certificate of one bound."""
    return Certificate(name, bound, measured, is_below(measured, bound))


def is_below(measured: float, bound: float) -> bool:
    """Whether a bound held, up to rounding."""
    return bool(measured <= bound + ROUNDING * (1 + abs(bound)))


def bank(combiner: Combiner, budget: int) -> KernelBank:
    """The paper's bank with another budget."""
    paper_bank = paper.bank(combiner)
    learner = Norma(learning_rate=LEARNING_RATE, budget=max(budget, paper_bank.window))
    return KernelBank(
        paper_bank.dictionary,
        learner,
        combiner,
        paper_bank.loss,
        paper_bank.window,
        paper_bank.regularization,
    )


def tightest(name: str, certificates: Sequence[tuple[float, float]]) -> Certificate:
    """The certificate of the largest share of its bound; it holds if all hold."""
    bound, measured = max(certificates, key=lambda pair: pair[1] / max(pair[0], 1e-300))
    return Certificate(name, bound, measured, all(is_below(m, b) for b, m in certificates))


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
    slots = bank(Simplex(), len(y))
    steps = _norma_steps(slots, x, y)
    costs = slots.ledger.slot_cumulative_cost
    certificates_by_name: dict[str, list[tuple[float, float]]] = {}
    for p, kernel in enumerate(slots.dictionary):
        K = kernel(x, x)
        gradients, largest = steps.gradients(p, K)
        for intervals in (1, INTERVALS):
            least, last, length = _comparators(K, y, slots.window, intervals)
            bound = norma_bound(LEARNING_RATE, last, largest, length, gradients)
            name = (
                "the best function" if intervals == 1 else f"the best function of {intervals} parts"
            )
            certificates_by_name.setdefault(f"NORMA, {name}", []).append(
                (bound, float(costs[p]) - least)
            )
    return [tightest(name, certificates) for name, certificates in certificates_by_name.items()]


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


def _norma_steps(slots: KernelBank, x: Floats, y: Floats) -> _NormaSteps:
    """Learn sample by sample, and note what each gradient is made of."""
    shape = (len(y), slots.window, len(slots.slots))
    values, slopes = np.zeros(shape), np.zeros(shape)
    norm2 = np.zeros((len(y), len(slots.slots)))
    for n in range(len(y)):
        rows = slice(max(0, n + 1 - slots.window), n + 1)
        seen = rows.stop - rows.start
        values[n, :seen] = slots.predict_slots(x[rows])
        slopes[n, :seen] = slots.loss.derivative(values[n, :seen], y[rows, None])
        if n:
            norm2[n] = slots.evidence()["curvature"] / (REGULARIZATION / 2)
        slots.learn_one(x[n], y[n])
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
        for learner in (short, full):
            learner.learn_one(x[n], y[n])
        dropped = short.ledger.dropped
        apart = decay * apart + np.sqrt(np.maximum(dropped - before, 0.0))
        before = dropped
    sums = list(zip(bounds.sum(axis=0).tolist(), measured.sum(axis=0).tolist(), strict=True))
    closest = tightest("truncation, change of predictions", sums)
    held = all(map(is_below, measured.ravel(), bounds.ravel()))
    return Certificate(closest.name, closest.bound, closest.measured, held)
