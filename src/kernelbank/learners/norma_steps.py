"""NORMA with a window, for a leaf of four kernels at a time, by the exact recursions.

One term joins per sample. At sample n (table position `now`) the expansion has `budget` terms at
positions now - budget .. now - 1, the window is the last `window` positions up to `now`, and the
term at now - budget is dropped at the end of the step. A row of kernel values of x_n covers
now - budget .. now, so that k(x_i, x_j) with j <= i stands in the row of i at budget - (i - j).
The rows of the last window + 1 samples are kept in a ring. Terms from before the first sample have
coefficient 0 and count for nothing.

*Tails* make dropping cheap: tail_j = sum of alpha_i k(x_i, x_j) over j itself and the newer terms i
that have left the window. They only decay, so no Gram matrix and no second row is needed.

*Scale*: all coefficients and tails decay by the same factor in every step. It is kept aside: the
arrays hold alpha / scale, scale = decays[n % period], and once in a period, by the absolute number
of the sample, it is multiplied in. So a step touches only what changes otherwise.
"""

from ..kernels.kernel_rows import USED, repeats
from ..native.formulas import call_loss, pointer
from ..native.jit import inline
from ..native.phases import argument_fields, float_array, int_array, read_float, read_int, variant
from ..native.simd import WIDTH, absolute, broadcast, fma, load, store, where_less
from .norma_expansion import EXPANSION, SINGLE_PRECISION, copy_row, expansion, new_row, numbers

REFRESH = 32
"""norm^2 is recomputed from the coefficients at every sample number that this divides."""

LEARN = argument_fields(
    *EXPANSION._fields,
    "steps",
    "window",
    "learning_rate",
    "derivative",
    "parameters",
    "targets",
    "repeated",
    "memo",
    "memo_rows",
    "scratch",
    "tails",
    "diagonals",
    "rows",
    "dropped",
    "steepness",
    "values",
    "norms",
    "predictions",
    "effects",
)


@inline
def _slide(array, leaves, kept, slide_period):
    """Move the last `kept` rows of each leaf's table to its front, at the end of a slide_period."""
    for leaf in range(leaves):
        start = leaf * (kept + slide_period)
        for m in range(kept):
            store(array, start + m, load(array, start + slide_period + m))


@inline
def _multiply(array, start, end, factor):
    for m in range(start, end):
        store(array, m, load(array, m) * factor)


@inline
def _row_before(ring, place, age, window, budget):
    """Where the row starts in the ring of window + 1 that is `age` <= window before `place`."""
    older = place - age if place >= age else place - age + window + 1
    return ring + older * (budget + 1)


@inline
def _norm(coefficients, tails, diagonals, now, rows, ring, place, window, budget):
    """norm^2 / scale^2 from coefficients and tails alone: sum_j alpha_j f(x_j), clamped at 0."""
    total = broadcast(0.0)
    for j in range(now - budget + 1, now - window + 1):
        alpha = load(coefficients, j)
        others = 2.0 * load(tails, j) - alpha * load(diagonals, j)
        for i in range(window):
            row = _row_before(ring, place, i, window, budget)
            k = load(rows, row + budget - (now - i - j))
            others = fma(2.0 * load(coefficients, now - i), k, others)
        total = fma(alpha, others, total)
    for i in range(window):
        row = _row_before(ring, place, i, window, budget)
        own = load(coefficients, now - i)
        value = own * load(rows, row + budget)
        for j in range(i + 1, window):
            k = load(rows, row + budget - (j - i))
            value = fma(2.0 * load(coefficients, now - j), k, value)
        total = fma(own, value, total)
    return where_less(total, 0.0, 0.0, total)


