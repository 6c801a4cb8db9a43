"""The compiled steps of `seasons`: what a row knows of earlier periods, and tests of a period."""

# mypy: disable-error-code="no-untyped-def"
import numpy as np

from ..native.arguments import Arguments, floats, ints
from ..native.functions import native
from ..native.jit import inline
from ..native.trigonometry import cosine, sine

RECALLED = 3
"""How many targets of the same phase a row knows: 1, 2 and 3 periods before it."""

HARMONICS = 2
"""The phase is given as cosine and sine of this many multiples of its angle."""

PAST = RECALLED + 2 * HARMONICS
"""Numbers that a row knows for each period, beside its lagged targets: `recall`."""

INPUTS = 2 + 2 * HARMONICS
"""Columns of a scaled row for each period: `fill_season`."""

TURN = 6.283185307179586

RECALL = Arguments(
    "season_recall",
    places=int,
    width=int,  # places * PAST
    size=int,
    periods=ints("places"),  # 0 where there is none
    history=floats("size"),  # the newest targets; that of row n at n % size
    rows=ints(1),  # how many rows history has seen
    targets=floats(None),  # those of the rows after them
    positions=ints(None),  # of each row: its number in the stream,
    known=ints(None),  # and how many targets were known when it was predicted
    out=floats(None, "width"),
)


@inline
def _target(a, row):
    """The target of a row; NaN before the first and where the history has forgotten it."""
    rows = a.rows[0]
    if row < 0 or row < rows - a.size:
        return np.nan
    return a.targets[row - rows] if row >= rows else a.history[row % a.size]


@native(RECALL)
def recall(a, first, count):
    """out: for each row and period the last known targets of its phase, and the phase.

    With position n and period p these are the targets of the rows n - mp, n - (m + 1) p, ... (the
    newest first, m the least whole number for which the first is known), then cos(2 pi h n / p)
    and sin(2 pi h n / p) for h = 1, 2, ... All are NaN where there is no period.
    """
    for t in range(first, first + count):
        position, known = a.positions[t], a.known[t]
        for place in range(a.places):
            start, period = place * PAST, a.periods[place]
            if period == 0:
                for i in range(PAST):
                    a.out[t, start + i] = np.nan
                continue
            newest = position - ((position - known) // period + 1) * period
            for i in range(RECALLED):
                a.out[t, start + i] = _target(a, newest - i * period)
            phase = position % period
            for h in range(HARMONICS):
                angle = TURN * (((h + 1) * phase) % period) / period
                a.out[t, start + RECALLED + 2 * h] = cosine(angle)
                a.out[t, start + RECALLED + 2 * h + 1] = sine(angle)


@inline
def fill_phases(past, out):
    """Copy the phase of a period from what a row knows (PAST,) to its columns (INPUTS,)."""
    for i in range(2 * HARMONICS):
        value = past[RECALLED + i]
        out[2 + i] = value if -1.0 <= value <= 1.0 else 0.0  # a forged file may claim anything


# --- finding periods ------------------------------------------------------------------------------

SHORTEST = 4
"""The shortest period that is looked for."""

MULTIPLES = 8
"""How many multiples of a period are looked at, at most."""

CONTRAST, HEIGHT, CONTRAST_LASTS, HEIGHT_LASTS, TESTS = range(5)
"""Figures of a period, see `test_periods`."""

PERIODS = Arguments(
    "season_periods",
    count=int,
    lags=int,
    longest=int,
    values=floats("count"),
    residuals=floats("count"),  # scratch
    correlations=floats("lags"),
    spread=floats(1),
    tests=floats("longest + 1", TESTS),
)


@inline
def _product(values, lag, count):
    """The sum of values[t] values[t + lag], in four sums whose order is fixed."""
    a = b = c = d = 0.0
    t = 0
    while t + 3 < count - lag:
        a += values[t] * values[t + lag]
        b += values[t + 1] * values[t + 1 + lag]
        c += values[t + 2] * values[t + 2 + lag]
        d += values[t + 3] * values[t + 3 + lag]
        t += 4
    while t < count - lag:
        a += values[t] * values[t + lag]
        t += 1
    return (a + b) + (c + d)


@inline
def _remove_line(values, count):
    """Subtract the straight line of least squares."""
    mean = slope = squares = 0.0
    for t in range(count):
        mean += values[t]
        place = t - 0.5 * (count - 1)
        slope += place * values[t]
        squares += place * place
    mean, slope = mean / count, slope / squares
    for t in range(count):
        values[t] -= mean + slope * (t - 0.5 * (count - 1))


@inline
def _whiten(values, residuals, count):
    """residuals[t] = values[t] - r values[t - 1], r the correlation with the value before.

    False if nothing is left: a constant, or a line.
    """
    total = _product(values, 0, count)
    if not total > 0.0:
        return False
    correlation = _product(values, 1, count) / total
    residuals[0] = 0.0
    for t in range(1, count):
        residuals[t] = values[t] - correlation * values[t - 1]
    return _product(residuals, 0, count) > 1e-20 * total


@native(PERIODS)
def test_periods(a, first, count):
    """tests[p] for every period p from SHORTEST on: how much better p is than half periods aside.

    The values lose their line and their correlation with the value before: random walks and
    autoregressive streams become noise. With r_k the autocorrelations of the rest, at the multiples
    k = p, 2 p, ... up to half of the rows:

    - HEIGHT: the mean of r_k over the multiples;
    - CONTRAST: the mean of r_k - (r at k - p / 2 + r at k + p / 2) / 2, 0 for slow changes;
    - HEIGHT_LASTS, CONTRAST_LASTS: at least 0 if the mean over the later half of the multiples is
      at least half of that over the earlier half. It is less where a cycle loses its phase.

    spread: the factor 1 + 2 sum r_k^2 by which the variance of an autocorrelation is more than
    1 / rows (Bartlett's formula). It is 0 if there is nothing to test.
    """
    a.spread[0] = 0.0
    _remove_line(a.values, a.count)
    if not _whiten(a.values, a.residuals, a.count):
        return
    total = _product(a.residuals, 0, a.count)
    r = a.correlations
    for lag in range(a.lags):
        r[lag] = _product(a.residuals, lag, a.count) / total
    spread = 1.0
    for lag in range(1, a.count // 8 + 1):
        spread += 2.0 * r[lag] * r[lag]
    a.spread[0] = spread
    for period in range(SHORTEST, a.longest + 1):
        multiples = min(MULTIPLES, (a.count // 2) // period)
        half = period // 2
        early = multiples // 2
        height = contrast = early_height = early_contrast = 0.0
        for m in range(1, multiples + 1):
            k = m * period
            height += r[k]
            contrast += r[k] - 0.5 * (r[k - half] + r[k + half])
            if m == early:
                early_height, early_contrast = height, contrast
        late = (multiples - early) / early
        out = a.tests[period]
        out[HEIGHT] = height / multiples
        out[CONTRAST] = contrast / multiples
        out[HEIGHT_LASTS] = height - early_height - 0.5 * late * early_height
        out[CONTRAST_LASTS] = contrast - early_contrast - 0.5 * late * early_contrast
