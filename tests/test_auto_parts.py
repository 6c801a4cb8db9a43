"""The standings of AutoBank against their naive form, on ordinary, hostile and forged data."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelbank as kb
import naive_auto as naive
from kernelbank import checkpoint
from kernelbank._hot import scaling as hot
from kernelbank._hot import watch as hot_watch
from kernelbank.auto.scaling import QUANTILES, Scaling

EPS = np.finfo(float).eps
NAN = math.nan


# --- standings ------------------------------------------------------------------------------------


class Pair:
    """A column in both forms, led through the same values."""

    def __init__(self, memory=1000):
        self.columns, self.rings = np.zeros((1, hot.FIGURES)), np.zeros((1, memory))
        self.naive = naive.Column(memory)
        self.rows = 0
        self.size = 0.0
        self.levels = 0

    def begin(self, values):
        hot.begin_columns(self.columns, self.rings, QUANTILES, np.array(values)[:, None])
        self.naive.begin(values)
        self._seen(values)
        self.check_figures()

    def _seen(self, values):
        self.rows += len(values)
        self.size = max([self.size, *(abs(v) for v in values if not math.isnan(v))])

    def shown(self, value):
        out = np.zeros((1, 2))
        nothing = np.zeros((1, 0))
        args = np.array([[value]]), nothing, self.columns, self.rings, self.columns[0]
        hot.scale_rows(*args, self.rings[0], QUANTILES, np.array([0, -1, 1, -1]), out)
        return out[0]

    @property
    def room(self):
        """What rounding may do to a deviation: eps a row, of the sizes in units of the sd."""
        unit = self.naive.sd
        return 16 * EPS * (self.rows + 4) * (1 + (self.size / unit if unit > 0 else 0.0))

    def feed(self, values):
        for value in values:
            before, found = self.naive.show(value), self.shown(value)
            missing = math.isnan(value) or self.naive.is_glitch(value)
            # r is a ratio of two sums of as many rows, and is raised to the power of its age.
            room = self.room * (64 * (self.naive.age + 1) if missing else 1)
            assert abs(found[0] - before[0]) <= room * 8, (value, found, before)
            assert abs(found[1] - before[1]) <= (room * 4 if missing else 1e-13), (value, found)
            changed = np.zeros(1, dtype=np.bool_)
            hot.take_row(np.array([value]), self.columns, self.rings, QUANTILES, changed)
            assert bool(changed[0]) == self.naive.take(value), value
            self.levels += int(changed[0])
            self._seen([value])
            self.check_figures()

    def check_figures(self):
        own, figures = self.naive, self.columns[0]
        mean, sd = hot.target_scale(figures)
        room = self.room
        assert figures[hot.COUNT] == own.weight
        assert abs(mean - own.mean) <= 4 * EPS * (self.rows + 4) * self.size
        assert abs(sd - own.sd) <= room * own.sd
        assert figures[hot.STREAK] == own.far_in_a_row
        assert figures[hot.AGE] == own.age
        held = min(int(figures[hot.SEEN]), self.rings.shape[1])
        assert sorted(self.rings[0, :held]) == sorted(own.values)


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
        assert abs(pair.shown(value)[1] - expected) <= 1e-13
    assert pair.columns[0, hot.SEEN] == len(values)


def take_all(values, column, ring):
    for value in values:
        hot.take_target(value, column, ring, QUANTILES)


def test_figures_are_those_of_all_values_up_to_the_longest_memory():
    """Before 10,000 rows plain mean and variance; afterwards both forget by 1 / 10,000 a row."""
    draw = np.random.default_rng(1)
    values = draw.normal(size=25_000) + 7
    values[10_000:] = 2 * (values[10_000:] - 7) + 8
    column, ring = np.zeros((1, hot.FIGURES)), np.zeros((1, 5))
    hot.begin_columns(column, ring, QUANTILES, values[:32, None])
    # The first rows are clipped: start from what they left.
    take_all(values[32:10_000], column[0], ring[0])
    mean, sd = hot.target_scale(column[0])
    assert column[0, hot.COUNT] == 10_000
    assert abs(mean - values[:10_000].mean()) < 1e-3
    assert abs(sd / values[:10_000].std(ddof=1) - 1) < 1e-3
    squares = column[0, hot.SQUARES]
    take_all(values[10_000:], column[0], ring[0])
    keep = 1 - 1e-4
    for value in values[10_000:]:
        away = value - mean
        mean += away / 10_000
        squares = (squares + away * (value - mean)) * keep
    assert column[0, hot.COUNT] == 10_000
    assert abs(column[0, hot.MEAN] - mean) <= 1e-12
    assert abs(column[0, hot.SQUARES] / squares - 1) <= 1e-11
    # After n rows of a new scale the old one has the share keep^n, up to chance and the levels.
    share = keep**15_000
    between = share * (1 - share)
    assert hot.target_scale(column[0])[1] ** 2 == pytest.approx(4 - 3 * share + between, rel=0.05)


def test_beyond_the_longest_memory_with_the_naive_form():
    draw = np.random.default_rng(2)
    pair = Pair(5)
    pair.begin(draw.normal(size=32))
    pair.columns[0, hot.COUNT] = pair.naive.weight = 9_990
    pair.columns[0, hot.SQUARES] = pair.naive.squares = 9_989.0
    pair.feed(draw.normal(size=60) * 2)
    assert pair.naive.weight == 10_000


def test_a_negative_correlation_fades_to_nothing():
    """r is at least 0: an alternating column says nothing of rows that are missing."""
    values = [(-1.0) ** t for t in range(40)]
    pair = Pair(50)
    pair.begin(values[:32])
    pair.feed([*values[32:], NAN, NAN, NAN, NAN])
    assert pair.naive.correlation() == 0.0
    assert np.array_equal(pair.shown(NAN), [0.0, 0.0])


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
    assert pair.columns[0, hot.SEEN] == 5
    level_of([100.0, 101.0, 100.5, 102.0, 0.0, 99.0], 0)
    level_of([1e9, 2e9, 1e10, 1e9], 0)  # glitches count
    level_of([1e9, 2e9, 1e10, 1e9, 3e9], 1)


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
    assert pair.shown(NAN)[1] != 0.0


def test_farness():
    target = np.zeros(hot.FIGURES)
    target[[hot.COUNT, hot.MEAN, hot.SQUARES]] = 101, 5.0, 400.0  # sd 2
    for z, kind in [(0, 0), (9.9, 0), (-10.1, hot.FAR), (999, hot.FAR), (-1001, hot.WILD)]:
        assert hot.farness(target, 5.0 + 2.0 * z) == kind
    target[hot.SQUARES] = 0.0
    assert hot.farness(target, 5.0) == hot.farness(target, 5.0 + 1e-11) == 0
    assert hot.farness(target, 1e20) == hot.FAR


@pytest.mark.parametrize("names", [("standard", "asinh", "rank"), ("asinh",), ("rank",)])
def test_scaled_rows_side_by_side(names):
    """Deviations, their asinh, ranks; lagged targets behind them in the target's own figures."""
    draw = np.random.default_rng(4)
    X, y = draw.normal(size=(80, 2)), draw.normal(size=80) * 3
    X[draw.random(X.shape) < 0.1] = NAN
    scaling = Scaling(2, 2, names, target=True)
    columns = [naive.Column(scaling.rings.shape[1]) for _ in range(2)]
    target = naive.Column(len(scaling.ring))
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
        late = np.array([[0.0, 0.0] if math.isnan(v) else target.show(v) for v in lagged])
        shrunk = late[:, 0] if names == ("asinh",) else []
        parts = {
            "standard": [*own[:, 0], *late[:, 0]],
            "asinh": np.arcsinh([*own[:, 0], *shrunk]),
            "rank": [*own[:, 1], *late[:, 1]],
        }
        expected = np.concatenate([parts[name] for name in names])
        assert np.allclose(rows[t], expected, rtol=0, atol=1e-11)
        assert scale[t] == pytest.approx([target.mean, target.sd], rel=1e-12, abs=1e-12)
        assert scaled[t] == pytest.approx(target.deviation(y[32 + t]), abs=1e-12)
        for k in range(2):
            columns[k].take(X[32 + t, k])
        target.take(y[32 + t])
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


