"""The driver's part of a round: who proposes, and what the proposal costs."""

import numpy as np

from ..losses.base import loss_on_window
from ..native.formulas import pointer
from ..native.jit import entry, inline
from ..native.phases import argument_fields, float_array, read_float, read_int
from ..native.simd import WIDTH, broadcast, lane, load, store, where_less
from ..native.workspace import EXTRA_SUMS, SAMPLE_METRICS
from .slot_metrics import admit_one

COST, LOSS, GAP, EFFECT, OUT, SAMPLES = range(6)
"""Running figures: sums of cost, loss and gap; the largest effect of truncation; slots out."""


@entry
def admit(weights, predictions, on_simplex):
    """Take weight from slots that are not finite, for rows of arrays (n, P)."""
    slots = weights.shape[1]
    for t in range(weights.shape[0]):
        place = t * slots
        admit_one(pointer(weights, place), pointer(predictions, place), slots, on_simplex)


PROPOSE = argument_fields(
    "slots", "on_simplex", "weights", "chosen", "slot_predictions", "proposed"
)


def propose(args, first, count):
    """proposed[t] = the weights before sample t; weights = those after the last one."""
    slots = read_int(args, PROPOSE.slots)
    weights = float_array(args, PROPOSE.weights)
    chosen = float_array(args, PROPOSE.chosen)
    for t in range(count):
        place = t * slots
        own = pointer(float_array(args, PROPOSE.proposed), place)
        before = weights if t == 0 else pointer(chosen, place - slots)
        for p in range(slots):
            own[p] = before[p]
        predictions = pointer(float_array(args, PROPOSE.slot_predictions), place)
        admit_one(own, predictions, slots, read_int(args, PROPOSE.on_simplex))
    for p in range(slots):
        weights[p] = chosen[(count - 1) * slots + p]


TALLY = argument_fields(
    "slots", "slot_cost", "slot_loss", "cumulative_cost", "cumulative_loss", "best"
)


CHARGE = argument_fields(
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


def recall(args, first, count):
    """Append the block's targets to those of the window before it."""
    window = read_int(args, CHARGE.window)
    for t in range(count):
        targets = float_array(args, CHARGE.recent)
        targets[window - 1 + t] = float_array(args, CHARGE.new_targets)[t]


@inline
def _add(totals, figures, t, slots):
    """Add row t of `figures`, four slots at a time, to the totals; returns the least total."""
    row = pointer(figures, t * slots)
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


def tally(args, first, count):
    """Charge every slot alone; best[t] = the least cumulative cost of a slot after sample t."""
    slots = read_int(args, TALLY.slots)
    for t in range(count):
        _add(float_array(args, TALLY.cumulative_loss), float_array(args, TALLY.slot_loss), t, slots)
        float_array(args, TALLY.best)[t] = _add(
            float_array(args, TALLY.cumulative_cost), float_array(args, TALLY.slot_cost), t, slots
        )


def charge(args, first, count):
    """Charge the proposals: step 3 of the game, and the running figures."""
    slots = read_int(args, CHARGE.slots)
    steps = read_int(args, CHARGE.steps)
    window = read_int(args, CHARGE.window)
    recent = float_array(args, CHARGE.recent)
    running = float_array(args, CHARGE.running)
    width = window + EXTRA_SUMS
    rows = (window + WIDTH - 1) // WIDTH * WIDTH
    f = float_array(args, CHARGE.scratch)
    y = pointer(f, rows)
    losses = pointer(y, rows)
    totals = float_array(args, CHARGE.totals)
    for k in range(count * width):
        totals[k] = 0.0
    for leaf in range(read_int(args, CHARGE.leaves)):  # in their order: the same bits everywhere
        own = pointer(float_array(args, CHARGE.sums), leaf * (steps - 1) * width)
        for k in range(count * width):
            totals[k] += own[k]
    for t in range(count):
        seen = min(first + t + 1, window)
        unseen = window - seen
        total = pointer(totals, t * width)
        loss_on_window(
            read_int(args, CHARGE.loss),
            float_array(args, CHARGE.parameters),
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
        out = pointer(float_array(args, CHARGE.out), t * SAMPLE_METRICS)
        out[0] = total[window - 1]
        out[1] = loss + read_float(args, CHARGE.half_regularization) * total[window]
        out[2] = losses[seen - 1]
        out[3] = total[window + 1] - loss
        for i in range(3):
            running[i] += out[i + 1]
        running[EFFECT] = max(running[EFFECT], total[window + 2])
        out[4] = running[COST]
        out[5] = running[COST] - float_array(args, CHARGE.best)[t]
    for i in range(window - 1):
        recent[i] = recent[count + i]
    costs = float_array(args, CHARGE.cumulative_cost)
    out_now = 0.0
    for p in range(slots):
        if costs[p] == np.inf:
            out_now += 1.0
    running[OUT] = out_now
    running[SAMPLES] += count
