"""The compiled steps of a single row; see `single_row`."""

# mypy: disable-error-code="no-untyped-def"
import math

import numpy as np

from ...bank.single_sample import DECLINED, DIAGNOSE, LEARNED
from ...native.arguments import Arguments, floats, ints
from ...native.formulas import call_phase
from ...native.functions import native
from ...native.jit import inline
from ...utils.validation import Floats
from ..scaling.running_stats import CENTER, FAR_DEVIATIONS, FORMS, SCALE, STATS, deviation
from ..season_steps import INPUTS, PAST, RECALLED

PREDICTED = 1
"""A result besides `DECLINED`, `LEARNED` and `DIAGNOSE`."""

NUMBER = -1
"""The `positive` class of a bank whose target is a number."""

# --- one bank -------------------------------------------------------------------------------------

BANK = Arguments(
    "bank_of_row",
    width=int,  # of a scaled row
    slots=int,
    lags=int,
    past=int,
    seasons=int,
    season_column=int,
    positive=int,  # the class with the label 1, or NUMBER
    predict=int,  # addresses of the bank's functions and their tables
    predict_table=int,
    learn=int,
    learn_table=int,
    scaled_row=floats(None, "width"),
    scaled_y=floats(None),
    y=floats(1),
    lagged=floats("past"),  # what the row knows: lagged targets, then those of seasons
    lag_columns=ints(None),  # where a scaled row has them, if they are classes
    query_point=floats("width"),
    query_prediction=floats(1),
    slot_values=floats("slots"),
    points=floats(None, "width"),
    targets=floats(None),
    result=ints(1),
    score=floats(1),  # the prediction of the bank,
    kept_values=floats("slots"),  # and those of its slots,
    weights=floats("slots"),  # whose weights are these
    spread=floats(1),  # the weighted standard deviation of kept_values around score
    diagnose=ints(1),
)


@inline
def _copy(source, out):
    for k in range(len(out)):
        out[k] = source[k]


@inline
def _label(target, positive):
    """A class as the label of a bank."""
    return 1.0 if target == positive else -1.0


@inline
def _fill_row(a, out):
    """out = the scaled row, with lagged classes as labels of this bank; 0 if one is unknown."""
    _copy(a.scaled_row[0], out)
    for i in range(len(a.lag_columns) if a.positive != NUMBER else 0):
        target = a.lagged[i % a.lags]
        out[a.lag_columns[i]] = 0.0 if np.isnan(target) else _label(target, a.positive)
    for place in range(a.seasons if a.positive != NUMBER else 0):
        column, total, known = a.season_column + place * INPUTS, 0.0, 0.0
        out[column] = 0.0
        for i in range(RECALLED):
            target = a.lagged[a.lags + place * PAST + i]
            if not np.isnan(target):
                label = _label(target, a.positive)
                if i == 0:
                    out[column] = label
                total += label
                known += 1.0
        out[column + 1] = total / max(known, 1.0)


@native(BANK)
def predict_with_bank(a, first, count):
    """score and kept_values: the bank's predictions of the scaled row; NaN if it declines."""
    _fill_row(a, a.query_point)
    call_phase(a.predict, a.predict_table, np.int64(0), np.int64(1))
    a.score[0] = a.query_prediction[0]
    _copy(a.slot_values, a.kept_values)
    a.spread[0] = _spread(a.kept_values, a.score[0], a.weights)


@inline
def _spread(values, center, weights):
    """The weighted standard deviation of values (P,) around a center."""
    total = 0.0
    for p in range(len(values)):
        if weights[p] > 0.0:
            total += weights[p] * (values[p] - center) * (values[p] - center)
    return math.sqrt(total)


@native(
    Arguments(
        "spread_rows",
        slots=int,
        values=floats(None, "slots"),
        centers=floats(None),
        weights=floats(None, "slots"),
        out=floats(None),
    )
)
def _spread_rows(a, first, count):
    """out[t] = the spread of values[t] around centers[t]."""
    for t in range(count):
        a.out[t] = _spread(a.values[t], a.centers[t], a.weights[t])


