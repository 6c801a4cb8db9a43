"""Phases of the combiners that weigh slots exponentially by their losses one step ahead.

Losses are only ever compared: every sum of them is kept relative to that of the best slot, so that
it does not grow with the stream and its rounding stays that of the differences. A slot whose loss
is infinite is out: its sum is infinite and its weight is 0.
"""

import math

import numpy as np

from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import argument_fields, float_array, read_float, read_int

FARTHEST = 1e300  # a slot this far behind has no weight; adding to it must not overflow


@inline
def least_living(figures, losses, slots):
    """The least figure among the slots that are not out; inf if all are."""
    least = np.inf
    for p in range(slots):
        if losses[p] < np.inf and figures[p] < least:
            least = figures[p]
    return least


@inline
def exponential(rate, totals, losses, slots, out):
    """out = weights proportional to exp(-rate * totals) over the slots that are not out.

    An infinite rate shares the weight among the leaders. If all slots are out, all weights are 0.
    """
    least = least_living(totals, losses, slots)
    size = 0.0
    for p in range(slots):
        out[p] = 0.0
        if losses[p] < np.inf:
            behind = totals[p] - least
            if behind == 0.0:  # also where the rate is infinite
                out[p] = 1.0
            elif rate < np.inf:
                out[p] = math.exp(-rate * behind)
            size += out[p]
    if size > 0.0:
        for p in range(slots):
            out[p] /= size


@inline
def advance(totals, step_ratio, losses, slots):
    """Add the losses of a sample, and refer the sums to the least one again."""
    for p in range(slots):
        totals[p] = min(totals[p] + step_ratio[p], FARTHEST) if losses[p] < np.inf else np.inf
    least = least_living(totals, losses, slots)
    for p in range(slots):
        if losses[p] < np.inf:
            totals[p] -= least
    return least


@inline
def _mixability_gap(rate, weights, totals, after, step_ratio, losses, slots):
    """delta = w'l + log(w'exp(-rate l)) / rate >= 0: what mixing by w lost beyond the mix loss."""
    mean = 0.0
    shrunk = 0.0
    for p in range(slots):
        if losses[p] < np.inf:
            mean += weights[p] * step_ratio[p]
    if rate == np.inf:
        return max(0.0, mean - after)
    for p in range(slots):
        if losses[p] < np.inf:
            shrunk += weights[p] * math.expm1(-rate * step_ratio[p])
    if shrunk > -0.5:  # the usual case: small steps, where the difference must not cancel
        return max(0.0, mean + math.log1p(shrunk) / rate)
    before = 0.0
    later = 0.0
    lowest = least_living(totals, losses, slots)
    for p in range(slots):
        if losses[p] < np.inf:
            before += math.exp(-rate * (totals[p] - lowest))
            later += math.exp(-rate * (totals[p] - lowest + step_ratio[p] - after))
    return max(0.0, mean - (after + (math.log(before) - math.log(later)) / rate))


HEDGE = argument_fields("slots", "rate", "slot_loss", "totals", "figures", "scratch", "chosen")


def hedge(args, first, count):
    """Weights by exp(-rate * sum of losses); rate = 0 stands for AdaHedge's.

    figures[0] is the rate in force, figures[1] the sum of mixability gaps, from which AdaHedge
    takes its rate: log(slots) / sum, which is infinite at first.
    """
    slots = read_int(args, HEDGE.slots)
    totals = float_array(args, HEDGE.totals)
    figures = float_array(args, HEDGE.figures)
    step_ratio = float_array(args, HEDGE.scratch)
    weights = pointer(step_ratio, slots)
    fixed = read_float(args, HEDGE.rate)
    for t in range(count):
        losses = pointer(float_array(args, HEDGE.slot_loss), t * slots)
        least = least_living(losses, losses, slots)
        for p in range(slots):
            step_ratio[p] = min(losses[p] - least, FARTHEST)
        if fixed > 0.0:
            advance(totals, step_ratio, losses, slots)
            figures[0] = fixed
        elif least < np.inf:
            size = math.log(max(slots, 2))
            rate = size / figures[1] if figures[1] > 0.0 else np.inf
            exponential(rate, totals, losses, slots, weights)
            lowest = least_living(totals, losses, slots)
            after = np.inf
            for p in range(slots):
                if losses[p] < np.inf:
                    after = min(after, totals[p] - lowest + step_ratio[p])
            gap = _mixability_gap(rate, weights, totals, after, step_ratio, losses, slots)
            figures[1] = min(figures[1] + gap, FARTHEST)
            figures[0] = size / figures[1] if figures[1] > 0.0 else np.inf
            advance(totals, step_ratio, losses, slots)
        exponential(
            figures[0], totals, losses, slots, pointer(float_array(args, HEDGE.chosen), t * slots)
        )


