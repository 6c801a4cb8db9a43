"""Cosine and sine of four angles at once, from one reduction.

An angle is n quarter turns plus a remainder r in [-pi/4, pi/4]. Adding a large number gives n;
subtracting n pi/2 in three parts (Cody and Waite) gives r. The first part is the float nearest to
pi/2; angle - n * part is then a multiple of 2^-53 below 1, so it is exact inside an fma, and r is
right to half an ulp even next to a zero. Two polynomials give sin r and cos r; n decides which of
them is the cosine, and the signs.
"""

import math

from .jit import inline
from .library import COMPILING, compiled_only
from .simd import fma, four, lane
from .trigonometry import cosine as far_cosine
from .trigonometry import sine as far_sine

if COMPILING:
    from .llvm.simd import any_reaches, rotate
else:
    any_reaches = rotate = compiled_only

FAR = 2.0**30
"""Larger angles are computed one by one with more digits of pi."""

_QUARTERS = 2.0 / math.pi
_ROUND = 1.5 * 2.0**52  # adding this rounds to an integer, in the low bits
_FIRST = 1.5707963267948966
_SECOND = 6.123233995736766e-17
_THIRD = -1.4973849048591698e-33

# Interpolated at Chebyshev nodes of z = r^2 on [0, (pi/4)^2]:
# sin r = r + r z S(z), error 1.8e-17 r;  cos r = 1 - z / 2 + z^2 C(z), error 9.1e-19.
_S0, _S1, _S2, _S3, _S4, _S5 = (
    -0.16666666666666666,
    0.008333333333330948,
    -0.00019841269836756774,
    2.7557316101617874e-06,
    -2.505113165023518e-08,
    1.5918115263265974e-10,
)
_C0, _C1, _C2, _C3, _C4, _C5 = (
    0.041666666666666664,
    -0.0013888888888887398,
    2.480158729876456e-05,
    -2.7557317271145144e-07,
    2.087614614655861e-09,
    -1.1382623647474604e-11,
)


@inline
def _cosine(angle, fast):
    return fast if abs(angle) < FAR else far_cosine(angle)


@inline
def _sine(angle, fast):
    return fast if abs(angle) < FAR else far_sine(angle)


@inline
def cosine_and_sine(angle):
    """Cosine and sine of four angles: within 2 ulp up to `FAR`, else one by one."""
    shifted = fma(angle, _QUARTERS, _ROUND)
    turns = shifted - _ROUND
    r = fma(turns, -_FIRST, angle)
    r = fma(turns, -_SECOND, r)
    r = fma(turns, -_THIRD, r)
    # Estrin's order, as in the exponential: short chains.
    z = r * r
    z2 = z * z
    z4 = z2 * z2
    sums = fma(z4, fma(z, _S5, _S4), fma(z2, fma(z, _S3, _S2), fma(z, _S1, _S0)))
    own_sine = fma(r * z, sums, r)
    sums = fma(z4, fma(z, _C5, _C4), fma(z2, fma(z, _C3, _C2), fma(z, _C1, _C0)))
    own_cosine = fma(z2, sums, fma(z, -0.5, 1.0))
    cosine = rotate(shifted, own_cosine, own_sine)
    sine = rotate(shifted, own_sine, -own_cosine)
    if any_reaches(angle, FAR):
        a, b, c, d = lane(angle, 0), lane(angle, 1), lane(angle, 2), lane(angle, 3)
        cosine = four(
            _cosine(a, lane(cosine, 0)),
            _cosine(b, lane(cosine, 1)),
            _cosine(c, lane(cosine, 2)),
            _cosine(d, lane(cosine, 3)),
        )
        sine = four(
            _sine(a, lane(sine, 0)),
            _sine(b, lane(sine, 1)),
            _sine(c, lane(sine, 2)),
            _sine(d, lane(sine, 3)),
        )
    return cosine, sine