def learn(args, first, count):
    """Run every leaf through samples first .. first + count - 1, which lie in one slide_period."""
    leaves = read_int(args, LEARN.leaves)
    steps = read_int(args, LEARN.steps)
    window = read_int(args, LEARN.window)
    slide_period = read_int(args, LEARN.slide_period)
    budget = read_int(args, LEARN.budget)
    period = read_int(args, LEARN.period)
    learning_rate = read_float(args, LEARN.learning_rate)
    decays = float_array(args, LEARN.decays)
    targets = float_array(args, LEARN.targets)
    instructions = read_int(args, LEARN.instructions)
    program = int_array(args, LEARN.program)
    statistics_steps = read_int(args, LEARN.statistics_steps)
    repeated = int_array(args, LEARN.repeated)
    coefficients = numbers(args, LEARN.coefficients)
    tails = numbers(args, LEARN.tails)
    diagonals = numbers(args, LEARN.diagonals)
    rows = numbers(args, LEARN.rows)
    values = float_array(args, LEARN.values)
    norms = float_array(args, LEARN.norms)
    position = read_int(args, LEARN.history_length) + first % slide_period
    length = budget + slide_period
    decay = decays[1]
    before = float_array(args, LEARN.scratch)
    gradient = pointer(before, window * WIDTH)
    direction = pointer(gradient, window * WIDTH)
    if first > 0 and first % slide_period == 0:
        _slide(coefficients, leaves, budget, slide_period)
        _slide(tails, leaves, budget, slide_period)
        _slide(diagonals, leaves, budget, slide_period)
    for leaf in range(leaves):
        ring = leaf * (window + 1) * (budget + 1)
        squared = load(norms, leaf * steps)
        steepest = load(float_array(args, LEARN.steepness), leaf)
        lost = load(float_array(args, LEARN.dropped), leaf)
        for t in range(count):
            number = first + t
            now = leaf * length + budget + number % slide_period
            oldest = now - budget
            seen = min(number + 1, window)
            unseen = window - seen
            place = number % (window + 1)
            row = ring + place * (budget + 1)
            scale = decays[number % period]
            scale_after = decays[number % period + 1]

            # Kernel values of the new input, unless they repeat those of the one before.
            if repeats(instructions, program, repeated, statistics_steps - 1, t):
                previous = _row_before(ring, place, 1, window, budget)
                copy_row(rows, previous, rows, row, budget + 1)
            elif int_array(args, LEARN.memo)[USED] == 1:
                known = numbers(args, LEARN.memo_rows)
                copy_row(known, leaf * (budget + 1), rows, row, budget + 1)
            else:
                new_row(args, leaf, t, budget + 1, rows, row)
            store(diagonals, now, load(rows, row + budget))

            # Values of f on the window, and the loss's derivative there, all at the same f.
            prediction = scale * expansion(coefficients, oldest, rows, row, budget)
            store(float_array(args, LEARN.predictions), leaf * (steps - 1) + t, prediction)
            carried = (leaf * steps + t) * window
            for i in range(window - 1):
                store(before, i, load(values, carried + i + 1))
            store(before, window - 1, prediction)
            for i in range(unseen):
                store(gradient, i, 0.0)
            call_loss(
                read_int(args, LEARN.derivative),
                pointer(before, unseen * WIDTH),
                pointer(targets, (position + t - seen + 1) * WIDTH),
                seen,
                float_array(args, LEARN.parameters),
                pointer(gradient, unseen * WIDTH),
            )

            # The term that leaves the window joins the tails.
            leaving = now - window
            alpha = load(coefficients, leaving)
            left = _row_before(ring, place, window, window, budget) + budget - leaving
            for m in range(oldest, leaving):
                store(tails, m, fma(alpha, load(rows, left + m), load(tails, m)))
            store(tails, leaving, alpha * load(diagonals, leaving))

            # K g on the window, and alpha <- alpha - rate * g there (paper, NORMA update).
            store(coefficients, now, 0.0)
            step = -learning_rate / scale_after
            for i in range(window):
                store(direction, i, 0.0)
            for i in range(unseen, window):
                age = window - 1 - i
                own = _row_before(ring, place, age, window, budget) + budget - i
                g = load(gradient, i)
                total = load(direction, i)
                for j in range(unseen, i):
                    k = load(rows, own + j)
                    total = fma(load(gradient, j), k, total)
                    store(direction, j, fma(g, k, load(direction, j)))
                store(direction, i, fma(g, load(rows, own + i), total))
                store(coefficients, now - age, fma(step, g, load(coefficients, now - age)))

            # norm^2 and values by recursion, before anything is dropped.
            along = broadcast(0.0)
            steep = along
            length_squared = along
            for i in range(unseen, window):
                g = load(gradient, i)
                along = fma(g, load(before, i), along)
                steep = fma(g, load(direction, i), steep)
                length_squared = fma(g, g, length_squared)
            squared = (
                decay * decay * squared
                - 2.0 * decay * learning_rate * along
                + learning_rate * learning_rate * steep
            )
            quotient = steep / length_squared
            steepest = where_less(steepest, quotient, quotient, steepest)

            # Drop the oldest term.
            alpha = scale_after * load(coefficients, oldest)
            value = load(tails, oldest)
            for i in range(unseen, window):
                age = window - 1 - i
                k = load(rows, _row_before(ring, place, age, window, budget) + age)
                value = fma(load(coefficients, now - age), k, value)
            own = alpha * alpha * load(diagonals, oldest)
            squared = squared - 2.0 * alpha * (scale_after * value) + own
            squared = where_less(squared, 0.0, 0.0, squared)
            lost = lost + own
            moved = broadcast(0.0)
            largest = moved
            written = carried + window
            for i in range(unseen):
                store(values, written + i, 0.0)
            for i in range(unseen, window):
                age = window - 1 - i
                k = load(rows, _row_before(ring, place, age, window, budget) + age)
                full = fma(-learning_rate, load(direction, i), decay * load(before, i))
                change = alpha * k
                store(values, written + i, full - change)
                moved = where_less(moved, absolute(change), absolute(change), moved)
                largest = where_less(largest, absolute(full), absolute(full), largest)
            effect = where_less(0.0, moved, moved / largest, 0.0)
            store(float_array(args, LEARN.effects), leaf * (steps - 1) + t, effect)

            if (number + 1) % REFRESH == 0:
                squared = (scale_after * scale_after) * _norm(
                    coefficients, tails, diagonals, now, rows, ring, place, window, budget
                )
            store(norms, leaf * steps + t + 1, squared)
            if (number + 1) % period == 0:
                _multiply(coefficients, oldest + 1, now + 1, decays[period])
                _multiply(tails, oldest + 1, now + 1, decays[period])
        store(float_array(args, LEARN.steepness), leaf, steepest)
        store(float_array(args, LEARN.dropped), leaf, lost)


LEARNING = {"float64": learn, "float32": variant(learn, "learn_single", **SINGLE_PRECISION)}
"""The phase for both precisions of what is kept."""
