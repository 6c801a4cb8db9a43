"""From the slots' values to what the game needs: evidence, mixtures and charges.

All learners leave the same four arrays behind for a block of n samples, leaf by leaf:

    values[leaf, t, i]   f_p on the i-th sample of the window, t = 0 before the block, t + 1 after
                         sample t; the newest sample is the last, and missing ones come first
    norms[leaf, t]       norm^2 of f_p, likewise
    predictions[leaf, t] f_p(x_t) before sample t is learned
    effects[leaf, t]     how far truncation moved the window's values, relative to their size

each with a last axis of four lanes. `columns[leaf, lane]` is a slot's column in arrays over all
slots, or -1 for an empty lane. A slot that is not finite is written as infinitely costly.
"""

import numpy as np

from .formulas import call_loss, pointer
from .jit import hot, part
from .lanes import WIDTH, absolute, four, lane, load, store, where_less

EXTRA = 3  # sums that travel with a mixture: norms, losses, effects of truncation


@hot
def apply_loss(address, predictions, targets, parameters, out):
    """The loss, or its derivative, of (rows, 4) predictions and targets."""
    rows = predictions.shape[0]
    call_loss(
        address,
        pointer(predictions, 0),
        pointer(targets, 0),
        rows,
        pointer(parameters, 0),
        pointer(out, 0),
    )


@part
def _total_loss(address, values, row, targets, position, count, parameters, scratch):
    """Sum of losses of `count` samples, oldest first; the first is at that row and position."""
    call_loss(
        address,
        pointer(values, row * WIDTH),
        pointer(targets, position * WIDTH),
        count,
        pointer(parameters, 0),
        pointer(scratch, 0),
    )
    total = load(scratch, 0) * 0.0 if count == 0 else load(scratch, 0)
    for i in range(1, count):
        total = total + load(scratch, i)
    return total


@hot
def score(
    first,
    position,
    count,
    half_regularization,
    address,
    parameters,
    targets,
    values,
    norms,
    predictions,
    alive,
    columns,
    losses_before,
    curvature,
    window_loss,
    slot_cost,
    slot_loss,
    slot_predictions,
):
    """Evidence of every slot after each of `count` samples; step 3 and 5 of the game."""
    leaves = values.shape[0]
    steps = values.shape[1]
    window = values.shape[2]
    scratch = np.zeros((window + 1, WIDTH))
    for leaf in range(leaves):
        live = load(alive, leaf)
        for t in range(count):
            seen = min(first + t + 1, window)
            now = position + t
            before = (leaf * steps + t + 1) * window - (seen - 1)
            after = (leaf * steps + t + 2) * window - seen
            older = _total_loss(
                address, values, before, targets, now - seen + 1, seen - 1, parameters, scratch
            )
            step = leaf * (steps - 1) + t
            ahead = _total_loss(address, predictions, step, targets, now, 1, parameters, scratch)
            loss = older + ahead
            store(losses_before, step, loss)
            b = _total_loss(
                address, values, after, targets, now - seen + 1, seen, parameters, scratch
            )
            a = half_regularization * load(norms, leaf * steps + t + 1)
            cost = loss + half_regularization * load(norms, leaf * steps + t)
            size = absolute(a) + absolute(b) + absolute(cost) + absolute(load(predictions, step))
            for i in range(seen):
                size = size + absolute(load(values, after + i))
            live = where_less(size, np.inf, live, 0.0)
            for k in range(WIDTH):
                p = columns[leaf, k]
                if p < 0:
                    continue
                good = lane(live, k) > 0.0
                curvature[t, p] = lane(a, k) if good else 0.0
                window_loss[t, p] = lane(b, k) if good else np.inf
                slot_cost[t, p] = lane(cost, k) if good else np.inf
                slot_loss[t, p] = lane(ahead, k) if good else np.inf
                slot_predictions[t, p] = predictions[leaf, t, k]
        store(alive, leaf, live)


@part
def _sum(product, weight):
    """Sum over the lanes, in order, of those with weight: a dead slot's NaN must not get in."""
    kept = where_less(0.0, absolute(weight), product, 0.0)
    return ((lane(kept, 0) + lane(kept, 1)) + lane(kept, 2)) + lane(kept, 3)


@part
def _of_leaf(array, t, columns, leaf):
    """Row t of an array over the slots, at a leaf's four slots; 0 in empty lanes."""
    first = array[t, columns[leaf, 0]] if columns[leaf, 0] >= 0 else 0.0
    second = array[t, columns[leaf, 1]] if columns[leaf, 1] >= 0 else 0.0
    third = array[t, columns[leaf, 2]] if columns[leaf, 2] >= 0 else 0.0
    fourth = array[t, columns[leaf, 3]] if columns[leaf, 3] >= 0 else 0.0
    return four(first, second, third, fourth)


