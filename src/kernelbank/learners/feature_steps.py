"""The loop of all learners with one slot a leaf: f(x) = sum_m coefficients[m] features(x)[m].

What differs between them reaches the loop by address, like a kernel or a loss: *features* writes
the features of the point, *step* learns one sample. Both have the signature of a phase,
(table, leaf, number). The table begins with the places of SINGLE, so both find what they need; a
method adds places of its own behind them. `sample` is where they meet: what is known of the present
sample, and the norm^2, which the step keeps true.

The features of the window's last samples are kept (`shown`), so that the values there after a step
are one sum each.
"""

import numpy as np

from ..native.dense import dot
from ..native.formulas import call_loss, pointer
from ..native.jit import inline
from ..native.phases import (
    address_of,
    argument_fields,
    call_phase,
    float_array,
    int_array,
    read_int,
)
from ..native.simd import WIDTH

SINGLE = argument_fields(
    "leaves",
    "steps",
    "window",
    "slide_period",
    "history_length",
    "width",
    "dimension",
    "offsets",
    "neighbours",
    "capacity",
    "most",
    "curving",
    "features",
    "step",
    "derivative",
    "parameters",
    "points",
    "targets",
    "inputs",
    "query_point",
    "query_values",
    "wanted",
    "out",
    "values",
    "norms",
    "predictions",
    "effects",
    "point",
    "sample",
    "now",
    "work",
    "lanes",
    "size",
    "coefficients",
    "shown",
)
"""What every such table begins with. Inputs are `width` wide; `offsets` lists the coordinates that
the slots look at, `dimension` of them, and `point` holds these; `neighbours`: whether each is one
more than the last. `size`: features in use, of `capacity`, and between steps at most `most`, since
a new one may come before an old one leaves; `work`: scratch."""

SELF, PREDICTION, TARGET, SLOPE, ERROR, RESPONSE, WEIGHT, NORM, NUMBER, EFFECT = range(10)
"""Places of `sample`. SELF is k(x, x); ERROR, RESPONSE and WEIGHT are what second-order methods see
instead of the target: e = -slope / curvature, z = f + e, and half the curvature. EFFECT is how far
dropping moved the window's values, relative to their size."""
SAMPLE = 10

NO_CURVATURE, CONSTANT, LOGISTIC = range(3)
"""How the curvature of the loss follows: not needed; 2; tanh(f / 2) / 2 f, which bounds it."""
_FLAT = 1e-4  # up to here tanh(f / 2) / 2 f is 1/4 to the last digit but one


@inline
def size_of(args, leaf):
    """How many features a slot uses now. A file may say anything: never beyond the arrays."""
    size = float_array(args, SINGLE.size)[leaf]
    if not 0.0 <= size <= read_int(args, SINGLE.capacity):
        return 0
    return int(size)


@inline
def coefficients_of(args, leaf):
    return pointer(float_array(args, SINGLE.coefficients), leaf * read_int(args, SINGLE.capacity))


@inline
def _value(args, leaf, number):
    """f at `point`; its features are left in `now`."""
    call_phase(read_int(args, SINGLE.features), address_of(args), leaf, number)
    return dot(coefficients_of(args, leaf), float_array(args, SINGLE.now), size_of(args, leaf))


@inline
def _put_point(args, whole_input):
    """point = what the slots look at of an input."""
    point = float_array(args, SINGLE.point)
    dimension = read_int(args, SINGLE.dimension)
    if read_int(args, SINGLE.neighbours) != 0:  # copied four at a time
        start = int_array(args, SINGLE.offsets)[0]
        for k in range(dimension):
            point[k] = whole_input[start + k]
    else:
        offsets = int_array(args, SINGLE.offsets)
        for k in range(dimension):
            point[k] = whole_input[offsets[k]]


@inline
def _slope(args, prediction, target):
    """The loss's derivative, from its four-lane function."""
    lanes = float_array(args, SINGLE.lanes)
    for k in range(WIDTH):
        lanes[k] = prediction
        lanes[WIDTH + k] = target
    call_loss(
        read_int(args, SINGLE.derivative),
        lanes,
        pointer(lanes, WIDTH),
        1,
        float_array(args, SINGLE.parameters),
        pointer(lanes, 2 * WIDTH),
    )
    return lanes[2 * WIDTH]


