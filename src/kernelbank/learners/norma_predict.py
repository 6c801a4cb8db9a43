"""NORMA's values at points that are only looked at (see `norma` for the arrays)."""

from ..kernels.kernel_rows import repeats
from ..native.jit import inline
from ..native.phases import argument_fields, float_array, int_array, read_int, variant
from ..native.simd import store
from .norma_expansion import EXPANSION, SINGLE_PRECISION, expansion, new_row, numbers


@inline
def _value(args, seen, leaf, coefficients, rows, row):
    """f_p after `seen` samples, at the point whose kernel values are in that row."""
    slide_period = read_int(args, EXPANSION.slide_period)
    budget = read_int(args, EXPANSION.budget)
    start = leaf * (budget + slide_period) + (0 if seen == 0 else (seen - 1) % slide_period + 1)
    scale = float_array(args, EXPANSION.decays)[seen % read_int(args, EXPANSION.period)]
    return scale * expansion(coefficients, start, rows, row, budget)


GLANCE = argument_fields(
    *EXPANSION._fields, "window", "memo_repeated", "memo_rows", "rows", "query_values"
)


def glance(args, first, count):
    """query_values[leaf] = f_p at the point that is looked at; its kernel row is remembered."""
    window = read_int(args, GLANCE.window)
    budget = read_int(args, GLANCE.budget)
    same = first > 0 and repeats(
        read_int(args, GLANCE.instructions),
        int_array(args, GLANCE.program),
        int_array(args, GLANCE.memo_repeated),
        1,
        0,
    )
    for leaf in range(read_int(args, GLANCE.leaves)):
        rows = numbers(args, GLANCE.memo_rows)
        row = leaf * (budget + 1)
        if same:
            rows = numbers(args, GLANCE.rows)
            row = (leaf * (window + 1) + (first - 1) % (window + 1)) * (budget + 1)
        else:
            new_row(args, leaf, -1, budget + 1, rows, row)
        value = _value(args, first, leaf, numbers(args, GLANCE.coefficients), rows, row)
        store(float_array(args, GLANCE.query_values), leaf, value)


EVALUATE = argument_fields(*EXPANSION._fields, "row", "wanted", "points", "out")


def evaluate(args, seen, count):
    """out[leaf, t] = f_p at point t < count, for leaves with wanted[leaf]; changes nothing."""
    coefficients = numbers(args, EVALUATE.coefficients)
    row = numbers(args, EVALUATE.row)
    for leaf in range(read_int(args, EVALUATE.leaves)):
        if int_array(args, EVALUATE.wanted)[leaf] == 0:
            continue
        for t in range(count):
            new_row(args, leaf, t, read_int(args, EVALUATE.budget), row, 0)
            value = _value(args, seen, leaf, coefficients, row, 0)
            store(
                float_array(args, EVALUATE.out), leaf * read_int(args, EVALUATE.points) + t, value
            )


GLANCING = {"float64": glance, "float32": variant(glance, "glance_single", **SINGLE_PRECISION)}
EVALUATING = {
    "float64": evaluate,
    "float32": variant(evaluate, "evaluate_single", **SINGLE_PRECISION),
}
"""The phases for both precisions of what is kept."""