SWITCH = argument_fields("slots", "rate", "share", "slot_loss", "weights", "posterior", "chosen")


def switch(args, first, count):
    """Fixed share: an exponential step, then every living slot gives a share to all of them."""
    slots = read_int(args, SWITCH.slots)
    rate = read_float(args, SWITCH.rate)
    share = read_float(args, SWITCH.share)
    posterior = float_array(args, SWITCH.posterior)
    for t in range(count):
        losses = pointer(float_array(args, SWITCH.slot_loss), t * slots)
        chosen = pointer(float_array(args, SWITCH.chosen), t * slots)
        before = float_array(args, SWITCH.weights)
        if t > 0:
            before = pointer(float_array(args, SWITCH.chosen), (t - 1) * slots)
        least = least_living(losses, losses, slots)
        living = 0
        size = 0.0
        for p in range(slots):
            posterior[p] = 0.0
            if losses[p] < np.inf:
                living += 1
                posterior[p] = before[p] * math.exp(-rate * (losses[p] - least))
                size += posterior[p]
        for p in range(slots):
            posterior[p] = posterior[p] / size if size > 0.0 else 0.0
            chosen[p] = 0.0
            if losses[p] < np.inf:
                chosen[p] = (1.0 - share) * posterior[p] + share / living


INTERVALS = argument_fields(
    "slots", "levels", "rate", "slot_loss", "totals", "meta", "scale", "scratch", "chosen"
)


@inline
def _rate(rate, level):
    return min(0.5, rate * 2.0 ** (-0.5 * level))


@inline
def _instances(rate, levels, totals, losses, slots, own):
    """own[level] = the weights of the slots by the instance of that level."""
    for level in range(levels):
        place = level * slots
        exponential(_rate(rate, level), pointer(totals, place), losses, slots, pointer(own, place))


@inline
def _meta(rate, levels, meta, out):
    """out = the instances' shares: their first weight, their rate, times exp(meta)."""
    most = -np.inf
    for level in range(levels):
        most = max(most, meta[level])
    size = 0.0
    for level in range(levels):
        out[level] = _rate(rate, level) * math.exp(meta[level] - most)
        size += out[level]
    for level in range(levels):
        out[level] /= size


@inline
def _mixture(share, own, levels, slots, out):
    for p in range(slots):
        out[p] = 0.0
    for level in range(levels):
        for p in range(slots):
            out[p] += share[level] * own[level * slots + p]


def intervals(args, first, count):
    """One exponential instance for every dyadic length, mixed by their regrets (AdaRaker).

    meta[level] is the sum, over the interval so far, of rate times how much less the instance lost
    than the mixture. `scale` is the mixture's mean loss, over as many samples as the longest
    interval has.
    """
    slots = read_int(args, INTERVALS.slots)
    levels = read_int(args, INTERVALS.levels)
    rate = read_float(args, INTERVALS.rate)
    totals = float_array(args, INTERVALS.totals)
    meta = float_array(args, INTERVALS.meta)
    scale = float_array(args, INTERVALS.scale)
    own = float_array(args, INTERVALS.scratch)
    share = pointer(own, levels * slots)
    cut = pointer(share, levels)
    mixture = pointer(cut, slots)
    for t in range(count):
        losses = pointer(float_array(args, INTERVALS.slot_loss), t * slots)
        chosen = pointer(float_array(args, INTERVALS.chosen), t * slots)
        least = least_living(losses, losses, slots)
        if least == np.inf:
            for p in range(slots):
                chosen[p] = 0.0
            continue
        _instances(rate, levels, totals, losses, slots, own)
        _meta(rate, levels, meta, share)
        _mixture(share, own, levels, slots, mixture)
        paid = 0.0
        for p in range(slots):
            if losses[p] < np.inf:
                paid += mixture[p] * abs(losses[p])
        number = first + t + 1
        longest = 1 << (levels - 1)
        scale[0] += (min(paid, FARTHEST) - scale[0]) / min(number, longest)
        for p in range(slots):
            step_ratio = losses[p] - least
            cut[p] = 1.0 if step_ratio > scale[0] else step_ratio / scale[0]
            if step_ratio == 0.0:
                cut[p] = 0.0
        lost = 0.0
        for p in range(slots):
            lost += mixture[p] * cut[p]
        for level in range(levels):
            instance = 0.0
            for p in range(slots):
                instance += own[level * slots + p] * cut[p]
            meta[level] += _rate(rate, level) * (lost - instance)
            advance(pointer(totals, level * slots), cut, losses, slots)
            if number % (1 << level) == 0:  # its interval is over: the next sample starts anew
                meta[level] = 0.0
                for p in range(slots):
                    totals[level * slots + p] = 0.0
        _instances(rate, levels, totals, losses, slots, own)
        _meta(rate, levels, meta, share)
        _mixture(share, own, levels, slots, chosen)
