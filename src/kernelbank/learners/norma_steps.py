"""The compiled step of NORMA: a leaf of four kernels at a time, by exact recursions.

One term joins per sample. At sample n the new term stands at position `newest` of the term arrays;
the expansion has `budget` terms at newest - budget .. newest - 1, and the window is the last
`window` positions up to `newest`. The term at newest - budget is dropped at the end of the step. A
kernel row of x_n covers the positions newest - budget .. newest, so that k(x_i, x_j) with j <= i
stands in the row of i at budget - (i - j). The rows of the last window + 1 samples are kept in a
ring. Terms from before the first sample have coefficient 0.

*Tails* make dropping cheap: tail_j = sum of alpha_i k(x_i, x_j) over j itself and the newer terms i
that have left the window. They only decay, so no Gram matrix and no second row is needed.

*Scale*: all coefficients and tails decay by the same factor in every step. The arrays hold
alpha / scale with scale = decays[n % period]. Once per period, by the absolute number of the
sample, it is multiplied in. So a step touches only what changes otherwise. With a rate that varies,
the decay 1 - rate * regularization varies too, and each slot keeps its own scale in the state.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from ..kernels.program import kernel_row, repeats
from ..kernels.sample_buffer import USED
from ..native.arguments import Arguments, floats, ints, lanes
from ..native.formulas import call_loss
from ..native.functions import native
from ..native.jit import inline
from ..native.simd import absolute, broadcast, fma, lane, where_less
from .step_size import ADAGRAD, CONSTANT, step_size

REFRESH_PERIOD = 32
"""norm^2 is recomputed from the coefficients at every sample number that this divides."""

EXPANSION = Arguments(
    "norma_expansion",
    leaves=int,
    slide_period=int,
    history_length=int,
    budget=int,
    period=int,
    decays=floats("period + 1"),  # decays[n] = decay^n, of a constant rate
    step_rule=int,
    scales=lanes("leaves"),  # of a rate that varies: the present scale
    program=ints(None, 3),  # the kernels' program, see `kernels.program`
    constants=lanes("leaves", None, 3),
    statistics=floats(None, None, "history_length + 1"),
    stack=lanes(None, "budget + 1"),  # scratch of the kernels' program
    followed=int,  # 1 if slots of other outputs follow these, 2 if these follow others
    coefficients=lanes("leaves", "budget + slide_period"),  # alpha / scale
)
LEARN = EXPANSION.extended(
    "norma_learn",
    steps=int,  # longest block + 1
    window=int,
    first_sample=int,  # number of the first sample that is learned
    learning_rate=float,
    largest_rate=float,
    regularization=float,
    squares=lanes("leaves"),  # adagrad: sum of g'K g
    derivative=int,  # address of the loss's derivative
    parameters=floats(None),  # of the loss
    targets=lanes("history_length + slide_period"),
    repeated=ints(None, "steps - 1"),
    memo=ints(3),
    memo_rows=lanes("leaves", "budget + 1"),  # kernel rows of the last query
    kept_rows=lanes("leaves", "steps - 1", "budget + 1"),  # of the block, for other outputs
    scratch=lanes(3, "window"),
    tails=lanes("leaves", "budget + slide_period"),  # tail / scale
    diagonals=lanes("leaves", "budget + slide_period"),  # k(x_j, x_j)
    rows=lanes("leaves", "window + 1", "budget + 1"),  # ring of kernel rows
    dropped=lanes("leaves"),  # norm^2 of all dropped terms
    steepness=lanes("leaves"),  # largest g'Kg / g'g
    values=lanes("leaves", "steps", "window"),
    norms=lanes("leaves", "steps"),
    predictions=lanes("leaves", "steps - 1"),
    effects=lanes("leaves", "steps - 1"),
)
QUERY = EXPANSION.extended(
    "norma_query",
    window=int,
    memo_repeated=ints(None, 1),
    memo_rows=lanes("leaves", "budget + 1"),
    rows=lanes("leaves", "window + 1", "budget + 1"),
    query_values=lanes("leaves"),
)
POINTS = EXPANSION.extended(
    "norma_points",
    row=lanes("budget"),
    wanted=ints("leaves"),
    points=int,  # number of points
    out=lanes("leaves", "points"),
)


# --- compiled: kernel rows and sums over terms ---------------------------------------------------


@inline
def write_row(a, leaf, t, count, row):
    """row[m] = kernel values of the input of step t with term m, oldest first, for m < count."""
    column = a.history_length - a.budget
    kernel_row(a.program, a.constants[leaf], a.statistics, t, column, count, row, a.stack)


@inline
def copy_row(source, row, count):
    """row[m] = source[m] for m < count."""
    for m in range(count):
        row[m] = source[m]


@inline
def expansion(coefficients, row, terms):
    """sum_m coefficients[m] row[m] over four interleaved partial sums."""
    one = broadcast(0.0)
    two, three, four = one, one, one
    even = terms - terms % 4
    for m in range(0, even, 4):
        one = fma(coefficients[m], row[m], one)
        two = fma(coefficients[m + 1], row[m + 1], two)
        three = fma(coefficients[m + 2], row[m + 2], three)
        four = fma(coefficients[m + 3], row[m + 3], four)
    for m in range(even, terms):
        one = fma(coefficients[m], row[m], one)
    return (one + two) + (three + four)


@inline
def _scale(a, leaf, seen):
    """What the leaf's coefficients and tails are to be multiplied by after `seen` samples."""
    if a.step_rule == CONSTANT:
        return broadcast(a.decays[seen % a.period])
    return a.scales[leaf]


