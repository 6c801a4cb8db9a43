"""A column of running statistics in its compiled and in its naive form, side by side."""

import math

import numpy as np

from kernelbank.auto.scaling import running_stats, scaling_steps
from kernelbank.auto.scaling.scaling_batch import ScalingBatch, fit_columns
from support.naive import auto as naive

standard_deviation = getattr(
    running_stats.standard_deviation, "py_func", running_stats.standard_deviation
)
"""As a Python function, also where Numba has compiled it."""

EPS = np.finfo(float).eps
NAN = math.nan


def target_scale(column):
    """Center and scale of a column."""
    return float(column[running_stats.CENTER]), float(column[running_stats.SCALE])


def batch_of(columns, rings, places):
    """The compiled steps on columns, of which the first is the target too."""
    return ScalingBatch(columns, rings, columns[0], rings[0], np.array(places))


class ColumnPair:
    """A column in both forms, fed the same values."""

    def __init__(self, memory=1000):
        self.columns, self.rings = np.zeros((1, running_stats.STATS)), np.zeros((1, memory))
        self.batch = batch_of(self.columns, self.rings, [[0], [1], [2], [-1]])
        self.naive = naive.Target(memory)
        self.rows = 0
        self.size = 0.0
        self.levels = 0
        self.moves = 0

    def fit(self, values):
        fit_columns(self.columns, self.rings, np.array(values)[:, None])
        self.naive.begin(values)
        self.seen(values)
        self.check_statistics()

    def seen(self, values):
        self.rows += len(values)
        self.size = max([self.size, *(abs(v) for v in values if not math.isnan(v))])

    def forms(self, value):
        """Deviation by center and scale, asinh of that by mean and sd, rank."""
        self.batch.X[0] = value
        self.batch.run(scaling_steps.scale_rows)
        return self.batch.out[0].copy()

    def add(self, value):
        """Add a value to the column; whether it has a new level."""
        self.batch.X[0] = value
        self.batch.run(scaling_steps.update_inputs)
        return bool(self.batch.new_levels[0, 0])

    def add_target(self, value, hold=False):
        """Add a value to the column as a target, or hold it back; whether five are held back."""
        self.batch.y[0] = value
        self.batch.run(scaling_steps.hold_target if hold else scaling_steps.add_target)
        return hold and bool(self.batch.result[0])

    def outlier_level(self, value):
        """That of a target."""
        self.batch.y[0] = value
        self.batch.run(scaling_steps.outlier_levels)
        return int(self.batch.levels[0])

    def shift(self, shift):
        """Shift the target's level."""
        self.batch.shift[0] = shift
        self.batch.run(scaling_steps.shift_target)

    @property
    def room(self):
        """What rounding may do to a deviation: eps per row, of the sizes in units of the sd."""
        unit = min(self.naive.sd, self.naive.unit) or max(self.naive.sd, self.naive.unit)
        return 16 * EPS * (self.rows + 4) * (1 + (self.size / unit if unit > 0 else 0.0))

    def check_forms(self, value):
        before, found = self.naive.forms(value), self.forms(value)
        missing = self.naive.is_filled_in(value)
        # r is a ratio of two sums of as many rows, and is raised to the power of its age.
        room = self.room * (64 * (self.naive.age + 1) if missing else 1)
        assert abs(found[0] - before[0]) <= room * 8, (value, found, before)
        assert abs(math.sinh(found[1]) - before[1]) <= room * 8 + 64 * EPS, (value, found, before)
        assert abs(found[2] - before[2]) <= (room * 4 if missing else 1e-13), (value, found)

    def feed(self, values):
        for value in values:
            self.check_forms(value)
            new_level = self.add(value)
            assert new_level == self.naive.take(value), value
            self.levels += new_level
            self.seen([value])
            self.check_statistics()

    def feed_target(self, value, hold):
        """Whether five are held back."""
        self.check_forms(value)
        five = self.add_target(value, hold)
        assert five == self.naive.take_target(value, hold)
        self.seen([value])
        self.check_statistics()
        return five

    def check_statistics(self):
        own, stats = self.naive, self.columns[0]
        room = self.room
        if own.nearest <= room:  # rounding may decide whether center and scale follow
            own.base, own.unit = (float(v) for v in target_scale(stats))
        assert stats[running_stats.COUNT] == own.weight
        assert abs(stats[running_stats.MEAN] - own.mean) <= 4 * EPS * (self.rows + 4) * self.size
        assert abs(standard_deviation(stats) - own.sd) <= room * own.sd
        base, unit = target_scale(stats)
        assert abs(base - own.base) <= 4 * EPS * (self.rows + 4) * self.size
        assert abs(unit - own.unit) <= room * own.unit
        assert stats[running_stats.STREAK] == own.far_in_a_row
        assert stats[running_stats.AGE] == own.age
        held = min(int(stats[running_stats.SEEN]), self.rings.shape[1])
        room = 2 * EPS * self.size  # a new level moves them
        assert np.allclose(sorted(self.rings[0, :held]), sorted(own.values), rtol=0, atol=room)


def hostile_values(seed):
    """Pieces of every kind that streams have."""
    draw = np.random.default_rng(seed)
    level, scale, pieces = draw.normal(), 10.0 ** draw.integers(-3, 4), []
    for _ in range(12):
        count = int(draw.integers(1, 40))
        kind = draw.integers(0, 9)
        piece = level + scale * draw.normal(size=count)
        if kind == 0:
            piece[:] = NAN
        elif kind == 1:
            piece[draw.random(count) < 0.4] = NAN
        elif kind == 2:
            piece[:] = piece[0]
        elif kind == 3:
            piece = np.round(piece / scale) * scale
        elif kind == 4:
            piece[draw.integers(count)] += (
                scale * draw.choice([-1, 1]) * 10.0 ** draw.integers(1, 9)
            )
        elif kind == 5:
            level += scale * draw.choice([-1, 1]) * 10.0 ** draw.integers(1, 6)
        elif kind == 6:
            scale *= 10.0 ** draw.integers(-3, 4)
        elif kind == 7:
            piece += 30 * scale * draw.choice([-1, 1], size=count)
        else:
            walk = np.cumsum(draw.normal(size=count)) * scale
            piece = level + walk * draw.choice([-1, 1], size=count)
        pieces.append(piece)
    return np.concatenate(pieces)
