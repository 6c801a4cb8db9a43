"""How a tree of cells grows within its memory: leaves store samples, are split, and are merged.

An *entry* is one input with all of its samples: its active coordinates, then the precision and the
mean of its targets, their number, and the number of the first sample. It is a column of its leaf's
block, so that a search among the inputs reads few cache lines. Entries stand in the order of
their first samples, so the first entry has the oldest sample. A leaf is split once it stores
`capacity` samples of at least two different inputs.

The *gain* of a split is how much it lowers the sum of squared errors of its samples, in units of
the noise. Its *gain rate* is the gain per sample of the stream since the oldest of them. When all
cells are in use, a new split takes the cells of the split between two leaves with the least gain
rate, if its own gain rate is at least twice as high. CHANCE_GAIN is subtracted from its gain: the
best of some splits through mere noise lowers the sum too. The samples of those two leaves are
summarized in their parent. A leaf that finds no such pair summarizes its own samples instead, and
starts again to store. So cells go where they help most; and the gain rate of splits in
regions that the stream has left falls with time.
"""

# mypy: disable-error-code="no-untyped-def"
import numpy as np

from ..native.arguments import floats, ints
from ..native.hash_rng import mix_key, unit_interval
from ..native.jit import inline
from .tree_inference import (
    CELL,
    CELL_SIZE,
    TREE,
    child_of,
    combine_likelihoods,
    coordinate_of,
    index_below,
    update_cell,
)

PRECISION, MEAN, SAMPLES, FIRST_SAMPLE = 0, 1, 2, 3  # numbers of an entry after its coordinates
ENTRY_EXTRA = 4
PAIRS, SPLITS = 0, 1  # counters of a tree: pairs of children in use, splits made so far
COUNTERS = 2
CHANCE_GAIN = 10.0  # the square of a standard normal is larger once in 600 times
MAX_SPLITS = 2.0**53

GROWING = TREE.extended(
    "growing_tree",
    capacity=int,  # samples of a leaf before it is split
    entries=floats("leaves", "(max_cells + 1) // 2", f"dimension + {ENTRY_EXTRA}", "capacity"),
    counters=floats("leaves", COUNTERS),
    variances=floats("leaves", "max_levels"),  # v of each level
    other_path=ints("max_levels"),  # scratch: the cells above a pair of leaves, from below
)


@inline
def add_to_summary(cell, precision, target):
    """Add observations with this total precision and mean to the summary of a cell."""
    cell[CELL.summary_precision], cell[CELL.summary_mean] = combine_likelihoods(
        cell[CELL.summary_precision], cell[CELL.summary_mean], precision, target
    )


@inline
def _clear_entries(cell):
    """Let a cell store nothing."""
    cell[CELL.stored_precision] = 0.0
    cell[CELL.stored_mean] = 0.0
    cell[CELL.entries] = 0.0
    cell[CELL.samples] = 0.0


@inline
def summarize_entries(cell):
    """Move all stored samples of a leaf to its summary."""
    add_to_summary(cell, cell[CELL.stored_precision], cell[CELL.stored_mean])
    _clear_entries(cell)


@inline
def _add_to_stored(cell, precision, target):
    """Add observations with this total precision and mean to what a cell stores."""
    cell[CELL.stored_precision], cell[CELL.stored_mean] = combine_likelihoods(
        cell[CELL.stored_precision], cell[CELL.stored_mean], precision, target
    )


@inline
def _entries_of(cell, entries):
    """(dimension + ENTRY_EXTRA, capacity): the block of entries of a leaf, one per column."""
    return entries[index_below(cell[CELL.entry_block], len(entries))]


@inline
def _is_same_input(a, stored, e, position):
    """Whether entry e has the active coordinates of the input at a position."""
    for k in range(a.dimension):
        if stored[k, e] != coordinate_of(a.inputs, a.active, position, k):
            return False
    return True


