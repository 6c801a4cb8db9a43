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
from collections import namedtuple
from typing import Any

from ..native.arguments import Arguments, floats, ints
from ..native.jit import inline

_FIELDS = (
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
CELL_SIZE = len(_FIELDS)
CELL: Any = namedtuple("Cell", _FIELDS)(*range(CELL_SIZE))
"""Where the numbers of a cell stand: cells[index, CELL.gain]."""

TREE = Arguments(
    "tree",
    leaves=int,
    dimension=int,  # number of active coordinates
    active=ints("dimension"),  # their indices in an input
    inputs=floats(None, None),  # inputs[k, position] is coordinate k
    max_cells=int,
    cells=floats("leaves", "max_cells", CELL_SIZE),
    max_levels=int,
    levels=ints("leaves"),  # of each leaf's kernel, at most max_levels
    path=ints("max_levels"),  # scratch: the cells of an input, from the root
)


@inline
def index_below(number, limit):
    """The float as an index, if it is one in 0 .. limit - 1; 0 for all others and for NaN."""
    if 0.0 <= number < limit:
        return int(number)
    return 0


@inline
def child_of(cells, index):
    """The index of the first child of a cell, or 0 for a leaf."""
    return index_below(cells[index, CELL.first_child], len(cells) - 1)


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
def update_cell(cells, index, variance):
    """Compute the messages of a cell, with prior variance `variance`, to its parent."""
    cell = cells[index]
    precision, mean = combine_likelihoods(
        cell[CELL.summary_precision],
        cell[CELL.summary_mean],
        cell[CELL.stored_precision],
        cell[CELL.stored_mean],
    )
    weight, centre, constant = 0.0, 0.0, 0.0
    child = child_of(cells, index)
    if child > 0:
        left, right = cells[child], cells[child + 1]
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
    root = cells[0]
    return root[CELL.weight] * root[CELL.centre] * root[CELL.centre] + root[CELL.constant]


@inline
def coordinate_of(inputs, active, position, k):
    """Active coordinate k of the input at a position."""
    return inputs[active[k], position]


@inline
def descend(a, leaf, position):
    """From the root to the leaf of an input: the number of cells on a.path, and f(input)."""
    cells, levels, path = a.cells[leaf], a.levels[leaf], a.path
    inputs, active = a.inputs, a.active
    value = 0.0
    index = 0
    for level in range(levels):
        path[level] = index
        cell = cells[index]
        # h = h_parent + gain (mean - h_parent)
        value += cell[CELL.gain] * (cell[CELL.mean] - value)
        child = child_of(cells, index)
        if child == 0:
            return level + 1, value
        k = index_below(cell[CELL.coordinate], len(active))
        x = coordinate_of(inputs, active, position, k)
        index = child if x <= cell[CELL.threshold] else child + 1
    return levels, value
