"""Answers, intervals and probabilities of AutoBank against their naive forms and their promises."""

import math

import numpy as np
import pytest

from kernelbank.auto import calibration as hot
from kernelbank.auto.regression import LEVELS
from support.naive import auto as naive

EPS = np.finfo(float).eps
NAN = math.nan


# --- answers --------------------------------------------------------------------------------------


def answered(score, mean, sd, figures, quantiles, tail):
    """The answer to one row and the ends of its interval."""
    out = np.zeros(3)
    hot.answer_row(score, mean, sd, figures, LEVELS, quantiles, tail, out)
    return out[0], out[1:]


class AnswerPair:
    """Answers in both forms, led through the same rows."""

    def __init__(self, quantiles=None):
        start = np.tile(np.linspace(3, 0, len(LEVELS)), (2, 1)) if quantiles is None else quantiles
        self.naive = naive.Answers(LEVELS, start)
        self.figures, self.quantiles = np.zeros(hot.ANSWERS), start.astype(float)

    def feed(self, scores, scale, targets, tails):
        for score, (mean, sd), y, tail in zip(scores, scale, targets, tails, strict=True):
            value, ends = answered(score, mean, sd, self.figures, self.quantiles, tail)
            size = abs(mean) + sd * (abs(score) + 10) + abs(y)
            assert abs(value - self.naive.predict(score, mean, sd)) <= 8 * EPS * size
            unit = math.sqrt(self.naive.variance)
            largest = 1 + abs(self.naive.quantiles).max()
            # Ends that nearly meet may cross in one form only.
            room = 64 * EPS * (self.naive.rows + 10) * (size + unit * largest * 10)
            expected = self.naive.interval(value, tail)
            if ends[0] < ends[1] and expected[0] < expected[1]:
                assert np.abs(ends - expected).max() <= room, (ends, expected)
            hot.settle_row(value, mean, sd, y, self.figures, LEVELS, self.quantiles)
            self.naive.settle(value, mean, sd, y)
            rows = self.naive.rows
            assert np.abs(self.quantiles - self.naive.quantiles).max() <= 4 * EPS * rows * largest
            variance = self.figures[hot.VARIANCE]
            assert abs(variance - self.naive.variance) <= 8 * EPS * rows * self.naive.variance
            lowest, highest = min(self.naive.targets), max(self.naive.targets)
            assert abs(self.figures[hot.LOW] - lowest) <= 8 * EPS * (abs(lowest) + 20 * sd)
            assert abs(self.figures[hot.HIGH] - highest) <= 8 * EPS * (abs(highest) + 20 * sd)


@pytest.mark.parametrize("seed", range(6))
def test_answers(seed):
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
    AnswerPair().feed(scores, scale, targets, draw.uniform(1e-5, 0.5, size=count))


def test_rows_are_settled_as_one_by_one():
    draw = np.random.default_rng(0)
    count, tail = 120, 0.05
    scale = np.column_stack([draw.normal(size=count), 0.5 + draw.random(count)])
    scores, targets = draw.normal(size=count), draw.standard_t(2, size=count)
    one, many = AnswerPair(), AnswerPair()
    values, ends = np.zeros(count), np.zeros((count, 2))
    args = many.figures, LEVELS, many.quantiles, tail, values, ends
    hot.settle_rows(scores, scale, targets, *args)
    for t, (mean, sd) in enumerate(scale):
        value, own = answered(scores[t], mean, sd, one.figures, one.quantiles, tail)
        hot.settle_row(value, mean, sd, targets[t], one.figures, LEVELS, one.quantiles)
        assert (values[t], *ends[t]) == (value, *own)
    np.testing.assert_array_equal(many.figures, one.figures)
    np.testing.assert_array_equal(many.quantiles, one.quantiles)


def test_quantiles_between_and_beyond_the_levels():
    draw = np.random.default_rng(0)
    for _ in range(50):
        quantiles = draw.normal(size=(2, len(LEVELS))) * 2 + np.linspace(3, 0, len(LEVELS))
        pair = AnswerPair(quantiles)
        pair.figures[[hot.VARIANCE, hot.ROWS]] = 1.0, 1.0
        pair.naive.variance = 1.0
        last = math.inf
        for tail in [1e-17, 1e-4, *LEVELS, 0.003, 0.07, 0.45]:
            _, ends = answered(0.0, 0.0, 1.0, pair.figures, pair.quantiles, tail)
            expected = pair.naive.interval(0.0, tail)
            assert np.allclose(ends, expected, rtol=0, atol=1e-12)
            if tail in LEVELS:
                assert ends[1] - ends[0] <= last + 1e-12  # a smaller tail is wider
                last = ends[1] - ends[0]


