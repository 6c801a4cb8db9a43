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

from ..native.formulas import call_loss, pointer
from ..native.jit import entry, inline
from ..native.phases import argument_fields, float_array, int_array, read_float, read_int
from ..native.simd import WIDTH, absolute, broadcast, four, lane, load, store, where_less
from ..native.workspace import EXTRA_SUMS


@inline
def _total_loss(address, values, row, targets, position, count, parameters, scratch):
    """Sum over `count` samples of l(values[row + i], targets[position + i]), oldest first."""
    total = broadcast(0.0)
    if count == 0:
        return total
    call_loss(
        address,
        pointer(values, row * WIDTH),
        pointer(targets, position * WIDTH),
        count,
        parameters,
        scratch,
    )
    for i in range(count):
        total = total + load(scratch, i)
    return total


@inline
def _all_finite(numbers, count):
    """Whether all of (count,) numbers are finite."""
    product = broadcast(0.0)
    even = count - count % WIDTH
    for p in range(0, even, WIDTH):
        product = product + load(pointer(numbers, p), 0) * 0.0  # NaN from NaN and infinity
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


@entry
def mask_nonfinite(weights, predictions, on_simplex):
    """`mask_nonfinite_row` for the rows of arrays (n, P)."""
    slots = weights.shape[1]
    for t in range(weights.shape[0]):
        row = t * slots
        mask_nonfinite_row(pointer(weights, row), pointer(predictions, row), slots, on_simplex)


SCORE = argument_fields(
    "leaves",
    "steps",
    "slots",
    "window",
    "slide_period",
    "history_length",
    "half_regularization",
    "loss",
    "parameters",
    "targets",
    "values",
    "norms",
    "predictions",
    "alive",
    "columns",
    "scratch",
    "losses_before",
    "curvature",
    "window_loss",
    "slot_cost",
    "slot_loss",
    "slot_predictions",
)


def score_slots(args, first, count):
    """The evidence of every slot at each sample, to arrays (n, P).

        slot_loss   = l(f(x_t), y_t)                                   before sample t is learned
        slot_cost   = sum_i l(f(x_i), y_i) + regularization / 2 |f|^2  before, i over the window
        curvature   = a = regularization / 2 |f|^2                     after
        window_loss = b = sum_i l(f(x_i), y_i)                         after

    alive (leaves, 4) becomes 0 for good when one of these, or a value, is not finite.
    """
    steps = read_int(args, SCORE.steps)
    slots = read_int(args, SCORE.slots)
    window = read_int(args, SCORE.window)
    half_regularization = read_float(args, SCORE.half_regularization)
    address = read_int(args, SCORE.loss)
    parameters = float_array(args, SCORE.parameters)
    targets = float_array(args, SCORE.targets)
    values = float_array(args, SCORE.values)
    norms = float_array(args, SCORE.norms)
    predictions = float_array(args, SCORE.predictions)
    scratch = float_array(args, SCORE.scratch)
    position = read_int(args, SCORE.history_length) + first % read_int(args, SCORE.slide_period)
    for leaf in range(read_int(args, SCORE.leaves)):
        live = load(float_array(args, SCORE.alive), leaf)
        for t in range(count):
            seen = min(first + t + 1, window)
            oldest = position + t - seen + 1
            before = (leaf * steps + t + 1) * window - (seen - 1)
            after = (leaf * steps + t + 2) * window - seen
            step = leaf * (steps - 1) + t
            older = _total_loss(  # on the window without sample t, before it is learned
                address, values, before, targets, oldest, seen - 1, parameters, scratch
            )
            ahead = _total_loss(  # of the prediction of sample t
                address, predictions, step, targets, position + t, 1, parameters, scratch
            )
            loss = older + ahead
            store(float_array(args, SCORE.losses_before), step, loss)
            b = _total_loss(address, values, after, targets, oldest, seen, parameters, scratch)
            a = half_regularization * load(norms, leaf * steps + t + 1)
            cost = loss + half_regularization * load(norms, leaf * steps + t)
            size = absolute(a) + absolute(b) + absolute(cost) + absolute(load(predictions, step))
            for i in range(seen):
                size = size + absolute(load(values, after + i))
            live = where_less(size, np.inf, live, 0.0)
            for k in range(WIDTH):
                p = int_array(args, SCORE.columns)[leaf * WIDTH + k]
                if p < 0:
                    continue
                good = lane(live, k) > 0.0
                p += t * slots
                float_array(args, SCORE.curvature)[p] = lane(a, k) if good else 0.0
                float_array(args, SCORE.window_loss)[p] = lane(b, k) if good else np.inf
                float_array(args, SCORE.slot_cost)[p] = lane(cost, k) if good else np.inf
                float_array(args, SCORE.slot_loss)[p] = lane(ahead, k) if good else np.inf
                float_array(args, SCORE.slot_predictions)[p] = predictions[step * WIDTH + k]
        store(float_array(args, SCORE.alive), leaf, live)