# --- compiled: the step --------------------------------------------------------------------------


@inline
def _slide(array, kept, slide_period):
    """Move the last `kept` terms of each leaf to the front, at the end of a slide period."""
    for leaf in range(len(array)):
        for m in range(kept):
            array[leaf, m] = array[leaf, slide_period + m]


@inline
def _multiply(terms, start, end, factor):
    """terms[start:end] *= factor."""
    for m in range(start, end):
        terms[m] = terms[m] * factor


@inline
def _index_before(index, age, window):
    """Where the row of the sample `age` <= window samples before is in the ring."""
    return index - age if index >= age else index - age + window + 1


@inline
def _norm(coefficients, tails, diagonals, newest, rows, index, window, budget):
    """norm^2 / scale^2 from coefficients and tails: sum_j alpha_j f(x_j), at least 0.

    coefficients, tails, diagonals: the leaf's terms; rows: (window + 1, budget + 1) lanes.
    """
    total = broadcast(0.0)
    for j in range(newest - budget + 1, newest - window + 1):  # terms outside the window
        alpha = coefficients[j]
        others = 2.0 * tails[j] - alpha * diagonals[j]
        for i in range(window):
            k = rows[_index_before(index, i, window), budget - (newest - i - j)]
            others = fma(2.0 * coefficients[newest - i], k, others)
        total = fma(alpha, others, total)
    for i in range(window):  # terms of the window, by age
        row = rows[_index_before(index, i, window)]
        own = coefficients[newest - i]
        value = own * row[budget]
        for j in range(i + 1, window):
            value = fma(2.0 * coefficients[newest - j], row[budget - (j - i)], value)
        total = fma(own, value, total)
    return where_less(total, 0.0, 0.0, total)


