"""Phases on every slot: its evidence for the combiner, and its part of the bank's prediction.

All learners leave the same four arrays behind for a block of n samples, leaf by leaf:

    values[leaf, t, i]   f_p on the i-th sample of the window, t = 0 before the block, t + 1 after
                         sample t; the newest sample is the last, and missing ones come first
    norms[leaf, t]       norm^2 of f_p, likewise
    predictions[leaf, t] f_p(x_t) before sample t is learned
    effects[leaf, t]     how far truncation moved the window's values, relative to their size

each with a last axis of four lanes. `columns[leaf, lane]` is the slot's column in arrays over all
slots, or -1 for an empty lane. A slot that is not finite gets infinite losses and costs.
"""

import numpy as np

from ..native.arguments import Arguments, floats, ints, lanes
from ..native.formulas import call_loss
from ..native.functions import native
from ..native.jit import inline
from ..native.simd import WIDTH, absolute, broadcast, four, lane, where_less
from ..native.views import load_four
from ..native.workspace import EXTRA_SUMS

GROUP = Arguments(
    "slot_group",
    leaves=int,
    steps=int,  # longest block + 1
    window=int,
    values=lanes("leaves", "steps", "window"),
    norms=lanes("leaves", "steps"),
    predictions=lanes("leaves", "steps - 1"),
)


@inline
def _total_loss(loss, values, targets, count, parameters, scratch):
    """Sum over `count` samples of l(values[i], targets[i]), oldest first."""
    if count > 0:
        call_loss(loss, values, targets, count, parameters, scratch)
    return _sum_rows(scratch, 0, count)


@inline
def _sum_rows(rows, start, end):
    """rows[start] + ... + rows[end - 1], in this order."""
    total = broadcast(0.0)
    for i in range(start, end):
        total = total + rows[i]
    return total


@inline
def _all_finite(numbers, count):
    """Whether all of (count,) numbers are finite."""
    product = broadcast(0.0)
    even = count - count % WIDTH
    for p in range(0, even, WIDTH):
        product = product + load_four(numbers, p) * 0.0  # NaN from NaN and infinity
    total = (lane(product, 0) + lane(product, 1)) + (lane(product, 2) + lane(product, 3))
    for p in range(even, count):
        total += numbers[p] * 0.0
    return total == 0.0


@inline
def mask_nonfinite_row(weights, predictions, slots, on_simplex):
    """Set the weights of slots with non-finite predictions to 0; on a simplex, renormalize.

    weights, predictions: (P,).
    """
    if _all_finite(predictions, slots):
        return
    lost = False
    kept = 0.0
    finite = 0
    for p in range(slots):
        if np.isfinite(predictions[p]):
            finite += 1
            kept += weights[p]
        elif weights[p] != 0.0:
            weights[p] = 0.0
            lost = True
    if not (lost and on_simplex and finite > 0):
        return
    for p in range(slots):
        if kept > 0.0:
            weights[p] /= kept
        elif np.isfinite(predictions[p]):
            weights[p] = 1.0 / finite


@native(
    Arguments(
        "mask_nonfinite",
        slots=int,
        on_simplex=int,
        weights=floats(None, "slots"),
        predictions=floats(None, "slots"),
    )
)
def mask_nonfinite(a, first, count):
    """`mask_nonfinite_row` for the rows of arrays (n, P)."""
    for t in range(count):
        mask_nonfinite_row(a.weights[t], a.predictions[t], a.slots, a.on_simplex)


