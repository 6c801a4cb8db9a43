"""Regret by its definition: every comparator is tried."""

from itertools import pairwise, product
from math import fsum


def best_slot(loss, slot_loss):
    """The regret after the last sample against the best slot."""
    slots = range(len(slot_loss[0]))
    return fsum(loss) - min(fsum(row[p] for row in slot_loss) for p in slots)


def best_slot_per_interval(loss, slot_loss, length):
    """The sum of the regrets of the intervals."""
    starts = range(0, len(loss), length)
    return fsum(best_slot(loss[s : s + length], slot_loss[s : s + length]) for s in starts)


def best_slot_sequence(loss, slot_loss, switches):
    """Against the best of all sequences of slots with so many switches."""
    slots = range(len(slot_loss[0]))
    allowed = [
        sequence
        for sequence in product(slots, repeat=len(loss))
        if sum(p != q for p, q in pairwise(sequence)) <= switches
    ]
    sums = (fsum(row[p] for row, p in zip(slot_loss, one, strict=True)) for one in allowed)
    return fsum(loss) - min(sums)