# --- forged figures -------------------------------------------------------------------------------

FORGED = [NAN, np.inf, -np.inf, 1e308, -1e308, -1.0, 0.0, 0.5, 4.0, 1e-320, 2.0**53, 2.0**63, 1e19]


def guarded(shape):
    """An array inside a larger one, to see what is written beside it."""
    size = int(np.prod(shape))
    whole = np.full(size + 2000, 7.25)
    return whole, whole[1000 : 1000 + size].reshape(shape)


def untouched(whole):
    return (whole[:1000] == 7.25).all() and (whole[-1000:] == 7.25).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_figure_leads_out_of_an_array():
    draw = np.random.default_rng(0)
    for _ in range(400):
        beside, columns = guarded((2, hot.FIGURES))
        around, rings = guarded((2, int(draw.choice([5, 9]))))
        columns[:] = draw.choice(FORGED, size=columns.shape)
        rings[:] = draw.choice(FORGED, size=rings.shape)
        starts, changed, out = np.array([0, 3, 5, 8]), np.zeros(2, np.bool_), np.zeros((3, 9))
        X = draw.choice([0.0, 1.0, NAN, 1e150, -1e150, 30.0], size=(3, 2))
        lagged = draw.normal(size=(3, 1))
        args = columns, rings, columns[0], rings[0], QUANTILES, starts
        hot.scale_rows(X, lagged, *args, out)
        for x in X:
            hot.take_row(x, columns, rings, QUANTILES, changed)
        news = np.zeros((3, 2), np.bool_)
        done = hot.scale_stream(
            X, np.ones(3), *args, lagged[0], out, np.zeros(3), np.zeros((3, 2)), news
        )
        assert 0 <= done <= 3
        assert hot.farness(columns[0], 3.0) in (0, hot.FAR, hot.WILD)
        assert untouched(beside)
        assert untouched(around)

        beside, figures = guarded((hot_watch.WATCH,))
        around, ring = guarded((60,))
        means = draw.choice(FORGED, size=(2, 3))
        figures[:], ring[:] = (
            draw.choice(FORGED, size=hot_watch.WATCH),
            draw.choice(FORGED, size=60),
        )
        sizes, weights = draw.choice([1.0, 0.0, 1e300], size=4), np.full((4, 3), 1 / 3)
        signals, moves = np.zeros(4, np.int64), np.zeros(4, np.bool_)
        hot_watch.watch_rows(sizes, weights, figures, ring, means, 100.0, signals, moves)
        assert set(signals) <= {-1, 0, 1}
        assert untouched(beside)
        assert untouched(around)


