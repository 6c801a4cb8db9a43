"""NORMA's values at points that are only looked at (see `norma` for the arrays)."""

from ..kernels.kernel_rows import repeats
from ..native.jit import inline
from ..native.phases import fields, floats, variant, whole, wholes
from ..native.simd import store
from .norma_expansion import EXPANSION, SINGLE_PRECISION, expansion, new_row, numbers


@inline
def _value(table, seen, leaf, coefficients, rows, row):
    """f_p after `seen` samples, at the point whose kernel values are in that row."""
    slide_period = whole(table, EXPANSION.slide_period)
    budget = whole(table, EXPANSION.budget)
    start = leaf * (budget + slide_period) + (0 if seen == 0 else (seen - 1) % slide_period + 1)
    scale = floats(table, EXPANSION.decays)[seen % whole(table, EXPANSION.period)]
    return scale * expansion(coefficients, start, rows, row, budget)


GLANCE = fields(*EXPANSION._fields, "window", "memo_repeated", "memo_rows", "rows", "query_values")


def glance(table, first, count):
    """query_values[leaf] = f_p at the point that is looked at; its kernel row is remembered."""
    window = whole(table, GLANCE.window)
    budget = whole(table, GLANCE.budget)
    same = first > 0 and repeats(
        whole(table, GLANCE.instructions),
        wholes(table, GLANCE.program),
        wholes(table, GLANCE.memo_repeated),
        1,
        0,
    )
    for leaf in range(whole(table, GLANCE.leaves)):
        rows = numbers(table, GLANCE.memo_rows)
        row = leaf * (budget + 1)
        if same:
            rows = numbers(table, GLANCE.rows)
            row = (leaf * (window + 1) + (first - 1) % (window + 1)) * (budget + 1)
        else:
            new_row(table, leaf, -1, budget + 1, rows, row)
        value = _value(table, first, leaf, numbers(table, GLANCE.coefficients), rows, row)
        store(floats(table, GLANCE.query_values), leaf, value)


EVALUATE = fields(*EXPANSION._fields, "row", "wanted", "points", "out")


def evaluate(table, seen, count):
    """out[leaf, t] = f_p at point t < count, for leaves with wanted[leaf]; changes nothing."""
    coefficients = numbers(table, EVALUATE.coefficients)
    row = numbers(table, EVALUATE.row)
    for leaf in range(whole(table, EVALUATE.leaves)):
        if wholes(table, EVALUATE.wanted)[leaf] == 0:
            continue
        for t in range(count):
            new_row(table, leaf, t, whole(table, EVALUATE.budget), row, 0)
            value = _value(table, seen, leaf, coefficients, row, 0)
            store(floats(table, EVALUATE.out), leaf * whole(table, EVALUATE.points) + t, value)


GLANCING = {"float64": glance, "float32": variant(glance, "glance_single", **SINGLE_PRECISION)}
EVALUATING = {
    "float64": evaluate,
    "float32": variant(evaluate, "evaluate_single", **SINGLE_PRECISION),
}
"""The phases for both precisions of what is kept."""
