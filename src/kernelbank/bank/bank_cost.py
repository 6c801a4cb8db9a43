"""Phases that run once for all slots: the weights of each prediction, and what they cost.

Notation: n samples of a block, P slots, L the window, t the sample in the block. Arrays over
leaves hold, for each sample, L + EXTRA_SUMS sums over the slots p of the leaf (see `mix_leaves`):

    sums[leaf, t, i]      sum_p w_p f_p(x_i) on the window, i < L; the last one is sample t itself
    sums[leaf, t, L]      sum_p w_p^2 |f_p|^2
    sums[leaf, t, L + 1]  sum_p w_p (loss of f_p on the window)
    sums[leaf, t, L + 2]  sum_p w_p (effect of truncation on f_p)
"""

import numpy as np

from ..losses.base import loss_on_window
from ..native.arguments import Arguments, floats
from ..native.functions import native
from ..native.jit import inline
from ..native.simd import WIDTH, broadcast, lane, where_less
from ..native.views import load_four, store_four
from ..native.workspace import EXTRA_SUMS, SAMPLE_METRICS
from .slot_metrics import mask_nonfinite_row

COST, LOSS, GAP, EFFECT, QUARANTINED, SAMPLES = range(6)
"""Entries of `running`: sums of cost, loss and bound gap over all samples; the first effect of
truncation that is visible, until then the largest; the number of slots that are out; the number of
samples."""

VISIBLE_EFFECT = 0.01
"""A truncation that moves a prediction by one part in a hundred matters."""


@native(
    Arguments(
        "propose_weights",
        slots=int,
        on_simplex=int,
        weights=floats("slots"),
        chosen=floats(None, "slots"),
        slot_predictions=floats(None, "slots"),
        proposed=floats(None, "slots"),
    )
)
def propose_weights(a, first, count):
    """proposed[t] = the weights before sample t; weights = the last ones chosen."""
    for t in range(count):
        before = a.weights if t == 0 else a.chosen[t - 1]
        for p in range(a.slots):
            a.proposed[t, p] = before[p]
        mask_nonfinite_row(a.proposed[t], a.slot_predictions[t], a.slots, a.on_simplex)
    for p in range(a.slots):
        a.weights[p] = a.chosen[count - 1, p]


@inline
def _add_row(totals, row, slots):
    """totals += row, four slots at a time; returns the least total."""
    even = slots - slots % WIDTH
    least = broadcast(np.inf)
    for p in range(0, even, WIDTH):
        total = load_four(totals, p) + load_four(row, p)
        store_four(totals, p, total)
        least = where_less(total, least, total, least)
    best = min(lane(least, 0), lane(least, 1), lane(least, 2), lane(least, 3))
    for p in range(even, slots):
        totals[p] += row[p]
        best = min(best, totals[p])
    return best


@native(
    Arguments(
        "add_slot_costs",
        slots=int,
        slot_cost=floats(None, "slots"),
        slot_loss=floats(None, "slots"),
        cumulative_cost=floats("slots"),
        cumulative_loss=floats("slots"),
        best=floats(None),
    )
)
def add_slot_costs(a, first, count):
    """Add slot_cost, slot_loss (n, P) to their totals (P,); best[t] = least cumulative cost."""
    for t in range(count):
        _add_row(a.cumulative_loss, a.slot_loss[t], a.slots)
        a.best[t] = _add_row(a.cumulative_cost, a.slot_cost[t], a.slots)


BANK_COST = Arguments(
    "bank_cost",
    slots=int,
    leaves=int,
    steps=int,  # longest block + 1
    window=int,
    half_regularization=float,
    loss=int,  # address
    parameters=floats(None),  # of the loss
    recent=floats("window + steps - 2"),
    new_targets=floats("steps - 1"),
    sums=floats("leaves", "steps - 1", f"window + {EXTRA_SUMS}"),
    totals=floats("steps - 1", f"window + {EXTRA_SUMS}"),
    scratch=floats(3, None),  # predictions, targets and losses, padded to rows of four
    running=floats(6),
    best=floats("steps - 1"),
    cumulative_cost=floats("slots"),
    out=floats("steps - 1", SAMPLE_METRICS),
)


@native(BANK_COST)
def append_targets(a, first, count):
    """recent (L - 1 + n,): the last L - 1 targets before the block, then those of the block."""
    for t in range(count):
        a.recent[a.window - 1 + t] = a.new_targets[t]


@native(BANK_COST)
def charge_bank(a, first, count):
    """out[t] = metrics of the bank's prediction before sample t; the running totals follow.

    With F the bank's function, f_p those of the slots:

        cost = sum_i l(F(x_i), y_i) + regularization / 2 * sum_p w_p^2 |f_p|^2
        gap  = sum_p w_p sum_i l(f_p(x_i), y_i) - sum_i l(F(x_i), y_i)
    """
    window = a.window
    recent, running, losses = a.recent, a.running, a.scratch[2]
    width = window + EXTRA_SUMS
    for t in range(count):
        for k in range(width):
            a.totals[t, k] = 0.0
    for leaf in range(a.leaves):  # in leaf order: the same bits everywhere
        for t in range(count):
            for k in range(width):
                a.totals[t, k] += a.sums[leaf, t, k]
    for t in range(count):
        seen = min(first + t + 1, window)
        unseen = window - seen
        total = a.totals[t]
        loss_on_window(
            a.loss,
            a.parameters,
            total[unseen:],
            recent[t + unseen :],
            seen,
            a.scratch[0],
            a.scratch[1],
            losses,
        )
        loss = 0.0
        for i in range(seen):
            loss += losses[i]
        out = a.out[t]
        out[0] = total[window - 1]  # prediction
        out[1] = loss + a.half_regularization * total[window]  # cost
        out[2] = losses[seen - 1]  # one-step-ahead loss
        out[3] = total[window + 1] - loss  # gap
        for i in range(3):
            running[i] += out[i + 1]
        if running[EFFECT] <= VISIBLE_EFFECT:  # kept from then on: the same figure for any blocks
            running[EFFECT] = max(running[EFFECT], total[window + 2])
        out[4] = running[COST]
        out[5] = running[COST] - a.best[t]  # regret
    for i in range(window - 1):
        recent[i] = recent[count + i]
    quarantined = 0.0
    for p in range(a.slots):
        if a.cumulative_cost[p] == np.inf:
            quarantined += 1.0
    running[QUARANTINED] = quarantined
    running[SAMPLES] += count