def spread_of_rows(values: Floats, centers: Floats, weights: Floats) -> Floats:
    """(n,): the weighted standard deviation of values (n, P) around centers (n,), row by row."""
    out = np.zeros(len(values))
    _spread_rows(
        len(values),
        slots=values.shape[1],
        values=np.ascontiguousarray(values),
        centers=np.ascontiguousarray(centers),
        weights=np.ascontiguousarray(weights),
        out=out,
    )
    return out


@native(BANK)
def learn_with_bank(a, first, count):
    """The bank learns the scaled row."""
    _fill_row(a, a.points[0])
    a.targets[0] = a.scaled_y[0] if a.positive == NUMBER else _label(a.y[0], a.positive)
    call_phase(a.learn, a.learn_table, np.int64(0), np.int64(1))
    if a.result[0] == DIAGNOSE:
        a.diagnose[0] = 1


COPY_WEIGHTS = Arguments(
    "copy_weights",
    running=int,
    slots=int,
    source=floats("running"),
    members=ints("running"),  # the places of the slots that run, among all
    out=floats(None, "slots"),
)


@native(COPY_WEIGHTS)
def copy_weights(a, first, count):
    """out[0] = the weights of a bank; 0 for slots that do not run."""
    for p in range(a.slots):
        a.out[0, p] = 0.0
    for i in range(a.running):
        a.out[0, a.members[i]] = a.source[i]


KEEP_ROW = Arguments(
    "keep_row",
    inputs=int,
    past=int,
    size=int,  # of the replay buffer
    rows=ints(1),
    x=floats(None, "inputs"),
    lagged=floats(None, "past"),
    targets=floats(None),
    replay_inputs=floats("size", "inputs"),
    replay_lagged=floats("size", "past"),
    replay_targets=floats("size"),
    replay_predicted_at=floats("size"),
)


@native(KEEP_ROW)
def keep_row(a, first, count):
    """Put row 0 into the replay buffer; see `ReplayBuffer.append`."""
    place = a.rows[0] % a.size
    _copy(a.x[0], a.replay_inputs[place])
    _copy(a.lagged[0], a.replay_lagged[place])
    a.replay_targets[place] = a.targets[0]
    a.replay_predicted_at[place] = a.rows[0]


CLASS_ROW = Arguments(
    "class_row",
    classes=int,
    probabilities=floats(None, "classes"),
    labels=floats(None),
    errors=floats(None),
    class_counts=floats("classes"),
    wrong=floats(2),
    last_class=ints(1),
)


@native(CLASS_ROW)
def count_class(a, first, count):
    """Count the class and the error of row 0."""
    target, guess = np.int64(a.labels[0]), 0
    for k in range(1, a.classes):
        if a.probabilities[0, k] > a.probabilities[0, guess]:
            guess = k
    a.errors[0] = guess != target
    a.class_counts[target] += 1.0
    a.wrong[0] += guess != target
    a.wrong[1] += a.last_class[0] != target and a.last_class[0] >= 0
    a.last_class[0] = target


# --- the row --------------------------------------------------------------------------------------

ROW = Arguments(
    "single_row",
    inputs=int,
    lags=int,  # targets that a row knows
    previous=int,  # inputs of the last row that it knows
    past=int,  # numbers that it knows of the past: targets, those of seasons, inputs
    width=int,  # of a scaled row
    banks=int,
    outputs=int,
    numbers=int,  # whether targets are numbers, not classes
    largest=float,
    bounds=floats(2),  # of targets that are numbers
    run_phases=int,  # address
    predict_phases=int,  # addresses of tables of phases
    learn_phases=int,
    # The row, and the last one that was predicted, as numbers and as their bits:
    x=floats("inputs"),
    y=floats(1),
    x_bits=ints("inputs"),
    last_bits=ints("inputs"),
    result=ints(2),  # DECLINED, PREDICTED, LEARNED or DIAGNOSE; whether there are signals of change
    diagnose=ints(1),
    # State of the model:
    rows=ints(1),
    lagged=floats("past"),
    target=floats(STATS),
    # The last prediction:
    last_lagged=floats("past"),
    last_scores=floats("banks"),
    last_scale=floats(2),
    last_output=floats("outputs"),
    last_row=floats("width"),  # scaled
    last_forms=floats("inputs", FORMS),  # of the inputs
    # The arrays of a batch, of which row 0 is used:
    scaling_x=floats(None, "inputs"),
    scaling_lagged=floats(None, "past"),
    scaling_y=floats(None),
    scaling_result=ints(2),
    scaled_row=floats(None, "width"),
    forms=floats("inputs", FORMS),
    scores=floats(None, "banks"),
    scale=floats(None, 2),  # if targets are numbers
    targets=floats(None),  # numbers or classes
    output=floats(None, "outputs"),
    error_signals=ints(None),
    weight_signals=ints(None),
)


