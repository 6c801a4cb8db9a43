"""Elementary functions of one float64 for compiled code, with the same bits on every machine.

A C library rounds exp or sin as it likes, so a result would depend on where it was computed. These
functions use `+ - * /`, fma, integers and bits only, in the order written: all of them are
rounded in one way by every processor. Special values (NaN, infinities, signed zeros, overflow,
results below the normal range) are those of C.

| function     | method                                                           | error |
|--------------|------------------------------------------------------------------|-------|
| exp          | x = (128 k + i) ln2/128 + r; a table of 2^(i/128), a series of r | 0.51  |
| expm1        | the same, less 1, as a sum of two; below 1/16 a series           | 0.58  |
| log          | x = 2^k z; c near 1/z from a table, a series of r = c z - 1      | 0.50  |
| log1p        | log of 1 + x, kept as a sum of two                               | 0.51  |
| tanh         | -E / (E + 2), E = expm1(-2 x) as a sum of two, for x > 0         | 0.56  |
| asinh        | log of x + sqrt(x^2 + 1), kept as a sum of two, for x > 0        | 0.51  |
| power        | exp of y log x, with the logarithm as a sum of two               | 0.53  |

The error is the largest that was found, in units of the last place; `tests/native/test_scalar_math`
holds it. (Rounding the exact value would give 0.5.) Results too small for a normal float are
denormal and rounded as well. Sine and cosine: `trigonometry`.

Nothing is fitted: the polynomials are Taylor series on intervals so short that the terms left out
do not count, and the tables and the parts of ln 2 and pi are rounded from 60 digits or more.

References: P. T. P. Tang, Table-driven implementation of the exponential function (and: of the
logarithm function) in IEEE floating-point arithmetic, ACM TOMS 15 (1989) and 16 (1990).
T. J. Dekker, A floating-point technique for extending the available precision, Numer. Math. 18
(1971), for sums of two numbers. The tables of S. Nagy, Arm Optimized Routines (2018), are alike.
"""

from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from functools import cache
from math import inf, isnan, nan

import numpy as np

from .arguments import Arguments, floats
from .functions import native
from .jit import inline
from .library import COMPILING, compiled_only
from .simd import four, lane
from .trigonometry import cosine, sine

if COMPILING:
    from .llvm.scalar import (
        absolute,
        as_float64,
        bits_of,
        float_of,
        float_table,
        fma,
        sqrt,
        with_sign,
    )
else:
    absolute = as_float64 = bits_of = float_of = fma = sqrt = with_sign = compiled_only

    def float_table(values):  # read by compiled code only
        return compiled_only

# --- constants and tables, from 60 digits --------------------------------------------------------

# With all settings, so that the decimal context of the process has no say.
_EXACT = Context(60, ROUND_HALF_EVEN, -9999, 9999, 1, 0, [], [])
_STEPS = 128  # of the tables
_ONE_BITS = 0x3FF << 52  # of 1.0
_ROUND = 1.5 * 2.0**52  # adding and subtracting this rounds to an integer


def _parts(value, places):
    """A decimal as two floats: a multiple of 2^-places, and the rest."""
    with localcontext(_EXACT):
        first = int((value * 2**places).to_integral_value()) / 2**places
        return first, float(value - Decimal(first))


@cache
def _ln2():
    with localcontext(_EXACT):
        return Decimal(2).ln()


# k times the first part is exact for each exponent k.
with localcontext(_EXACT):
    _LN2, _LN2_REST = _parts(_ln2(), 42)
    _STEP, _STEP_REST = _parts(_ln2() / _STEPS, 43)
    _STEPS_PER_ONE = float(_STEPS / _ln2())


@cache
def _powers():
    """Pairs: 2^(i/128) rounded to s, and t with s (1 + t) = 2^(i/128)."""
    pairs = []
    with localcontext(_EXACT):
        for i in range(_STEPS):
            exact = (_ln2() * i / _STEPS).exp()
            pairs += [float(exact), float(exact / Decimal(float(exact)) - 1)]
    return pairs


_LOWEST_BITS = 0x3FE6A << 44  # of 0.70703125: logarithms are of z from here to twice this
_INTERVAL_BITS = 45  # an interval has all z that share the bits above these


@cache
def _logarithms():
    """Triples for each interval of z: c near 1/z, and -log c in two parts.

    c is a multiple of 2^-7 for z < 1 and of 2^-8 for z > 1, so that c z - 1 is exact and below
    2^-7; c = 1 next to 1, so that the logarithm there has all its digits.
    """
    triples = []
    one = (_ONE_BITS - _LOWEST_BITS) >> _INTERVAL_BITS
    for i in range(_STEPS):
        middle = _LOWEST_BITS + (2 * i + 1 << _INTERVAL_BITS - 1)
        grid = 2.0**7 if i < one else 2.0**8
        c = round(grid / float(np.int64(middle).view(np.float64))) / grid
        c = 1.0 if i in (one - 1, one) else c
        with localcontext(_EXACT):
            triples += [c, *_parts(-Decimal(c).ln(), 42)]
    return triples


