"""How a tree of cells grows within its memory: leaves store samples, are split, and are merged.

An *entry* is one input with all of its samples: its active coordinates, then the precision and the
mean of its targets, their number, and the number of the first sample. Entries stand in the order of
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

from ..native.formulas import pointer
from ..native.hash_rng import mix_key, unit_interval
from ..native.jit import inline
from .tree_inference import (
    CELL,
    CELL_SIZE,
    cell_at,
    child_of,
    combine_likelihoods,
    coordinate_of,
    index_below,
    update_cell,
)

ENTRY_EXTRA = 4  # numbers of an entry after its coordinates
PAIRS, SPLITS = 0, 1  # counters of a tree: pairs of children in use, splits made so far
CHANCE_GAIN = 10.0  # the square of a standard normal is larger once in 600 times
MAX_SPLITS = 2.0**53


@inline
def add_to_summary(cell, precision, target):
    """Add observations with this total precision and mean to the summary of a cell."""
    cell[CELL.summary_precision], cell[CELL.summary_mean] = combine_likelihoods(
        cell[CELL.summary_precision], cell[CELL.summary_mean], precision, target
    )


@inline
def summarize_entries(cell):
    """Move all stored samples of a leaf to its summary."""
    add_to_summary(cell, cell[CELL.stored_precision], cell[CELL.stored_mean])
    cell[CELL.stored_precision] = 0.0
    cell[CELL.stored_mean] = 0.0
    cell[CELL.entries] = 0.0
    cell[CELL.samples] = 0.0


@inline
def _entries_of(cell, entries, max_cells, capacity, dimension):
    """(capacity, dimension + ENTRY_EXTRA): the block of entries of a leaf."""
    block = index_below(cell[CELL.entry_block], (max_cells + 1) // 2)
    return pointer(entries, block * capacity * (dimension + ENTRY_EXTRA))


@inline
def _is_same_input(entry, point, stride, offsets, dimension):
    """Whether an entry has the active coordinates of the point."""
    for k in range(dimension):
        if entry[k] != coordinate_of(point, k, stride, offsets):
            return False
    return True


@inline
def store_sample(
    cell, entries, max_cells, capacity, dimension, point, stride, offsets, precision, target, number
):
    """Store a sample in a leaf; returns whether the leaf can be split now."""
    stored = _entries_of(cell, entries, max_cells, capacity, dimension)
    width = dimension + ENTRY_EXTRA
    count = index_below(cell[CELL.entries], capacity)
    e = 0
    while e < count and not _is_same_input(
        pointer(stored, e * width), point, stride, offsets, dimension
    ):
        e += 1
    entry = pointer(stored, e * width)
    if e == count:  # a new input
        for k in range(dimension):
            entry[k] = coordinate_of(point, k, stride, offsets)
        for k in range(dimension, width - 1):
            entry[k] = 0.0
        entry[width - 1] = number
        count += 1
        cell[CELL.entries] = count
    entry[dimension], entry[dimension + 1] = combine_likelihoods(
        entry[dimension], entry[dimension + 1], precision, target
    )
    entry[dimension + 2] += 1.0
    cell[CELL.stored_precision], cell[CELL.stored_mean] = combine_likelihoods(
        cell[CELL.stored_precision], cell[CELL.stored_mean], precision, target
    )
    cell[CELL.samples] += 1.0
    return count > 1 and cell[CELL.samples] >= capacity


@inline
def _sse_reduction(precision, mean, other_precision, other_mean):
    """How much two means instead of one lower the sum of squares; symmetric to the last bit."""
    least, most = min(precision, other_precision), max(precision, other_precision)
    apart = mean - other_mean
    return least * (most / (least + most)) * apart * apart


@inline
def _split_gain(stored, count, width, coordinate, threshold):
    """How much a split lowers the sum of squares of the targets around their means."""
    dimension = width - ENTRY_EXTRA
    left, left_mean, right, right_mean = 0.0, 0.0, 0.0, 0.0
    for e in range(count):
        entry = pointer(stored, e * width)
        if entry[coordinate] <= threshold:
            left, left_mean = combine_likelihoods(
                left, left_mean, entry[dimension], entry[dimension + 1]
            )
        else:
            right, right_mean = combine_likelihoods(
                right, right_mean, entry[dimension], entry[dimension + 1]
            )
    return _sse_reduction(left, left_mean, right, right_mean)


@inline
def best_split(cell, entries, max_cells, capacity, dimension, key):
    """The best of one random split per coordinate: coordinate (-1 for none), threshold, gain.

    Each side of a split has at least one entry. Of equal splits the first is taken.
    """
    stored = _entries_of(cell, entries, max_cells, capacity, dimension)
    width = dimension + ENTRY_EXTRA
    count = index_below(cell[CELL.entries], capacity + 1)
    best_coordinate, best_gain, best_threshold = -1, -np.inf, 0.0
    for k in range(dimension):
        low, high = np.inf, -np.inf
        for e in range(count):
            low = min(low, stored[e * width + k])
            high = max(high, stored[e * width + k])
        if not low < high:
            continue
        threshold = low + unit_interval(mix_key(key, k)) * (high - low)
        if not threshold < high:  # by rounding
            threshold = low
        gain = _split_gain(stored, count, width, k, threshold)
        if gain > best_gain or best_coordinate < 0:
            best_coordinate, best_gain, best_threshold = k, gain, threshold
    return best_coordinate, best_threshold, best_gain


@inline
def _merge_children(cells, max_cells, pair, variances, levels, path):
    """Summarize all samples of two leaves in their parent, and update the cells above."""
    left, right = cell_at(cells, pair), cell_at(cells, pair + 1)
    index = index_below(left[CELL.parent], max_cells)
    cell = cell_at(cells, index)
    summarize_entries(left)
    summarize_entries(right)
    add_to_summary(cell, left[CELL.summary_precision], left[CELL.summary_mean])
    add_to_summary(cell, right[CELL.summary_precision], right[CELL.summary_mean])
    cell[CELL.first_child] = 0.0
    cell[CELL.entry_block] = left[CELL.entry_block]
    count = 0
    while count < levels:
        path[count] = index
        count += 1
        if index == 0:
            break
        index = index_below(cell_at(cells, index)[CELL.parent], max_cells)
    for i in range(count):
        update_cell(cells, max_cells, path[i], variances[count - 1 - i])


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
def allocate_children(
    cells, max_cells, counters, index, gain_rate, number, variances, levels, path
):
    """The index of two cells for the children of a leaf; 0 if no other split is worth less."""
    pairs = index_below(counters[PAIRS], (max_cells - 1) // 2 + 1)
    if 2 * pairs + 2 < max_cells:
        counters[PAIRS] = pairs + 1
        # Each pair brings a block of entries for one more leaf; the root's is block 0.
        cell_at(cells, 2 * pairs + 2)[CELL.entry_block] = pairs + 1
        return 2 * pairs + 1
    chosen, least = 0, 0.5 * gain_rate
    for pair in range(1, 2 * pairs, 2):
        left, right = cell_at(cells, pair), cell_at(cells, pair + 1)
        if (
            child_of(left, max_cells) > 0
            or child_of(right, max_cells) > 0
            or pair <= index <= pair + 1
        ):
            continue
        other = _gain_rate(left, right, number)
        if other < least:
            chosen, least = pair, other
    if chosen > 0:
        _merge_children(cells, max_cells, chosen, variances, levels, path)
    return chosen


@inline
def _clear(cell):
    """Set all fields of a cell to 0."""
    for field in range(CELL_SIZE):
        cell[field] = 0.0


@inline
def split_leaf(
    cells, max_cells, index, pair, coordinate, threshold, entries, capacity, dimension, variance
):
    """Give a leaf two children, of prior variance `variance`, and move its entries to them."""
    cell = cell_at(cells, index)
    stored = _entries_of(cell, entries, max_cells, capacity, dimension)
    width = dimension + ENTRY_EXTRA
    left, right = cell_at(cells, pair), cell_at(cells, pair + 1)
    block = right[CELL.entry_block]
    for child in (left, right):
        _clear(child)
        child[CELL.parent] = index
        child[CELL.first_sample] = stored[width - 1]
    left[CELL.entry_block] = cell[CELL.entry_block]
    right[CELL.entry_block] = block
    other = _entries_of(right, entries, max_cells, capacity, dimension)
    below, above = 0, 0
    for e in range(index_below(cell[CELL.entries], capacity + 1)):
        entry = pointer(stored, e * width)
        if entry[coordinate] <= threshold:
            child, target = left, pointer(stored, below * width)
            below += 1
        else:
            child, target = right, pointer(other, above * width)
            above += 1
        for k in range(width):
            target[k] = entry[k]
        child[CELL.stored_precision], child[CELL.stored_mean] = combine_likelihoods(
            child[CELL.stored_precision],
            child[CELL.stored_mean],
            target[dimension],
            target[dimension + 1],
        )
        child[CELL.samples] += target[dimension + 2]
    left[CELL.entries] = below
    right[CELL.entries] = above
    cell[CELL.first_child] = pair
    cell[CELL.coordinate] = coordinate
    cell[CELL.threshold] = threshold
    cell[CELL.stored_precision] = 0.0
    cell[CELL.stored_mean] = 0.0
    cell[CELL.entries] = 0.0
    cell[CELL.samples] = 0.0
    update_cell(cells, max_cells, pair, variance)
    update_cell(cells, max_cells, pair + 1, variance)


@inline
def learn_sample(
    cells,
    max_cells,
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
    """Learn one sample, whose cells are path[:depth].

    cells: (max_cells, CELL_SIZE); variances, path, other_path: (levels,); entries:
    ((max_cells + 1) // 2, capacity, dimension + ENTRY_EXTRA).
    """
    index = path[depth - 1]
    cell = cell_at(cells, index)
    if depth == levels:
        add_to_summary(cell, precision, target)
    elif store_sample(
        cell,
        entries,
        max_cells,
        capacity,
        dimension,
        point,
        stride,
        offsets,
        precision,
        target,
        number,
    ):
        splits = index_below(counters[SPLITS], MAX_SPLITS)
        coordinate, threshold, gain = best_split(
            cell, entries, max_cells, capacity, dimension, mix_key(key, splits)
        )
        pair = 0
        if coordinate >= 0:
            stored = _entries_of(cell, entries, max_cells, capacity, dimension)
            gain_rate = (gain - CHANCE_GAIN) / (number - stored[dimension + ENTRY_EXTRA - 1] + 1.0)
            pair = allocate_children(
                cells, max_cells, counters, index, gain_rate, number, variances, levels, other_path
            )
        if pair > 0:
            counters[SPLITS] = splits + 1
            split_leaf(
                cells,
                max_cells,
                index,
                pair,
                coordinate,
                threshold,
                entries,
                capacity,
                dimension,
                variances[depth],
            )
        else:
            summarize_entries(cell)
    for i in range(depth):
        level = depth - 1 - i
        update_cell(cells, max_cells, path[level], variances[level])