@inline
def curvature_above(prediction):
    """That of the best parabola above the logistic loss that touches it there.

    (Jaakkola and Jordan.) Unlike l'' it never promises too much: a confident mistake is no leap.
    """
    size = abs(prediction)
    return np.tanh(0.5 * size) / (2.0 * size) if size > _FLAT else 0.25


@inline
def _describe(args, prediction, target):
    """Fill `sample` with what the methods see of the target."""
    sample = float_array(args, SINGLE.sample)
    slope = _slope(args, prediction, target)
    sample[PREDICTION] = prediction
    sample[TARGET] = target
    sample[SLOPE] = slope
    sample[RESPONSE] = target
    curvature = 2.0
    error = target - prediction
    if read_int(args, SINGLE.curving) == LOGISTIC:
        curvature = curvature_above(prediction)
        error = -slope / curvature
        sample[RESPONSE] = prediction + error
    sample[ERROR] = error
    sample[WEIGHT] = 0.5 * curvature


def learn(args, first, count):
    """Run every leaf through samples first .. first + count - 1, which lie in one slide_period."""
    steps = read_int(args, SINGLE.steps)
    window = read_int(args, SINGLE.window)
    capacity = read_int(args, SINGLE.capacity)
    position = read_int(args, SINGLE.history_length) + first % read_int(args, SINGLE.slide_period)
    sample = float_array(args, SINGLE.sample)
    for leaf in range(read_int(args, SINGLE.leaves)):
        if not size_of(args, leaf) <= read_int(args, SINGLE.most):  # only a forged file says so
            float_array(args, SINGLE.size)[leaf] = 0.0
        coefficients = coefficients_of(args, leaf)
        shown = pointer(float_array(args, SINGLE.shown), leaf * window * capacity)
        for t in range(count):
            number = first + t
            place = leaf * steps + t
            _put_point(
                args, pointer(float_array(args, SINGLE.points), t * read_int(args, SINGLE.width))
            )
            prediction = _value(args, leaf, number)
            float_array(args, SINGLE.predictions)[(leaf * (steps - 1) + t) * WIDTH] = prediction
            target = float_array(args, SINGLE.targets)[(position + t) * WIDTH]
            _describe(args, prediction, target)
            sample[NORM] = float_array(args, SINGLE.norms)[place * WIDTH]
            sample[NUMBER] = number
            sample[EFFECT] = 0.0
            call_phase(read_int(args, SINGLE.step), address_of(args), leaf, number)
            float_array(args, SINGLE.norms)[(place + 1) * WIDTH] = sample[NORM]
            float_array(args, SINGLE.effects)[(leaf * (steps - 1) + t) * WIDTH] = sample[EFFECT]

            size = size_of(args, leaf)
            now = float_array(args, SINGLE.now)
            newest = pointer(shown, number % window * capacity)
            for m in range(size):
                newest[m] = now[m]
            seen = min(number + 1, window)
            for age in range(seen):
                row = pointer(shown, (number - age) % window * capacity)
                value = dot(coefficients, row, size)
                own = (place + 1) * window + window - 1 - age
                float_array(args, SINGLE.values)[own * WIDTH] = value


def glance(args, first, count):
    """query_values[leaf] = f at the point that is looked at."""
    _put_point(args, float_array(args, SINGLE.query_point))
    for leaf in range(read_int(args, SINGLE.leaves)):
        float_array(args, SINGLE.query_values)[leaf * WIDTH] = _value(args, leaf, first)


def evaluate(args, first, count):
    """out[leaf, t] = f at points[t], for the leaves with wanted[leaf]; changes nothing."""
    for leaf in range(read_int(args, SINGLE.leaves)):
        if int_array(args, SINGLE.wanted)[leaf] == 0:
            continue
        for t in range(count):
            _put_point(
                args, pointer(float_array(args, SINGLE.points), t * read_int(args, SINGLE.width))
            )
            value = _value(args, leaf, first)
            float_array(args, SINGLE.out)[(leaf * count + t) * WIDTH] = value