_power_table = float_table(_powers)
_log_table = float_table(_logarithms)


# --- exp ------------------------------------------------------------------------------------------


@inline
def _exp_parts(x, rest):
    """k, s, t with exp(x + rest) = 2^k (s + s t), 1 <= s < 2 and |t| < 0.003, for |x| < 750."""
    steps = (x * _STEPS_PER_ONE + _ROUND) - _ROUND
    r = fma(steps, -_STEP_REST, fma(steps, -_STEP, x)) + rest
    count = int(steps)
    i = 2 * (count & (_STEPS - 1))
    r2 = r * r
    # The series of exp(r) - 1; the next term is below 2^-60.
    high = fma(r, 1 / 120, 1 / 24)
    low = fma(r, 1 / 6, 0.5)
    t = r + fma(r2, fma(r2, high, low), _power_table(i + 1))
    return count >> 7, _power_table(i), t


@inline
def _scaled(k, s, t):
    """2^k (s + s t), rounded once, also above and below the normal range."""
    if -1022 < k < 1023:
        scale = float_of(bits_of(s) + (k << 52))
        return fma(scale, t, scale)
    if k > 0:
        scale = float_of(bits_of(s) + ((k - 1) << 52))
        return 2.0 * fma(scale, t, scale)
    # Times 2^1022. Below 1 a sum with 1 rounds to the places that a denormal has.
    scale = float_of(bits_of(s) + ((k + 1022) << 52))
    y = fma(scale, t, scale)
    if y < 1.0:
        rest = fma(scale, t, scale - y)
        high = 1.0 + y
        y = (high + ((1.0 - high + y) + rest)) - 1.0
    return 2.0**-1022 * y


@inline
def exp(x):
    """e^x."""
    x = as_float64(x)
    if not -746.0 < x < 710.0:
        return x if isnan(x) else (inf if x > 0.0 else 0.0)
    k, s, t = _exp_parts(x, 0.0)
    return _scaled(k, s, t)


# --- expm1 ----------------------------------------------------------------------------------------


@inline
def _expm1_parts(x):
    """e^x - 1 as the sum of two, for -45 < x < 45."""
    if absolute(x) < 0.0625:
        # The series without its first term, to x^10; the next is below 2^-64 x.
        x2 = x * x
        low = fma(x2, fma(x, 1 / 120, 1 / 24), fma(x, 1 / 6, 0.5))
        high = fma(x2, fma(x, 1 / 362880, 1 / 40320), fma(x, 1 / 5040, 1 / 720))
        high = fma(x2 * x2, 1 / 3628800, high)
        p = x2 * fma(x2 * x2, high, low)
        sums = x + p
        return sums, (x - sums) + p
    k, s, t = _exp_parts(x, 0.0)
    scale = float_of(bits_of(s) + (k << 52))
    less = scale - 1.0
    back = less - scale
    rest = fma(scale, t, (scale - (less - back)) - (1.0 + back))
    sums = less + rest
    return sums, (less - sums) + rest


@inline
def expm1(x):
    """e^x - 1, with all digits also for small x."""
    x = as_float64(x)
    if absolute(x) < 2.0**-54 or isnan(x):
        return x
    if x <= -45.0:
        return -1.0
    if x >= 45.0:
        return exp(x)
    return _expm1_parts(x)[0]


# --- log ------------------------------------------------------------------------------------------


@inline
def _log_parts(x):
    """The logarithm of a positive finite number as the sum of two, right to 2^-67 of it."""
    bits = bits_of(x)
    denormal = bits < 1 << 52
    if denormal:
        bits = bits_of(x * 2.0**54)
    distance = bits - _LOWEST_BITS
    exponent = distance >> 52
    i = 3 * ((distance >> _INTERVAL_BITS) & (_STEPS - 1))
    z = float_of(bits - (exponent << 52))
    k = float(exponent - 54 if denormal else exponent)
    r = fma(z, _log_table(i), -1.0)  # exact
    base = fma(k, _LN2, _log_table(i + 1))  # exact
    # base + r - r^2 / 2, with what each sum loses.
    first = base + r
    half = -0.5 * r
    square = half * r
    high = first + square
    lost = fma(half, r, -square) + ((first - high) + square)
    lost += fma(k, _LN2_REST, _log_table(i + 2)) + ((base - first) + r)
    # The series from r^3 to r^10; the next term is below 2^-73 r.
    r2 = r * r
    low = fma(r2, fma(r, -1 / 6, 1 / 5), fma(r, -1 / 4, 1 / 3))
    tail = fma(r2, fma(r, -1 / 10, 1 / 9), fma(r, -1 / 8, 1 / 7))
    lost = fma(r2 * r, fma(r2 * r2, tail, low), lost)
    sums = high + lost
    return sums, (high - sums) + lost


@inline
def _log_of_sum(x, rest):
    """log(x + rest) as one number, for rest within an ulp of x."""
    high, low = _log_parts(x)
    return high + (low + rest / x)


