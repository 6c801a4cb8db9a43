"""A column of running statistics in its compiled and in its naive form, side by side."""

import math

import numpy as np

from kernelbank import _core
from kernelbank.auto import scaling as names
from support.core_banks import put_entry
from support.naive import auto as naive

EPS = np.finfo(float).eps
NAN = math.nan


def target_scale(column):
    """Center and scale of a column."""
    return float(column[names.CENTER]), float(column[names.SCALE])


def standard_deviation(column):
    """As running statistics define it; 0 for a constant column."""
    if not column[names.COUNT] > 1:
        return 0.0
    found = math.sqrt(max(column[names.SQUARES], 0.0) / (column[names.COUNT] - 1))
    return found if found > 1e-10 * abs(column[names.MEAN]) else 0.0


def scaling_of(inputs, memory):
    """Inputs in three scalings, then a past target in these; rings of this length."""
    columns = np.arange(3 * (inputs + 1)).reshape(-1, 3).T
    return _core.Scaling(
        inputs=inputs,
        width=columns.size,
        targets=1,
        shown=1,
        seasons=0,
        season_column=0,
        previous=0,
        previous_column=0,
        outputs=1,
        each=1,
        ring=memory,
        target_ring=memory,
        places=np.vstack([columns, np.full(inputs + 1, -1)]),
        relevant_column=0,
        relevant_sources=[],
    )


class ColumnPair:
    """A column in both forms, fed the same values: that of an input, or that of the target."""

    def __init__(self, memory=1000, target=False):
        self.scaling, self.is_target = scaling_of(1, memory), target
        self.naive = naive.Target(memory)
        self.rows = 0
        self.size = 0.0
        self.levels = 0

    @property
    def column(self):
        """(13,): the statistics."""
        return self.scaling["targets"][0] if self.is_target else self.scaling["columns"][0]

    @property
    def ring(self):
        return self.scaling["target_rings"][0] if self.is_target else self.scaling["rings"][0]

    def set(self, entry, value):
        """Change one of the statistics."""
        if self.is_target:
            put_entry(self.scaling, "targets", (0, entry), value)
        else:
            put_entry(self.scaling, "columns", (0, entry), value)

    def begin(self, values):
        """Start the column from first values, without the naive form."""
        values = np.array(values, dtype=float)
        self.scaling.fit_inputs(values[:, None])
        self.scaling.fit_target(values)

    def fit(self, values):
        self.begin(values)
        self.naive.begin(values)
        self.seen(values)
        self.check_statistics()

    def seen(self, values):
        self.rows += len(values)
        self.size = max([self.size, *(abs(v) for v in values if not math.isnan(v))])

    def forms(self, value):
        """Deviation by center and scale, asinh of that by mean and sd, rank."""
        row = self.scaling.scale_rows(np.array([[value]]), np.array([[value]]))[0]
        return row[3:] if self.is_target else row[:3]

    def add(self, value):
        """Add a value to the column; whether it has a new level."""
        return self.scaling.add_inputs(np.array([value])) == [0]

    def add_target(self, value, hold=False):
        """Add a value to the column as a target, or hold it back; whether five are held back."""
        if hold:
            return self.scaling.hold_target(value)
        self.scaling.add_target(value)
        return False

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
        own, stats = self.naive, self.column
        room = self.room
        if own.nearest <= room:  # rounding may decide whether center and scale follow
            own.base, own.unit = (float(v) for v in target_scale(stats))
        assert stats[names.COUNT] == own.weight
        assert abs(stats[names.MEAN] - own.mean) <= 4 * EPS * (self.rows + 4) * self.size
        assert abs(standard_deviation(stats) - own.sd) <= room * own.sd
        base, unit = target_scale(stats)
        assert abs(base - own.base) <= 4 * EPS * (self.rows + 4) * self.size
        assert abs(unit - own.unit) <= room * own.unit
        assert stats[names.STREAK] == own.far_in_a_row
        assert stats[names.AGE] == own.age
        held = min(int(stats[names.SEEN]), len(self.ring))
        room = 2 * EPS * self.size  # a new level moves them
        assert np.allclose(sorted(self.ring[:held]), sorted(own.values), rtol=0, atol=room)


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