@hot
def mix(
    first,
    count,
    weights,
    columns,
    values,
    norms,
    predictions,
    losses_before,
    effects,
    numbers,
    sums,
):
    """sums[numbers[leaf], t] = the leaf's part of the proposal on the window, and of EXTRA sums."""
    leaves = values.shape[0]
    steps = values.shape[1]
    window = values.shape[2]
    for leaf in range(leaves):
        number = numbers[leaf]
        for t in range(count):
            weight = _of_leaf(weights, t, columns, leaf)
            older = min(first + t, window - 1)
            before = (leaf * steps + t + 1) * window - older
            step = leaf * (steps - 1) + t
            for i in range(window - 1 - older):
                sums[number, t, i] = 0.0
            for i in range(older):
                place = window - 1 - older + i
                sums[number, t, place] = _sum(weight * load(values, before + i), weight)
            sums[number, t, window - 1] = _sum(weight * load(predictions, step), weight)
            norm = load(norms, leaf * steps + t)
            sums[number, t, window] = _sum(weight * weight * norm, weight)
            sums[number, t, window + 1] = _sum(weight * load(losses_before, step), weight)
            sums[number, t, window + 2] = _sum(weight * load(effects, step), weight)


@hot
def blend(weights, values, columns, out):
    """out[t] = the proposal at point t from the slots' values there; same sums as `mix`."""
    for t in range(out.shape[0]):
        total = 0.0
        for leaf in range(columns.shape[0]):
            weight = _of_leaf(weights, t, columns, leaf)
            total += _sum(weight * _of_leaf(values, t, columns, leaf), weight)
        out[t] = total


@hot
def sum_leaves(sums, totals):
    """totals = the sum over the leaves, in their order: the same bits however they are spread."""
    totals[:] = 0.0
    for leaf in range(sums.shape[0]):
        for t in range(totals.shape[0]):
            for i in range(totals.shape[1]):
                totals[t, i] += sums[leaf, t, i]


@hot
def scatter(values, columns, out):
    """out[t, p] = values[leaf, t, lane] of slot p."""
    for leaf in range(values.shape[0]):
        for k in range(WIDTH):
            p = columns[leaf, k]
            if p >= 0:
                for t in range(out.shape[0]):
                    out[t, p] = values[leaf, t, k]


@hot
def gather_values(count, values, window_loss, columns, out):
    """out[t, i, p] = f_p on the window after sample t, for combiners that ask for all of it."""
    for leaf in range(values.shape[0]):
        for k in range(WIDTH):
            p = columns[leaf, k]
            if p < 0:
                continue
            for t in range(count):
                for i in range(values.shape[2]):
                    value = values[leaf, t + 1, i, k]
                    out[t, i, p] = value if window_loss[t, p] < np.inf else 0.0


@hot
def admit(weights, predictions, on_simplex):
    """Take the weight of slots that are not finite at this sample; share it on a simplex."""
    slots = weights.shape[1]
    for t in range(weights.shape[0]):
        lost = False
        kept = 0.0
        finite = 0
        for p in range(slots):
            if np.isfinite(predictions[t, p]):
                finite += 1
                kept += weights[t, p]
            elif weights[t, p] != 0.0:
                weights[t, p] = 0.0
                lost = True
        if not (lost and on_simplex and finite > 0):
            continue
        for p in range(slots):
            if kept > 0.0:
                weights[t, p] /= kept
            elif np.isfinite(predictions[t, p]):
                weights[t, p] = 1.0 / finite


@hot
def charge(first, window, half_regularization, address, parameters, targets, totals, running, out):
    """out[t] = prediction, cost, one-step-ahead loss, gap of the bound, cumulative cost; step 3.

    `targets` holds the window's targets before the block, then those of the block. `running` holds
    the sums of cost, loss and gap over all samples so far. Returns the largest effect that
    truncation had on a proposal.
    """
    rows = (window + WIDTH - 1) // WIDTH
    f = np.ones((rows, WIDTH))
    y = np.ones((rows, WIDTH))
    losses = np.ones((rows, WIDTH))
    effect = 0.0
    for t in range(out.shape[0]):
        seen = min(first + t + 1, window)
        for i in range(seen):
            f[i // WIDTH, i % WIDTH] = totals[t, window - seen + i]
            y[i // WIDTH, i % WIDTH] = targets[t + window - seen + i]
        call_loss(
            address,
            pointer(f, 0),
            pointer(y, 0),
            (seen + WIDTH - 1) // WIDTH,
            pointer(parameters, 0),
            pointer(losses, 0),
        )
        total = 0.0
        for i in range(seen):
            total += losses[i // WIDTH, i % WIDTH]
        out[t, 0] = totals[t, window - 1]
        out[t, 1] = total + half_regularization * totals[t, window]
        out[t, 2] = losses[(seen - 1) // WIDTH, (seen - 1) % WIDTH]
        out[t, 3] = totals[t, window + 1] - total
        for i in range(3):
            running[i] += out[t, i + 1]
        out[t, 4] = running[0]
        effect = max(effect, totals[t, window + 2])
    return effect


@hot
def accumulate(rows, totals, least):
    """Add every row to `totals`, in order; least[t] = the smallest total after row t.

    Returns how many totals are infinite: slots that are out.
    """
    infinite = 0
    for t in range(rows.shape[0]):
        best = np.inf
        for p in range(rows.shape[1]):
            totals[p] += rows[t, p]
            best = min(best, totals[p])
        least[t] = best
    for p in range(totals.shape[0]):
        if totals[p] == np.inf:
            infinite += 1
    return infinite
