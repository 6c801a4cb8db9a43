"""Intervals, probabilities and signals of change against their naive forms and their promises."""

import math

import numpy as np
import pytest

from kernelbank import _core
from support.core_banks import put, put_entry
from support.forged_files import ENTRIES
from support.marks import refuses, slow
from support.naive import auto as naive

EPS = np.finfo(float).eps
NAN = math.nan
TAILS = _core.TAILS
LOW, HIGH, VARIANCE, WEIGHT, ROWS = range(5)


def new_intervals(quantiles=None, bounds=(-np.inf, np.inf)):
    """Intervals that start from these quantiles (2, tails), by default from some that fall."""
    own = _core.Intervals(lower=bounds[0], upper=bounds[1])
    start = np.tile(np.linspace(3, 0, len(TAILS)), (2, 1)) if quantiles is None else quantiles
    put(own, quantiles=np.asarray(start, dtype=float))
    return own


def predict(own, score, mean, sd, tail, spread=np.inf):
    """The prediction of one row and the ends of its interval."""
    value, *ends = own.predict(score, spread, mean, sd, tail)
    return value, np.array(ends)


def new_curve(*curve):
    """The logistic curve of two classes; at its start by default."""
    own = _core.Probabilities(scores=1)
    if curve:
        put(own, curves=np.array([curve]))
    return own


def predict_and_update(probabilities, scores, labels, delay=0.0):
    """Predict each row (classes,), and then fit it: (n, classes)."""
    rows = []
    for row, label in zip(scores, labels, strict=True):
        rows.append(probabilities.predict(row))
        probabilities.update(row, int(label), delay)
    return np.array(rows)


class CalibrationPair:
    """Predictions in both forms, fed the same rows."""

    def __init__(self, quantiles=None, bounds=(-np.inf, np.inf)):
        self.own = new_intervals(quantiles, bounds)
        self.naive = naive.Calibration(TAILS, self.own["quantiles"], bounds)

    def feed(self, scores, scale, targets, tails):
        spreads = 0.3 * np.abs(np.roll(scores, 1))
        rows = zip(scores, scale, targets, tails, spreads, strict=True)
        for score, (mean, sd), y, tail, spread in rows:
            value, ends = predict(self.own, score, mean, sd, tail, spread)
            size = abs(mean) + sd * (abs(score) + 2 * spread + 10) + abs(y)
            assert abs(value - self.naive.predict(score, mean, sd, spread)) <= 8 * EPS * size
            unit = math.sqrt(self.naive.variance)
            largest = 1 + abs(self.naive.quantiles).max()
            # Ends that nearly meet may cross in one form only.
            room = 64 * EPS * (self.naive.rows + 10) * (size + unit * largest * 10)
            expected = self.naive.interval(value, tail)
            if ends[0] < ends[1] and expected[0] < expected[1]:
                assert np.abs(ends - expected).max() <= room, (ends, expected)
            self.own.score(value, y, mean, sd)
            self.naive.score(value, mean, sd, y)
            rows = self.naive.rows
            assert (
                np.abs(self.own["quantiles"] - self.naive.quantiles).max()
                <= 4 * EPS * rows * largest
            )
            low, high, variance, *_ = self.own["stats"]
            assert abs(variance - self.naive.variance) <= 8 * EPS * rows * self.naive.variance
            lowest, highest = min(self.naive.targets), max(self.naive.targets)
            assert abs(low - lowest) <= 8 * EPS * (abs(lowest) + 20 * sd)
            assert abs(high - highest) <= 8 * EPS * (abs(highest) + 20 * sd)


@pytest.mark.parametrize("seed", range(6))
def test_predictions_and_intervals_equal_the_naive_form(seed):
    draw = np.random.default_rng(seed)
    count = 400
    size = [1.0, 1e-120, 1e140, 1.0, 1.0, 1.0][seed]
    scale = np.column_stack([draw.normal(size=count), 0.5 + draw.random(count)]) * size
    scores = draw.normal(size=count)
    targets = size * draw.standard_t(2, size=count)
    if seed == 3:
        targets[:150] = scale[:150] = 0.0
    if seed == 4:
        targets[::9] *= 1e6
    if seed == 5:
        scores[::7] = 50.0
    CalibrationPair().feed(scores, scale, targets, draw.uniform(1e-5, 0.5, size=count))


