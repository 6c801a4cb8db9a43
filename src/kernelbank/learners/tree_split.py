"""How a tree of cells accepts_new_inputs within its memory: leaves hold samples, are cut, and are merged.

An *entry* is a different input with all of its samples: the coordinates, then the precision and
the mean of its targets, how many there are, and the number of the first. Entries stand in the
order of their first samples, so the first entry has the oldest. A leaf is cut once it holds
`capacity` samples of at least two different inputs; so it holds fewer, or any number of one input.

A cut is *worth* by how much it lowers the sum of squares of the samples that it parts, in units of
the noise and per sample of the stream since the oldest of them. When all cells are in use, a new
cut takes the cells of the cut between two leaves that is worth least, if it is itself worth twice
as much, with CHANCE taken off: the best of some cuts through mere noise lowers the sum too. The
samples of those two leaves become their parent's own. A leaf that finds no such pair makes its
samples its own instead, and starts to hold anew. So cells go where they help most; and as time goes
by without samples, what was cut in places that the stream has left is worth less and less.
"""

import numpy as np

from ..native.formulas import pointer
from ..native.hash_rng import fraction, stirred
from ..native.jit import inline
from .tree_inference import CELL, SIZE, cell_at, child_of, index_below, refresh, seen, together

BESIDE = 4  # what stands in an entry after its coordinates
PAIRS, CUTS = 0, 1  # the counters of a tree: pairs of children in use, and cuts made so far
CHANCE = 10.0  # a normal error's square is larger once in 600 times
MOST = 2.0**53


@inline
def own(cell, precision, target):
    """Take in a sample by its sum only."""
    cell[CELL.own_precision], cell[CELL.own_mean] = together(
        cell[CELL.own_precision], cell[CELL.own_mean], precision, target
    )


@inline
def own_held(cell):
    """Keep of the samples held only their sum, and none of their inputs."""
    own(cell, cell[CELL.held_precision], cell[CELL.held_mean])
    cell[CELL.held_precision] = 0.0
    cell[CELL.held_mean] = 0.0
    cell[CELL.entries] = 0.0
    cell[CELL.samples] = 0.0


