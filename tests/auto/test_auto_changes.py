"""Signals of change: against their naive forms, and how often they are false."""

import math

import numpy as np
import pytest

from kernelbank.auto import change_detection as hot
from support.naive import auto as naive

EPS = np.finfo(float).eps
RING = 500


def watched(sizes, limit, ring=RING, weights=None):
    """The signals after each row, and the figures."""
    weights = np.ones((len(sizes), 1)) if weights is None else weights
    figures, means = np.zeros(hot.WATCH), np.zeros((2, weights.shape[1]))
    errors, moves = np.zeros(len(sizes), np.int64), np.zeros(len(sizes), np.bool_)
    hot.watch_rows(sizes, weights, figures, np.zeros(ring), means, limit, errors, moves)
    return errors, moves


def kinds(draw, count):
    """Sizes of errors of which nothing changes."""
    some = draw.random(count) < 0.01
    return {
        "normal": abs(draw.normal(size=count)),
        "heavy": abs(draw.standard_cauchy(size=count)),
        "three": draw.integers(0, 3, size=count).astype(float),
        "two": (draw.random(count) < 0.02).astype(float),
        "mostly none": some * draw.random(count),
        "constant": np.ones(count),
    }


@pytest.mark.slow
@pytest.mark.parametrize("ring", [60, RING])
def test_errors_are_watched_as_by_the_naive_form(ring):
    """The same signals in the same rows, with every kind of ties, growth and fall."""
    found = {1: 0, -1: 0}
    for seed in range(4):
        draw = np.random.default_rng(seed)
        for sizes in kinds(draw, 1500).values():
            changing = sizes * 4.0 ** draw.integers(-1, 2, size=10).repeat(150)
            errors, _ = watched(changing, 300.0, ring)
            own = naive.ErrorWatch(ring, 300.0)
            assert [own.see(size) for size in changing] == errors.tolist()
            found[1] += (errors > 0).sum()
            found[-1] += (errors < 0).sum()
    assert found[1] > 20
    assert found[-1] > 5


def test_the_sums_of_the_games():
    draw = np.random.default_rng(0)
    sizes = abs(draw.normal(size=700))
    for end in (50, 51, 300, 700):
        figures = np.zeros(hot.WATCH)
        none = np.zeros(end, np.int64), np.zeros(end, np.bool_)
        ring, means = np.zeros(RING), np.zeros((2, 1))
        hot.watch_rows(sizes[:end], np.ones((end, 1)), figures, ring, means, 1e9, *none)
        own = naive.ErrorWatch(RING, 1e9)
        for size in sizes[:end]:
            own.see(size)
        # A factor is the difference of two powers that differ by one part in about 500.
        room = 64 * EPS * end * RING
        assert figures[hot.GREW : hot.FELL] == pytest.approx(own.grew, rel=room)
        assert figures[hot.FELL : hot.SEEN] == pytest.approx(own.fell, rel=room)


def test_a_factor_has_the_mean_1():
    """Over the ranks of errors that are all different, for every game; with ties at most 1."""
    for count, ties in [(50, 1), (499, 1), (51, 4), (499, 100)]:
        among = np.arange(count + 1) // ties
        total = np.zeros((2, hot.GAMES))
        for k, size in enumerate(among):
            figures, ring = np.zeros(hot.WATCH), np.zeros(RING)
            ring[:count] = np.delete(among, k)
            figures[hot.SEEN] = count
            none = np.zeros(1, np.int64), np.zeros(1, np.bool_)
            sizes = np.array([float(size)])
            hot.watch_rows(sizes, np.ones((1, 1)), figures, ring, np.zeros((2, 1)), 1e9, *none)
            total += figures[: 2 * hot.GAMES].reshape(2, -1) / (count + 1)
        assert np.all(total <= 1 + 1e-12)
        assert ties > 1 or np.all(total >= 1 - 1e-12)


@pytest.mark.parametrize(("limit", "ring", "rows"), [(200.0, RING, 300_000), (1000.0, 60, 300_000)])
def test_false_signals_are_rare(limit, ring, rows):
    """Each sum at most once in `limit` rows, up to four deviations of a count of that mean."""
    draw = np.random.default_rng(11)
    most = rows / limit
    for name, sizes in kinds(draw, rows).items():
        errors, _ = watched(sizes, limit, ring)
        for sign in (1, -1):
            assert (errors == sign).sum() <= most + 4 * math.sqrt(most), (name, sign)


def delays(factor, sign, trials=40, rows=1000):
    """Rows from a change by a factor to the signal; infinite if none comes."""
    found = []
    for seed in range(trials):
        sizes = abs(np.random.default_rng(seed).normal(size=500 + rows))
        sizes[500:] *= factor
        errors, _ = watched(sizes, 10_000.0)
        rows_of = np.flatnonzero(errors[500:] == sign)
        found.append(rows_of[0] + 1 if len(rows_of) else math.inf)
    return np.array(found)


def test_growth_and_fall_are_noticed():
    assert np.quantile(delays(3.0, 1), 0.9) <= 20
    assert np.quantile(delays(1.5, 1), 0.9) <= 150
    assert np.quantile(delays(1 / 3, -1), 0.9) <= 60
    assert np.quantile(delays(1 / 2, -1), 0.9) <= 200
    assert np.isinf(delays(3.0, -1, rows=100)).all()  # and are not taken for each other
    assert np.isinf(delays(1 / 3, 1, rows=100)).all()


def test_not_a_number_is_the_largest_error():
    sizes = np.r_[np.arange(100.0), [math.nan] * 20, np.arange(100.0)]
    errors, _ = watched(sizes, 1000.0)
    assert (errors[100:110] == 1).sum() >= 1
    errors, _ = watched(np.full(300, math.inf), 10.0)
    assert len(errors) == 300


# --- weights --------------------------------------------------------------------------------------


def test_weights_are_watched_as_by_the_naive_form():
    found = 0
    for seed in range(6):
        draw = np.random.default_rng(seed)
        shares = draw.dirichlet(np.full(4, 0.3), size=9).repeat(200, axis=0)
        weights = 0.9 * shares + 0.1 * draw.dirichlet(np.ones(4), size=len(shares))
        _, moves = watched(np.ones(len(weights)), 1e9, weights=weights)
        own = naive.WeightWatch(4)
        assert [own.see(row) for row in weights] == moves.tolist()
        found += moves.sum()
    assert found >= 6


def test_the_weights_signal():
    """Once when the weight goes elsewhere, again when it comes back, not in the first 500 rows."""
    there, here = np.array([0.9, 0.1, 0.0]), np.array([0.1, 0.0, 0.9])
    weights = np.vstack([np.tile(w, (700, 1)) for w in (there, here, there)])
    _, moves = watched(np.ones(2100), 1e9, weights=weights)
    rows = np.flatnonzero(moves)
    assert len(rows) == 2
    assert np.all(rows - [700, 1400] <= 30)
    assert np.all(rows - [700, 1400] > 5)
    _, moves = watched(np.ones(600), 1e9, weights=np.vstack([weights[500:800], weights[500:800]]))
    assert not moves[:499].any()
    draw = np.random.default_rng(0)
    shaking = draw.dirichlet(np.ones(10), size=5000)
    assert not watched(np.ones(5000), 1e9, weights=shaking)[1].any()
