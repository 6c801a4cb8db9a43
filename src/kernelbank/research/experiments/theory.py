"""What theory promises of the parts of the scheme, beside what they do: bound and measurement.

Each function runs one part on a stream and returns a `Certificate`. docs/theory.md has the
statements with their proofs and references, under the same names. The setting is the paper's: its
signal, its twenty kernels, NORMA with its step size, window and regularization.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log, sqrt

import numpy as np

from ...combiners import Combiner, FixedShare, Hedge, Simplex
from ...utils.validation import Floats
from ..batch import batch_solution
from ..regret import best_slot, best_slot_sequence
from . import paper
from .theory_base import BUDGET, Certificate, bank, certificate, is_below
from .theory_norma import norma, truncation

SWITCHES = 5


# --- rules for the weights ------------------------------------------------------------------------


def hedge_bound(rate: float, slots: int, spreads: Floats) -> float:
    """log P / rate + rate / 8 sum_n s_n^2; s_n is the spread of the losses of sample n."""
    return log(slots) / rate + rate / 8 * float((spreads**2).sum())


def adahedge_bound(slots: int, spreads: Floats) -> float:
    """S sqrt(n log P) + S (16/3 log P + 2), S the largest spread."""
    S = float(spreads.max())
    return S * sqrt(len(spreads) * log(slots)) + S * (16 / 3 * log(slots) + 2)


def fixed_share_bound(
    rate: float, share: float, slots: int, switches: int, spreads: Floats
) -> float:
    """-log(prior of the sequence) / rate + rate / 8 sum_n s_n^2.

    Fixed share is exponential weights over sequences of slots, with a prior under which the slot
    changes to a given other one with probability share / P.
    """
    stay, change = log(1 - share + share / slots), log(share / slots)
    prior = -log(slots) + switches * change + (len(spreads) - 1 - switches) * stay
    return -prior / rate + rate / 8 * float((spreads**2).sum())


def _weighted(combiner: Combiner, x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """The weighted losses of the slots, (n,); the losses (n, P); their spreads (n,)."""
    trace = bank(combiner, BUDGET).run(x, y, record=["weights", "slot_loss"])
    losses = trace.slot_loss
    return (trace.weights * losses).sum(axis=1), losses, np.ptp(losses, axis=1)


def hedge(x: Floats, y: Floats) -> Certificate:
    """Hedge with a fixed rate against the best slot."""
    slots = len(paper.widths())
    rate = sqrt(8 * log(slots) / len(y))
    weighted, losses, spreads = _weighted(Hedge(learning_rate=rate), x, y)
    measured = float(best_slot(weighted, losses)[-1])
    return certificate("Hedge, the best slot", hedge_bound(rate, slots, spreads), measured)


def adahedge(x: Floats, y: Floats) -> Certificate:
    """Hedge with the adaptive rate against the best slot."""
    weighted, losses, spreads = _weighted(Hedge(), x, y)
    measured = float(best_slot(weighted, losses)[-1])
    bound = adahedge_bound(losses.shape[1], spreads)
    return certificate("AdaHedge, the best slot", bound, measured)


def fixed_share(x: Floats, y: Floats) -> Certificate:
    """FixedShare against the best sequence of slots with a few switches."""
    slots, switches = len(paper.widths()), min(SWITCHES, len(y) - 1)
    rate, share = sqrt(8 * log(slots) / len(y)), max(switches, 1) / len(y)
    weighted, losses, spreads = _weighted(FixedShare(rate, share), x, y)
    measured = float(best_slot_sequence(weighted, losses, switches)[-1])
    bound = fixed_share_bound(rate, share, slots, switches, spreads)
    return certificate(f"FixedShare, {switches} switches", bound, measured)


# --- the separable bound and the joint problem ----------------------------------------------------


def separable_bounds(x: Floats, y: Floats) -> list[Certificate]:
    """The scheme's cost below both bounds, and above the least cost of whole windows in batch.

    With u_p = sum_i l(f_p(x_i), y_i) and a_p = regularization / 2 |f_p|^2, the direct-sum bound is
    sum_p w_p u_p + w_p^2 a_p, and Jensen's is sum_p w_p (u_p + a_p).
    """
    own = bank(Simplex(), BUDGET)
    trace = own.run(x, y)
    direct_sum = trace.cost + trace.bound_gap
    jensen = trace.cost + trace.jensen_gap()
    some = np.arange(own.window - 1, len(y), own.window)
    least = np.empty(len(some))
    for k, n in enumerate(some):
        window = slice(n + 1 - own.window, n + 1)
        solution = batch_solution(
            own.dictionary, x[window], y[window], own.loss, own.regularization
        )
        least[k] = solution.cost - solution.gap
    rows = (
        ("cost, direct-sum bound", direct_sum, trace.cost),
        ("cost, Jensen's bound", jensen, trace.cost),
        ("least cost of windows, cost", trace.cost[some], least),
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
