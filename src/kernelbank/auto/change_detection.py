"""Signals of change: in the size of the errors, and in who has the weights.

*Errors.* Each error is ranked among the last ones. While nothing changes the ranks are uniform, and
a game that bets on small ranks (large errors) multiplies its capital by a factor of mean 1, or less
if there are ties. The Shiryaev-Roberts sum of all games, one begun at every row, then rises by at
most 1 a row on average; so it passes `limit` not oftener than once in `limit` rows, whatever the
distribution of the errors (Vovk 2021). Three such sums, for changes of different sizes, have a mean
of which the same is true, and which is soon as large as a third of the best of them. Three others
bet on large ranks, on errors that have become smaller.

Strictly this needs ranks among all errors since the last signal. Among the last ones only, ranks
are not quite independent; simulated rates are about half of the promise for errors without ties,
and far below it with ties.

*Weights.* A short and a long running mean of the weights; the signal is given when more than half
of the weight stands elsewhere, not before the long one has its length. Then the long one starts
from the short one, and there is no other signal before the two have been together.
"""

import math

from ..native.jit import entry, inline

POWERS = (0.1, 0.5, 0.8)
"""Of the games: a factor is k share^(k - 1), so the first bets on few very large errors, the last
on many that are a little larger than before."""

GAMES = len(POWERS)
GREW, FELL = 0, GAMES
SEEN, ROWS, APART = range(2 * GAMES, 2 * GAMES + 3)
WATCH = 2 * GAMES + 3
"""Figures of a watch: the sums, errors in the ring, rows, whether the weights are apart."""

FEWEST = 50.0
"""Errors that are ranked among fewer than so many say nothing."""

SHORT, LONG = 0.95, 0.998
FIRST = 500.0
"""Factors of the two means, and the row from which the weights are compared: 1 / (1 - LONG)."""

PART, TOGETHER = 0.5, 0.25
"""Share of the weight that has moved: where the signal is given, and where it may come again."""


@inline
def _bet(sums, start, place, places):
    """One round of the games; the mean of their sums.

    The factor is the mean of k share^(k - 1) over place .. place + 1 of so many equal places: over
    all places it has the mean 1, which its value in their middles has not. A place in the middle of
    ties stands for all of them, and the factor being convex there is a little less.
    """
    total = 0.0
    for i in range(GAMES):
        power = POWERS[i]
        factor = (((place + 1.0) / places) ** power - (place / places) ** power) * places
        sums[start + i] = (1.0 + sums[start + i]) * factor
        total += sums[start + i]
    return total / GAMES


@inline
def watch_error(size, figures, ring, limit):
    """1 if the errors have grown, -1 if they have become smaller, else 0."""
    length = len(ring)
    seen = figures[SEEN]
    if not 0.0 <= seen < 2.0**53:
        seen = figures[SEEN] = 0.0
    held = min(int(seen), length)
    signal = 0
    if seen >= FEWEST:
        greater = 0
        same = 0
        for i in range(held):
            greater += ring[i] > size
            same += ring[i] == size
        grew = _bet(figures, GREW, greater + 0.5 * same, held + 1.0)
        fell = _bet(figures, FELL, held - greater - 0.5 * same, held + 1.0)
        if not grew < limit:
            signal = 1
        elif not fell < limit:
            signal = -1
    if signal != 0:
        for i in range(2 * GAMES):
            figures[i] = 0.0
        seen = 0.0
    ring[int(seen) % length] = size if math.isfinite(size) else 0.0
    figures[SEEN] = seen + 1.0
    return signal


@inline
def watch_weights(weights, means, figures):
    """Whether the weights have just moved; means[0] is the short mean, means[1] the long one."""
    figures[ROWS] += 1.0
    short = max(1.0 - SHORT, 1.0 / figures[ROWS])
    long = max(1.0 - LONG, 1.0 / figures[ROWS])
    moved = 0.0
    for p in range(len(weights)):
        means[0, p] += short * (weights[p] - means[0, p])
        means[1, p] += long * (weights[p] - means[1, p])
        moved += 0.5 * abs(means[0, p] - means[1, p])
    if figures[APART] == 0.0 and moved > PART and figures[ROWS] >= FIRST:
        figures[APART] = 1.0
        for p in range(len(weights)):
            means[1, p] = means[0, p]
        return True
    if moved < TOGETHER:
        figures[APART] = 0.0
    return False


@entry
def watch_rows(sizes, weights, figures, ring, means, limit, errors, moves):
    """Watch row after row; errors[t] and moves[t] are the signals."""
    for t in range(len(sizes)):
        errors[t] = watch_error(sizes[t], figures, ring, limit)
        moves[t] = watch_weights(weights[t], means, figures)


@entry
def watch_row(size, weights, figures, ring, means, limit):
    """`watch_rows` for one row: its two signals."""
    return watch_error(size, figures, ring, limit), watch_weights(weights, means, figures)
