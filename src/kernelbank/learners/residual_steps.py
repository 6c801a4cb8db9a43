"""What a slot leaves, for another to learn; and their sum."""

from ..native.formulas import pointer
from ..native.phases import fields, floats, whole
from ..native.simd import WIDTH, load, store

RESIDUAL = fields(
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


def subtract(table, first, count):
    """Targets of the inner learner: y - f_base(x), each as it was before the base learned it.

    left_targets[leaf] slides like the buffer's table of targets; all leaves have the same.
    """
    slide_period = whole(table, RESIDUAL.slide_period)
    history_length = whole(table, RESIDUAL.history_length)
    steps = whole(table, RESIDUAL.steps)
    window = whole(table, RESIDUAL.window)
    position = history_length + first % slide_period
    base = whole(table, RESIDUAL.base_leaf) * (steps - 1)
    for leaf in range(whole(table, RESIDUAL.leaves)):
        targets = pointer(
            floats(table, RESIDUAL.left_targets), leaf * (history_length + slide_period) * WIDTH
        )
        if first > 0 and first % slide_period == 0:
            for m in range(history_length):
                store(targets, m, load(targets, slide_period + m))
        for t in range(count):
            known = floats(table, RESIDUAL.base_predictions)[
                (base + t) * WIDTH + whole(table, RESIDUAL.base_lane)
            ]
            rest = floats(table, RESIDUAL.new_targets)[t] - known
            floats(table, RESIDUAL.left)[t] = rest
            store(targets, position + t, rest)
        for i in range(window):
            own = load(floats(table, RESIDUAL.inner_state_values), leaf * window + i)
            store(floats(table, RESIDUAL.inner_values), leaf * steps * window + i, own)
        own = load(floats(table, RESIDUAL.inner_state_norms), leaf)
        store(floats(table, RESIDUAL.inner_norms), leaf * steps, own)


def add(table, first, count):
    """The slot's values are the base's and the inner learner's; so is norm^2, in the sum space."""
    steps = whole(table, RESIDUAL.steps)
    window = whole(table, RESIDUAL.window)
    lane = whole(table, RESIDUAL.base_lane)
    base = whole(table, RESIDUAL.base_leaf)
    base_values = floats(table, RESIDUAL.base_values)
    inner_values = floats(table, RESIDUAL.inner_values)
    inner_norms = floats(table, RESIDUAL.inner_norms)
    for leaf in range(whole(table, RESIDUAL.leaves)):
        for t in range(count):
            step = leaf * (steps - 1) + t
            known = floats(table, RESIDUAL.base_predictions)[
                (base * (steps - 1) + t) * WIDTH + lane
            ]
            inner = load(floats(table, RESIDUAL.inner_predictions), step)
            store(floats(table, RESIDUAL.predictions), step, inner + known)
            after = leaf * steps + t + 1
            base_after = base * steps + t + 1
            for i in range(window):
                known = base_values[(base_after * window + i) * WIDTH + lane]
                inner = load(inner_values, after * window + i)
                store(floats(table, RESIDUAL.values), after * window + i, inner + known)
            known = floats(table, RESIDUAL.base_norms)[base_after * WIDTH + lane]
            store(floats(table, RESIDUAL.norms), after, load(inner_norms, after) + known)
        last = leaf * steps + count
        for i in range(window):
            own = load(inner_values, last * window + i)
            store(floats(table, RESIDUAL.inner_state_values), leaf * window + i, own)
        store(floats(table, RESIDUAL.inner_state_norms), leaf, load(inner_norms, last))


def add_look(table, first, count):
    """The same for the point that is looked at."""
    place = whole(table, RESIDUAL.base_leaf) * WIDTH + whole(table, RESIDUAL.base_lane)
    known = floats(table, RESIDUAL.base_query_values)[place]
    for leaf in range(whole(table, RESIDUAL.leaves)):
        inner = load(floats(table, RESIDUAL.inner_query_values), leaf)
        store(floats(table, RESIDUAL.query_values), leaf, inner + known)
