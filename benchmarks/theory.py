"""What theory promises of the parts of the scheme, and what was measured: docs/theory.md.

    python benchmarks/theory.py [--seeds 3] [--samples 300]

Each function runs one part on a stream; the page has the statements with their proofs, under the
same names. The setting is the paper's: its signal, its twenty kernels, NORMA with its step size,
window and regularization. If a bound did not hold the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt

import numpy as np

import kernelbank as kb
from kernelbank.research import paper

LEARNING_RATE, REGULARIZATION, BUDGET = 0.05, 0.01, 100
SWITCHES = 5
INTERVALS = 5
"""Parts of the stream, each with a comparator of its own."""
TRUNCATION_REGULARIZATION = 0.5
"""So that terms have decayed to a tenth when the budget drops them."""
ROUNDING = 1e-9
"""Of sums of some thousand terms, as a share of the bound."""


@dataclass(frozen=True)
class Certificate:
    """A bound that theory proves, and what was measured."""

    name: str
    bound: float
    measured: float
    held: bool


def is_below(measured: float, bound: float) -> bool:
    """Whether a bound held, up to rounding."""
    return bool(measured <= bound + ROUNDING * (1 + abs(bound)))


def tightest(name: str, pairs: Sequence[tuple[float, float]]) -> Certificate:
    """The pair (bound, measured) of the largest share of its bound; it holds if all hold."""
    bound, measured = max(pairs, key=lambda pair: pair[1] / max(pair[0], 1e-300))
    return Certificate(name, bound, measured, all(is_below(m, b) for b, m in pairs))


def paper_bank(combiner: kb.combiners.Combiner, budget: int) -> kb.KernelBank:
    """The paper's bank with another budget."""
    learner = kb.learners.Norma(LEARNING_RATE, max(budget, paper.WINDOW))
    return kb.KernelBank(paper.KERNELS, learner, combiner, "squared", paper.WINDOW, REGULARIZATION)


# --- rules for the weights ------------------------------------------------------------------------


def hedge_bound(rate: float, slots: int, ranges: np.ndarray) -> float:
    """log P / rate + rate / 8 sum_n s_n^2; s_n is the range of the losses of sample n."""
    return log(slots) / rate + rate / 8 * float((ranges**2).sum())


def adahedge_bound(slots: int, ranges: np.ndarray) -> float:
    """S sqrt(n log P) + S (16/3 log P + 2), S the largest range."""
    S = float(ranges.max())
    return S * sqrt(len(ranges) * log(slots)) + S * (16 / 3 * log(slots) + 2)


def fixed_share_bound(
    rate: float, share: float, slots: int, switches: int, ranges: np.ndarray
) -> float:
    """-log(prior of the sequence) / rate + rate / 8 sum_n s_n^2.

    Fixed share is exponential weights over sequences of slots, with a prior under which the slot
    changes to a given other one with probability share / P.
    """
    stay, change = log(1 - share + share / slots), log(share / slots)
    prior = -log(slots) + switches * change + (len(ranges) - 1 - switches) * stay
    return -prior / rate + rate / 8 * float((ranges**2).sum())