@inline
def _entries_of(cell, entries, limit, capacity, dimension):
    place = index_below(cell[CELL.place], (limit + 1) // 2)
    return pointer(entries, place * capacity * (dimension + BESIDE))


@inline
def _is_input(entry, point, stride, offsets, dimension):
    for k in range(dimension):
        if entry[k] != seen(point, k, stride, offsets):
            return False
    return True


@inline
def hold(
    cell, entries, limit, capacity, dimension, point, stride, offsets, precision, target, number
):
    """Let a leaf hold one more sample. Whether it can be cut now."""
    held = _entries_of(cell, entries, limit, capacity, dimension)
    width = dimension + BESIDE
    count = index_below(cell[CELL.entries], capacity)
    at = 0
    while at < count and not _is_input(
        pointer(held, at * width), point, stride, offsets, dimension
    ):
        at += 1
    entry = pointer(held, at * width)
    if at == count:
        for k in range(dimension):
            entry[k] = seen(point, k, stride, offsets)
        for k in range(dimension, width - 1):
            entry[k] = 0.0
        entry[width - 1] = number
        count += 1
        cell[CELL.entries] = count
    entry[dimension], entry[dimension + 1] = together(
        entry[dimension], entry[dimension + 1], precision, target
    )
    entry[dimension + 2] += 1.0
    cell[CELL.held_precision], cell[CELL.held_mean] = together(
        cell[CELL.held_precision], cell[CELL.held_mean], precision, target
    )
    cell[CELL.samples] += 1.0
    return count > 1 and cell[CELL.samples] >= capacity


@inline
def _lowered(precision, mean, other_precision, other_mean):
    """By how much two means instead of one lower the sum of squares; the same in both orders."""
    least, most = min(precision, other_precision), max(precision, other_precision)
    apart = mean - other_mean
    return least * (most / (least + most)) * apart * apart


@inline
def _gain_of_cut(held, count, width, coordinate, cut):
    """By how much the cut lowers the sum of squares of the targets around their means."""
    dimension = width - BESIDE
    left, left_mean, right, right_mean = 0.0, 0.0, 0.0, 0.0
    for e in range(count):
        entry = pointer(held, e * width)
        if entry[coordinate] <= cut:
            left, left_mean = together(left, left_mean, entry[dimension], entry[dimension + 1])
        else:
            right, right_mean = together(right, right_mean, entry[dimension], entry[dimension + 1])
    return _lowered(left, left_mean, right, right_mean)


@inline
def best_cut(cell, entries, limit, capacity, dimension, key):
    """The best of one random cut per coordinate: which, where, and its gain. -1 if there is none.

    Below a cut lies at least one entry, and above it another. Of equal ones the first is taken.
    """
    held = _entries_of(cell, entries, limit, capacity, dimension)
    width = dimension + BESIDE
    count = index_below(cell[CELL.entries], capacity + 1)
    chosen, best, where = -1, -np.inf, 0.0
    for k in range(dimension):
        low, high = np.inf, -np.inf
        for e in range(count):
            low = min(low, held[e * width + k])
            high = max(high, held[e * width + k])
        if not low < high:
            continue
        cut = low + fraction(stirred(key, k)) * (high - low)
        if not cut < high:  # by rounding
            cut = low
        gain = _gain_of_cut(held, count, width, k, cut)
        if gain > best or chosen < 0:
            chosen, best, where = k, gain, cut
    return chosen, where, best


@inline
def _merge(cells, limit, pair, variances, levels, path):
    """Make all samples of two leaves their parent's own, and tell the cells above."""
    left, right = cell_at(cells, pair), cell_at(cells, pair + 1)
    index = index_below(left[CELL.parent], limit)
    cell = cell_at(cells, index)
    own_held(left)
    own_held(right)
    own(cell, left[CELL.own_precision], left[CELL.own_mean])
    own(cell, right[CELL.own_precision], right[CELL.own_mean])
    cell[CELL.child] = 0.0
    cell[CELL.place] = left[CELL.place]
    count = 0
    while count < levels:
        path[count] = index
        count += 1
        if index == 0:
            break
        index = index_below(cell_at(cells, index)[CELL.parent], limit)
    for i in range(count):
        refresh(cells, limit, path[i], variances[count - 1 - i])


@inline
def _worth(left, right, number):
    """Of the cut between two leaves, after sample `number`."""
    lowered = _lowered(
        left[CELL.own_precision] + left[CELL.held_precision],
        left[CELL.mean],
        right[CELL.own_precision] + right[CELL.held_precision],
        right[CELL.mean],
    )
    return lowered / (number - left[CELL.since] + 1.0)


@inline
def free_pair(cells, limit, counters, index, worth, number, variances, levels, path):
    """Two cells for the children of a leaf whose cut has that worth; 0 if none."""
    pairs = index_below(counters[PAIRS], (limit - 1) // 2 + 1)
    if 2 * pairs + 2 < limit:
        counters[PAIRS] = pairs + 1
        # Each pair brings room for the entries of one more leaf; the root's is at place 0.
        cell_at(cells, 2 * pairs + 2)[CELL.place] = pairs + 1
        return 2 * pairs + 1
    chosen, least = 0, 0.5 * worth
    for pair in range(1, 2 * pairs, 2):
        left, right = cell_at(cells, pair), cell_at(cells, pair + 1)
        if child_of(left, limit) > 0 or child_of(right, limit) > 0 or pair <= index <= pair + 1:
            continue
        other = _worth(left, right, number)
        if other < least:
            chosen, least = pair, other
    if chosen > 0:
        _merge(cells, limit, chosen, variances, levels, path)
    return chosen


@inline
def _clear(cell):
    for field in range(SIZE):
        cell[field] = 0.0


@inline
def cut_leaf(cells, limit, index, pair, coordinate, where, entries, capacity, dimension, variance):
    """Give a leaf two children, of that variance, and hand its entries down to them."""
    cell = cell_at(cells, index)
    held = _entries_of(cell, entries, limit, capacity, dimension)
    width = dimension + BESIDE
    left, right = cell_at(cells, pair), cell_at(cells, pair + 1)
    place = right[CELL.place]
    for child in (left, right):
        _clear(child)
        child[CELL.parent] = index
        child[CELL.since] = held[width - 1]
    left[CELL.place] = cell[CELL.place]
    right[CELL.place] = place
    other = _entries_of(right, entries, limit, capacity, dimension)
    below, above = 0, 0
    for e in range(index_below(cell[CELL.entries], capacity + 1)):
        entry = pointer(held, e * width)
        if entry[coordinate] <= where:
            child, target = left, pointer(held, below * width)
            below += 1
        else:
            child, target = right, pointer(other, above * width)
            above += 1
        for k in range(width):
            target[k] = entry[k]
        child[CELL.held_precision], child[CELL.held_mean] = together(
            child[CELL.held_precision],
            child[CELL.held_mean],
            target[dimension],
            target[dimension + 1],
        )
        child[CELL.samples] += target[dimension + 2]
    left[CELL.entries] = below
    right[CELL.entries] = above
    cell[CELL.child] = pair
    cell[CELL.coordinate] = coordinate
    cell[CELL.cut] = where
    cell[CELL.held_precision] = 0.0
    cell[CELL.held_mean] = 0.0
    cell[CELL.entries] = 0.0
    cell[CELL.samples] = 0.0
    refresh(cells, limit, pair, variance)
    refresh(cells, limit, pair + 1, variance)


@inline
def take_in(
    cells,
    limit,
    counters,
    entries,
    capacity,
    dimension,
    variances,
    levels,
    path,
    depth,
    other_path,
    point,
    stride,
    offsets,
    precision,
    target,
    number,
    key,
):
    """Learn one sample, whose cells are path[:depth]."""
    index = path[depth - 1]
    cell = cell_at(cells, index)
    if depth == levels:
        own(cell, precision, target)
    elif hold(
        cell, entries, limit, capacity, dimension, point, stride, offsets, precision, target, number
    ):
        cuts = index_below(counters[CUTS], MOST)
        coordinate, where, gain = best_cut(
            cell, entries, limit, capacity, dimension, stirred(key, cuts)
        )
        pair = 0
        if coordinate >= 0:
            held = _entries_of(cell, entries, limit, capacity, dimension)
            worth = (gain - CHANCE) / (number - held[dimension + BESIDE - 1] + 1.0)
            pair = free_pair(
                cells, limit, counters, index, worth, number, variances, levels, other_path
            )
        if pair > 0:
            counters[CUTS] = cuts + 1
            cut_leaf(
                cells,
                limit,
                index,
                pair,
                coordinate,
                where,
                entries,
                capacity,
                dimension,
                variances[depth],
            )
        else:
            own_held(cell)
    for i in range(depth):
        level = depth - 1 - i
        refresh(cells, limit, path[level], variances[level])
