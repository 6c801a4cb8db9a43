"""What a slot leaves, for another to learn; and their sum."""

from ..native.formulas import pointer
from ..native.phases import argument_fields, float_array, read_int
from ..native.simd import WIDTH, load, store

RESIDUAL = argument_fields(
    "leaves",
    "steps",
    "window",
    "slide_period",
    "history_length",
    "base_leaf",
    "base_lane",
    "base_predictions",
    "base_values",
    "base_norms",
    "base_query_values",
    "new_targets",
    "left",
    "left_targets",
    "inner_state_values",
    "inner_state_norms",
    "inner_values",
    "inner_norms",
    "inner_predictions",
    "inner_query_values",
    "values",
    "norms",
    "predictions",
    "query_values",
)


def subtract(args, first, count):
    """Targets of the inner learner: y - f_base(x), each as it was before the base learned it.

    left_targets[leaf] slides like the buffer's table of targets; all leaves have the same.
    """
    slide_period = read_int(args, RESIDUAL.slide_period)
    history_length = read_int(args, RESIDUAL.history_length)
    steps = read_int(args, RESIDUAL.steps)
    window = read_int(args, RESIDUAL.window)
    position = history_length + first % slide_period
    base = read_int(args, RESIDUAL.base_leaf) * (steps - 1)
    for leaf in range(read_int(args, RESIDUAL.leaves)):
        targets = pointer(
            float_array(args, RESIDUAL.left_targets), leaf * (history_length + slide_period) * WIDTH
        )
        if first > 0 and first % slide_period == 0:
            for m in range(history_length):
                store(targets, m, load(targets, slide_period + m))
        for t in range(count):
            known = float_array(args, RESIDUAL.base_predictions)[
                (base + t) * WIDTH + read_int(args, RESIDUAL.base_lane)
            ]
            rest = float_array(args, RESIDUAL.new_targets)[t] - known
            float_array(args, RESIDUAL.left)[t] = rest
            store(targets, position + t, rest)
        for i in range(window):
            own = load(float_array(args, RESIDUAL.inner_state_values), leaf * window + i)
            store(float_array(args, RESIDUAL.inner_values), leaf * steps * window + i, own)
        own = load(float_array(args, RESIDUAL.inner_state_norms), leaf)
        store(float_array(args, RESIDUAL.inner_norms), leaf * steps, own)


def add(args, first, count):
    """The slot's values are the base's and the inner learner's; so is norm^2, in the sum space."""
    steps = read_int(args, RESIDUAL.steps)
    window = read_int(args, RESIDUAL.window)
    lane = read_int(args, RESIDUAL.base_lane)
    base = read_int(args, RESIDUAL.base_leaf)
    base_values = float_array(args, RESIDUAL.base_values)
    inner_values = float_array(args, RESIDUAL.inner_values)
    inner_norms = float_array(args, RESIDUAL.inner_norms)
    for leaf in range(read_int(args, RESIDUAL.leaves)):
        for t in range(count):
            step = leaf * (steps - 1) + t
            known = float_array(args, RESIDUAL.base_predictions)[
                (base * (steps - 1) + t) * WIDTH + lane
            ]
            inner = load(float_array(args, RESIDUAL.inner_predictions), step)
            store(float_array(args, RESIDUAL.predictions), step, inner + known)
            after = leaf * steps + t + 1
            base_after = base * steps + t + 1
            for i in range(window):
                known = base_values[(base_after * window + i) * WIDTH + lane]
                inner = load(inner_values, after * window + i)
                store(float_array(args, RESIDUAL.values), after * window + i, inner + known)
            known = float_array(args, RESIDUAL.base_norms)[base_after * WIDTH + lane]
            store(float_array(args, RESIDUAL.norms), after, load(inner_norms, after) + known)
        last = leaf * steps + count
        for i in range(window):
            own = load(inner_values, last * window + i)
            store(float_array(args, RESIDUAL.inner_state_values), leaf * window + i, own)
        store(float_array(args, RESIDUAL.inner_state_norms), leaf, load(inner_norms, last))


def add_look(args, first, count):
    """The same for the point that is looked at."""
    place = read_int(args, RESIDUAL.base_leaf) * WIDTH + read_int(args, RESIDUAL.base_lane)
    known = float_array(args, RESIDUAL.base_query_values)[place]
    for leaf in range(read_int(args, RESIDUAL.leaves)):
        inner = load(float_array(args, RESIDUAL.inner_query_values), leaf)
        store(float_array(args, RESIDUAL.query_values), leaf, inner + known)