@pytest.mark.parametrize("delay", [0, 3, 50])
def test_late_and_far_targets_are_scored_as_by_the_naive_form(delay):
    """Ends made for an error that it missed are corrected; a far target is believed to be near."""
    draw = np.random.default_rng(delay)
    pair = CalibrationPair()
    fast, slow, waiting = pair.own, pair.naive, []
    for _ in range(300):
        waiting.append((fast.ends(), slow.ends()))
        unit, quantiles = waiting[-1][1]
        assert waiting[-1][0] == pytest.approx([unit, *quantiles.ravel()], rel=1e-9, abs=1e-9)
        if len(waiting) <= delay:
            continue
        ends, made = waiting.pop(0)
        value, y, far = draw.normal(), draw.normal(), bool(draw.random() < 0.05)
        y += 30.0 * far
        fast.score(value, y, 0.1, 1.2, far, float(delay), ends)
        slow.score(value, 0.1, 1.2, y, far=far, delay=delay, made=made)
    assert fast["stats"][:3] == pytest.approx(
        [min(slow.targets), max(slow.targets), slow.variance], rel=1e-9
    )
    assert fast["corrections"] == pytest.approx(slow.corrections, rel=1e-9, abs=1e-12)
    assert (slow.corrections != 0.0).any() == bool(delay)


@pytest.mark.parametrize("delay", [5, 18, 50, 200])
def test_intervals_of_late_targets_hold_their_share_whatever_the_errors_do(delay):
    """Errors are alike over some 50 rows, and then grow and fall by a factor of three."""
    draw, rows = np.random.default_rng(delay), 20_000
    noise = draw.normal(size=rows)
    for t in range(1, rows):
        noise[t] += 0.98 * noise[t - 1]
    errors = noise * 3.0 ** np.sin(np.arange(rows) / 2000) + draw.normal(size=rows)
    intervals, waiting, missed = new_intervals(), [], []
    twentieth = list(TAILS).index(0.05)
    for t, error in enumerate(errors):
        ends = intervals.ends()
        if t >= 2 * delay + 200:
            low, high = ends[1 + twentieth], ends[1 + len(TAILS) + twentieth]
            missed.append(error < -ends[0] * low or error > ends[0] * high)
        waiting.append(ends)
        if t >= delay:
            intervals.score(0.0, errors[t - delay], 0.0, 1.0, False, float(delay), waiting.pop(0))
    assert abs(np.mean(missed) - 0.1) <= 0.015


def test_targets_without_an_error_give_the_range_and_nothing_else():
    """Rows before the first late target have no prediction, and their targets are no errors."""
    draw = np.random.default_rng(0)
    pair = CalibrationPair()
    for n, y in enumerate(draw.normal(450.0, 17.0, size=60)):
        pair.own.skip(y, 0.0, 0.0)
        if n == 0:
            pair.naive.targets.append(y)
        else:
            pair.naive.skip(y)
    unit, quantiles = pair.naive.ends()
    assert pair.own.ends() == pytest.approx([0.0, *quantiles.ravel()], rel=1e-9)
    assert 10.0 < math.sqrt(pair.own["stats"][VARIANCE]) < 30.0
    assert unit == 0.0  # there is no end of an error yet


@pytest.mark.parametrize(("sharp", "delay"), [(0.3, 0), (1.0, 0), (100.0, 0), (0.3, 20), (1.0, 3)])
def test_probabilities_of_two_classes_equal_the_naive_form(sharp, delay):
    draw = np.random.default_rng(1)
    rows = 300 if delay else 1500
    labels = draw.integers(0, 2, size=rows).astype(float)
    if sharp == 1.0:
        labels[:700] = 1.0
    scores = np.clip(sharp * (2 * labels - 1 + draw.normal(size=rows)), -1e6, 1e6)[:, None]
    own = new_curve()
    out = predict_and_update(own, scores, labels, float(delay))
    curve = naive.Platt()
    for t in range(rows):
        p = curve.probability(scores[t, 0])
        # An error of the line is damped by the Newton steps; 1 - p has the rounding of 1.
        assert np.allclose(out[t], [1 - p, p], rtol=1e-9, atol=1e-12), t
        curve.learn(scores[t, 0], labels[t], delay)
    (platt,) = own["curves"]
    assert np.allclose(platt[:2], curve.line, rtol=1e-9, atol=1e-9)
    assert np.allclose(platt[2:], curve.matrix[[0, 0, 1], [0, 1, 1]], rtol=1e-11)
    assert out.min() >= 1e-6
    again = own.predict(scores[0])
    assert np.allclose(again[1], curve.probability(scores[0, 0]), rtol=1e-9)