@inline
def store_sample(a, cell, stored, position, precision, target, number):
    """Store a sample in a leaf, among the entries `stored`; returns whether it can be split now."""
    dimension = a.dimension
    count = index_below(cell[CELL.entries], a.capacity)
    e = 0
    while e < count and not _is_same_input(a, stored, e, position):
        e += 1
    if e == count:  # a new input
        for k in range(dimension):
            stored[k, e] = coordinate_of(a.inputs, a.active, position, k)
        stored[dimension + PRECISION, e] = 0.0
        stored[dimension + MEAN, e] = 0.0
        stored[dimension + SAMPLES, e] = 0.0
        stored[dimension + FIRST_SAMPLE, e] = number
        count += 1
        cell[CELL.entries] = count
    stored[dimension + PRECISION, e], stored[dimension + MEAN, e] = combine_likelihoods(
        stored[dimension + PRECISION, e], stored[dimension + MEAN, e], precision, target
    )
    stored[dimension + SAMPLES, e] += 1.0
    _add_to_stored(cell, precision, target)
    cell[CELL.samples] += 1.0
    return count > 1 and cell[CELL.samples] >= a.capacity


@inline
def _sse_reduction(precision, mean, other_precision, other_mean):
    """How much two means instead of one lower the sum of squares; symmetric to the last bit."""
    least, most = min(precision, other_precision), max(precision, other_precision)
    apart = mean - other_mean
    return least * (most / (least + most)) * apart * apart


@inline
def _split_gain(stored, count, dimension, coordinate, threshold):
    """How much a split lowers the sum of squares of the targets around their means."""
    left, left_mean, right, right_mean = 0.0, 0.0, 0.0, 0.0
    for e in range(count):
        precision, mean = stored[dimension + PRECISION, e], stored[dimension + MEAN, e]
        if stored[coordinate, e] <= threshold:
            left, left_mean = combine_likelihoods(left, left_mean, precision, mean)
        else:
            right, right_mean = combine_likelihoods(right, right_mean, precision, mean)
    return _sse_reduction(left, left_mean, right, right_mean)


@inline
def best_split(stored, count, dimension, key):
    """The best of one random split per coordinate: coordinate (-1 for none), threshold, gain.

    Each side of a split has at least one of the `count` entries. Of equal splits the first is
    taken.
    """
    best_coordinate, best_gain, best_threshold = -1, -np.inf, 0.0
    for k in range(dimension):
        low, high = np.inf, -np.inf
        for e in range(count):
            low = min(low, stored[k, e])
            high = max(high, stored[k, e])
        if not low < high:
            continue
        threshold = low + unit_interval(mix_key(key, k)) * (high - low)
        if not threshold < high:  # by rounding
            threshold = low
        gain = _split_gain(stored, count, dimension, k, threshold)
        if gain > best_gain or best_coordinate < 0:
            best_coordinate, best_gain, best_threshold = k, gain, threshold
    return best_coordinate, best_threshold, best_gain


@inline
def _merge_children(a, leaf, pair):
    """Summarize all samples of two leaves in their parent, and update the cells above."""
    cells, path = a.cells[leaf], a.other_path
    left, right = cells[pair], cells[pair + 1]
    index = index_below(left[CELL.parent], len(cells))
    cell = cells[index]
    summarize_entries(left)
    summarize_entries(right)
    add_to_summary(cell, left[CELL.summary_precision], left[CELL.summary_mean])
    add_to_summary(cell, right[CELL.summary_precision], right[CELL.summary_mean])
    cell[CELL.first_child] = 0.0
    cell[CELL.entry_block] = left[CELL.entry_block]
    count = 0
    while count < a.levels[leaf]:
        path[count] = index
        count += 1
        if index == 0:
            break
        index = index_below(cells[index, CELL.parent], len(cells))
    for i in range(count):
        update_cell(cells, path[i], a.variances[leaf, count - 1 - i])


@inline
def _gain_rate(left, right, number):
    """The gain of the split between two leaves, per sample up to sample `number`."""
    reduction = _sse_reduction(
        left[CELL.summary_precision] + left[CELL.stored_precision],
        left[CELL.mean],
        right[CELL.summary_precision] + right[CELL.stored_precision],
        right[CELL.mean],
    )
    return reduction / (number - left[CELL.first_sample] + 1.0)