def test_a_forged_streak_does_not_hold_rows_back_for_ever():
    for streak in (NAN, -np.inf, -1e9, np.inf):
        target, ring = np.zeros((1, hot.FIGURES)), np.zeros((1, 5))
        hot.begin_columns(target, ring, QUANTILES, np.arange(1000.0)[:, None] % 7)
        target[0, hot.STREAK] = streak
        changed = [hot.take_target(1e5 + t, target[0], ring[0], QUANTILES) for t in range(5)]
        assert changed[4]


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_forged_files_answer_or_are_refused(task, tmp_path):
    """Any figure in any array: the file is refused, or the bank it makes answers with numbers."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(60, 2))
    y = X.sum(axis=1) if task == "regression" else (X[:, 0] > 0).astype(int)
    linear = kb.learners.LinearRLS()
    bank = kb.AutoBank(task, lags=1, slots=[kb.Slot(kb.kernels.Linear(), linear)])
    bank.run(X[:40], y[:40])
    bank.save(tmp_path / "bank")
    header, arrays = checkpoint.read(tmp_path / "bank")
    refused = 0
    for name in [name for name in arrays if name.startswith("desk/") and arrays[name].size]:
        for value in FORGED:
            forged = {other: array.copy() for other, array in arrays.items()}
            forged[name].flat[draw.integers(forged[name].size)] = value
            checkpoint.write(tmp_path / "forged", header, forged)
            try:
                other = kb.load(tmp_path / "forged")
            except kb.errors.FileRefused:
                assert not math.isfinite(value)
                refused += 1
                continue
            other.learn_one(X[40], y[40])
            trace = other.run(X[41:], y[41:])
            found = trace.predictions if task == "regression" else trace.probabilities
            assert np.isfinite(found).all(), (name, value)
    assert refused >= 3 * 8
