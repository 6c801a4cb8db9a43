"""NORMA with a window, for a leaf of four kernels at a time, by the exact recursions.

One term joins per sample. At sample n (table position `now`) the expansion has `budget` terms at
positions now - budget .. now - 1, the window is the last `window` positions up to `now`, and the
term at now - budget is dropped at the end of the step. A row of kernel values of x_n covers
now - budget .. now, so that k(x_i, x_j) with j <= i stands in the row of i at budget - (i - j).
Terms from before the first sample have coefficient 0 and count for nothing.

*Tails* make dropping cheap: tail_j = sum of alpha_i k(x_i, x_j) over j itself and the newer terms i
that have left the window. They only decay, so no Gram matrix and no second row is needed.
"""

import numpy as np

from .formulas import call_loss, pointer
from .jit import hot, part
from .lanes import WIDTH, absolute, fma, load, store, where_less
from .rows import kernel_row, repeats

REFRESH = 32
"""norm^2 is recomputed from the coefficients at every sample number that this divides."""


@part
def expansion(coefficients, start, row, terms):
    """sum_m coefficients[start + m] row[m] over four interleaved partial sums."""
    one = load(coefficients, start) * 0.0
    two, three, four = one, one, one
    whole = terms - terms % 4
    for m in range(0, whole, 4):
        one = fma(load(coefficients, start + m), load(row, m), one)
        two = fma(load(coefficients, start + m + 1), load(row, m + 1), two)
        three = fma(load(coefficients, start + m + 2), load(row, m + 2), three)
        four = fma(load(coefficients, start + m + 3), load(row, m + 3), four)
    for m in range(whole, terms):
        one = fma(load(coefficients, start + m), load(row, m), one)
    return (one + two) + (three + four)


@part
def _slide(array, leaves, kept, page):
    """Move the last `kept` rows of each leaf's table to its front, at the end of a page."""
    length = kept + page
    for leaf in range(leaves):
        start = leaf * length
        for m in range(kept):
            store(array, start + m, load(array, start + page + m))


@part
def _older(place, age, window):
    """The place in the ring of window + 1 rows that is `age` <= window steps before `place`."""
    return place - age if place >= age else place - age + window + 1


@part
def _norm(coefficients, tails, diagonals, now, rows, ring, place, window, budget):
    """norm^2 from coefficients and tails alone: sum_j alpha_j f(x_j), clamped at 0."""
    total = load(coefficients, now) * 0.0
    for j in range(now - budget + 1, now - window + 1):
        alpha = load(coefficients, j)
        others = 2.0 * load(tails, j) - alpha * load(diagonals, j)
        for i in range(window):
            row = ring + _older(place, i, window) * (budget + 1)
            k = load(rows, row + budget - (now - i - j))
            others = fma(2.0 * load(coefficients, now - i), k, others)
        total = fma(alpha, others, total)
    for i in range(window):
        row = ring + _older(place, i, window) * (budget + 1)
        own = load(coefficients, now - i)
        value = own * load(rows, row + budget)
        for j in range(i + 1, window):
            k = load(rows, row + budget - (j - i))
            value = fma(2.0 * load(coefficients, now - j), k, value)
        total = fma(own, value, total)
    return where_less(total, 0.0, 0.0, total)