@native(
    GROUP.extended(
        "score_slots",
        slots=int,
        slide_period=int,
        history_length=int,
        half_regularization=float,
        loss=int,  # address
        compiled_loss=int,  # 1 unless the loss is a user's function
        parameters=floats(None),  # of the loss
        targets=lanes("history_length + slide_period"),
        alive=lanes("leaves"),
        columns=ints("leaves", 4),
        scratch=lanes("window + 1"),
        losses_before=lanes("leaves", "steps - 1"),
        curvature=floats("steps - 1", "slots"),
        window_loss=floats("steps - 1", "slots"),
        slot_cost=floats("steps - 1", "slots"),
        slot_loss=floats("steps - 1", "slots"),
        slot_predictions=floats("steps - 1", "slots"),
    )
)
def score_slots(a, first, count):
    """The evidence of every slot at each sample, to arrays (n, P).

        slot_loss   = l(f(x_t), y_t)                                   before sample t is learned
        slot_cost   = sum_i l(f(x_i), y_i) + regularization / 2 |f|^2  before, i over the window
        curvature   = a = regularization / 2 |f|^2                     after
        window_loss = b = sum_i l(f(x_i), y_i)                         after

    alive (leaves, 4) becomes 0 for good when one of these, or a value, is not finite.
    """
    window, half = a.window, a.half_regularization
    parameters, scratch = a.parameters, a.scratch
    position = a.history_length + first % a.slide_period
    for leaf in range(a.leaves):
        live = a.alive[leaf]
        for t in range(count):
            seen = min(first + t + 1, window)
            targets = a.targets[position + t - seen + 1 :]  # of the samples seen in the window
            before = a.values[leaf, t][window - seen + 1 :]  # f on them, but for sample t
            after = a.values[leaf, t + 1][window - seen :]
            prediction = a.predictions[leaf, t]
            if (
                t > 0 and a.compiled_loss != 0
            ):  # these losses have been summed for b of sample t - 1
                known = min(first + t, window)
                older = _sum_rows(scratch, known - (seen - 1), known)
            else:
                older = _total_loss(a.loss, before, targets, seen - 1, parameters, scratch)
            ahead = _total_loss(
                a.loss, a.predictions[leaf][t:], targets[seen - 1 :], 1, parameters, scratch
            )
            loss = older + ahead
            a.losses_before[leaf, t] = loss
            b = _total_loss(a.loss, after, targets, seen, parameters, scratch)
            curvature = half * a.norms[leaf, t + 1]
            cost = loss + half * a.norms[leaf, t]
            size = absolute(curvature) + absolute(b) + absolute(cost) + absolute(prediction)
            for i in range(seen):
                size = size + absolute(after[i])
            live = where_less(size, np.inf, live, 0.0)
            for k in range(WIDTH):
                p = a.columns[leaf, k]
                if p < 0:
                    continue
                good = lane(live, k) > 0.0
                a.curvature[t, p] = lane(curvature, k) if good else 0.0
                a.window_loss[t, p] = lane(b, k) if good else np.inf
                a.slot_cost[t, p] = lane(cost, k) if good else np.inf
                a.slot_loss[t, p] = lane(ahead, k) if good else np.inf
                a.slot_predictions[t, p] = lane(prediction, k)
        a.alive[leaf] = live


@native(
    Arguments(
        "gather_values",
        leaves=int,
        steps=int,
        slots=int,
        window=int,
        values=lanes("leaves", "steps", "window"),
        window_loss=floats("steps - 1", "slots"),
        columns=ints("leaves", 4),
        out=floats("steps - 1", "window", "slots"),
    )
)
def gather_values(a, first, count):
    """out[t, i, p] = f_p(x_i) on the window after sample t, for combiners that need the values."""
    for leaf in range(a.leaves):
        for k in range(WIDTH):
            p = a.columns[leaf, k]
            if p < 0:
                continue
            for t in range(count):
                alive = a.window_loss[t, p] < np.inf
                for i in range(a.window):
                    a.out[t, i, p] = lane(a.values[leaf, t + 1, i], k) if alive else 0.0


@inline
def _sum(product, weight):
    """Sum over the lanes with weight, in order: NaN of a slot that is out must not get in."""
    kept = where_less(0.0, absolute(weight), product, 0.0)
    return ((lane(kept, 0) + lane(kept, 1)) + lane(kept, 2)) + lane(kept, 3)


@inline
def _of_leaf(row, columns):
    """row[p] at the four slots p of a leaf, whose columns (4,) are given; 0 in empty lanes."""
    p, q, r, s = columns[0], columns[1], columns[2], columns[3]
    return four(
        row[p] if p >= 0 else 0.0,
        row[q] if q >= 0 else 0.0,
        row[r] if r >= 0 else 0.0,
        row[s] if s >= 0 else 0.0,
    )