@native(LEARN)
def learn_block(a, first, count):
    """Run every leaf through samples first .. first + count - 1, which lie in one slide period."""
    window, budget, slide_period = a.window, a.budget, a.slide_period
    position = a.history_length + first % slide_period
    old_values = a.scratch[0]  # (window,): f on the window
    gradient = a.scratch[1]  # (window,): g_i = l'(f(x_i), y_i)
    k_g = a.scratch[2]  # (window,): K g
    if first > 0 and first % slide_period == 0:
        _slide(a.coefficients, budget, slide_period)
        _slide(a.tails, budget, slide_period)
        _slide(a.diagonals, budget, slide_period)
    for leaf in range(a.leaves):
        coefficients, tails, diagonals = a.coefficients[leaf], a.tails[leaf], a.diagonals[leaf]
        rows = a.rows[leaf]  # (window + 1, budget + 1), a ring
        norm2, steepest, dropped = a.norms[leaf, 0], a.steepness[leaf], a.dropped[leaf]
        for t in range(count):
            number = first + t
            newest = budget + number % slide_period  # position of the new term
            oldest = newest - budget
            seen = min(number + 1 - a.first_sample, window)
            unseen = window - seen
            index = number % (window + 1)  # in the ring of kernel rows
            row = rows[index]
            scale = _scale(a, leaf, number)

            # Kernel values of the new input, unless the input repeats.
            if a.followed == 2:
                copy_row(a.kept_rows[leaf, t], row, budget + 1)
            elif repeats(a.program, a.repeated, t):
                copy_row(rows[_index_before(index, 1, window)], row, budget + 1)
            elif a.memo[USED] == 1:
                copy_row(a.memo_rows[leaf], row, budget + 1)
            else:
                write_row(a, leaf, t, budget + 1, row)
            if a.followed == 1:
                copy_row(row, a.kept_rows[leaf, t], budget + 1)
            diagonals[newest] = row[budget]

            # f(x) = sum_j alpha_j k(x_j, x); values of f on the window; g there, all at the same f.
            prediction = scale * expansion(coefficients[oldest:], row, budget)
            a.predictions[leaf, t] = prediction
            before, after = a.values[leaf, t], a.values[leaf, t + 1]  # (window,)
            for i in range(window - 1):
                old_values[i] = before[i + 1]
            old_values[window - 1] = prediction
            for i in range(unseen):
                gradient[i] = broadcast(0.0)
            targets = a.targets[position + t - seen + 1 :]
            call_loss(
                a.derivative, old_values[unseen:], targets, seen, a.parameters, gradient[unseen:]
            )
            if np.isnan(lane(a.targets[position + t], 0)):  # missing, in a window of 1
                gradient[window - 1] = broadcast(0.0)

            # The term i that leaves the window joins the tails: tail_j += alpha_i k(x_i, x_j).
            leaving = newest - window
            alpha = coefficients[leaving]
            left = rows[_index_before(index, window, window)]
            for j in range(oldest, leaving):
                tails[j] = fma(alpha, left[budget - leaving + j], tails[j])
            tails[leaving] = alpha * diagonals[leaving]

            # K g on the window.
            for i in range(window):
                k_g[i] = broadcast(0.0)
            for i in range(unseen, window):
                age = window - 1 - i
                own = rows[_index_before(index, age, window)]
                g = gradient[i]
                total = k_g[i]
                for j in range(unseen, i):
                    k = own[budget - i + j]
                    total = fma(gradient[j], k, total)
                    k_g[j] = fma(g, k, k_g[j])
                k_g[i] = fma(g, own[budget], total)
            g_f = broadcast(0.0)
            g_k_g = g_f
            g_g = g_f
            for i in range(unseen, window):
                g = gradient[i]
                g_f = fma(g, old_values[i], g_f)
                g_k_g = fma(g, k_g[i], g_k_g)
                g_g = fma(g, g, g_g)

            # The rate, the decay 1 - rate * regularization, and alpha <- decay alpha - rate g on
            # the window (the paper's NORMA update).
            if a.step_rule == ADAGRAD:
                a.squares[leaf] = a.squares[leaf] + where_less(g_k_g, 0.0, 0.0, g_k_g)
            rate = step_size(
                a.step_rule, a.learning_rate, a.largest_rate, number + 1, a.squares[leaf]
            )
            if a.step_rule == CONSTANT:
                decay = broadcast(a.decays[1])
                scale_after = broadcast(a.decays[number % a.period + 1])
            else:
                decay = 1.0 - rate * a.regularization
                scale_after = scale * decay
            step = -rate / scale_after
            coefficients[newest] = broadcast(0.0)
            for i in range(unseen, window):
                at = newest - (window - 1 - i)
                coefficients[at] = fma(step, gradient[i], coefficients[at])

            # |decay f - rate sum_i g_i k(x_i, .)|^2
            #     = decay^2 |f|^2 - 2 decay rate g'f + rate^2 g'K g, before anything is dropped.
            norm2 = decay * decay * norm2 - 2.0 * decay * rate * g_f + rate * rate * g_k_g
            quotient = g_k_g / g_g
            steepest = where_less(steepest, quotient, quotient, steepest)

            # Drop the oldest term, alpha k(x_j, .):
            #     |f - alpha k(x_j, .)|^2 = |f|^2 - 2 alpha f(x_j) + alpha^2 k(x_j, x_j).
            alpha = scale_after * coefficients[oldest]
            value = tails[oldest]
            for i in range(unseen, window):
                age = window - 1 - i
                k = rows[_index_before(index, age, window), age]
                value = fma(coefficients[newest - age], k, value)
            own_square = alpha * alpha * diagonals[oldest]
            norm2 = norm2 - 2.0 * alpha * (scale_after * value) + own_square
            norm2 = where_less(norm2, 0.0, 0.0, norm2)
            dropped = dropped + own_square
            moved = broadcast(0.0)
            largest = moved
            for i in range(unseen):
                after[i] = broadcast(0.0)
            for i in range(unseen, window):
                age = window - 1 - i
                # f(x_i) <- decay f(x_i) - rate (K g)_i, then without the dropped term
                full = fma(-rate, k_g[i], decay * old_values[i])
                change = alpha * rows[_index_before(index, age, window), age]
                after[i] = full - change
                moved = where_less(moved, absolute(change), absolute(change), moved)
                largest = where_less(largest, absolute(full), absolute(full), largest)
            a.effects[leaf, t] = where_less(0.0, moved, moved / largest, 0.0)

            if (number + 1) % REFRESH_PERIOD == 0:
                norm2 = (scale_after * scale_after) * _norm(
                    coefficients, tails, diagonals, newest, rows, index, window, budget
                )
            a.norms[leaf, t + 1] = norm2
            if (number + 1) % a.period == 0:
                _multiply(coefficients, oldest + 1, newest + 1, scale_after)
                _multiply(tails, oldest + 1, newest + 1, scale_after)
                scale_after = broadcast(1.0)
            if a.step_rule != CONSTANT:
                a.scales[leaf] = scale_after
        a.steepness[leaf] = steepest
        a.dropped[leaf] = dropped