def weight_rules(x: np.ndarray, y: np.ndarray) -> list[Certificate]:
    """Hedge with a fixed and the adaptive rate against the best slot, FixedShare against the best
    sequence of slots with a few switches."""
    slots, switches = len(paper.KERNELS), min(SWITCHES, len(y) - 1)
    rate, share = sqrt(8 * log(slots) / len(y)), max(switches, 1) / len(y)

    def run(combiner: kb.combiners.Combiner) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The weighted losses of the slots, (n,); the losses (n, P); their ranges (n,)."""
        trace = paper_bank(combiner, BUDGET).run(x, y, record=["weights", "slot_loss"])
        weighted = (trace.weights * trace.slot_loss).sum(axis=1)
        return weighted, trace.slot_loss, np.ptp(trace.slot_loss, axis=1)

    rules = kb.combiners
    certificates = []
    for name, rule in (("Hedge", rules.Hedge(rate)), ("AdaHedge", rules.Hedge())):
        weighted, losses, ranges = run(rule)
        fixed = name == "Hedge"
        bound = hedge_bound(rate, slots, ranges) if fixed else adahedge_bound(slots, ranges)
        measured = float(kb.regret.best_slot(weighted, losses)[-1])
        certificates.append(tightest(f"{name}, the best slot", [(bound, measured)]))
    weighted, losses, ranges = run(rules.FixedShare(rate, share))
    measured = float(kb.regret.best_slot_sequence(weighted, losses, switches)[-1])
    bound = fixed_share_bound(rate, share, slots, switches, ranges)
    return [*certificates, tightest(f"FixedShare, {switches} switches", [(bound, measured)])]


# --- the separable bound and the joint problem ----------------------------------------------------


def separable_bounds(x: np.ndarray, y: np.ndarray) -> list[Certificate]:
    """The scheme's cost below both bounds, and above the least cost of whole windows in batch.

    With u_p = sum_i l(f_p(x_i), y_i) and a_p = regularization / 2 |f_p|^2, the direct-sum bound is
    sum_p w_p u_p + w_p^2 a_p, and Jensen's is sum_p w_p (u_p + a_p).
    """
    bank = paper_bank(kb.combiners.Simplex(), BUDGET)
    trace = bank.run(x, y)
    ends = np.arange(bank.window - 1, len(y), bank.window)
    least = np.empty(len(ends))
    for k, n in enumerate(ends):
        rows = slice(n + 1 - bank.window, n + 1)
        best = kb.batch_solution(bank.dictionary, x[rows], y[rows], REGULARIZATION)
        least[k] = best.cost - best.gap
    rows = (
        ("cost, direct-sum bound", trace.cost + trace.bound_gap, trace.cost),
        ("cost, Jensen's bound", (trace.weights * trace.slot_cost).sum(axis=1), trace.cost),
        ("least cost of windows, cost", trace.cost[ends], least),
    )
    return [
        Certificate(name, float(b.sum()), float(m.sum()), all(map(is_below, m, b)))
        for name, b, m in rows
    ]


# --- NORMA ----------------------------------------------------------------------------------------


def norma(x: np.ndarray, y: np.ndarray) -> list[Certificate]:
    """Costs of each slot against the best function, and the best of each interval; no truncation.

    sum_n C_n(f_n) - C_n(g_n) <= |g_N|^2 / (2 rate) + max |f_n| V / rate + rate / 2 sum_n |C_n'|^2,
    where g_n is the comparator of sample n and V = sum_n |g_n - g_{n-1}| its path length. The slot
    with the largest share of its bound is returned; `held` is about all.
    """
    bank = paper_bank(kb.combiners.Simplex(), len(y))
    gradients, largest = norma_steps(bank, x, y)
    costs = bank.ledger.slot_cumulative_cost
    names = {1: "the best function", INTERVALS: f"the best function of {INTERVALS} parts"}
    certificates = []
    for intervals, name in names.items():
        pairs = []
        for p, kernel in enumerate(bank.dictionary):
            least, last, length = comparators(kernel(x, x), y, bank.window, intervals)
            bound = norma_bound(LEARNING_RATE, last, largest[p], length, gradients[p])
            pairs.append((bound, float(costs[p]) - least))
        certificates.append(tightest(f"NORMA, {name}", pairs))
    return certificates


def norma_bound(rate: float, last: float, largest: float, length: float, gradients: float) -> float:
    """From |g_N|, the largest |f_n|, the path length and the sum of |C_n'|^2."""
    return last**2 / (2 * rate) + largest * length / rate + rate / 2 * gradients


