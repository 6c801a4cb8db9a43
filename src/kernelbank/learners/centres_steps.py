"""Features that are kernel values with kept inputs, the *centres*, oldest first.

The centres of a leaf stand in a table [coordinate][centre], as a statistic wants them.
"""

from ..kernels.kernel_rows import EVALUATE, kernel_row
from ..native.formulas import call_statistic, int_pointer, pointer
from ..native.jit import inline
from ..native.phases import argument_fields, float_array, int_array, read_int
from ..native.simd import WIDTH
from .feature_steps import NUMBER, SELF, SINGLE, coefficients_of, size_of

CENTRES = argument_fields(
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
def kernel_values(args, leaf, x, others, stride, count, out):
    """out[m] = k(x, column m of `others`), for m < count."""
    instructions = read_int(args, CENTRES.instructions)
    program = int_array(args, CENTRES.program)
    statistics = float_array(args, CENTRES.statistics)
    room = read_int(args, CENTRES.room)
    starts = int_array(args, CENTRES.starts)
    for i in range(instructions):
        if program[3 * i] == EVALUATE:
            source = program[3 * i + 1]
            call_statistic(
                int_array(args, CENTRES.addresses)[source],
                x,
                others,
                stride,
                count,
                int_pointer(int_array(args, CENTRES.coordinates), starts[source]),
                starts[source + 1] - starts[source],
                pointer(float_array(args, CENTRES.source_parameters), source),
                pointer(statistics, source * room),
            )
    row = float_array(args, CENTRES.row)
    kernel_row(
        instructions,
        program,
        float_array(args, CENTRES.constants),
        leaf,
        statistics,
        1,
        room,
        -1,
        0,
        count,
        row,
        float_array(args, CENTRES.stack),
    )
    for m in range(count):
        out[m] = row[m * WIDTH]


@inline
def centres_of(args, leaf):
    length = read_int(args, SINGLE.dimension) * read_int(args, SINGLE.capacity)
    return pointer(float_array(args, CENTRES.centres), leaf * length)


def features(args, leaf, number):
    """now[m] = k(x, centre m), and SELF = k(x, x)."""
    point = float_array(args, SINGLE.point)
    capacity = read_int(args, SINGLE.capacity)
    size = size_of(args, leaf)
    kernel_values(
        args, leaf, point, centres_of(args, leaf), capacity, size, float_array(args, SINGLE.now)
    )
    own = pointer(float_array(args, SINGLE.sample), SELF)
    kernel_values(args, leaf, point, point, 1, 1, own)


@inline
def centre(args, leaf, j, out):
    """Copy centre j to `out`."""
    centres = centres_of(args, leaf)
    for k in range(read_int(args, SINGLE.dimension)):
        out[k] = centres[k * read_int(args, SINGLE.capacity) + j]


@inline
def append(args, leaf, coefficient):
    """The present point becomes the newest centre."""
    capacity = read_int(args, SINGLE.capacity)
    window = read_int(args, SINGLE.window)
    size = size_of(args, leaf)
    point = float_array(args, SINGLE.point)
    centres = centres_of(args, leaf)
    for k in range(read_int(args, SINGLE.dimension)):
        centres[k * capacity + size] = point[k]
    coefficients_of(args, leaf)[size] = coefficient
    sample = float_array(args, SINGLE.sample)
    float_array(args, SINGLE.now)[size] = sample[SELF]
    float_array(args, SINGLE.size)[leaf] = size + 1
    # Its kernel values with the other inputs of the window.
    number = int(sample[NUMBER])
    older = min(number, window - 1)
    if older == 0:
        return
    slide_period = read_int(args, SINGLE.slide_period)
    stride = read_int(args, SINGLE.history_length) + slide_period
    position = read_int(args, SINGLE.history_length) + number % slide_period
    values = float_array(args, CENTRES.recent)
    kernel_values(
        args,
        leaf,
        point,
        pointer(float_array(args, SINGLE.inputs), position - older),
        stride,
        older,
        values,
    )
    shown = pointer(float_array(args, SINGLE.shown), leaf * window * capacity)
    for age in range(1, older + 1):
        shown[(number - age) % window * capacity + size] = values[older - age]


@inline
def _close(array, start, size, j):
    for m in range(j, size - 1):
        array[start + m] = array[start + m + 1]


@inline
def remove(args, leaf, j):
    """Centre j leaves; those behind it move up."""
    capacity = read_int(args, SINGLE.capacity)
    window = read_int(args, SINGLE.window)
    size = size_of(args, leaf)
    centres = centres_of(args, leaf)
    for k in range(read_int(args, SINGLE.dimension)):
        _close(centres, k * capacity, size, j)
    _close(coefficients_of(args, leaf), 0, size, j)
    _close(float_array(args, SINGLE.now), 0, size, j)
    shown = pointer(float_array(args, SINGLE.shown), leaf * window * capacity)
    for i in range(window):
        _close(shown, i * capacity, size, j)
    float_array(args, SINGLE.size)[leaf] = size - 1


@inline
def norm_by_definition(args, leaf, values):
    """alpha' K alpha, a row at a time: for methods that keep no matrix, now and then."""
    capacity = read_int(args, SINGLE.capacity)
    size = size_of(args, leaf)
    centres = centres_of(args, leaf)
    coefficients = coefficients_of(args, leaf)
    point = pointer(values, capacity)
    total = 0.0
    for i in range(size):
        centre(args, leaf, i, point)
        kernel_values(args, leaf, point, centres, capacity, size, values)
        own = 0.0
        for j in range(size):
            own += coefficients[j] * values[j]
        total += coefficients[i] * own
    return max(total, 0.0)
