"""Signals of change against their naive forms, and how often they are false."""

import math

import numpy as np
import pytest

from kernelbank import _core
from support.core_banks import put
from support.marks import slow
from support.naive import auto as naive

EPS = np.finfo(float).eps


RING = 500


SIGNALS = {"error grew": (0, 1), "error fell": (0, -1), "weights": (1, 1)}


def new_detector(limit, slots=1, ring=RING):
    return _core.ChangeDetector(slots=slots, recent=ring, limit=limit)


def detected(sizes, limit, ring=RING, weights=None):
    """The signals of errors and of weights after each row."""
    weights = np.ones((len(sizes), 1)) if weights is None else weights
    signals = np.zeros((2, len(sizes)), np.int64)
    for row, what in new_detector(limit, weights.shape[1], ring).detect(sizes, weights):
        kind, sign = SIGNALS[what]
        signals[kind, row] = sign
    return signals


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
def test_error_signals_equal_the_naive_form(ring):
    """The same signals in the same rows, with every kind of ties, growth and fall."""
    actual = {1: 0, -1: 0}
    for seed in range(4):
        draw = np.random.default_rng(seed)
        for sizes in kinds(draw, 1500).values():
            changing = sizes * 4.0 ** draw.integers(-1, 2, size=10).repeat(150)
            errors, _ = detected(changing, 300.0, ring)
            own = naive.ErrorDetector(ring, 300.0)
            assert [own.see(size) for size in changing] == errors.tolist()
            actual[1] += (errors > 0).sum()
            actual[-1] += (errors < 0).sum()
    assert actual[1] > 20
    assert actual[-1] > 5


def test_sums_of_the_martingales_equal_the_naive_form():
    draw = np.random.default_rng(0)
    sizes = abs(draw.normal(size=700))
    for end in (50, 51, 300, 700):
        detector = new_detector(1e9)
        detector.detect(sizes[:end], np.ones((end, 1)))
        own = naive.ErrorDetector(RING, 1e9)
        for size in sizes[:end]:
            own.see(size)
        # A factor is the difference of two powers that differ by one part in about 500.
        room = 64 * EPS * end * RING
        assert detector["grew"] == pytest.approx(own.grew, rel=room)
        assert detector["fell"] == pytest.approx(own.fell, rel=room)


def test_betting_factor_has_mean_one():
    """Over the ranks of errors that are all different, for every martingale; with ties at most 1."""
    for count, ties in [(50, 1), (499, 1), (51, 4), (499, 100)]:
        among = np.arange(count + 1) // ties
        total = np.zeros((2, 3))
        for k, size in enumerate(among):
            detector, ring = new_detector(1e9), np.zeros(RING)
            ring[:count] = np.delete(among, k)
            put(detector, errors=ring, seen=np.array(float(count)))
            detector.detect(np.array([float(size)]), np.ones((1, 1)))
            total += np.array([detector["grew"], detector["fell"]]) / (count + 1)
        assert np.all(total <= 1 + 1e-12)
        assert ties > 1 or np.all(total >= 1 - 1e-12)


@pytest.mark.parametrize(
    ("limit", "ring", "rows"), [slow(200.0, RING, 300_000), (1000.0, 60, 100_000)]
)
def test_false_signals_are_rare(limit, ring, rows):
    """Each sum at most once in `limit` rows, up to four deviations of a count of that mean."""
    draw = np.random.default_rng(11)
    most = rows / limit
    for name, sizes in kinds(draw, rows).items():
        errors, _ = detected(sizes, limit, ring)
        for sign in (1, -1):
            assert (errors == sign).sum() <= most + 4 * math.sqrt(most), (name, sign)


def test_nan_counts_as_the_largest_error():
    sizes = np.r_[np.arange(100.0), [math.nan] * 20, np.arange(100.0)]
    errors, _ = detected(sizes, 1000.0)
    assert (errors[100:110] == 1).sum() >= 1
    errors, _ = detected(np.full(300, math.inf), 10.0)
    assert len(errors) == 300


def test_weight_signals_equal_the_naive_form():
    actual = 0
    for seed in range(6):
        draw = np.random.default_rng(seed)
        shares = draw.dirichlet(np.full(4, 0.3), size=9).repeat(200, axis=0)
        weights = 0.9 * shares + 0.1 * draw.dirichlet(np.ones(4), size=len(shares))
        _, moves = detected(np.ones(len(weights)), 1e9, weights=weights)
        own = naive.WeightDetector(4)
        assert [own.see(row) for row in weights] == moves.tolist()
        actual += moves.sum()
    assert actual >= 6


def test_weight_signal_comes_once_per_move_and_not_in_the_first_rows():
    """Once when the weight goes elsewhere, again when it comes back, not in the first 500 rows."""
    there, here = np.array([0.9, 0.1, 0.0]), np.array([0.1, 0.0, 0.9])
    weights = np.vstack([np.tile(w, (700, 1)) for w in (there, here, there)])
    _, moves = detected(np.ones(2100), 1e9, weights=weights)
    rows = np.flatnonzero(moves)
    assert len(rows) == 2
    assert np.all(rows - [700, 1400] <= 30)
    assert np.all(rows - [700, 1400] > 5)
    _, moves = detected(np.ones(600), 1e9, weights=np.vstack([weights[500:800], weights[500:800]]))
    assert not moves[:499].any()
    draw = np.random.default_rng(0)
    shaking = draw.dirichlet(np.ones(10), size=5000)
    assert not detected(np.ones(5000), 1e9, weights=shaking)[1].any()


def test_impossible_states_are_refused():
    detector = new_detector(1e9, slots=2, ring=60)
    detector.detect(np.arange(90.0), np.full((90, 2), 0.5))
    before = detector.state()
    for name, value in [
        ("seen", -1.0), ("seen", 0.5), ("seen", 1e300), ("seen", math.nan), ("rows", -1.0),
        ("apart", 2.0), ("errors", math.inf), ("mean_weights", math.nan), ("grew", math.nan),
    ]:  # fmt: skip
        array = np.full_like(before[name], value)
        with pytest.raises(ValueError, match=r"finite|whole"):
            put(detector, **{name: array})
    for wrong in (before | {"errors": np.zeros(61)}, before | {"more": np.zeros(1)}, {}):
        with pytest.raises(ValueError, match="has"):
            detector.restore(wrong)
    np.testing.assert_equal(detector.state(), before)  # nothing has changed