# --- compiled: predictions -----------------------------------------------------------------------


@inline
def _value(a, seen, leaf, row):
    """f after `seen` samples, at the point whose kernel values are in that row."""
    start = 0 if seen == 0 else (seen - 1) % a.slide_period + 1
    return _scale(a, leaf, seen) * expansion(a.coefficients[leaf][start:], row, a.budget)


@native(QUERY)
def predict_query(a, first, count):
    """query_values[leaf] = f at query_point; its kernel row is kept in memo_rows."""
    same = first > 0 and repeats(a.program, a.memo_repeated, 0)
    for leaf in range(a.leaves):
        row = a.memo_rows[leaf]
        if same:
            row = a.rows[leaf, (first - 1) % (a.window + 1)]
        elif a.followed != 2:  # else it is that of the first output
            write_row(a, leaf, -1, a.budget + 1, row)
        a.query_values[leaf] = _value(a, first, leaf, row)


@native(POINTS)
def predict_points(a, seen, count):
    """out[leaf, t] = f at point t < count, for leaves with wanted[leaf]; changes nothing."""
    for leaf in range(a.leaves):
        if a.wanted[leaf] == 0:
            continue
        for t in range(count):
            write_row(a, leaf, t, a.budget, a.row)
            a.out[leaf, t] = _value(a, seen, leaf, a.row)
