"""Cosine and sine in lanes, against exact values."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from kernelbank.kernels.feature_rows import feature_rows
from kernelbank.native.sincos import FAR

EPS = np.finfo(float).eps

# Half an ulp from the remainder of the reduction (one if the sine is in a lower binade), half from
# the last rounding, half from the sum before it in the cosine, and a little from the polynomials.
# The largest error that was observed is 1.6.
ULPS = 2.0


def cosines_and_sines(angles):
    """Cosines and sines by the compiled loop: one frequency of 1, the angles as phases."""
    phases = np.zeros((-(-len(angles) // 4), 2, 4))
    phases[:, 0].flat[: len(angles)] = angles
    size = phases.size
    out = np.empty((1, size))
    feature_rows(
        1,
        dimension=1,
        total=size,
        trigonometric=size,
        points=np.zeros((1, 1)),
        frequencies=np.zeros((1, size)),
        phases=phases.reshape(-1),
        amplitudes=np.ones(size),
        out=out,
    )
    pairs = out.reshape(-1, 2, 4)
    return pairs[:, 0].reshape(-1)[: len(angles)], pairs[:, 1].reshape(-1)[: len(angles)]


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


def exact_cosine_and_sine(angle):
    """By their series, with 70 digits."""
    with localcontext() as context:
        context.prec = 70
        x = Decimal(float(angle))
        x -= 2 * PI * (x / (2 * PI)).to_integral_value()
        term, k, sums = Decimal(1), 0, [Decimal(0), Decimal(0)]
        while abs(term) > Decimal(10) ** -50:
            sums[k % 2] += term if k % 4 < 2 else -term
            k += 1
            term = term * x / k
        return sums


def worst_error(angles):
    """In units of the last place of the exact values."""
    worst = 0.0
    for got in zip(angles, *cosines_and_sines(angles), strict=True):
        for value, exact in zip(got[1:], exact_cosine_and_sine(got[0]), strict=True):
            error = abs(float(Decimal(float(value)) - exact))
            worst = max(worst, error / math.ulp(float(exact)))
    return worst


@pytest.mark.parametrize("size", [1e-3, 1.0, 10.0, 1e3, 1e5, 1e9])
def test_cosine_and_sine_of_any_size_are_right_to_two_ulp(size):
    assert worst_error(np.random.default_rng(1).uniform(-size, size, 1000)) <= ULPS


def test_cosine_and_sine_next_to_multiples_of_a_quarter_turn_are_right_to_two_ulp():
    # There one of them is tiny, and a reduction with too few digits of pi would show.
    turns = np.concatenate(
        [np.arange(-300, 300), np.random.default_rng(2).integers(-(2**29), 2**29, 600)]
    )
    angles = turns * (np.pi / 2)
    for neighbour in (angles, np.nextafter(angles, 0), angles + np.pi / 4):
        assert worst_error(neighbour[neighbour != 0]) <= ULPS
    cosine, sine = cosines_and_sines(np.array([0.0, -0.0]))
    assert cosine.tolist() == [1.0, 1.0]
    assert sine.tolist() == [0.0, 0.0]


def test_cosine_and_sine_with_one_far_angle_keep_the_other_lanes():
    near = np.random.default_rng(3).uniform(-9, 9, 4)
    for place in range(4):
        mixed = near.copy()
        for far in (FAR, -3e10, 1e300):
            mixed[place] = far
            cosine, sine = cosines_and_sines(mixed)
            others = np.arange(4) != place
            assert (cosine[others] == cosines_and_sines(near)[0][others]).all()
            assert (sine[others] == cosines_and_sines(near)[1][others]).all()
            assert abs(cosine[place] - math.cos(far)) <= EPS
            assert abs(sine[place] - math.sin(far)) <= EPS
    for endless in (np.nan, np.inf):
        cosine, sine = cosines_and_sines(np.array([endless, 1.0]))
        assert np.isnan([cosine[0], sine[0]]).all()
        assert np.isfinite([cosine[1], sine[1]]).all()
