"""What a row knows of earlier periods, as one would write it down: lists, no rings."""

import math

import numpy as np


def recalled(targets, position, period):
    """The last three targets of the phase, the newest first; NaN where there is none.

    targets : the known ones, from the first row of the stream on.
    """
    rows = [row for row in range(position % period, len(targets), period) if row < position]
    newest = [targets[row] for row in reversed(rows)][:3]
    return [*newest, math.nan, math.nan, math.nan][:3]


def phase(position, period):
    """Cosine and sine of the phase's angle, and of twice the angle."""
    angles = [2 * math.pi * (h * (position % period) % period) / period for h in (1, 2)]
    return [wave(angle) for angle in angles for wave in (math.cos, math.sin)]


def season_columns(targets, position, period, scaled):
    """The columns of one period in a scaled row.

    scaled : of a target, the number as which the slots see it.
    """
    known = [scaled(y) for y in recalled(targets, position, period) if not math.isnan(y)]
    last = known[0] if known else 0.0
    mean = 0.0
    for value in known:
        mean += value
    return [last, mean / max(len(known), 1), *phase(position, period)]


def daily_and_weekly(count, seed=1, noise=0.1):
    """A target with a profile of 24 rows and one of 168 rows, and an input that says nothing."""
    draw = np.random.default_rng(seed)
    day, week = draw.normal(size=24), draw.normal(size=168)
    t = np.arange(count)
    y = 50 + 10 * day[t % 24] + 5 * week[t % 168] + 10 * noise * draw.normal(size=count)
    return draw.normal(size=(count, 1)), y