@inline
def log(x):
    """The natural logarithm."""
    x = as_float64(x)
    if not 0.0 < x < inf:
        return -inf if x == 0.0 else (nan if x < 0.0 else x)
    return _log_parts(x)[0]


# --- log1p ----------------------------------------------------------------------------------------


@inline
def log1p(x):
    """log(1 + x), with all digits also for small x."""
    x = as_float64(x)
    if not -1.0 < x < inf:
        return -inf if x == -1.0 else (nan if x < -1.0 else x)
    if absolute(x) < 2.0**-20:
        return fma(x * x, fma(x, 1 / 3, -0.5), x)
    sums = 1.0 + x
    back = sums - x
    return _log_of_sum(sums, (1.0 - back) + (x - (sums - back)))


# --- tanh -----------------------------------------------------------------------------------------


@inline
def tanh(x):
    """The hyperbolic tangent."""
    x = as_float64(x)
    size = absolute(x)
    if size < 2.0**-28 or isnan(x):
        return x
    if size >= 20.0:
        return with_sign(1.0, x)
    high, low = _expm1_parts(-2.0 * size)
    below = 2.0 + high
    below_rest = ((2.0 - below) + high) + low
    q = high / below
    return with_sign(q + (fma(-q, below, high) + fma(-q, below_rest, low)) / below, x)


# --- asinh ----------------------------------------------------------------------------------------


@inline
def asinh(x):
    """The inverse of the hyperbolic sine."""
    x = as_float64(x)
    size = absolute(x)
    if not size < inf:
        return x
    if size < 2.0**-14:
        return with_sign(fma(size * size * size, -1 / 6, size), x)
    if size > 2.0**28:
        # log(2 x); the rest is below x^-2.
        high, low = _log_parts(size)
        sums = _LN2 + high
        return with_sign(sums + (((high - sums) + _LN2) + (low + _LN2_REST)), x)
    # root + root_rest = sqrt(x^2 + 1)
    square = size * size
    inside = square + 1.0
    back = inside - square
    inside_rest = (square - (inside - back)) + (1.0 - back) + fma(size, size, -square)
    root = sqrt(inside)
    root_rest = (fma(-root, root, inside) + inside_rest) / (2.0 * root)
    # root is above x, so that the sum of both loses (root - sums) + size.
    sums = root + size
    return with_sign(_log_of_sum(sums, ((root - sums) + size) + root_rest), x)


# --- power ----------------------------------------------------------------------------------------


@inline
def _is_odd(y):
    """Whether y is an odd integer."""
    size = absolute(y)
    if not size < 2.0**53:
        return False
    count = int(size)
    return float(count) == size and count & 1 == 1


@inline
def _is_integer(y):
    size = absolute(y)
    return size >= 2.0**52 or float(int(size)) == size


@inline
def power(x, y):
    """x^y. Of a negative x it is NaN unless y is an integer, as in C."""
    x, y = as_float64(x), as_float64(y)
    if y == 0.0 or x == 1.0:
        return 1.0
    if isnan(x) or isnan(y):
        return x if isnan(x) else y
    size = absolute(x)
    sign = with_sign(1.0, x) if _is_odd(y) else 1.0
    if size in (0.0, inf) or absolute(y) == inf:
        value = inf if (size > 1.0) == (y > 0.0) else 0.0
        return with_sign(1.0 if size == 1.0 else value, sign)
    if x < 0.0 and not _is_integer(y):
        return nan
    high, low = _log_parts(size)
    product = y * high
    if not -746.0 < product < 710.0:
        return with_sign(inf if product > 0.0 else 0.0, sign)
    k, s, t = _exp_parts(product, fma(y, low, fma(y, high, -product)))
    return with_sign(_scaled(k, s, t), sign)


@inline
def lane_power(x, y):
    """x ** y in each lane."""
    return four(
        power(lane(x, 0), lane(y, 0)),
        power(lane(x, 1), lane(y, 1)),
        power(lane(x, 2), lane(y, 2)),
        power(lane(x, 3), lane(y, 3)),
    )


# --- on arrays ------------------------------------------------------------------------------------

ELEMENTWISE = Arguments("elementwise", x=floats(None), y=floats(None), out=floats(None))


def _elementwise(name, function):
    """out[i] = function(x[i]); of two arguments, function(x[i], y[i])."""

    def one(a, first, count):
        for i in range(len(a.out)):
            a.out[i] = function(a.x[i])

    def two(a, first, count):
        for i in range(len(a.out)):
            a.out[i] = function(a.x[i], a.y[i])

    chosen = two if name == "power" else one
    chosen.__name__ = name
    chosen.__qualname__ = f"elementwise_{name}"  # each has a symbol of its own
    return native(ELEMENTWISE)(chosen)


elementwise = {
    name: _elementwise(name, function)
    for name, function in {
        "exp": exp,
        "expm1": expm1,
        "log": log,
        "log1p": log1p,
        "tanh": tanh,
        "asinh": asinh,
        "sine": sine,
        "cosine": cosine,
        "power": power,
    }.items()
}
"""The functions on arrays of float64, by name; `y` is for power, and None for the others."""
