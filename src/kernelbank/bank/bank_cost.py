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
from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import argument_fields, float_array, read_float, read_int
from ..native.simd import WIDTH, broadcast, lane, load, store, where_less
from ..native.workspace import EXTRA_SUMS, SAMPLE_METRICS
from .slot_metrics import mask_nonfinite_row

COST, LOSS, GAP, EFFECT, QUARANTINED, SAMPLES = range(6)
"""Entries of `running`: sums of cost, loss and bound gap over all samples; the largest effect of
truncation; the number of slots that are out; the number of samples."""


PROPOSE = argument_fields(
    "slots", "on_simplex", "weights", "chosen", "slot_predictions", "proposed"
)


def propose_weights(args, first, count):
    """proposed[t] = the weights before sample t; weights = those after the last sample.

    chosen, proposed, slot_predictions: (n, P); weights: (P,).
    """
    slots = read_int(args, PROPOSE.slots)
    weights = float_array(args, PROPOSE.weights)
    chosen = float_array(args, PROPOSE.chosen)
    for t in range(count):
        row = t * slots
        own = pointer(float_array(args, PROPOSE.proposed), row)
        before = weights if t == 0 else pointer(chosen, row - slots)
        for p in range(slots):
            own[p] = before[p]
        predictions = pointer(float_array(args, PROPOSE.slot_predictions), row)
        mask_nonfinite_row(own, predictions, slots, read_int(args, PROPOSE.on_simplex))
    for p in range(slots):
        weights[p] = chosen[(count - 1) * slots + p]


SLOT_COSTS = argument_fields(
    "slots", "slot_cost", "slot_loss", "cumulative_cost", "cumulative_loss", "best"
)


@inline
def _add_row(totals, rows, t, slots):
    """totals += rows[t], four slots at a time; returns the least total."""
    row = pointer(rows, t * slots)
    even = slots - slots % WIDTH
    least = broadcast(np.inf)
    for p in range(0, even, WIDTH):
        total = load(pointer(totals, p), 0) + load(pointer(row, p), 0)
        store(pointer(totals, p), 0, total)
        least = where_less(total, least, total, least)
    best = min(lane(least, 0), lane(least, 1), lane(least, 2), lane(least, 3))
    for p in range(even, slots):
        totals[p] += row[p]
        best = min(best, totals[p])
    return best


def add_slot_costs(args, first, count):
    """Add slot_cost, slot_loss (n, P) to their totals (P,); best[t] = least cumulative cost."""
    slots = read_int(args, SLOT_COSTS.slots)
    losses = float_array(args, SLOT_COSTS.slot_loss)
    costs = float_array(args, SLOT_COSTS.slot_cost)
    for t in range(count):
        _add_row(float_array(args, SLOT_COSTS.cumulative_loss), losses, t, slots)
        float_array(args, SLOT_COSTS.best)[t] = _add_row(
            float_array(args, SLOT_COSTS.cumulative_cost), costs, t, slots
        )


BANK_COST = argument_fields(
    "slots",
    "leaves",
    "steps",
    "window",
    "half_regularization",
    "loss",
    "parameters",
    "recent",
    "new_targets",
    "sums",
    "totals",
    "scratch",
    "running",
    "best",
    "cumulative_cost",
    "out",
)


def append_targets(args, first, count):
    """recent (L - 1 + n,): the last L - 1 targets before the block, then those of the block."""
    window = read_int(args, BANK_COST.window)
    for t in range(count):
        recent = float_array(args, BANK_COST.recent)
        recent[window - 1 + t] = float_array(args, BANK_COST.new_targets)[t]


def charge_bank(args, first, count):
    """out[t] = metrics of the bank's prediction before sample t; the running totals follow.

    With F the bank's function, f_p those of the slots:

        cost = sum_i l(F(x_i), y_i) + regularization / 2 * sum_p w_p^2 |f_p|^2
        gap  = sum_p w_p sum_i l(f_p(x_i), y_i) - sum_i l(F(x_i), y_i)

    sums: (leaves, n, L + EXTRA_SUMS); totals: (n, L + EXTRA_SUMS); out: (n, SAMPLE_METRICS).
    """
    slots = read_int(args, BANK_COST.slots)
    steps = read_int(args, BANK_COST.steps)
    window = read_int(args, BANK_COST.window)
    recent = float_array(args, BANK_COST.recent)
    running = float_array(args, BANK_COST.running)
    width = window + EXTRA_SUMS
    rows = (window + WIDTH - 1) // WIDTH * WIDTH
    f = float_array(args, BANK_COST.scratch)  # (3, rows): predictions, targets, losses
    y = pointer(f, rows)
    losses = pointer(y, rows)
    totals = float_array(args, BANK_COST.totals)
    for k in range(count * width):
        totals[k] = 0.0
    for leaf in range(read_int(args, BANK_COST.leaves)):  # in leaf order: the same bits everywhere
        own = pointer(float_array(args, BANK_COST.sums), leaf * (steps - 1) * width)
        for k in range(count * width):
            totals[k] += own[k]
    for t in range(count):
        seen = min(first + t + 1, window)
        unseen = window - seen
        total = pointer(totals, t * width)
        loss_on_window(
            read_int(args, BANK_COST.loss),
            float_array(args, BANK_COST.parameters),
            pointer(total, unseen),
            pointer(recent, t + unseen),
            seen,
            f,
            y,
            losses,
        )
        loss = 0.0
        for i in range(seen):
            loss += losses[i]
        out = pointer(float_array(args, BANK_COST.out), t * SAMPLE_METRICS)
        out[0] = total[window - 1]  # prediction
        out[1] = loss + read_float(args, BANK_COST.half_regularization) * total[window]  # cost
        out[2] = losses[seen - 1]  # one-step-ahead loss
        out[3] = total[window + 1] - loss  # gap
        for i in range(3):
            running[i] += out[i + 1]
        running[EFFECT] = max(running[EFFECT], total[window + 2])
        out[4] = running[COST]
        out[5] = running[COST] - float_array(args, BANK_COST.best)[t]  # regret
    for i in range(window - 1):
        recent[i] = recent[count + i]
    costs = float_array(args, BANK_COST.cumulative_cost)
    quarantined = 0.0
    for p in range(slots):
        if costs[p] == np.inf:
            quarantined += 1.0
    running[QUARANTINED] = quarantined
    running[SAMPLES] += count
