"""The expansion of a leaf of NORMA: kernel rows of points against its terms, and values from them.

Coefficients and kernel rows are kept in double or in single precision. A function that handles them
says `numbers` and `new_row`; its variant with SINGLE_PRECISION is the same with others under these
names. The arithmetic is double in both.
"""

from ..kernels.kernel_rows import kernel_row
from ..native.formulas import pointer
from ..native.jit import inline
from ..native.phases import argument_fields, float32_array, float_array, int_array, read_int
from ..native.simd import WIDTH, broadcast, fma, load, store

EXPANSION = argument_fields(
    "leaves",
    "slide_period",
    "history_length",
    "budget",
    "period",
    "decays",
    "instructions",
    "program",
    "constants",
    "statistics",
    "statistics_steps",
    "stack",
    "coefficients",
)
"""The places with which the table of every phase begins that works on an expansion."""

numbers = float_array
"""How the arrays of terms and kernel values are read."""


@inline
def _kernel_values(args, leaf, t, count, target):
    """target = kernel values at step t against the terms from the oldest on; `count` of them."""
    history_length = read_int(args, EXPANSION.history_length)
    kernel_row(
        read_int(args, EXPANSION.instructions),
        int_array(args, EXPANSION.program),
        float_array(args, EXPANSION.constants),
        leaf,
        float_array(args, EXPANSION.statistics),
        read_int(args, EXPANSION.statistics_steps),
        history_length + 1,
        t,
        history_length - read_int(args, EXPANSION.budget),
        count,
        target,
        pointer(float_array(args, EXPANSION.stack), count * WIDTH),
    )


@inline
def new_row(args, leaf, t, count, rows, row):
    """Kernel values, computed in their place from number `row` of `rows` on."""
    _kernel_values(args, leaf, t, count, pointer(rows, row * WIDTH))


@inline
def new_single_row(args, leaf, t, count, rows, row):
    """In single precision: computed beside it, in double precision, and then rounded."""
    exact = float_array(args, EXPANSION.stack)
    _kernel_values(args, leaf, t, count, exact)
    copy_row(exact, 0, rows, row, count)


@inline
def copy_row(source, start, rows, row, count):
    """rows[row + m] = source[start + m]."""
    for m in range(count):
        store(rows, row + m, load(source, start + m))


@inline
def expansion(coefficients, start, rows, row, terms):
    """sum_m coefficients[start + m] rows[row + m] over four interleaved partial sums."""
    one = broadcast(0.0)
    two, three, four = one, one, one
    even = terms - terms % 4
    for m in range(0, even, 4):
        one = fma(load(coefficients, start + m), load(rows, row + m), one)
        two = fma(load(coefficients, start + m + 1), load(rows, row + m + 1), two)
        three = fma(load(coefficients, start + m + 2), load(rows, row + m + 2), three)
        four = fma(load(coefficients, start + m + 3), load(rows, row + m + 3), four)
    for m in range(even, terms):
        one = fma(load(coefficients, start + m), load(rows, row + m), one)
    return (one + two) + (three + four)


SINGLE_PRECISION = {"numbers": float32_array, "new_row": new_single_row}
"""What the variants use that keep terms and kernel values in single precision."""
