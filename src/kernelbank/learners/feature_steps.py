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
from ..native.phases import call_phase, fields, floats, table_address, whole, wholes
from ..native.simd import WIDTH

SINGLE = fields(
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
def size_of(table, leaf):
    """How many features a slot uses now. A file may say anything: never beyond the arrays."""
    size = floats(table, SINGLE.size)[leaf]
    if not 0.0 <= size <= whole(table, SINGLE.capacity):
        return 0
    return int(size)


@inline
def coefficients_of(table, leaf):
    return pointer(floats(table, SINGLE.coefficients), leaf * whole(table, SINGLE.capacity))


@inline
def _value(table, leaf, number):
    """f at `point`; its features are left in `now`."""
    call_phase(whole(table, SINGLE.features), table_address(table), leaf, number)
    return dot(coefficients_of(table, leaf), floats(table, SINGLE.now), size_of(table, leaf))


@inline
def _put_point(table, whole_input):
    """point = what the slots look at of an input."""
    point = floats(table, SINGLE.point)
    dimension = whole(table, SINGLE.dimension)
    if whole(table, SINGLE.neighbours) != 0:  # copied four at a time
        start = wholes(table, SINGLE.offsets)[0]
        for k in range(dimension):
            point[k] = whole_input[start + k]
    else:
        offsets = wholes(table, SINGLE.offsets)
        for k in range(dimension):
            point[k] = whole_input[offsets[k]]


@inline
def _slope(table, prediction, target):
    """The loss's derivative, from its four-lane function."""
    lanes = floats(table, SINGLE.lanes)
    for k in range(WIDTH):
        lanes[k] = prediction
        lanes[WIDTH + k] = target
    call_loss(
        whole(table, SINGLE.derivative),
        lanes,
        pointer(lanes, WIDTH),
        1,
        floats(table, SINGLE.parameters),
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
def _describe(table, prediction, target):
    """Fill `sample` with what the methods see of the target."""
    sample = floats(table, SINGLE.sample)
    slope = _slope(table, prediction, target)
    sample[PREDICTION] = prediction
    sample[TARGET] = target
    sample[SLOPE] = slope
    sample[RESPONSE] = target
    curvature = 2.0
    error = target - prediction
    if whole(table, SINGLE.curving) == LOGISTIC:
        curvature = curvature_above(prediction)
        error = -slope / curvature
        sample[RESPONSE] = prediction + error
    sample[ERROR] = error
    sample[WEIGHT] = 0.5 * curvature


def learn(table, first, count):
    """Run every leaf through samples first .. first + count - 1, which lie in one slide_period."""
    steps = whole(table, SINGLE.steps)
    window = whole(table, SINGLE.window)
    capacity = whole(table, SINGLE.capacity)
    position = whole(table, SINGLE.history_length) + first % whole(table, SINGLE.slide_period)
    sample = floats(table, SINGLE.sample)
    for leaf in range(whole(table, SINGLE.leaves)):
        if not size_of(table, leaf) <= whole(table, SINGLE.most):  # only a forged file says so
            floats(table, SINGLE.size)[leaf] = 0.0
        coefficients = coefficients_of(table, leaf)
        shown = pointer(floats(table, SINGLE.shown), leaf * window * capacity)
        for t in range(count):
            number = first + t
            place = leaf * steps + t
            _put_point(table, pointer(floats(table, SINGLE.points), t * whole(table, SINGLE.width)))
            prediction = _value(table, leaf, number)
            floats(table, SINGLE.predictions)[(leaf * (steps - 1) + t) * WIDTH] = prediction
            target = floats(table, SINGLE.targets)[(position + t) * WIDTH]
            _describe(table, prediction, target)
            sample[NORM] = floats(table, SINGLE.norms)[place * WIDTH]
            sample[NUMBER] = number
            sample[EFFECT] = 0.0
            call_phase(whole(table, SINGLE.step), table_address(table), leaf, number)
            floats(table, SINGLE.norms)[(place + 1) * WIDTH] = sample[NORM]
            floats(table, SINGLE.effects)[(leaf * (steps - 1) + t) * WIDTH] = sample[EFFECT]

            size = size_of(table, leaf)
            now = floats(table, SINGLE.now)
            newest = pointer(shown, number % window * capacity)
            for m in range(size):
                newest[m] = now[m]
            seen = min(number + 1, window)
            for age in range(seen):
                row = pointer(shown, (number - age) % window * capacity)
                value = dot(coefficients, row, size)
                own = (place + 1) * window + window - 1 - age
                floats(table, SINGLE.values)[own * WIDTH] = value


def glance(table, first, count):
    """query_values[leaf] = f at the point that is looked at."""
    _put_point(table, floats(table, SINGLE.query_point))
    for leaf in range(whole(table, SINGLE.leaves)):
        floats(table, SINGLE.query_values)[leaf * WIDTH] = _value(table, leaf, first)


def evaluate(table, first, count):
    """out[leaf, t] = f at points[t], for the leaves with wanted[leaf]; changes nothing."""
    for leaf in range(whole(table, SINGLE.leaves)):
        if wholes(table, SINGLE.wanted)[leaf] == 0:
            continue
        for t in range(count):
            _put_point(table, pointer(floats(table, SINGLE.points), t * whole(table, SINGLE.width)))
            value = _value(table, leaf, first)
            floats(table, SINGLE.out)[(leaf * count + t) * WIDTH] = value