@inline
def _in_range(row, largest):
    """Whether no number is too large; NaN stands for a missing one."""
    for k in range(len(row)):
        if not (np.isnan(row[k]) or -largest <= row[k] <= largest):
            return False
    return True


@native(ROW)
def fill_scores(a, first, count):
    """Between the banks' predictions and intervals or probabilities."""
    _copy(a.last_scores, a.scores[0])
    if a.numbers:
        a.last_scale[0], a.last_scale[1] = a.target[CENTER], a.target[SCALE]
        _copy(a.last_scale, a.scale[0])


@native(ROW)
def predict_row(a, first, count):
    """Predict the row x; last_output. result[0]: DECLINED or PREDICTED."""
    a.result[0] = DECLINED
    if not _in_range(a.x, a.largest):
        return
    _copy(a.x, a.scaling_x[0])
    _copy(a.lagged, a.scaling_lagged[0])
    _copy(a.lagged, a.last_lagged)
    call_phase(a.run_phases, a.predict_phases, np.int64(0), np.int64(1))
    for k in range(a.banks):
        if np.isnan(a.last_scores[k]):
            return
    _copy(a.x_bits, a.last_bits)
    _copy(a.output[0], a.last_output)
    _copy(a.scaled_row[0], a.last_row)
    for k in range(a.inputs):
        _copy(a.forms[k], a.last_forms[k])
    a.result[0] = PREDICTED


@native(ROW)
def learn_row(a, first, count):
    """Learn the row (x, y), which was predicted last.

    result[0]: DECLINED; LEARNED; DIAGNOSE if Python has to look at diagnostics or signals.
    """
    a.result[0] = DECLINED
    y = a.y[0]
    if a.numbers:
        possible = -a.largest <= y <= a.largest and a.bounds[0] <= y <= a.bounds[1]
        if not possible or not abs(deviation(a.target, y)) <= FAR_DEVIATIONS:
            return
        a.scale[0, 0], a.scale[0, 1] = a.target[CENTER], a.target[SCALE]
    for k in range(a.inputs):
        if a.x_bits[k] != a.last_bits[k]:
            return
    _copy(a.last_scores, a.scores[0])
    _copy(a.last_output, a.output[0])
    a.targets[0] = y
    _copy(a.x, a.scaling_x[0])
    _copy(a.last_lagged, a.scaling_lagged[0])
    _copy(a.last_row, a.scaled_row[0])
    for k in range(a.inputs):
        _copy(a.last_forms[k], a.forms[k])
    a.scaling_y[0] = y
    a.diagnose[0] = 0
    call_phase(a.run_phases, a.learn_phases, np.int64(0), np.int64(1))
    for i in range(a.lags - 1, 0, -1):
        a.lagged[i] = a.lagged[i - 1]
    if a.lags > 0:
        a.lagged[0] = y
    for k in range(a.previous):
        a.lagged[a.past - a.previous + k] = a.x[k]
    a.rows[0] += 1
    a.result[1] = a.error_signals[0] != 0 or a.weight_signals[0] != 0 or a.scaling_result[1] != 0
    a.result[0] = DIAGNOSE if a.diagnose[0] or a.result[1] else LEARNED