LATE = [0.0, 1.0, 10.0, 0.0, 30.0]
"""Two parameters and their Hessian, of a class that came late."""


def new_softmax(classes, late=()):
    own = _core.Probabilities(scores=classes)
    for k in late:
        put_entry(own, "curves", k, LATE)
    return own


def stream(classes, rows, sharp, seed=0, rare=False):
    """Noisy labels of -1 and 1 as scores, and the classes of the rows."""
    draw = np.random.default_rng(seed)
    shares = 0.5 ** np.arange(classes) if rare else np.ones(classes)
    labels = draw.choice(classes, size=rows, p=shares / shares.sum())
    truth = np.where(labels[:, None] == np.arange(classes), 1.0, -1.0)
    return np.clip(sharp * (truth + draw.normal(size=truth.shape)), -1e6, 1e6), labels


@pytest.mark.parametrize("sharp", [0.0, 0.3, 1.0, 100.0])
@pytest.mark.parametrize(
    ("classes", "rare"), [(3, True), slow(3, False), slow(8, True), slow(8, False)]
)
@pytest.mark.parametrize("delay", [0, 30])
def test_probabilities_equal_the_naive_form(classes, sharp, rare, delay):
    """A step adds at most some 100 eps to a parameter, because |z| < 100.

    Steps solve a convex problem, so that earlier errors do not grow: 800 * 100 * eps < 1e-10.
    """
    scores, labels = stream(classes, 200 if delay else 800, sharp, rare=rare)
    own, other = new_softmax(classes, late=[1]), naive.Softmax(classes, late=[1])
    out = predict_and_update(own, scores, labels, float(delay))
    for t, label in enumerate(labels):
        assert np.allclose(out[t], other.probabilities(scores[t]), rtol=1e-10, atol=0), t
        other.learn(scores[t], label, delay)
    assert np.allclose(own["common"][:2], other.common, rtol=0, atol=1e-10)
    assert np.allclose(own["curves"][:, :2], other.pairs, rtol=0, atol=1e-10)
    assert np.allclose(own["common"][2:], other.common_matrix[[0, 0, 1], [0, 1, 1]], rtol=1e-10)
    for curve, matrix in zip(own["curves"], other.matrices, strict=True):
        assert np.allclose(curve[2:], matrix[[0, 0, 1], [0, 1, 1]], rtol=1e-10)


# --- signals of change, and how often they are false -----------------------------------------------


RING = 500


def new_detector(limit, slots=1, ring=RING):
    return _core.ChangeDetector(slots=slots, recent=ring, limit=limit)


def detected(sizes, limit, ring=RING, weights=None):
    """The signals of errors and of weights after each row."""
    weights = np.ones((len(sizes), 1)) if weights is None else weights
    detector = new_detector(limit, weights.shape[1], ring)
    rows = zip(sizes.tolist(), weights, strict=True)
    signals = [(detector.see_error(size), detector.see_weights(row)) for size, row in rows]
    return np.array(signals, np.int64).T


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
    sizes = abs(draw.normal(size=700)).round(1)  # many are equal
    for end in (50, 51, 300, 700):
        detector = new_detector(1e9)
        for size in sizes[:end].tolist():
            detector.see_error(size)
        own = naive.ErrorDetector(RING, 1e9)
        for size in sizes[:end]:
            own.see(size)
        # A factor is the difference of two powers that differ by one part in about 500.
        room = 64 * EPS * end * RING
        assert detector["grew"] == pytest.approx(own.grew, rel=room)
        assert detector["fell"] == pytest.approx(own.fell, rel=room)


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