@inline
def allocate_children(a, leaf, index, gain_rate, number):
    """The index of two cells for the children of a leaf; 0 if no other split is worth less."""
    cells = a.cells[leaf]
    pairs = index_below(a.counters[leaf, PAIRS], (a.max_cells - 1) // 2 + 1)
    if 2 * pairs + 2 < a.max_cells:
        a.counters[leaf, PAIRS] = pairs + 1
        # Each pair brings a block of entries for one more leaf; the root's is block 0.
        cells[2 * pairs + 2, CELL.entry_block] = pairs + 1
        return 2 * pairs + 1
    chosen, least = 0, 0.5 * gain_rate
    for pair in range(1, 2 * pairs, 2):
        between_leaves = child_of(cells, pair) == 0 and child_of(cells, pair + 1) == 0
        if not between_leaves or pair <= index <= pair + 1:
            continue
        other = _gain_rate(cells[pair], cells[pair + 1], number)
        if other < least:
            chosen, least = pair, other
    if chosen > 0:
        _merge_children(a, leaf, chosen)
    return chosen


@inline
def split_leaf(a, leaf, index, pair, coordinate, threshold, variance):
    """Give a leaf two children, of prior variance `variance`, and move its entries to them."""
    cells, entries, dimension = a.cells[leaf], a.entries[leaf], a.dimension
    cell, left, right = cells[index], cells[pair], cells[pair + 1]
    stored = _entries_of(cell, entries)
    block = right[CELL.entry_block]
    for child in (left, right):
        for field in range(CELL_SIZE):
            child[field] = 0.0
        child[CELL.parent] = index
        child[CELL.first_sample] = stored[dimension + FIRST_SAMPLE, 0]
    left[CELL.entry_block] = cell[CELL.entry_block]
    right[CELL.entry_block] = block
    other = _entries_of(right, entries)
    below, above = 0, 0
    for e in range(index_below(cell[CELL.entries], a.capacity + 1)):
        if stored[coordinate, e] <= threshold:
            child, moved, place = left, stored, below
            below += 1
        else:
            child, moved, place = right, other, above
            above += 1
        for k in range(dimension + ENTRY_EXTRA):
            moved[k, place] = stored[k, e]
        _add_to_stored(child, moved[dimension + PRECISION, place], moved[dimension + MEAN, place])
        child[CELL.samples] += moved[dimension + SAMPLES, place]
    left[CELL.entries] = below
    right[CELL.entries] = above
    cell[CELL.first_child] = pair
    cell[CELL.coordinate] = coordinate
    cell[CELL.threshold] = threshold
    _clear_entries(cell)
    update_cell(cells, pair, variance)
    update_cell(cells, pair + 1, variance)


@inline
def learn_sample(a, leaf, depth, position, precision, target, number, key):
    """Learn the sample of this number, with its input at `position` and its cells a.path[:depth].

    a: see GROWING; precision, target: of the observation of f at the input; key: of the slot, for
    the random splits.
    """
    cells, variances = a.cells[leaf], a.variances[leaf]
    index = a.path[depth - 1]
    cell = cells[index]
    stored = _entries_of(cell, a.entries[leaf])  # (dimension + ENTRY_EXTRA, capacity)
    if depth == a.levels[leaf]:
        add_to_summary(cell, precision, target)
    elif store_sample(a, cell, stored, position, precision, target, number):
        splits = index_below(a.counters[leaf, SPLITS], MAX_SPLITS)
        count = index_below(cell[CELL.entries], a.capacity + 1)
        coordinate, threshold, gain = best_split(stored, count, a.dimension, mix_key(key, splits))
        pair = 0
        if coordinate >= 0:
            age = number - stored[a.dimension + FIRST_SAMPLE, 0] + 1.0
            pair = allocate_children(a, leaf, index, (gain - CHANCE_GAIN) / age, number)
        if pair > 0:
            a.counters[leaf, SPLITS] = splits + 1
            split_leaf(a, leaf, index, pair, coordinate, threshold, variances[depth])
        else:
            summarize_entries(cell)
    for i in range(depth):
        level = depth - 1 - i
        update_cell(cells, a.path[level], variances[level])
