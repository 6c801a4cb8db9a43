"""Signals of change: in the size of the errors, and in the weights.

*Errors.* Each error is ranked among the last ones. While nothing changes the ranks are uniform, and
a test martingale that bets on small ranks (large errors) is multiplied by a factor of mean 1, or
less if there are ties. The Shiryaev-Roberts sum over all such martingales, one started at every
row, then rises by at most 1 per row on average. So it passes `limit` at most once in `limit` rows,
whatever the distribution of the errors (Vovk 2021). The mean of three such sums, for changes of
different sizes, has the same property, and is soon as large as a third of the best of them. Three
others bet on large ranks: on errors that have become smaller.

Strictly this needs ranks among all errors since the last signal. Among the last ones only, ranks
are not quite independent; simulated rates are about half of the promise for errors without ties,
and far below it with ties.

*Weights.* A short and a long running mean of the weights. The signal is given when they differ in
more than half of the weight, not before the long one has its length. Then the long one starts from
the short one, and there is no other signal before the two have come together again.
"""

import math
from typing import NamedTuple

from ..native.arguments import Arguments, floats, ints
from ..native.functions import native
from ..native.jit import inline
from ..native.scalar_math import power

FALSE_ALARM_ROWS = 10_000.0
"""A false signal of a changed error comes at most once in this many rows, on average."""

RECENT_ERRORS = 500
"""Errors among which a new one is ranked, to detect changes."""

MAX_CHANGES = 1000
"""Signals of change that are kept."""

POWERS = (0.1, 0.5, 0.8)
"""Exponents k of the betting factors k u^(k - 1) of a rank u: the first bets on few very large
errors, the last on many that are a little larger than before."""

MARTINGALES = len(POWERS)
GREW, FELL = 0, MARTINGALES
SEEN, ROWS, APART = range(2 * MARTINGALES, 2 * MARTINGALES + 3)
STATS = 2 * MARTINGALES + 3
"""Statistics of a stream: the sums for grown and for fallen errors, the errors in the ring, the
rows, and whether the two means of the weights are apart."""

RANKED_AFTER = 50.0
"""Errors before the first bet."""

SHORT, LONG = 0.95, 0.998
COMPARED_AFTER = 500.0
"""Forgetting factors of the two means, and the row from which they are compared: 1 / (1 - LONG)."""

MOVED, REJOINED = 0.5, 0.25
"""Shares of the weight that has moved: for the signal, and before it may come again."""


class Change(NamedTuple):
    """A signal of change.

    row : after how many rows.
    what : "error grew", "error fell", "weights" (more than half of the weight has moved), "target
        level", "input level" or "season" (a period was found).
    column : of the input, else -1.
    period : of the season in rows, else 0.
    """

    row: int
    what: str
    column: int = -1
    period: int = 0


DETECTION = Arguments(
    "detect_changes",
    slots=int,
    limit=float,
    stats=floats(STATS),
    ring=floats(None),  # the last errors
    mean_weights=floats(2, "slots"),  # the short and the long mean
    errors=floats(None),
    weights=floats(None, "slots"),
    error_signals=ints(None),
    weight_signals=ints(None),
)


@inline
def _bet_once(sums, i, before, after, ranks):
    """sums[i] <- (1 + sums[i]) * factor, with u^k at both ends of the cell; the new sum."""
    factor = (after - before) * ranks
    sums[i] = (1.0 + sums[i]) * factor
    return sums[i]


@inline
def _bet(sums, start, rank, ranks):
    """Update the sums of the martingales, one for each of POWERS; their mean.

    The factor is the mean of k u^(k - 1) over the cell [rank, rank + 1] / ranks. Over all cells it
    has the mean 1, which its values in their middles do not have. Tied errors share the cell in
    the middle of theirs, where the factor, which is convex, is a little smaller.
    """
    u, v = rank / ranks, (rank + 1.0) / ranks
    total = _bet_once(sums, start, power(u, POWERS[0]), power(v, POWERS[0]), ranks)
    total += _bet_once(sums, start + 1, math.sqrt(u), math.sqrt(v), ranks)  # power 0.5
    total += _bet_once(sums, start + 2, power(u, POWERS[2]), power(v, POWERS[2]), ranks)
    return total / MARTINGALES


@inline
def detect_error_change(error, stats, ring, limit):
    """1 if the errors have grown, -1 if they have become smaller, else 0."""
    length = len(ring)
    seen = stats[SEEN]
    if not 0.0 <= seen < 2.0**53:
        seen = stats[SEEN] = 0.0
    held = min(int(seen), length)
    signal = 0
    if seen >= RANKED_AFTER:
        greater = 0
        same = 0
        for i in range(held):
            greater += ring[i] > error
            same += ring[i] == error
        grew = _bet(stats, GREW, greater + 0.5 * same, held + 1.0)
        fell = _bet(stats, FELL, held - greater - 0.5 * same, held + 1.0)
        if not grew < limit:
            signal = 1
        elif not fell < limit:
            signal = -1
    if signal != 0:
        for i in range(2 * MARTINGALES):
            stats[i] = 0.0
        seen = 0.0
    ring[int(seen) % length] = error if math.isfinite(error) else 0.0
    stats[SEEN] = seen + 1.0
    return signal


@inline
def detect_weight_change(weights, short_mean, long_mean, stats):
    """1 if weights (P,) have just moved, else 0; both means have the shape (P,)."""
    stats[ROWS] += 1.0
    short = max(1.0 - SHORT, 1.0 / stats[ROWS])
    long = max(1.0 - LONG, 1.0 / stats[ROWS])
    moved = 0.0
    for p in range(len(weights)):
        short_mean[p] += short * (weights[p] - short_mean[p])
        long_mean[p] += long * (weights[p] - long_mean[p])
        moved += 0.5 * abs(short_mean[p] - long_mean[p])
    if stats[APART] == 0.0 and moved > MOVED and stats[ROWS] >= COMPARED_AFTER:
        stats[APART] = 1.0
        for p in range(len(weights)):
            long_mean[p] = short_mean[p]
        return 1
    if moved < REJOINED:
        stats[APART] = 0.0
    return 0


@native(DETECTION)
def detect_rows(a, first, count):
    """error_signals and weight_signals from errors and weights, row after row."""
    short_mean, long_mean = a.mean_weights[0], a.mean_weights[1]
    for t in range(first, first + count):
        a.error_signals[t] = detect_error_change(a.errors[t], a.stats, a.ring, a.limit)
        a.weight_signals[t] = detect_weight_change(a.weights[t], short_mean, long_mean, a.stats)