GATHER = argument_fields(
    "leaves", "steps", "slots", "window", "values", "window_loss", "columns", "out"
)


def gather_values(args, first, count):
    """out[t, i, p] = f_p(x_i) on the window after sample t, for combiners that need the values."""
    steps = read_int(args, GATHER.steps)
    slots = read_int(args, GATHER.slots)
    window = read_int(args, GATHER.window)
    for leaf in range(read_int(args, GATHER.leaves)):
        for k in range(WIDTH):
            p = int_array(args, GATHER.columns)[leaf * WIDTH + k]
            if p < 0:
                continue
            for t in range(count):
                alive = float_array(args, GATHER.window_loss)[t * slots + p] < np.inf
                for i in range(window):
                    row = (leaf * steps + t + 1) * window + i
                    value = float_array(args, GATHER.values)[row * WIDTH + k] if alive else 0.0
                    float_array(args, GATHER.out)[(t * window + i) * slots + p] = value


@inline
def _sum(product, weight):
    """Sum over the lanes with weight, in order: NaN of a slot that is out must not get in."""
    kept = where_less(0.0, absolute(weight), product, 0.0)
    return ((lane(kept, 0) + lane(kept, 1)) + lane(kept, 2)) + lane(kept, 3)


@inline
def _of_leaf(array, start, columns, leaf):
    """array[start + p] at a leaf's four slots p; 0 in empty lanes."""
    p, q = columns[leaf * WIDTH], columns[leaf * WIDTH + 1]
    r, s = columns[leaf * WIDTH + 2], columns[leaf * WIDTH + 3]
    return four(
        array[start + p] if p >= 0 else 0.0,
        array[start + q] if q >= 0 else 0.0,
        array[start + r] if r >= 0 else 0.0,
        array[start + s] if s >= 0 else 0.0,
    )


MIX = argument_fields(
    "leaves",
    "steps",
    "slots",
    "window",
    "weights",
    "columns",
    "values",
    "norms",
    "predictions",
    "losses_before",
    "effects",
    "numbers",
    "sums",
)


@inline
def _mix_one(
    values, norms, predictions, losses, effects, steps, window, leaf, older, t, weight, sums
):
    """sums (L + EXTRA_SUMS,) of one leaf for sample t, with `weight` of its four lanes.

    The first L are sum_p w_p f_p(x_i) on the window before sample t is learned (0 where there is no
    sample yet), then norms with w_p^2, losses and effects with w_p.
    """
    before = (leaf * steps + t + 1) * window - older
    step = leaf * (steps - 1) + t
    for i in range(window - 1 - older):
        sums[i] = 0.0
    for i in range(older):
        sums[window - 1 - older + i] = _sum(weight * load(values, before + i), weight)
    sums[window - 1] = _sum(weight * load(predictions, step), weight)
    sums[window] = _sum(weight * weight * load(norms, leaf * steps + t), weight)
    sums[window + 1] = _sum(weight * load(losses, step), weight)
    sums[window + 2] = _sum(weight * load(effects, step), weight)