@inline
def _mix_one(a, leaf, t, older, weight, sums):
    """sums (L + EXTRA_SUMS,) of one leaf for sample t, with `weight` of its four lanes.

    The first L are sum_p w_p f_p(x_i) on the window before sample t is learned (0 where there is no
    sample yet; `older` samples are before t), then norms with w_p^2, losses and effects with w_p.
    """
    window = a.window
    before = a.values[leaf, t]
    for i in range(window - 1 - older):
        sums[i] = 0.0
    for i in range(window - 1 - older, window - 1):
        sums[i] = _sum(weight * before[i + 1], weight)
    sums[window - 1] = _sum(weight * a.predictions[leaf, t], weight)
    sums[window] = _sum(weight * weight * a.norms[leaf, t], weight)
    sums[window + 1] = _sum(weight * a.losses_before[leaf, t], weight)
    sums[window + 2] = _sum(weight * a.effects[leaf, t], weight)


@native(
    GROUP.extended(
        "mix_leaves",
        losses_before=lanes("leaves", "steps - 1"),
        effects=lanes("leaves", "steps - 1"),
        slots=int,
        weights=floats("steps - 1", "slots"),
        columns=ints("leaves", 4),
        numbers=ints("leaves"),
        sums=floats(None, "steps - 1", None),  # (leaves of the workspace, n, L + EXTRA_SUMS)
    )
)
def mix_leaves(a, first, count):
    """sums[numbers[leaf], t] = the leaf's part of the bank's function on the window (`_mix_one`).

    Then the block is closed: row 0 of values and norms becomes the state after the last sample.
    """
    window = a.window
    for leaf in range(a.leaves):
        for t in range(count):
            weight = _of_leaf(a.weights[t], a.columns[leaf])
            sums = a.sums[a.numbers[leaf], t]
            size = absolute(weight)
            if (lane(size, 0) + lane(size, 1)) + (lane(size, 2) + lane(size, 3)) == 0.0:
                for i in range(window + EXTRA_SUMS):  # all sums would be 0
                    sums[i] = 0.0
                continue
            _mix_one(a, leaf, t, min(first + t, window - 1), weight, sums)
        for i in range(window):
            a.values[leaf, 0, i] = a.values[leaf, count, i]
        a.norms[leaf, 0] = a.norms[leaf, count]


@native(
    Arguments(
        "scatter_query",
        leaves=int,
        columns=ints("leaves", 4),
        query_values=floats("leaves", 4),
        slot_values=floats(None),
    )
)
def scatter_query(a, first, count):
    """slot_values[p] = query_values[leaf, lane] of slot p."""
    for leaf in range(a.leaves):
        for k in range(WIDTH):
            p = a.columns[leaf, k]
            if p >= 0:
                a.slot_values[p] = a.query_values[leaf, k]


@inline
def _combined(weights, values, columns):
    """sum_p w_p f_p, in the order of `mix_leaves`. columns: (leaves, 4)."""
    total = 0.0
    for leaf in range(len(columns)):
        weight = _of_leaf(weights, columns[leaf])
        total += _sum(weight * _of_leaf(values, columns[leaf]), weight)
    return total


@native(
    Arguments(
        "combine_query",
        slots=int,
        columns=ints(None, 4),
        on_simplex=int,
        weights=floats("slots"),
        scratch=floats("slots"),
        slot_values=floats("slots"),
        out=floats(1),
    )
)
def combine_query(a, first, count):
    """out[0] = sum_p w_p f_p at the query point, from slot_values (P,)."""
    for p in range(a.slots):
        a.scratch[p] = a.weights[p]
    mask_nonfinite_row(a.scratch, a.slot_values, a.slots, a.on_simplex)
    a.out[0] = _combined(a.scratch, a.slot_values, a.columns)


@native(
    Arguments(
        "combine_rows",
        weights=floats(None, None),
        values=floats(None, None),
        columns=ints(None, 4),
        out=floats(None),
    )
)
def combine_rows(a, first, count):
    """out[t] = sum_p w_p f_p at point t, from (n, P) values."""
    for t in range(count):
        a.out[t] = _combined(a.weights[t], a.values[t], a.columns)


@native(
    Arguments(
        "scatter_leaves",
        values=floats(None, None, 4),
        columns=ints(None, 4),
        out=floats(None, None),
    )
)
def scatter_leaves(a, first, count):
    """out[t, p] = values[leaf, t, lane] of slot p: from (leaves, n, 4) to (n, P)."""
    for leaf in range(len(a.columns)):
        for k in range(WIDTH):
            p = a.columns[leaf, k]
            if p >= 0:
                for t in range(count):
                    a.out[t, p] = a.values[leaf, t, k]
