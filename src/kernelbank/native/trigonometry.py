"""Sine and cosine of one float64, for compiled code: any angle, the same bits on every machine.

An angle is n quarter turns plus a remainder: x 2/pi is computed in integers, with as many digits of
2/pi as the angle needs (Payne and Hanek). The remainder, a sum of two floats, goes into a Taylor
series. Error: 0.61 units of the last place. Four angles of usual sizes at once: `sincos`.

Reference: M. Payne, R. Hanek, Radian reduction for trigonometric functions, SIGNUM Newsletter 18
(1983).
"""

from functools import cache
from math import inf, isnan, nan

import numpy as np

from .jit import inline
from .library import COMPILING, compiled_only

if COMPILING:
    from .llvm.scalar import absolute, as_float64, bit_table, bits_of, fma, high_product, with_sign
else:
    absolute = as_float64 = bits_of = fma = high_product = with_sign = compiled_only

    def bit_table(values):  # read by compiled code only
        return compiled_only


# As sums of two: the nearest float, and the rest, rounded from fractions and from 400 digits of pi.
_MINUS_SIXTH = (-1 / 6, -9.25185853854297e-18)
_QUARTER = (1.5707963267948966, 6.123233995736766e-17)  # pi/2


@cache
def _turn_bits():
    """2/pi in words of 64 bits, the first of which is its integer part, 0; pi as by Machin."""
    one = 1 << 1400

    def arctangent_of_inverse(n):
        term, total, k = one // n, 0, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term, k = term // n**2, k + 2
        return total

    pi = 4 * (4 * arctangent_of_inverse(5) - arctangent_of_inverse(239))
    bits = (2 * one << 64 * 19) // pi
    return [bits >> 64 * (19 - i) & (2**64 - 1) for i in range(20)]


_turn_table = bit_table(_turn_bits)


@inline
def _window(place, shift):
    """64 bits of 2/pi that start `shift` bits into word number `place`."""
    first = _turn_table(place) << np.uint64(shift)
    return first | ((_turn_table(place + 1) >> np.uint64(1)) >> np.uint64(63 - shift))


@inline
def _reduced(size):
    """n modulo 4, and r as the sum of two, with size = n pi/2 + r, |r| <= pi/4, size > 1/2.

    With size = m 2^e, m an integer, m 2^e 2/pi is wanted modulo 4. Bits of 2/pi whose weight with
    2^e is 4 or more are left out; the next 192 give a product of which 2 bits are n and at
    least 128 of the fraction are right. The fraction of a float is at least 2^-62.
    """
    bits = bits_of(size)
    m = np.uint64((bits & ((1 << 52) - 1)) | (1 << 52))
    start = (bits >> 52) - 1075 + 62
    place, shift = start >> 6, start & 63
    a, b, c = _window(place, shift), _window(place + 1, shift), _window(place + 2, shift)
    low = m * b
    middle = low + high_product(m, c)
    carry = np.uint64(1) if middle < low else np.uint64(0)
    top = m * a + high_product(m, b) + carry
    n = np.int64(top >> np.uint64(62))
    high = (top << np.uint64(2)) | (middle >> np.uint64(62))
    low = (middle << np.uint64(2)) | ((m * c) >> np.uint64(62))
    negative = np.int64(high) < 0
    if negative:  # nearer to the next quarter: n + 1, and the fraction less 1
        n += 1
        high, low = ~high, ~low  # the negative, up to 2^-128
    # The fraction is the sum of three, each exact.
    first = float(np.int64(high >> np.uint64(11))) * 2.0**-53
    second = (high & np.uint64(2047)) << np.uint64(42) | low >> np.uint64(22)
    second_part = float(np.int64(second)) * 2.0**-106
    third = float(np.int64(low & np.uint64((1 << 22) - 1))) * 2.0**-128
    fraction = first + second_part
    rest = ((first - fraction) + second_part) + third
    r = fraction * _QUARTER[0]
    r_rest = fma(rest, _QUARTER[0], fma(fraction, _QUARTER[1], fma(fraction, _QUARTER[0], -r)))
    if negative:
        return n, -r, -r_rest
    return n, r, r_rest


@inline
def _near_sine(r, rest):
    """sin(r + rest) for |r| <= pi/4: the series to r^17; the next term is below 2^-62 r."""
    z = r * r
    z2 = z * z
    low = fma(z2, fma(z, -1 / 39916800, 1 / 362880), fma(z, -1 / 5040, 1 / 120))
    high = fma(z, -1 / 1307674368000, 1 / 6227020800)
    high = fma(z2, 1 / 355687428096000, high)
    sums = fma(z2 * z2, high, low)
    # r - r^3 / 6, with what each step loses.
    cube = r * z
    cube_rest = fma(r, z, -cube) + r * fma(r, r, -z)
    sixth = cube * _MINUS_SIXTH[0]
    sixth_rest = fma(cube, _MINUS_SIXTH[0], -sixth)
    sixth_rest = fma(cube_rest, _MINUS_SIXTH[0], fma(cube, _MINUS_SIXTH[1], sixth_rest))
    main = r + sixth
    lost = ((r - main) + sixth) + (sixth_rest + fma(-0.5 * z, rest, rest))
    return main + fma(r * z2, sums, lost)


@inline
def _near_cosine(r, rest):
    """cos(r + rest) for |r| <= pi/4: the series to r^16; the next term is below 2^-58."""
    z = r * r
    z_rest = fma(r, r, -z)
    z2 = z * z
    low = fma(z2, fma(z, -1 / 3628800, 1 / 40320), fma(z, -1 / 720, 1 / 24))
    high = fma(z2, 1 / 20922789888000, fma(z, -1 / 87178291200, 1 / 479001600))
    sums = fma(z2 * z2, high, low)
    half = 0.5 * z
    main = 1.0 - half
    return main + (((1.0 - main) - half) + fma(z2, sums, fma(-0.5, z_rest, -r * rest)))


@inline
def _quarters(size):
    """As `_reduced`, for any size."""
    return (0, size, 0.0) if size <= 0.7853981633974483 else _reduced(size)


@inline
def sine(x):
    """The sine of any angle; NaN if it is infinite."""
    x = as_float64(x)
    size = absolute(x)
    if not size < inf:
        return x if isnan(x) else nan
    n, r, rest = _quarters(size)
    value = _near_cosine(r, rest) if n & 1 else _near_sine(r, rest)
    return with_sign(1.0, x) * (-value if n & 2 else value)


@inline
def cosine(x):
    """The cosine of any angle; NaN if it is infinite."""
    x = as_float64(x)
    size = absolute(x)
    if not size < inf:
        return x if isnan(x) else nan
    n, r, rest = _quarters(size)
    value = _near_sine(r, rest) if n & 1 else _near_cosine(r, rest)
    return -value if (n + 1) & 2 else value