@hot
def learn(
    first,
    count,
    page,
    budget,
    learning_rate,
    decay,
    derivative,
    parameters,
    targets,
    position,
    program,
    constants,
    statistics,
    repeated,
    stack,
    coefficients,
    tails,
    diagonals,
    rows,
    dropped,
    steepness,
    values,
    norms,
    predictions,
    effects,
):
    """Run every leaf through samples first .. first + count - 1, which lie in one page."""
    leaves = values.shape[0]
    steps = values.shape[1]
    window = values.shape[2]
    column = statistics.shape[2] - (budget + 1)
    length = budget + page
    before = np.zeros((window, WIDTH))
    gradient = np.zeros((window, WIDTH))
    direction = np.zeros((window, WIDTH))
    if first > 0 and first % page == 0:
        _slide(coefficients, leaves, budget, page)
        _slide(tails, leaves, budget, page)
        _slide(diagonals, leaves, budget, page)
    for leaf in range(leaves):
        ring = leaf * (window + 1) * (budget + 1)
        squared = load(norms, leaf * steps)
        steepest = load(steepness, leaf)
        lost = load(dropped, leaf)
        for t in range(count):
            number = first + t
            now = leaf * length + budget + number % page
            oldest = now - budget
            seen = min(number + 1, window)
            place = number % (window + 1)  # this sample's row in the ring of rows
            row = ring + place * (budget + 1)

            # Kernel values of the new input, unless they repeat those of the one before.
            if repeats(program, repeated, t):
                previous = ring + _older(place, 1, window) * (budget + 1)
                for m in range(budget + 1):
                    store(rows, row + m, load(rows, previous + m))
            else:
                kernel_row(
                    program,
                    constants,
                    leaf,
                    statistics,
                    t,
                    column,
                    budget + 1,
                    pointer(rows, row * WIDTH),
                    pointer(stack, 0),
                )
            store(diagonals, now, load(rows, row + budget))

            # Values of f on the window, and the loss's derivative there, all at the same f.
            prediction = expansion(coefficients, oldest, pointer(rows, row * WIDTH), budget)
            store(predictions, leaf * (steps - 1) + t, prediction)
            carried = (leaf * steps + t) * window
            for i in range(window - 1):
                store(before, i, load(values, carried + i + 1))
            store(before, window - 1, prediction)
            unseen = window - seen
            for i in range(unseen):
                store(gradient, i, 0.0)
            call_loss(
                derivative,
                pointer(before, unseen * WIDTH),
                pointer(targets, (position + t - seen + 1) * WIDTH),
                seen,
                pointer(parameters, 0),
                pointer(gradient, unseen * WIDTH),
            )

            # Old terms decay; the one that leaves the window joins the tails (SPEC: Tails).
            leaving = now - window
            store(coefficients, now, 0.0)
            for m in range(oldest, now):
                store(coefficients, m, decay * load(coefficients, m))
            alpha = load(coefficients, leaving)
            left = ring + _older(place, window, window) * (budget + 1) + budget - leaving
            for m in range(oldest, leaving):
                store(tails, m, fma(alpha, load(rows, left + m), decay * load(tails, m)))
            store(tails, leaving, alpha * load(diagonals, leaving))

            # K g on the window, and alpha <- alpha - rate * g there (paper, NORMA update).
            for i in range(window):
                store(direction, i, 0.0)
            for i in range(unseen, window):
                own = ring + _older(place, window - 1 - i, window) * (budget + 1) + budget - i
                g = load(gradient, i)
                total = load(direction, i)
                for j in range(unseen, i):
                    k = load(rows, own + j)
                    total = fma(load(gradient, j), k, total)
                    store(direction, j, fma(g, k, load(direction, j)))
                store(direction, i, fma(g, load(rows, own + i), total))
                term = now - (window - 1 - i)
                store(coefficients, term, fma(-learning_rate, g, load(coefficients, term)))

            # norm^2 and values by recursion, before anything is dropped.
            along = prediction * 0.0
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
            alpha = load(coefficients, oldest)
            value = load(tails, oldest)
            for i in range(unseen, window):
                age = window - 1 - i
                k = load(rows, ring + _older(place, age, window) * (budget + 1) + age)
                value = fma(load(coefficients, now - age), k, value)
            own = alpha * alpha * load(diagonals, oldest)
            squared = squared - 2.0 * alpha * value + own
            squared = where_less(squared, 0.0, 0.0, squared)
            lost = lost + own
            moved = along * 0.0
            largest = moved
            written = carried + window
            for i in range(unseen):
                store(values, written + i, 0.0)
            for i in range(unseen, window):
                age = window - 1 - i
                k = load(rows, ring + _older(place, age, window) * (budget + 1) + age)
                full = fma(-learning_rate, load(direction, i), decay * load(before, i))
                change = alpha * k
                store(values, written + i, full - change)
                moved = where_less(moved, absolute(change), absolute(change), moved)
                largest = where_less(largest, absolute(full), absolute(full), largest)
            store(effects, leaf * (steps - 1) + t, where_less(0.0, moved, moved / largest, 0.0))

            if (number + 1) % REFRESH == 0:
                squared = _norm(
                    coefficients, tails, diagonals, now, rows, ring, place, window, budget
                )
            store(norms, leaf * steps + t + 1, squared)
        store(steepness, leaf, steepest)
        store(dropped, leaf, lost)


@hot
def evaluate(
    first,
    page,
    budget,
    program,
    constants,
    statistics,
    row,
    stack,
    coefficients,
    leaves,
    wanted,
    out,
):
    """out[leaf, t] = f_p at point t, for leaves with wanted[leaf]; changes nothing."""
    length = budget + page
    points = out.shape[1]
    column = statistics.shape[2] - budget
    shown = 0 if first == 0 else (first - 1) % page + 1
    for leaf in range(leaves):
        if not wanted[leaf]:
            continue
        start = leaf * length + shown
        for t in range(points):
            kernel_row(
                program,
                constants,
                leaf,
                statistics,
                t,
                column,
                budget,
                pointer(row, 0),
                pointer(stack, 0),
            )
            store(out, leaf * points + t, expansion(coefficients, start, pointer(row, 0), budget))
