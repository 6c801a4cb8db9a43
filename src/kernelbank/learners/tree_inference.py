"""Exact inference in a tree of cells with one Gaussian variable each.

A cell c of level l has a value h_c = h_parent + g_c with g_c ~ N(0, v_l), h = 0 above the root.
Samples are observations of the values of cells, each with a precision. Two messages to a cell's
parent follow from the cell's subtree alone:

    precision, mean           the likelihood of h_parent, a Gaussian
    weight, centre, constant  sum of g^2 / v over the subtree, with each g at its best given
                              h_parent: weight (h_parent - centre)^2 + constant

Both are computed again from the two children's messages whenever something below changes. Nothing
is ever subtracted, so nothing drifts. Written around centres, sums of squares stay sums of squares.
Given h_parent, the best h_c is h_parent + gain (mean - h_parent): f(x) follows on the way from the
root to the leaf of x.

A leaf *stores* samples with their inputs, as entries (see `tree_split`). Samples that are
*summarized* in a cell are known by their total precision and mean only.

Cells may come from a forged file: indices are bounded before use.
"""

# mypy: disable-error-code="no-untyped-def"
from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import argument_fields

CELL = argument_fields(
    "first_child",  # index; the second child is the next cell; 0 for a leaf
    "coordinate",  # of the split
    "threshold",  # of the split: x[coordinate] <= threshold goes to the first child
    "gain",
    "mean",
    "precision",
    "weight",
    "centre",
    "constant",
    "summary_precision",  # of the summarized samples
    "summary_mean",
    "stored_precision",  # of the stored samples
    "stored_mean",
    "entries",  # number of different inputs stored
    "samples",  # number of samples stored
    "first_sample",  # number of the oldest sample that the split above gave to its children
    "entry_block",  # index of the cell's block of entries
    "parent",  # index
)
CELL_SIZE = len(CELL)


@inline
def index_below(number, limit):
    """The float as an index, if it is one in 0 .. limit - 1; 0 for all others and for NaN."""
    if 0.0 <= number < limit:
        return int(number)
    return 0


@inline
def cell_at(cells, index):
    """(CELL_SIZE,): a cell of cells (max_cells, CELL_SIZE)."""
    return pointer(cells, index * CELL_SIZE)


@inline
def child_of(cell, max_cells):
    """The index of the first child, or 0 for a leaf."""
    return index_below(cell[CELL.first_child], max_cells - 1)


@inline
def combine_likelihoods(precision, mean, other_precision, other_mean):
    """Precision and mean of the product of two Gaussian likelihoods of one value."""
    total = precision + other_precision
    if total > 0.0:
        mean += (other_mean - mean) * (other_precision / total)
    return total, mean


@inline
def combine_quadratics(weight, centre, other_weight, other_centre):
    """a (h - b)^2 + c (h - d)^2 as weight, centre and constant; no term is negative."""
    total = weight + other_weight
    if total > 0.0:
        share = other_weight / total
        apart = other_centre - centre
        return total, centre + share * apart, weight * share * apart * apart
    return 0.0, centre, 0.0


@inline
def update_cell(cells, max_cells, index, variance):
    """Compute the messages of a cell, with prior variance `variance`, to its parent."""
    cell = cell_at(cells, index)
    precision, mean = combine_likelihoods(
        cell[CELL.summary_precision],
        cell[CELL.summary_mean],
        cell[CELL.stored_precision],
        cell[CELL.stored_mean],
    )
    weight, centre, constant = 0.0, 0.0, 0.0
    child = child_of(cell, max_cells)
    if child > 0:
        left, right = cell_at(cells, child), cell_at(cells, child + 1)
        below, middle = combine_likelihoods(
            left[CELL.precision], left[CELL.mean], right[CELL.precision], right[CELL.mean]
        )
        precision, mean = combine_likelihoods(precision, mean, below, middle)
        weight, centre, constant = combine_quadratics(
            left[CELL.weight], left[CELL.centre], right[CELL.weight], right[CELL.centre]
        )
        constant += left[CELL.constant] + right[CELL.constant]
    # With r = variance * precision, the best h = (h_parent + r mean) / (1 + r) is put in for h.
    ratio = variance * precision
    shrinkage = 1.0 / (1.0 + ratio)
    gain = ratio * shrinkage
    passed = precision * shrinkage
    centre = centre + ratio * (centre - mean) if weight > 0.0 else mean
    # g = gain (mean - h_parent), and gain / variance is `passed`.
    weight, centre, more = combine_quadratics(
        gain * passed, mean, weight * shrinkage * shrinkage, centre
    )
    cell[CELL.gain] = gain
    cell[CELL.mean] = mean
    cell[CELL.precision] = passed
    cell[CELL.weight] = weight
    cell[CELL.centre] = centre
    cell[CELL.constant] = constant + more


@inline
def squared_norm(cells):
    """Sum of g^2 / v over all cells: the root's message at h = 0."""
    return cells[CELL.weight] * cells[CELL.centre] * cells[CELL.centre] + cells[CELL.constant]


@inline
def coordinate_of(point, k, stride, offsets):
    """Active coordinate k of a point.

    Active coordinates are `stride` apart in memory, or, if stride is 0, at `offsets`. Most trees
    use all coordinates, and a multiplication is faster than a read of the offsets.
    """
    return point[k * stride] if stride != 0 else point[offsets[k]]


@inline
def descend(cells, max_cells, levels, dimension, point, stride, offsets, path):
    """From the root to the leaf of a point: returns the number of cells on `path`, and f(point)."""
    value = 0.0
    index = 0
    for level in range(levels):
        path[level] = index
        cell = cell_at(cells, index)
        # h = h_parent + gain (mean - h_parent)
        value += cell[CELL.gain] * (cell[CELL.mean] - value)
        child = child_of(cell, max_cells)
        if child == 0:
            return level + 1, value
        coordinate = index_below(cell[CELL.coordinate], dimension)
        x = coordinate_of(point, coordinate, stride, offsets)
        index = child if x <= cell[CELL.threshold] else child + 1
    return levels, value
