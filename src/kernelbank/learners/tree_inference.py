"""A tree of cells with one Gaussian variable each, and exact inference in it.

A cell c of level l has a value h_c = h_parent + g_c with g_c ~ N(0, v_l), h = 0 above the root.
Samples are observations of the values of cells, with a precision each. Two things about a cell
follow from its subtree alone, and are what it keeps for its parent:

    precision, mean       what the samples say about h_parent: a Gaussian likelihood
    weight, centre, rest  sum of g^2 / v over the subtree, each g at its best given h_parent:
                          weight (h_parent - centre)^2 + rest

Both are computed anew from the two children's whenever something below changes: nothing is ever
subtracted, so nothing drifts. Written around centres, sums of squares stay sums of squares. Given
h_parent the best h_c is h_parent + gain (mean - h_parent): a walk from the root predicts.

*Own* samples of a cell are known by their sum only; *held* ones, of leaves, by their inputs too.

Whatever is read from the cells may come from a forged file: indices are bounded before use.
"""

from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import argument_fields

CELL = argument_fields(
    "child",  # of two children, which are neighbours; 0 for a leaf
    "coordinate",
    "cut",
    "gain",
    "mean",
    "precision",
    "weight",
    "centre",
    "rest",
    "own_precision",
    "own_mean",
    "held_precision",
    "held_mean",
    "entries",  # different inputs held
    "samples",  # samples held
    "since",  # number of the oldest sample that the two children were given at their birth
    "place",  # of the entries in their table
    "parent",
)
SIZE = len(CELL)


@inline
def index_below(number, limit):
    """The float as an index, if it is one in 0 .. limit - 1; 0 for all others and for NaN."""
    if 0.0 <= number < limit:
        return int(number)
    return 0


@inline
def cell_at(cells, index):
    return pointer(cells, index * SIZE)


@inline
def child_of(cell, limit):
    """The first of two children, or 0."""
    return index_below(cell[CELL.child], limit - 1)


@inline
def together(precision, mean, other_precision, other_mean):
    """Precision and mean of two Gaussian likelihoods of one value."""
    total = precision + other_precision
    if total > 0.0:
        mean += (other_mean - mean) * (other_precision / total)
    return total, mean


@inline
def squares_together(weight, centre, other_weight, other_centre):
    """a (h - b)^2 + c (h - d)^2 as weight, centre and rest; no term is negative."""
    total = weight + other_weight
    if total > 0.0:
        share = other_weight / total
        apart = other_centre - centre
        return total, centre + share * apart, weight * share * apart * apart
    return 0.0, centre, 0.0


@inline
def refresh(cells, limit, index, variance):
    """Compute anew what a cell of that variance keeps for its parent."""
    cell = cell_at(cells, index)
    precision, mean = together(
        cell[CELL.own_precision],
        cell[CELL.own_mean],
        cell[CELL.held_precision],
        cell[CELL.held_mean],
    )
    weight, centre, rest = 0.0, 0.0, 0.0
    child = child_of(cell, limit)
    if child > 0:
        left, right = cell_at(cells, child), cell_at(cells, child + 1)
        below, middle = together(
            left[CELL.precision], left[CELL.mean], right[CELL.precision], right[CELL.mean]
        )
        precision, mean = together(precision, mean, below, middle)
        weight, centre, rest = squares_together(
            left[CELL.weight], left[CELL.centre], right[CELL.weight], right[CELL.centre]
        )
        rest += left[CELL.rest] + right[CELL.rest]
    # With r = variance * precision, h = (h_parent + r mean) / (1 + r) is put in for h.
    ratio = variance * precision
    shrinkage = 1.0 / (1.0 + ratio)
    gain = ratio * shrinkage
    passed = precision * shrinkage
    centre = centre + ratio * (centre - mean) if weight > 0.0 else mean
    # g = gain (mean - h_parent), and gain / variance is `passed`.
    weight, centre, more = squares_together(
        gain * passed, mean, weight * shrinkage * shrinkage, centre
    )
    cell[CELL.gain] = gain
    cell[CELL.mean] = mean
    cell[CELL.precision] = passed
    cell[CELL.weight] = weight
    cell[CELL.centre] = centre
    cell[CELL.rest] = rest + more


@inline
def squared_norm(cells):
    """Sum of g^2 / v over all cells: what the root keeps, at h = 0 above it."""
    return cells[CELL.weight] * cells[CELL.centre] * cells[CELL.centre] + cells[CELL.rest]


@inline
def seen(point, k, stride, offsets):
    """Coordinate k of those that a tree looks at.

    They are `stride` apart, or, where that is 0, wherever the list says: most trees look at all
    coordinates, and a multiplication is sooner done than a look into the list.
    """
    return point[k * stride] if stride != 0 else point[offsets[k]]


@inline
def walk(cells, limit, levels, dimension, point, stride, offsets, path):
    """From the root to the leaf of a point: the number of cells, written to path, and f there."""
    value = 0.0
    index = 0
    for level in range(levels):
        path[level] = index
        cell = cell_at(cells, index)
        value += cell[CELL.gain] * (cell[CELL.mean] - value)
        child = child_of(cell, limit)
        if child == 0:
            return level + 1, value
        coordinate = index_below(cell[CELL.coordinate], dimension)
        index = child if seen(point, coordinate, stride, offsets) <= cell[CELL.cut] else child + 1
    return levels, value
