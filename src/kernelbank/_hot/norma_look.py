"""NORMA's values at points that are only looked at (see `norma` for the arrays)."""

from .formulas import pointer
from .lanes import WIDTH, store
from .norma import SINGLE_PRECISION, expansion, keep_row, numbers, row_target
from .rows import kernel_row, repeats
from .table import fields, floats, variant, whole, wholes

GLANCE = fields(
    "leaves",
    "window",
    "page",
    "reach",
    "budget",
    "period",
    "decays",
    "instructions",
    "program",
    "constants",
    "memo_statistics",
    "memo_repeated",
    "memo_rows",
    "stack",
    "rows",
    "coefficients",
    "look_values",
)


def glance(table, first, count):
    """look_values[leaf] = f_p at the point that is looked at; its kernel row is remembered."""
    window = whole(table, GLANCE.window)
    page = whole(table, GLANCE.page)
    budget = whole(table, GLANCE.budget)
    instructions = whole(table, GLANCE.instructions)
    program = wholes(table, GLANCE.program)
    shown = 0 if first == 0 else (first - 1) % page + 1
    scale = floats(table, GLANCE.decays)[first % whole(table, GLANCE.period)]
    same = first > 0 and repeats(instructions, program, wholes(table, GLANCE.memo_repeated), 1, 0)
    for leaf in range(whole(table, GLANCE.leaves)):
        rows = numbers(table, GLANCE.memo_rows)
        row = leaf * (budget + 1)
        if same:
            rows = numbers(table, GLANCE.rows)
            row = (leaf * (window + 1) + (first - 1) % (window + 1)) * (budget + 1)
        else:
            stack = floats(table, GLANCE.stack)
            kernel_row(
                instructions,
                program,
                floats(table, GLANCE.constants),
                leaf,
                floats(table, GLANCE.memo_statistics),
                1,
                whole(table, GLANCE.reach) + 1,
                -1,
                whole(table, GLANCE.reach) - budget,
                budget + 1,
                row_target(rows, row, stack),
                pointer(stack, (budget + 1) * WIDTH),
            )
            keep_row(rows, row, stack, budget + 1)
        start = leaf * (budget + page) + shown
        value = scale * expansion(numbers(table, GLANCE.coefficients), start, rows, row, budget)
        store(floats(table, GLANCE.look_values), leaf, value)


EVALUATE = fields(
    "leaves",
    "page",
    "budget",
    "period",
    "decays",
    "instructions",
    "program",
    "constants",
    "statistics",
    "statistics_steps",
    "statistics_width",
    "row",
    "stack",
    "coefficients",
    "wanted",
    "points",
    "out",
)


def evaluate(table, seen, count):
    """out[leaf, t] = f_p at point t < count, for leaves with wanted[leaf]; changes nothing."""
    page = whole(table, EVALUATE.page)
    budget = whole(table, EVALUATE.budget)
    period = whole(table, EVALUATE.period)
    rows = numbers(table, EVALUATE.row)
    column = whole(table, EVALUATE.statistics_width) - 1 - budget
    shown = 0 if seen == 0 else (seen - 1) % page + 1
    scale = floats(table, EVALUATE.decays)[seen % period]
    for leaf in range(whole(table, EVALUATE.leaves)):
        if wholes(table, EVALUATE.wanted)[leaf] == 0:
            continue
        start = leaf * (budget + page) + shown
        for t in range(count):
            stack = floats(table, EVALUATE.stack)
            kernel_row(
                whole(table, EVALUATE.instructions),
                wholes(table, EVALUATE.program),
                floats(table, EVALUATE.constants),
                leaf,
                floats(table, EVALUATE.statistics),
                whole(table, EVALUATE.statistics_steps),
                whole(table, EVALUATE.statistics_width),
                t,
                column,
                budget,
                row_target(rows, 0, stack),
                pointer(stack, (budget) * WIDTH),
            )
            keep_row(rows, 0, stack, budget)
            value = scale * expansion(numbers(table, EVALUATE.coefficients), start, rows, 0, budget)
            store(floats(table, EVALUATE.out), leaf * whole(table, EVALUATE.points) + t, value)


GLANCING = {"float64": glance, "float32": variant(glance, "glance_single", **SINGLE_PRECISION)}
EVALUATING = {
    "float64": evaluate,
    "float32": variant(evaluate, "evaluate_single", **SINGLE_PRECISION),
}
"""The phases for both precisions of what is kept."""
