"""The standings of AutoBank against their naive form, on ordinary and hostile data."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelbank as kb
from kernelbank.auto import running_stats as figure
from kernelbank.auto import scaling_steps as hot
from kernelbank.auto.scaling import QUANTILES, Scaling
from support.naive import auto as naive

spread = figure.spread.py_func
EPS = np.finfo(float).eps
NAN = math.nan


# --- standings ------------------------------------------------------------------------------------


class Pair:
    """A column in both forms, led through the same values."""

    def __init__(self, memory=1000):
        self.columns, self.rings = np.zeros((1, figure.FIGURES)), np.zeros((1, memory))
        self.naive = naive.Target(memory)
        self.rows = 0
        self.size = 0.0
        self.levels = 0
        self.moves = 0

    def begin(self, values):
        hot.begin_columns(self.columns, self.rings, QUANTILES, np.array(values)[:, None])
        self.naive.begin(values)
        self.seen(values)
        self.check_figures()

    def seen(self, values):
        self.rows += len(values)
        self.size = max([self.size, *(abs(v) for v in values if not math.isnan(v))])

    def shown(self, value):
        """Deviation from what stands still, asinh of that from what moves, rank."""
        out = np.zeros((1, 3))
        nothing = np.zeros((1, 0))
        args = np.array([[value]]), nothing, self.columns, self.rings, self.columns[0]
        hot.scale_rows(*args, self.rings[0], QUANTILES, np.array([0, 1, 2, -1, -1]), out)
        return out[0]

    @property
    def room(self):
        """What rounding may do to a deviation: eps a row, of the sizes in units of the sd."""
        unit = min(self.naive.sd, self.naive.unit) or max(self.naive.sd, self.naive.unit)
        return 16 * EPS * (self.rows + 4) * (1 + (self.size / unit if unit > 0 else 0.0))

    def check_shown(self, value):
        before, found = self.naive.show(value), self.shown(value)
        missing = self.naive.says_nothing(value)
        # r is a ratio of two sums of as many rows, and is raised to the power of its age.
        room = self.room * (64 * (self.naive.age + 1) if missing else 1)
        assert abs(found[0] - before[0]) <= room * 8, (value, found, before)
        assert abs(math.sinh(found[1]) - before[1]) <= room * 8 + 64 * EPS, (value, found, before)
        assert abs(found[2] - before[2]) <= (room * 4 if missing else 1e-13), (value, found)

    def feed(self, values):
        for value in values:
            self.check_shown(value)
            changed = np.zeros(1, dtype=np.bool_)
            hot.take_row(np.array([value]), self.columns, self.rings, QUANTILES, changed)
            assert bool(changed[0]) == self.naive.take(value), value
            self.levels += int(changed[0])
            self.seen([value])
            self.check_figures()

    def feed_target(self, value, wait):
        """Whether five wait."""
        self.check_shown(value)
        five = hot.take_target(value, wait, self.columns[0], self.rings[0], QUANTILES)
        assert bool(five) == self.naive.take_target(value, wait)
        self.seen([value])
        self.check_figures()
        return bool(five)

    def check_figures(self):
        own, figures = self.naive, self.columns[0]
        room = self.room
        if own.nearest <= room:  # rounding may decide whether base and unit follow: let it
            own.base, own.unit = (float(v) for v in hot.target_scale(figures))
        assert figures[figure.COUNT] == own.weight
        assert abs(figures[figure.MEAN] - own.mean) <= 4 * EPS * (self.rows + 4) * self.size
        assert abs(spread(figures) - own.sd) <= room * own.sd
        base, unit = hot.target_scale(figures)
        assert abs(base - own.base) <= 4 * EPS * (self.rows + 4) * self.size
        assert abs(unit - own.unit) <= room * own.unit
        assert figures[figure.STREAK] == own.far_in_a_row
        assert figures[figure.AGE] == own.age
        held = min(int(figures[figure.SEEN]), self.rings.shape[1])
        room = 2 * EPS * self.size  # a new level moves them
        assert np.allclose(sorted(self.rings[0, :held]), sorted(own.values), rtol=0, atol=room)


def test_quantiles_are_those_of_the_normal():
    assert np.array_equal(QUANTILES, naive.QUANTILES)
    assert np.allclose(QUANTILES, -QUANTILES[::-1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e-100, 1e149])
@pytest.mark.parametrize("offset", [0.0, 1.0, -1e6])
@pytest.mark.parametrize("memory", [5, 50])
def test_ordinary_columns(scale, offset, memory):
    draw = np.random.default_rng(3)
    values = scale * (draw.normal(size=300) + offset) / (1 + abs(offset))
    pair = Pair(memory)
    pair.begin(values[:32])
    pair.feed(values[32:])
    assert pair.levels == 0


def hostile(seed):
    """Pieces of every kind that streams have been seen to have."""
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


@pytest.mark.slow
@pytest.mark.parametrize("memory", [5, 7, 100])
def test_hostile_columns(memory):
    levels = 0
    for seed in range(40):
        values = hostile(seed)
        pair = Pair(memory)
        pair.begin(values[:32])
        pair.feed(values[32:])
        levels += pair.levels
    assert levels > 20  # the streams do what they are for


places = st.sampled_from(
    [0.0, 1.0, -1.0, 1.0, NAN, 2.0, 30.0, -30.0, 31.0, 5e3, 1e150, -1e150, 1e-150, 1e-5]
)


@given(st.lists(places, min_size=4, max_size=32), st.lists(places, max_size=60))
def test_few_different_values(first, then):
    pair = Pair(11)
    pair.begin(first)
    pair.feed(then)


def test_columns_from_nothing():
    for start in ([], [NAN] * 4, [2.5], [0.0] * 8):
        pair = Pair(20)
        if start:
            pair.begin(start)
        pair.feed([3.0, 3.0, NAN, 3.0, 4.0, 3.5, NAN, NAN, 2.0, 1.0])


def test_the_ring_goes_round():
    """Among the last 1,000 values only, whatever came before them."""
    draw = np.random.default_rng(0)
    values = np.concatenate([draw.normal(size=700) + 3, draw.normal(size=1100)])
    pair = Pair(1000)
    pair.begin(values[:32])
    for value in values[32:]:
        hot.take_row(np.array([value]), pair.columns, pair.rings, QUANTILES, np.zeros(1, np.bool_))
    for value in [*values[-1100:-1090], *values[-3:], -9.0, 9.0]:
        share = ((values[-1000:] < value).sum() + (values[-1000:] == value).sum() / 2 + 0.5) / 1001
        expected = np.interp(share, naive.PROBABILITIES, naive.QUANTILES)
        assert abs(pair.shown(value)[2] - expected) <= 1e-13
    assert pair.columns[0, figure.SEEN] == len(values)


def take_all(values, column, ring):
    for value in values:
        hot.take_target(value, False, column, ring, QUANTILES)


def test_figures_are_those_of_all_values_up_to_the_longest_memory():
    """Before 10,000 rows plain mean and variance; afterwards both forget by 1 / 10,000 a row."""
    draw = np.random.default_rng(1)
    values = draw.normal(size=25_000) + 7
    values[10_000:] = 2 * (values[10_000:] - 7) + 8
    column, ring = np.zeros((1, figure.FIGURES)), np.zeros((1, 5))
    hot.begin_columns(column, ring, QUANTILES, values[:32, None])
    # The first rows are clipped: start from what they left.
    take_all(values[32:10_000], column[0], ring[0])
    mean, sd = column[0, figure.MEAN], spread(column[0])
    assert column[0, figure.COUNT] == 10_000
    assert abs(mean - values[:10_000].mean()) < 1e-3
    assert abs(sd / values[:10_000].std(ddof=1) - 1) < 1e-3
    squares = column[0, figure.SQUARES]
    take_all(values[10_000:], column[0], ring[0])
    keep = 1 - 1e-4
    for value in values[10_000:]:
        away = value - mean
        mean += away / 10_000
        squares = (squares + away * (value - mean)) * keep
    assert column[0, figure.COUNT] == 10_000
    assert abs(column[0, figure.MEAN] - mean) <= 1e-12
    assert abs(column[0, figure.SQUARES] / squares - 1) <= 1e-11
    # After n rows of a new scale the old one has the share keep^n, up to chance and the levels.
    share = keep**15_000
    between = share * (1 - share)
    assert spread(column[0]) ** 2 == pytest.approx(4 - 3 * share + between, rel=0.05)


def test_beyond_the_longest_memory_with_the_naive_form():
    draw = np.random.default_rng(2)
    pair = Pair(5)
    pair.begin(draw.normal(size=32))
    pair.columns[0, figure.COUNT] = pair.naive.weight = 9_990
    pair.columns[0, figure.SQUARES] = pair.naive.squares = 9_989.0
    pair.feed(draw.normal(size=60) * 2)
    assert pair.naive.weight == 10_000


def test_a_negative_correlation_fades_to_nothing():
    """r is at least 0: an alternating column says nothing of rows that are missing."""
    values = [(-1.0) ** t for t in range(40)]
    pair = Pair(50)
    pair.begin(values[:32])
    pair.feed([*values[32:], NAN, NAN, NAN, NAN])
    assert pair.naive.correlation() == 0.0
    assert np.array_equal(pair.shown(NAN), [0.0, 0.0, 0.0])


def test_a_slow_column_fades_slowly():
    values = np.cumsum(np.random.default_rng(0).normal(size=200))
    pair = Pair(200)
    pair.begin(values[:32])
    pair.feed([*values[32:], *[NAN] * 5])
    r = pair.naive.correlation()
    assert 0.8 < r < 1
    assert pair.shown(NAN)[0] == pytest.approx(pair.naive.last[0] * r**6, rel=1e-9)


def level_of(values, changes):
    pair = Pair(50)
    pair.begin(np.random.default_rng(5).normal(size=1000))  # five far values must not make the sd
    pair.feed(values)
    assert pair.levels == changes
    return hot.target_scale(pair.columns[0]), pair


def test_new_levels():
    usual = hot.target_scale(level_of([], 0)[1].columns[0])[1]
    (mean, sd), _ = level_of([100.0, 101.0, NAN, 100.5, 102.0, 99.0], 1)
    assert mean == pytest.approx(100.5)
    assert usual < sd < 2 * usual  # that after the five have entered at 10 sd each
    (mean, sd), _ = level_of([100.0, -300.0, 500.0, -900.0, 70.0], 1)  # a new scale, on any side
    assert sd == pytest.approx(np.std([100.0, -300.0, 500.0, -900.0, 70.0], ddof=1))
    assert mean == pytest.approx(-106)
    (mean, sd), pair = level_of([64.0] * 5, 1)
    assert mean + sd == pytest.approx(64)
    assert sorted(pair.rings[0, :5]) == [64.0] * 5
    assert pair.columns[0, figure.SEEN] == 5
    level_of([100.0, 101.0, 100.5, 102.0, 0.0, 99.0], 0)
    level_of([1e9, 2e9, 1e10, 1e9], 0)  # glitches count
    level_of([1e9, 2e9, 1e10, 1e9, 3e9], 1)


@pytest.mark.slow
def test_new_levels_of_any_scale():
    """Four times and a quarter of the old sd are where the new one begins to count."""
    five = np.array([-1.2, 0.3, 1.1, -0.6, 0.4])
    kept = 0
    for scale in np.geomspace(0.1, 10, 41):
        (_, sd), _ = level_of(100.0 + scale * five, 1)
        kept += abs(sd / (scale * five.std(ddof=1)) - 1) > 1e-9
    assert 22 <= kept <= 26  # log(16) of log(100)


def test_a_glitch_at_the_end_of_the_first_rows_is_not_the_last_value():
    """Within 1,000 of the usual distance, so it counts, but beyond 1,000 sd of what that gives."""
    pair = Pair(50)
    pair.begin([*[0.0] * 27, 1.0, 1.0, -1.0, -1.0, 700.0])
    assert pair.naive.age == 1
    pair.feed([NAN, 0.5, NAN])
    assert pair.shown(NAN)[2] != 0.0


def test_farness():
    target = np.zeros(figure.FIGURES)
    target[[figure.BASE, figure.UNIT]] = 5.0, 2.0
    for z, kind in [(0, 0), (9.9, 0), (-10.1, hot.FAR), (999, hot.FAR), (-1001, hot.WILD)]:
        assert hot.farness(target, 5.0 + 2.0 * z) == kind
    target[figure.UNIT] = 0.0
    assert hot.farness(target, 5.0) == hot.farness(target, 5.0 + 1e-11) == 0
    assert hot.farness(target, 1e20) == hot.FAR


def test_what_is_typical():
    """Of the last thousand: the median and the ends; those of all where these are one place."""
    draw = np.random.default_rng(4)
    X = np.column_stack([draw.normal(size=3000), np.arange(3000) < 500, np.full(3000, 7.0)])
    scaling = Scaling(3, 0, ("standard", "rank"), target=False)
    scaling.begin(X[:32], None)
    for x in X[32:]:
        scaling.take(x)
    last = X[-scaling.rings.shape[1] :]
    found = scaling.typical()
    assert (found[:, 0] == np.median(last, axis=0)).all()
    assert (found[0, 1:] == [last[:, 0].min(), last[:, 0].max()]).all()
    base, unit = scaling.columns[1, [figure.BASE, figure.UNIT]]
    assert unit > 0
    assert (found[1, 1:] == base + unit * np.array([-2.5, 2.5])).all()
    assert (found[2] == 7.0).all()


@pytest.mark.parametrize("names", [("standard", "asinh", "rank"), ("asinh",), ("rank",)])
def test_scaled_rows_side_by_side(names):
    """Deviations, their asinh, ranks; lagged targets behind them in the target's own figures."""
    draw = np.random.default_rng(4)
    X, y = draw.normal(size=(80, 2)), draw.normal(size=80) * 3
    X[draw.random(X.shape) < 0.1] = NAN
    scaling = Scaling(2, 2, names, target=True)
    columns = [naive.Column(scaling.rings.shape[1]) for _ in range(2)]
    target = naive.Target(len(scaling.ring))
    scaling.begin(X[:32], y[:32])
    for k in range(2):
        columns[k].begin(X[:32, k])
    target.begin(y[:32])
    lagged = np.array([y[31], NAN])
    moving = lagged.copy()
    rows, scaled, scale, _ = scaling.stream(X[32:], y[32:], moving)
    assert len(rows) == 48
    for t in range(48):
        own = np.array([columns[k].show(X[32 + t, k]) for k in range(2)])
        late = np.array([np.zeros(3) if math.isnan(v) else target.show(v) for v in lagged])
        shrunk = late[:, 1] if names == ("asinh",) else []
        parts = {
            "standard": [*own[:, 0], *late[:, 0]],
            "asinh": np.arcsinh([*own[:, 1], *shrunk]),
            "rank": [*own[:, 2], *late[:, 2]],
        }
        expected = np.concatenate([parts[name] for name in names])
        assert np.allclose(rows[t], expected, rtol=0, atol=1e-11)
        assert scale[t] == pytest.approx([target.base, target.unit], rel=1e-12, abs=1e-12)
        assert scaled[t] == pytest.approx(target.deviation(y[32 + t]), abs=1e-12)
        for k in range(2):
            columns[k].take(X[32 + t, k])
        target.take_target(y[32 + t], False)
        lagged = np.array([y[32 + t], lagged[0]])
    assert np.array_equal(moving, lagged)


def test_lags_are_seen_with_asinh_alone():
    y = np.sin(np.arange(300) / 3)
    trace = kb.AutoBank(lags=2, size="small", scalings=["asinh"]).run(np.zeros(300), y)
    assert np.mean((trace.predictions[200:] - y[200:]) ** 2) < 0.01


def test_all_columns_of_a_row_may_have_a_new_level():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(200, 3))
    y = X.sum(axis=1)
    X[150:] += [5000.0, 0.0, 8000.0]
    blocks, rows = kb.AutoBank(size="small"), kb.AutoBank(size="small")
    blocks.run(X, y)
    for x, target in zip(X, y, strict=True):
        rows.learn_one(x, target)
    assert blocks.ledger.changes == rows.ledger.changes
    levels = [(c.row, c.column) for c in rows.ledger.changes if c.what == "input level"]
    assert levels == [(155, 0), (155, 2)]