def norma_steps(bank: kb.KernelBank, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Learn sample by sample; (P,) each: the sum of |C_n'|^2, and the largest |f_n|.

    C_n' = sum_i l'_i k(x_i, .) + regularization f, so that
    |C_n'|^2 = l'Kl' + 2 regularization l'f + regularization^2 |f|^2.
    """
    slots = len(bank.dictionary)
    matrices = [kernel(x, x) for kernel in bank.dictionary]
    total, largest, norm2 = np.zeros(slots), np.zeros(slots), np.zeros(slots)
    for n in range(len(y)):
        rows = slice(max(0, n + 1 - bank.window), n + 1)
        f = bank.predict_slots(x[rows])  # (L, P)
        u = 2 * (f - y[rows, None])
        if n:
            norm2 = bank.evidence()["curvature"] / (REGULARIZATION / 2)
        for p, K in enumerate(matrices):
            total[p] += u[:, p] @ K[rows, rows] @ u[:, p] + 2 * REGULARIZATION * u[:, p] @ f[:, p]
        total += REGULARIZATION**2 * norm2
        largest = np.maximum(largest, np.sqrt(norm2))
        bank.learn_one(x[n], y[n])
    return total, largest


def comparators(
    K: np.ndarray, y: np.ndarray, window: int, intervals: int
) -> tuple[float, float, float]:
    """The best function of each interval: the sum of costs, the norm of the last, the path length.

    The costs of samples s, ..., e - 1 count sample i as often as a window has it, m_i times: their
    minimiser has coefficients c with (2 diag(m) K + (e - s) regularization I) c = 2 diag(m) y.
    """
    samples = len(y)
    total, length, previous = 0.0, 0.0, None
    for start, end in pairwise(samples * k // intervals for k in range(intervals + 1)):
        counts = np.zeros(samples)
        for n in range(start, end):
            counts[max(0, n + 1 - window) : n + 1] += 1
        ridge, used = (end - start) * REGULARIZATION, counts > 0
        m, c = counts[used], np.zeros(samples)
        system = 2 * m[:, None] * K[np.ix_(used, used)] + ridge * np.eye(len(m))
        c[used] = np.linalg.solve(system, 2 * m * y[used])
        values = K @ c
        total += float(counts @ (values - y) ** 2 + ridge / 2 * (c @ values))
        if previous is not None:
            length += _norm(K, c - previous)
        previous = c
    return total, _norm(K, previous), length


def _norm(K: np.ndarray, c: np.ndarray) -> float:
    return sqrt(max(0.0, float(c @ K @ c)))


# --- truncation -----------------------------------------------------------------------------------


def truncation(seed: int, samples: int) -> Certificate:
    """Predictions of slots with a budget against those of slots that drop nothing.

    |f_n(x) - f'_n(x)| <= sqrt(k(x, x)) d_n with d_{n+1} = (1 - rate regularization) d_n + |e_n|,
    e_n the term dropped after sample n: a step of NORMA brings two functions closer. Needs
    rate (2 trace K + 2 regularization) <= 2 on each window. In the paper's stream time goes on, and
    what is dropped is too far away to be seen; so the inputs here come back (`kb.datasets.sine`).
    The slot with the largest share of its sum of bounds is returned; `held` is about all
    predictions of all slots.
    """
    x, y = kb.datasets.sine(seed, samples)
    budget = max(paper.WINDOW, min(BUDGET, samples // 3))
    short, full = (
        kb.KernelBank(
            kb.gaussian_grid(0.05, 1, 8),
            kb.learners.Norma(learning_rate=LEARNING_RATE, budget=terms),
            window=paper.WINDOW,
            regularization=TRUNCATION_REGULARIZATION,
        )
        for terms in (budget, max(paper.WINDOW, samples))
    )
    slots = len(short.slots)
    distance, dropped = np.zeros(slots), np.zeros(slots)  # d; the sum of |e|^2 so far
    measured, bounds = np.zeros((samples, slots)), np.zeros((samples, slots))
    for n in range(samples):
        here = x[n : n + 1]
        if n:
            measured[n] = np.abs(short.predict_slots(here) - full.predict_slots(here))[0]
        bounds[n] = distance  # k(x, x) = 1 for a Gaussian kernel
        short.learn_one(x[n], y[n])
        full.learn_one(x[n], y[n])
        new = short.ledger.dropped
        decayed = (1 - LEARNING_RATE * TRUNCATION_REGULARIZATION) * distance
        distance = decayed + np.sqrt(np.maximum(new - dropped, 0.0))
        dropped = new
    sums = list(zip(bounds.sum(axis=0).tolist(), measured.sum(axis=0).tolist()))
    closest = tightest("truncation, change of predictions", sums)
    held = all(map(is_below, measured.ravel(), bounds.ravel()))
    return Certificate(closest.name, closest.bound, closest.measured, held)


# --- all of them ----------------------------------------------------------------------------------


def run_seed(seed: int, samples: int) -> list[Certificate]:
    """All certificates of one signal."""
    x, y = kb.datasets.ar1(seed, samples)
    rules, bounds = weight_rules(x, y), separable_bounds(x, y)
    return [*norma(x, y), *rules, *bounds, truncation(seed, samples)]


def lines(runs: list[list[Certificate]]) -> list[str]:
    """The table, means over the seeds."""
    rows = [
        "| part, compared with | bound | measured | share | held |",
        "|---|---:|---:|---:|---:|",
    ]
    for same in zip(*runs):
        bound, measured = (
            sum(values) / len(same) for values in zip(*((c.bound, c.measured) for c in same))
        )
        held = f"{sum(c.held for c in same)} of {len(same)}"
        share = f"{100 * measured / bound:.3g} %"
        rows.append(f"| {same[0].name} | {bound:.4g} | {measured:.4g} | {share} | {held} |")
    return rows


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=300)
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
    runs = [run_seed(seed, chosen.samples) for seed in range(chosen.seeds)]
    print("\n".join(lines(runs)))
    sys.exit(not all(certificate.held for run in runs for certificate in run))


if __name__ == "__main__":
    main()