def mix_leaves(args, first, count):
    """sums[numbers[leaf], t] = the leaf's part of the bank's function on the window (`_mix_one`).

    Then the block is closed: row 0 of values and norms becomes the state after the last sample.
    weights: (n, P); sums: (leaves of the workspace, n, L + EXTRA_SUMS).
    """
    steps = read_int(args, MIX.steps)
    slots = read_int(args, MIX.slots)
    window = read_int(args, MIX.window)
    weights = float_array(args, MIX.weights)
    columns = int_array(args, MIX.columns)
    values = float_array(args, MIX.values)
    norms = float_array(args, MIX.norms)
    predictions = float_array(args, MIX.predictions)
    losses = float_array(args, MIX.losses_before)
    effects = float_array(args, MIX.effects)
    width = window + EXTRA_SUMS
    for leaf in range(read_int(args, MIX.leaves)):
        number = int_array(args, MIX.numbers)[leaf]
        for t in range(count):
            weight = _of_leaf(weights, t * slots, columns, leaf)
            sums = pointer(float_array(args, MIX.sums), (number * (steps - 1) + t) * width)
            size = absolute(weight)
            if (lane(size, 0) + lane(size, 1)) + (lane(size, 2) + lane(size, 3)) == 0.0:
                for i in range(width):  # all sums would be 0
                    sums[i] = 0.0
                continue
            older = min(first + t, window - 1)
            _mix_one(
                values,
                norms,
                predictions,
                losses,
                effects,
                steps,
                window,
                leaf,
                older,
                t,
                weight,
                sums,
            )
        for i in range(window):
            last = load(values, (leaf * steps + count) * window + i)
            store(values, leaf * steps * window + i, last)
        store(norms, leaf * steps, load(norms, leaf * steps + count))


@entry
def mix_some(values, norms, predictions, losses, effects, first, leaves, samples, weights, sums):
    """sums[k] = what `mix_leaves` would write for leaf leaves[k] and sample samples[k].

    weights[k] (4,) are the weights of the leaf's lanes. Where most leaves have no weight, going
    through all slots and samples would cost more than the sums.
    """
    steps, window = values.shape[1], values.shape[2]
    for k in range(len(leaves)):
        _mix_one(
            pointer(values, 0),
            pointer(norms, 0),
            pointer(predictions, 0),
            pointer(losses, 0),
            pointer(effects, 0),
            steps,
            window,
            leaves[k],
            min(first + samples[k], window - 1),
            samples[k],
            load(pointer(weights, 0), k),
            pointer(sums, k * sums.shape[1]),
        )


QUERY_VALUES = argument_fields("leaves", "columns", "query_values", "slot_values")


def scatter_query(args, first, count):
    """slot_values[p] = query_values[leaf, lane] of slot p."""
    for i in range(read_int(args, QUERY_VALUES.leaves) * WIDTH):
        p = int_array(args, QUERY_VALUES.columns)[i]
        if p >= 0:
            float_array(args, QUERY_VALUES.slot_values)[p] = float_array(
                args, QUERY_VALUES.query_values
            )[i]


COMBINE_QUERY = argument_fields(
    "slots", "leaves", "columns", "on_simplex", "weights", "scratch", "slot_values", "out"
)


def combine_query(args, first, count):
    """out[0] = sum_p w_p f_p at the query point, from slot_values (P,)."""
    slots = read_int(args, COMBINE_QUERY.slots)
    own = float_array(args, COMBINE_QUERY.scratch)
    values = float_array(args, COMBINE_QUERY.slot_values)
    for p in range(slots):
        own[p] = float_array(args, COMBINE_QUERY.weights)[p]
    mask_nonfinite_row(own, values, slots, read_int(args, COMBINE_QUERY.on_simplex))
    total = 0.0
    for leaf in range(read_int(args, COMBINE_QUERY.leaves)):
        weight = _of_leaf(own, 0, int_array(args, COMBINE_QUERY.columns), leaf)
        total += _sum(
            weight * _of_leaf(values, 0, int_array(args, COMBINE_QUERY.columns), leaf), weight
        )
    float_array(args, COMBINE_QUERY.out)[0] = total


@entry
def combine_rows(weights, values, columns, out):
    """out[t] = sum_p w_p f_p at point t, from (n, P) values; in the order of `mix_leaves`."""
    flat_weights, flat_values = weights.ravel(), values.ravel()
    flat_columns = columns.ravel()
    slots = weights.shape[1]
    for t in range(out.shape[0]):
        total = 0.0
        for leaf in range(columns.shape[0]):
            weight = _of_leaf(flat_weights, t * slots, flat_columns, leaf)
            value = _of_leaf(flat_values, t * slots, flat_columns, leaf)
            total += _sum(weight * value, weight)
        out[t] = total


@entry
def scatter_leaves(values, columns, out):
    """out[t, p] = values[leaf, t, lane] of slot p: from (leaves, n, 4) to (n, P)."""
    for leaf in range(values.shape[0]):
        for k in range(WIDTH):
            p = columns[leaf, k]
            if p >= 0:
                for t in range(out.shape[0]):
                    out[t, p] = values[leaf, t, k]