def errors_of(kind, count, draw):
    noise = draw.normal(size=count)
    if kind == "walk of scale":
        return noise * np.exp(np.cumsum(draw.normal(size=count) * 0.05))
    if kind == "jumps":
        return noise * 10.0 ** draw.integers(-2, 3, size=count // 500 + 1).repeat(500)[:count]
    if kind == "heavy tails":
        return draw.standard_cauchy(size=count)
    if kind == "one side":
        return abs(noise) * (1 + np.arange(count) / 100)
    return np.where(np.arange(count) % 2000 < 1000, 0.0, noise)


@pytest.mark.parametrize(
    "kind", ["walk of scale", "jumps", "heavy tails", "one side", "often none"]
)
def test_the_share_beyond_each_quantile_goes_to_its_level(kind):
    """|share - level| <= (moved + start) sqrt(level) / (0.02 rows), whatever the stream does."""
    count = 20_000
    errors = errors_of(kind, count, np.random.default_rng(7))
    figures = np.zeros(hot.ANSWERS)
    quantiles = np.tile(np.linspace(3, 0, len(LEVELS)), (2, 1))
    first = quantiles.copy()
    beyond, warm = np.zeros((2, len(LEVELS))), 40  # rows after which the steps are equal
    for t, error in enumerate(errors):
        if t == warm:
            first = quantiles.copy()
        unit = math.sqrt(figures[hot.VARIANCE]) if t else 1.0
        if t >= warm:
            beyond[0] += -error > unit * quantiles[0]
            beyond[1] += error > unit * quantiles[1]
        hot.settle_row(0.0, 0.0, 1.0, error, figures, LEVELS, quantiles)
    share = beyond / (count - warm)
    bound = abs(quantiles - first) * np.sqrt(LEVELS) / (0.02 * (count - warm))
    assert np.all(abs(share - LEVELS) <= bound + 1e-9)
    assert np.all(bound <= 0.05)  # so that it says something: quantiles do not run away
    assert np.all(bound[:, :6] <= 0.02)


def test_a_target_at_rest_keeps_its_quantiles():
    """Errors of 0 from the first row on have no unit; the intervals are ready when it moves."""
    figures = np.zeros(hot.ANSWERS)
    quantiles = np.tile(np.linspace(3, 0, len(LEVELS)), (2, 1))
    for _ in range(5000):
        hot.settle_row(0.0, 0.0, 0.0, 0.0, figures, LEVELS, quantiles)
    draw = np.random.default_rng(0)
    inside = 0
    for y in draw.normal(size=400):
        _, ends = answered(0.0, 0.0, 1.0, figures, quantiles, 0.05)
        inside += ends[0] <= y <= ends[1]
        hot.settle_row(0.0, 0.0, 1.0, y, figures, LEVELS, quantiles)
    assert 0.8 < inside / 400 < 0.97


# --- probabilities --------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("sharp", [0.3, 1.0, 100.0])
def test_probabilities(heads, sharp):
    draw = np.random.default_rng(heads)
    rows = 1500
    labels = draw.integers(0, max(heads, 2), size=rows).astype(float)
    if sharp == 1.0:
        labels[:700] = 1.0
    own = np.array([1] if heads == 1 else range(heads))
    truth = np.where(labels[:, None] == own, 1.0, -1.0)
    scores = np.clip(sharp * (truth + draw.normal(size=truth.shape)), -1e6, 1e6)
    platt = np.tile(hot.PLATT_START, (heads, 1))
    out = np.zeros((rows, max(heads, 2)))
    hot.calibrate_rows(scores, labels, platt, out)
    curves = [naive.Platt() for _ in range(heads)]
    for t in range(rows):
        expected = naive.class_probabilities(scores[t], curves)
        # An error of the line is damped by the Newton steps; 1 - p has the rounding of 1.
        assert np.allclose(out[t], expected, rtol=1e-9, atol=1e-12), t
        for k, curve in enumerate(curves):
            curve.learn(scores[t, k], float(labels[t] == own[k]))
    for k, curve in enumerate(curves):
        assert np.allclose(platt[k, :2], curve.line, rtol=1e-9, atol=1e-9)
        assert np.allclose(platt[k, 2:], curve.matrix[[0, 0, 1], [0, 1, 1]], rtol=1e-11)
    assert out.min() >= 1e-6 / heads
    again = np.zeros_like(out[:1])
    hot.probability_rows(scores[:1], platt, again)
    assert np.allclose(again[0], naive.class_probabilities(scores[0], curves), rtol=1e-9)


def test_no_probability_is_surer_than_a_millionth():
    for slope, offset, score in [(30.0, 0.0, 1.5), (30.0, 0.0, -9.0), (0.0, 1e300, 0.0)]:
        platt = np.array([[slope, offset, 1.0, 0.0, 1.0]])
        out = np.zeros((1, 2))
        hot.probability_rows(np.array([[score]]), platt, out)
        assert sorted(out[0]) == pytest.approx([1e-6, 1 - 1e-6], rel=1e-9)


def test_calibration_learns_the_probability():
    draw = np.random.default_rng(5)
    scores = draw.uniform(-1, 1, size=(6000, 1))
    labels = (draw.random(6000) < 1 / (1 + np.exp(-5 * scores[:, 0] + 1))).astype(float)
    platt = np.array([hot.PLATT_START])
    out = np.zeros((6000, 2))
    hot.calibrate_rows(scores, labels, platt, out)
    assert platt[0, :2] == pytest.approx([5, -1], abs=1.2)
    assert (out >= 1e-6).all()


# --- forged figures -------------------------------------------------------------------------------

FORGED = [NAN, np.inf, -np.inf, 1e308, -1e308, -1.0, 0.0, 0.5, 4.0, 1e-320, 2.0**53, 1e19]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_forged_answers_are_numbers():
    """From any figures: probabilities between 0 and 1; an interval that is one, or no number."""
    draw = np.random.default_rng(1)
    for _ in range(400):
        figures = draw.choice(FORGED, size=hot.ANSWERS)
        quantiles = draw.choice(FORGED, size=(2, len(LEVELS)))
        values, ends = np.zeros(3), np.zeros((3, 2))
        args = figures, LEVELS, quantiles, 0.05, values, ends
        hot.settle_rows(np.zeros(3), np.ones((3, 2)), np.zeros(3), *args)
        assert not (ends[:, 0] > ends[:, 1]).any()
        platt = draw.choice(FORGED, size=(3, hot.PLATT))
        out = np.zeros((3, 3))
        hot.calibrate_rows(draw.choice([*FORGED], size=(3, 3)), np.zeros(3), platt, out)
        assert (out > 0).all()
        assert np.allclose(out.sum(axis=1), 1)