def test_share_of_errors_beyond_a_quantile_goes_to_its_tail():
    """|share - aimed| <= (moved + start) sqrt(tail) / (0.02 rows), though the scale jumps.

    aimed : the mean over the rows of tail - (1 - tail) / rows, at least half of the tail.
    """
    count, draw = 20_000, np.random.default_rng(7)
    errors = draw.normal(size=count) * 10.0 ** draw.integers(-2, 3, size=40).repeat(500)
    own = new_intervals()
    beyond, warm = np.zeros((2, len(TAILS))), 40  # rows after which the steps are equal
    for t, error in enumerate(errors):
        if t == warm:
            first = own["quantiles"]
        unit = math.sqrt(own["stats"][VARIANCE]) if t else 1.0
        if t >= warm:
            quantiles = own["quantiles"]
            beyond[0] += -error > unit * quantiles[0]
            beyond[1] += error > unit * quantiles[1]
        own.score(0.0, error, 0.0, 1.0)
    share = beyond / (count - warm)
    bound = abs(own["quantiles"] - first) * np.sqrt(TAILS) / (0.02 * (count - warm))
    rows = np.arange(warm, count)[:, None] + 1
    aimed = np.maximum(TAILS - (1 - np.array(TAILS)) / rows, np.array(TAILS) / 2).mean(axis=0)
    assert np.all(abs(share - aimed) <= bound + 1e-9)
    assert np.all(bound <= 0.05)  # so that it says something: quantiles do not run away
    assert np.all(bound[:, :6] <= 0.02)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_forged_states_are_refused_or_give_intervals_and_probabilities():
    draw, refused = np.random.default_rng(1), 0
    for _ in range(400):
        values = draw.choice(ENTRIES, size=8)
        intervals, curves = new_intervals(), new_softmax(3)
        try:
            put(intervals, stats=values, quantiles=draw.choice(ENTRIES, size=(2, len(TAILS))))
        except ValueError:
            refused += 1
        for _ in range(3):
            value, ends = predict(intervals, 0.0, 1.0, 1.0, 0.05)
            assert not ends[0] > ends[1]
            intervals.score(value, 0.0, 1.0, 1.0)
        finite = [value for value in ENTRIES if math.isfinite(value)]
        put(curves, curves=draw.choice(finite, size=(3, 5)), common=draw.choice(finite, size=5))
        out = predict_and_update(curves, draw.choice(ENTRIES, size=(3, 3)), np.zeros(3))
        assert (out > 0).all()
        assert np.allclose(out.sum(axis=1), 1)
    assert refused > 50
    own = new_softmax(3)
    put_entry(own, "curves", (1, slice(2, None)), 1e308)  # a determinant that is not finite
    put_entry(own, "common", slice(2, None), [1e308, 0.0, -1e308])
    own.update(np.zeros(3), 1)
    assert own["curves"][1].tolist() == [0.0, 0.0, 10.0, 0.0, 30.0]
    assert own["common"].tolist() == [2.0, 1.0, 1.0, 0.0, 1.0]
    refuses("class", new_curve().update, np.zeros(1), 2)


IMPOSSIBLE = {
    "stats": [-1.0, math.nan],
    "curves": [math.nan],
    "common": [math.nan],
    "seen": [-1.0, 0.5, 1e300, math.nan],
    "rows": [-1.0],
    "apart": [2.0],
    "errors": [math.inf],
    "mean_weights": [math.nan],
    "grew": [math.nan],
}


def test_impossible_states_are_refused_and_change_nothing():
    for part in (new_detector(1e9, slots=2, ring=60), new_softmax(3), new_intervals()):
        before = part.state()
        for name in before.keys() & IMPOSSIBLE.keys():
            for value in IMPOSSIBLE[name]:
                refuses(r"\w", put, part, **{name: np.full_like(before[name], value)})
        for wrong in (before | {name: np.zeros(61) for name in before}, before | {"more": 1.0}, {}):
            refuses(r"\w", part.restore, wrong)
        np.testing.assert_equal(part.state(), before)
