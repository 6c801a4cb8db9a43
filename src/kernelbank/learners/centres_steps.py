"""Features that are kernel values with kept inputs, the *centres*, oldest first.

The centres of a leaf stand in a table [coordinate][centre], as a statistic wants them.
"""

from ..kernels.kernel_rows import EVALUATE, kernel_row
from ..native.formulas import call_statistic, pointer, whole_pointer
from ..native.jit import inline
from ..native.phases import fields, floats, whole, wholes
from ..native.simd import WIDTH
from .feature_steps import NUMBER, SELF, SINGLE, coefficients_of, size_of

CENTRES = fields(
    *SINGLE._fields,
    "instructions",
    "program",
    "constants",
    "addresses",
    "source_parameters",
    "coordinates",
    "starts",
    "statistics",
    "row",
    "stack",
    "room",
    "recent",
    "centres",
)
"""The places of a table of a learner on centres; its own follow."""


@inline
def kernel_values(table, leaf, x, others, stride, count, out):
    """out[m] = k(x, column m of `others`), for m < count."""
    instructions = whole(table, CENTRES.instructions)
    program = wholes(table, CENTRES.program)
    statistics = floats(table, CENTRES.statistics)
    room = whole(table, CENTRES.room)
    starts = wholes(table, CENTRES.starts)
    for i in range(instructions):
        if program[3 * i] == EVALUATE:
            source = program[3 * i + 1]
            call_statistic(
                wholes(table, CENTRES.addresses)[source],
                x,
                others,
                stride,
                count,
                whole_pointer(wholes(table, CENTRES.coordinates), starts[source]),
                starts[source + 1] - starts[source],
                pointer(floats(table, CENTRES.source_parameters), source),
                pointer(statistics, source * room),
            )
    row = floats(table, CENTRES.row)
    kernel_row(
        instructions,
        program,
        floats(table, CENTRES.constants),
        leaf,
        statistics,
        1,
        room,
        -1,
        0,
        count,
        row,
        floats(table, CENTRES.stack),
    )
    for m in range(count):
        out[m] = row[m * WIDTH]


@inline
def centres_of(table, leaf):
    length = whole(table, SINGLE.dimension) * whole(table, SINGLE.capacity)
    return pointer(floats(table, CENTRES.centres), leaf * length)


def features(table, leaf, number):
    """now[m] = k(x, centre m), and SELF = k(x, x)."""
    point = floats(table, SINGLE.point)
    capacity = whole(table, SINGLE.capacity)
    size = size_of(table, leaf)
    kernel_values(
        table, leaf, point, centres_of(table, leaf), capacity, size, floats(table, SINGLE.now)
    )
    own = pointer(floats(table, SINGLE.sample), SELF)
    kernel_values(table, leaf, point, point, 1, 1, own)


@inline
def centre(table, leaf, j, out):
    """Copy centre j to `out`."""
    centres = centres_of(table, leaf)
    for k in range(whole(table, SINGLE.dimension)):
        out[k] = centres[k * whole(table, SINGLE.capacity) + j]


@inline
def append(table, leaf, coefficient):
    """The present point becomes the newest centre."""
    capacity = whole(table, SINGLE.capacity)
    window = whole(table, SINGLE.window)
    size = size_of(table, leaf)
    point = floats(table, SINGLE.point)
    centres = centres_of(table, leaf)
    for k in range(whole(table, SINGLE.dimension)):
        centres[k * capacity + size] = point[k]
    coefficients_of(table, leaf)[size] = coefficient
    sample = floats(table, SINGLE.sample)
    floats(table, SINGLE.now)[size] = sample[SELF]
    floats(table, SINGLE.size)[leaf] = size + 1
    # Its kernel values with the other inputs of the window.
    number = int(sample[NUMBER])
    older = min(number, window - 1)
    if older == 0:
        return
    slide_period = whole(table, SINGLE.slide_period)
    stride = whole(table, SINGLE.history_length) + slide_period
    position = whole(table, SINGLE.history_length) + number % slide_period
    values = floats(table, CENTRES.recent)
    kernel_values(
        table,
        leaf,
        point,
        pointer(floats(table, SINGLE.inputs), position - older),
        stride,
        older,
        values,
    )
    shown = pointer(floats(table, SINGLE.shown), leaf * window * capacity)
    for age in range(1, older + 1):
        shown[(number - age) % window * capacity + size] = values[older - age]


@inline
def _close(array, start, size, j):
    for m in range(j, size - 1):
        array[start + m] = array[start + m + 1]


@inline
def remove(table, leaf, j):
    """Centre j leaves; those behind it move up."""
    capacity = whole(table, SINGLE.capacity)
    window = whole(table, SINGLE.window)
    size = size_of(table, leaf)
    centres = centres_of(table, leaf)
    for k in range(whole(table, SINGLE.dimension)):
        _close(centres, k * capacity, size, j)
    _close(coefficients_of(table, leaf), 0, size, j)
    _close(floats(table, SINGLE.now), 0, size, j)
    shown = pointer(floats(table, SINGLE.shown), leaf * window * capacity)
    for i in range(window):
        _close(shown, i * capacity, size, j)
    floats(table, SINGLE.size)[leaf] = size - 1


@inline
def norm_by_definition(table, leaf, values):
    """alpha' K alpha, a row at a time: for methods that keep no matrix, now and then."""
    capacity = whole(table, SINGLE.capacity)
    size = size_of(table, leaf)
    centres = centres_of(table, leaf)
    coefficients = coefficients_of(table, leaf)
    point = pointer(values, capacity)
    total = 0.0
    for i in range(size):
        centre(table, leaf, i, point)
        kernel_values(table, leaf, point, centres, capacity, size, values)
        own = 0.0
        for j in range(size):
            own += coefficients[j] * values[j]
        total += coefficients[i] * own
    return max(total, 0.0)
