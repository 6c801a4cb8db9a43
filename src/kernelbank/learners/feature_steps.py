"""The compiled loop of the learners on features (`feature_learner.py`).

A method contributes two compiled functions, both called by address with (a, leaf, number):
`compute_features` writes the features of the present point, and `step` learns the present sample.
Their arguments begin with FIELDS. `sample` carries what is known of the present sample between the
loop and the two.

The features of the window's samples are kept (`window_features`), so that each value on the window
after a step is one sum. Arrays that end in an axis of four are shared with learners of four slots
per leaf; here only the first of the four is used.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from ..kernels.sample_buffer import USED
from ..native.arguments import Arguments, floats, ints, lanes
from ..native.dense import dot, dot_nine, dot_three, norm_and_dot_two
from ..native.formulas import address_of, call_loss, call_phase
from ..native.functions import native
from ..native.jit import inline
from ..native.scalar_math import tanh
from ..native.simd import WIDTH, broadcast, four, lane
from ..native.views import load_four, store_four

SAMPLE_SIZE = 12
(
    SELF_KERNEL,  # k(x, x)
    PREDICTION,  # f(x) before the sample is learned
    TARGET,  # y
    SLOPE,  # l'(f(x), y)
    ERROR,  # e = -slope / curvature: what second-order methods take for y - f(x)
    RESPONSE,  # z = f(x) + e
    WEIGHT,  # curvature / 2
    SQUARED_NORM,  # norm^2 of f: the step keeps it up to date
    NUMBER,  # of the sample, from 0
    DROP_EFFECT,  # how far dropped terms moved the window's values, relative to their size
    AHEAD,  # how many samples `look_ahead` is to look at, from the present one on
    ROW,  # of the sample in the block
) = range(SAMPLE_SIZE)
"""Where it stands in `sample`."""

FIELDS = Arguments(
    "feature_learner",
    leaves=int,
    steps=int,  # longest block + 1
    window=int,
    slide_period=int,
    history_length=int,
    width=int,  # coordinates of an input
    dimension=int,  # coordinates that the features use
    active_dims=ints("dimension"),  # which ones
    contiguous=int,  # 1 if each of them is one more than the last
    capacity=int,  # most features during a step
    max_size=int,  # most features between two steps
    cycle=int,  # samples of which the features are computed together
    curvature_rule=int,
    curvature_bound=float,  # of the loss, for the rule BOUNDED
    compute_features=int,  # address
    step=int,  # address
    look_ahead=int,  # address, if cycle > 1
    derivative=int,  # address of the loss's derivative
    loss_parameters=floats(None),
    loss_lanes=lanes(3),  # f, y and l'
    points=floats(None, "width"),
    targets=floats("history_length + slide_period", 4),
    inputs=floats("width", "history_length + slide_period"),
    query_point=floats("width"),
    query_values=floats("leaves", 4),
    wanted=ints("leaves"),
    out=floats("leaves", None, 4),
    values=floats("leaves", "steps", "window", 4),
    norms=floats("leaves", "steps", 4),
    predictions=floats("leaves", "steps - 1", 4),
    effects=floats("leaves", "steps - 1", 4),
    point=floats("dimension"),  # the active coordinates of the present input
    sample=floats(SAMPLE_SIZE),  # what is known of the present sample
    point_features=floats("capacity"),  # features(x) of the present point x
    cycle_features=floats("cycle", "capacity"),  # sample n in row n % cycle
    memo=ints(3),  # of the last query, see `SampleBuffer`
    memo_features=floats("leaves", "capacity"),  # its features, if cycle > 1 or followed
    followed=int,  # 1 if slots of other outputs follow these, 2 if these follow others
    # for them: the features of the block's samples, after those of the window before the block;
    # the last row is never used
    kept_features=floats("leaves", "window + steps - 1", "capacity"),
    kept_self_kernels=floats("leaves", "steps - 1"),
    size=floats("leaves"),  # features in use
    coefficients=floats("leaves", "capacity"),
    window_features=floats("leaves", "window", "capacity"),  # sample n in row n % window
)

NO_CURVATURE, CONSTANT, LOGISTIC, BOUNDED = range(4)
"""The curvature of the loss: not needed; 2; tanh(f / 2) / 2 f, which bounds it from above; and for
other losses with a bounded curvature, `curvature_along`."""

_SMALL = 1e-4  # below, tanh(f / 2) / 2 f is 1/4 to the last digit but one


# --- compiled: what the steps use ---------------------------------------------------------------


@inline
def size_of(a, leaf):
    """The number of features in use. A saved file may hold any number: stay within the arrays."""
    size = a.size[leaf]
    if not 0.0 <= size <= a.capacity:
        return 0
    return int(size)


@inline
def curvature_above(prediction):
    """tanh(f / 2) / 2 f: the curvature of the tightest parabola above the logistic loss at f.

    (Jaakkola and Jordan.) Unlike l'' it bounds the loss, so a confident mistake makes no huge step.
    """
    size = abs(prediction)
    return tanh(0.5 * size) / (2.0 * size) if size > _SMALL else 0.25


@inline
def curvature_along(derivative, parameters, bound, prediction, target, slope, rows):
    """bound / 4^k, with the largest k <= 8 at which the step -l' 4^k / bound leaves half of l'.

    So the step never passes the minimum, and where the loss is flatter than its bound the step is
    longer. `bound` is of the loss's curvature; rows: lanes(3), scratch.
    """
    longest = -slope / bound
    rows[1] = broadcast(target)
    curvature = bound
    for _ in range(2):  # k = 1 .. 4, then 5 .. 8
        steps = longest * four(4.0, 16.0, 64.0, 256.0)
        rows[0] = prediction + steps
        call_loss(derivative, rows, rows[1:], 1, parameters, rows[2:])
        left = rows[2] / slope
        for i in range(WIDTH):
            if not lane(left, i) >= 0.5:
                return curvature
            curvature *= 0.25
        longest *= 256.0
    return curvature


# --- compiled: the loops ------------------------------------------------------------------------


@inline
def _set_point(a, whole_input):
    """point = the active coordinates of an input of shape (width,)."""
    if a.contiguous != 0:  # copied four at a time
        start = a.active_dims[0]
        for k in range(a.dimension):
            a.point[k] = whole_input[start + k]
    else:
        for k in range(a.dimension):
            a.point[k] = whole_input[a.active_dims[k]]


@inline
def _copy(row, out, size):
    """out = row, four numbers at a time. row, out: (size,)."""
    even = size - size % WIDTH
    for m in range(0, even, WIDTH):
        store_four(out, m, load_four(row, m))
    for m in range(even, size):
        out[m] = row[m]


@inline
def _value(a, leaf, number):
    """f at `point`; its features are left in `point_features`."""
    call_phase(a.compute_features, address_of(a), leaf, number)
    return dot(a.coefficients[leaf], a.point_features, size_of(a, leaf))


@inline
def _slope(a, prediction, target):
    """l'(prediction, target), from the loss's four-lane function."""
    rows = a.loss_lanes  # f, y, l'
    rows[0] = broadcast(prediction)
    rows[1] = broadcast(target)
    call_loss(a.derivative, rows, rows[1:], 1, a.loss_parameters, rows[2:])
    return lane(rows[2], 0)


@inline
def _fill_sample(a, prediction, target):
    """What the step needs to know of prediction and target."""
    sample = a.sample
    missing = np.isnan(target)
    if missing:
        target = prediction
    slope = 0.0 if missing else _slope(a, prediction, target)
    sample[PREDICTION] = prediction
    sample[TARGET] = target
    sample[SLOPE] = slope
    sample[RESPONSE] = target
    curvature = 2.0
    error = target - prediction
    if a.curvature_rule >= LOGISTIC and not missing:
        if a.curvature_rule == LOGISTIC:
            curvature = curvature_above(prediction)
        else:
            curvature = curvature_along(
                a.derivative,
                a.loss_parameters,
                a.curvature_bound,
                prediction,
                target,
                slope,
                a.loss_lanes,
            )
        error = -slope / curvature
        sample[RESPONSE] = prediction + error
    sample[ERROR] = error
    sample[WEIGHT] = 0.5 * curvature


@inline
def _look_ahead(a, leaf, number, t, left):
    """Prepare samples number, number + 1, ... of this cycle, at most `left`; points[t] first."""
    ahead = min(a.cycle - number % a.cycle, left)
    known = 0
    if t == 0 and a.memo[USED] == 1:  # just predicted
        known = 1
        _copy(a.memo_features[leaf], a.cycle_features[number % a.cycle], a.capacity)
    for k in range(known, ahead):
        _set_point(a, a.points[t + k])
        call_phase(a.compute_features, address_of(a), leaf, number + k)
        _copy(a.point_features, a.cycle_features[(number + k) % a.cycle], a.capacity)
    a.sample[AHEAD] = ahead
    call_phase(a.look_ahead, address_of(a), leaf, number)


@native(FIELDS)
def learn_block(a, first, count):
    """Run every leaf through samples first .. first + count - 1, which lie in one slide period."""
    position = a.history_length + first % a.slide_period
    for leaf in range(a.leaves):
        if not size_of(a, leaf) <= a.max_size:  # from a forged file only
            a.size[leaf] = 0.0
        if a.followed == 1:
            _keep_window(a, leaf, first)
        for t in range(count):
            number = first + t

            # Predict.
            if a.cycle == 1:
                _set_point(a, a.points[t])
                call_phase(a.compute_features, address_of(a), leaf, number)
            else:
                if t == 0 or number % a.cycle == 0:
                    _look_ahead(a, leaf, number, t, count - t)
                _copy(a.cycle_features[number % a.cycle], a.point_features, a.capacity)
            if a.followed == 1:
                _copy(a.point_features, a.kept_features[leaf, a.window - 1 + t], a.capacity)
                a.kept_self_kernels[leaf, t] = a.sample[SELF_KERNEL]
            _learn_sample(a, leaf, t, number, a.targets[position + t, 0])


@inline
def _keep_window(a, leaf, first):
    """Keep the features of the window before sample `first`, oldest first."""
    kept, rows = a.kept_features[leaf], a.window_features[leaf]
    newest = a.window - 1
    for age in range(1, min(first, newest) + 1):
        _copy(rows[(first - age) % a.window], kept[newest - age], a.capacity)


@inline
def _learn_sample(a, leaf, t, number, target):
    """Predict sample t of the block, whose features are in `point_features`, and learn it."""
    prediction = dot(a.coefficients[leaf], a.point_features, size_of(a, leaf))
    _step(a, leaf, t, number, prediction, target)

    # Values of f on the window, oldest first: coefficients . features of each sample.
    window, coefficients = a.window, a.coefficients[leaf]
    rows = a.window_features[leaf]  # (window, capacity)
    size = size_of(a, leaf)
    newest = rows[number % window]
    _copy(a.point_features, newest, size)
    for age in range(min(number + 1, window)):
        value = dot(coefficients, rows[(number - age) % window], size)
        a.values[leaf, t + 1, window - 1 - age, 0] = value


@inline
def _step(a, leaf, t, number, prediction, target):
    """Learn sample t of the block: coefficients, and norm^2."""
    sample = a.sample
    _fill_sample(a, prediction, target)
    sample[SQUARED_NORM] = a.norms[leaf, t, 0]
    sample[NUMBER] = number
    sample[ROW] = t
    sample[DROP_EFFECT] = 0.0
    call_phase(a.step, address_of(a), leaf, number)
    a.predictions[leaf, t, 0] = prediction
    a.norms[leaf, t + 1, 0] = sample[SQUARED_NORM]
    a.effects[leaf, t, 0] = sample[DROP_EFFECT]


@inline
def window_values(weights, rows, row, older, size, out):
    """Write the values on the window of the `older` samples before sample `row`.

    rows: (n, capacity), features of consecutive samples; out: (window, 4), that of `row` last.
    """
    first, place = row - older, len(out) - 1 - older  # of the oldest
    done = 0
    while done + 9 <= older:
        sums = dot_nine(weights, rows[first + done :], size)
        own = out[place + done :]
        own[0, 0], own[1, 0], own[2, 0] = sums[0], sums[1], sums[2]
        own[3, 0], own[4, 0], own[5, 0] = sums[3], sums[4], sums[5]
        own[6, 0], own[7, 0], own[8, 0] = sums[6], sums[7], sums[8]
        done += 9
    while done + 3 <= older:
        sums = dot_three(weights, rows[first + done :], size)
        own = out[place + done :]
        own[0, 0], own[1, 0], own[2, 0] = sums
        done += 3
    while done < older:
        out[place + done, 0] = dot(weights, rows[first + done], size)
        done += 1


@native(FIELDS)
def follow_block(a, first, count):
    """The same for another output: features, and what the step keeps, are those of the first."""
    position, newest = a.history_length + first % a.slide_period, a.window - 1
    for leaf in range(a.leaves):
        weights, rows = a.coefficients[leaf], a.kept_features[leaf]
        size = size_of(a, leaf)
        prediction = dot(weights, rows[newest], size)
        for t in range(count):
            row, out = newest + t, a.values[leaf, t + 1]
            _copy(rows[row], a.point_features, a.capacity)
            a.sample[SELF_KERNEL] = a.kept_self_kernels[leaf, t]
            _step(a, leaf, t, first + t, prediction, a.targets[position + t, 0])
            _, out[newest, 0], prediction = norm_and_dot_two(weights, rows[row:], size)
            window_values(weights, rows, row, min(first + t, newest), size, out)


@native(FIELDS)
def follow_query(a, first, count):
    """query_values[leaf] = f at query_point, whose features the first output has computed."""
    for leaf in range(a.leaves):
        features = a.memo_features[leaf]
        a.query_values[leaf, 0] = dot(a.coefficients[leaf], features, size_of(a, leaf))


@native(FIELDS)
def predict_query(a, first, count):
    """query_values[leaf] = f at query_point."""
    _set_point(a, a.query_point)
    for leaf in range(a.leaves):
        a.query_values[leaf, 0] = _value(a, leaf, first)
        if a.cycle > 1 or a.followed == 1:
            _copy(a.point_features, a.memo_features[leaf], a.capacity)


@native(FIELDS)
def predict_points(a, first, count):
    """out[leaf, t] = f at points[t], for the leaves with wanted[leaf]; changes nothing."""
    for leaf in range(a.leaves):
        if a.wanted[leaf] == 0:
            continue
        for t in range(count):
            _set_point(a, a.points[t])
            a.out[leaf, t, 0] = _value(a, leaf, first)
