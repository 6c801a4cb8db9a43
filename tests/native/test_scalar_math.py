"""Elementary functions of compiled code, against values of 60 digits."""

import hashlib
import itertools
import math
from decimal import Context, Decimal, localcontext
from functools import cache

import numpy as np
import pytest

from kernelbank.native import scalar_math

# --- the functions, on arrays --------------------------------------------------------------------


def call_all(name, *arguments):
    """The values for arrays of arguments."""
    x, *more = (np.array(numbers, dtype=float) for numbers in arguments)
    out = np.empty(len(x))
    scalar_math.elementwise[name](x=x, y=more[0] if more else None, out=out)
    return out


def call(name, *arguments):
    return float(call_all(name, *([number] for number in arguments))[0])


ONE = ["exp", "expm1", "log", "log1p", "tanh", "asinh", "sine", "cosine"]
ALL = [*ONE, "power"]


# --- exact values --------------------------------------------------------------------------------


@cache
def pi():
    """400 digits, for the largest floats. By Gauss and Legendre; the source uses Machin's."""
    with localcontext(Context(prec=400)):
        a, b, t, p = Decimal(1), 1 / Decimal(2).sqrt(), Decimal("0.25"), 1
        for _ in range(10):
            middle = (a + b) / 2
            a, b, t, p = middle, (a * b).sqrt(), t - p * (a - middle) ** 2, 2 * p
        return (a + b) ** 2 / (4 * t)


def exact_wave(x, first):
    """The series of the cosine (first = 0) or sine (1) of x without its full turns."""
    with localcontext(Context(prec=400)):
        x -= 2 * pi() * (x / (2 * pi())).to_integral_value()
    x = +x
    total, term, k = Decimal(0), x**first if first else Decimal(1), first
    while abs(term) > Decimal(10) ** -55:
        total += term
        term = -term * x * x / ((k + 1) * (k + 2))
        k += 2
    return total


EXACT = {
    "exp": lambda x: x.exp(),
    "expm1": lambda x: x.exp() - 1,
    "log": lambda x: x.ln(),
    "log1p": lambda x: (1 + x).ln(),
    "tanh": lambda x: 1 - 2 / ((2 * x).exp() + 1),
    "asinh": lambda x: (abs(x) + (x * x + 1).sqrt()).ln().copy_sign(x),
    "sine": lambda x: exact_wave(x, 1),
    "cosine": lambda x: exact_wave(x, 0),
    "power": lambda x, y: (y * x.ln()).exp(),
}


def error(name, *arguments):
    """The largest, in units of the last place of the exact value, for arrays of arguments."""
    largest = 0.0
    with localcontext(Context(prec=60)):
        for got, *numbers in zip(call_all(name, *arguments), *arguments, strict=True):
            exact = EXACT[name](*map(Decimal, map(float, numbers)))
            off = abs(Decimal(float(got)) - exact)
            largest = max(largest, float(off / Decimal(math.ulp(float(exact)))))
    return largest


def sizes(low, high, count=200, seed=0):
    """Numbers of both signs with sizes from 2^low to 2^high, evenly by the logarithm."""
    rng = np.random.default_rng(seed)
    return np.ldexp(
        rng.choice([-1, 1], count) * rng.uniform(1, 2, count), rng.integers(low, high, count)
    )


def between(low, high, count=200, seed=0):
    return np.random.default_rng(seed).uniform(low, high, count)


# --- accuracy ------------------------------------------------------------------------------------

# The largest errors that were observed over millions of arguments, and a little more.
ERRORS = {
    "exp": 0.52,
    "expm1": 0.62,
    "log": 0.51,
    "log1p": 0.51,
    "tanh": 0.59,
    "asinh": 0.52,
    "sine": 0.63,
    "cosine": 0.63,
    "power": 0.53,
}

RANGES = {
    "exp": [between(-1, 1), between(-708, 709.7), between(-745, -708), sizes(-60, 0)],
    "expm1": [between(-0.07, 0.07), between(-3, 3), between(-50, 709.7), sizes(-60, 0)],
    "log": [
        np.abs(sizes(-1074, 1024)),
        between(0.5, 2),
        1 + sizes(-52, -5),
        np.abs(sizes(-1074, -1022)),
    ],
    "log1p": [between(-1, 1), sizes(-60, -1), np.abs(sizes(0, 1024)), -1 + np.abs(sizes(-52, -1))],
    "tanh": [between(-0.1, 0.1), between(-3, 3), between(-21, 21), sizes(-30, 0)],
    "asinh": [between(-1, 1), between(-30, 30), sizes(-30, 0), sizes(0, 1024)],
    "sine": [between(-0.8, 0.8), between(-20, 20), sizes(-30, 0), sizes(0, 60), sizes(30, 1024)],
    "cosine": [between(-0.8, 0.8), between(-20, 20), sizes(-30, 0), sizes(0, 60), sizes(30, 1024)],
}


@pytest.mark.parametrize(
    ("name", "arguments"), [(name, part) for name in ONE for part in RANGES[name]]
)
def test_function_over_a_range_has_at_most_its_error(name, arguments):
    assert error(name, arguments) <= ERRORS[name]


def exponents(x, low=-1022.0, high=1023.9):
    """Exponents for which the powers of x are anywhere between 2^low and 2^high."""
    return between(low, high, len(x), seed=1) / np.log2(x)


BASES = {
    "any": np.abs(sizes(-1022, 1024)),
    "denormal": np.abs(sizes(-1074, -1022)),
    "near one": between(0.5, 2),
    "next to one": 1 + sizes(-40, -5),
}


@pytest.mark.parametrize("base", BASES)
def test_power_with_a_result_of_any_size_has_at_most_its_error(base):
    x = BASES[base]
    assert error("power", x, exponents(x)) <= ERRORS["power"]


def test_power_with_denormal_results_has_at_most_its_error():
    x = between(1.5, 100)
    y = exponents(x, -1075.0, -1022.0)
    assert error("power", x, y) <= ERRORS["power"]


@pytest.mark.parametrize("y", [1, 2, 3, 5])
def test_power_of_integers_is_exact(y):
    for x in (*range(2, 50), 999, 1023):
        assert call("power", x, y) == x**y
        assert call("power", -x, y) == (-x) ** y
        assert call("power", 2.0**-x, y) == 2.0 ** (-x * y)


@pytest.mark.parametrize("name", ["sine", "cosine"])
def test_wave_next_to_a_quarter_turn_has_at_most_its_error(name):
    turns = [*range(1, 60), *np.random.default_rng(2).integers(1, 2**40, 100)]
    angles = [turn * (math.pi / 2) for turn in turns]
    # The float that is nearest to a multiple of pi/2, by 2^-61, and the largest one.
    angles += [6381956970095103 * 2.0**797, np.finfo(float).max, 2.0**30, 2.0**1023]
    assert error(name, angles) <= ERRORS[name]
    assert error(name, [-angle for angle in angles]) <= ERRORS[name]


# --- special values ------------------------------------------------------------------------------

INF, NAN, MAX, MIN = math.inf, math.nan, np.finfo(float).max, 5e-324
LARGEST, SMALLEST = 709.782712893384, -745.1332191019411  # whose exponentials are not inf and 0

SPECIAL = {
    "exp": {
        0.0: 1.0, INF: INF, -INF: 0.0, MIN: 1.0, -MIN: 1.0, 709.7827128933841: INF, 1e300: INF,
        SMALLEST: MIN, -745.1332191019412: 0.0, -1e300: 0.0,
    },
    "expm1": {
        0.0: 0.0, INF: INF, -INF: -1.0, MIN: MIN, -MIN: -MIN, 709.7827128933841: INF, -1e300: -1.0,
        1e-300: 1e-300, -40.0: -1.0,
    },
    "log": {0.0: -INF, 1.0: 0.0, -1.0: NAN, INF: INF, -INF: NAN, -MIN: NAN},
    "log1p": {0.0: 0.0, -1.0: -INF, -2.0: NAN, INF: INF, -INF: NAN, MIN: MIN, -MIN: -MIN},
    "tanh": {0.0: 0.0, INF: 1.0, -INF: -1.0, 25.0: 1.0, -MAX: -1.0, MIN: MIN, -MIN: -MIN},
    "asinh": {0.0: 0.0, INF: INF, -INF: -INF, MIN: MIN, -MIN: -MIN, 1e-300: 1e-300},
    "sine": {0.0: 0.0, INF: NAN, -INF: NAN, MIN: MIN, -MIN: -MIN},
    "cosine": {0.0: 1.0, INF: NAN, -INF: NAN, MIN: 1.0, -MIN: 1.0},
}  # fmt: skip


def same(got, wanted):
    if math.isnan(wanted):
        return math.isnan(got)
    return got == wanted and math.copysign(1, got) == math.copysign(1, wanted)


@pytest.mark.parametrize("name", ONE)
def test_function_of_a_special_value_is_that_of_c(name):
    for x, wanted in SPECIAL[name].items():
        assert same(call(name, x), wanted), (x, call(name, x), wanted)
    assert math.isnan(call(name, NAN))


@pytest.mark.parametrize("name", ["expm1", "log1p", "tanh", "asinh", "sine", "log"])
def test_function_of_minus_zero_keeps_the_sign(name):
    assert same(call(name, -0.0), -INF if name == "log" else -0.0)


def test_exp_of_the_largest_argument_is_finite():
    assert error("exp", [LARGEST]) <= ERRORS["exp"]
    assert error("expm1", [LARGEST]) <= ERRORS["exp"]


def c_power(x, y):
    """As C has it (Annex F.10.4.4); Python's raises where C returns inf or NaN."""
    try:
        return math.pow(x, y)
    except OverflowError:
        return -INF if x < 0 and y % 2 == 1 else INF
    except ValueError:
        if x != 0:
            return NAN
        return math.copysign(INF, x) if y % 2 == 1 else INF


SPECIAL_BASES = [0.0, 1.0, 0.5, 2.0, 3.0, MIN, 1e-310, MAX, INF, NAN, math.nextafter(1, 0)]
SPECIAL_EXPONENTS = [
    0.0,
    1.0,
    2.0,
    3.0,
    0.5,
    2.5,
    5e300,
    2.0**53 - 1,
    2.0**53,
    MIN,
    INF,
    NAN,
    1074.0,
]


def test_power_of_special_values_is_that_of_c():
    signs = (1.0, -1.0)
    for x, y, s, t in itertools.product(SPECIAL_BASES, SPECIAL_EXPONENTS, signs, signs):
        got, wanted = call("power", s * x, t * y), c_power(s * x, t * y)
        close = abs(got - wanted) <= math.ulp(wanted) if math.isfinite(got - wanted) else False
        signs_agree = math.copysign(1, got) == math.copysign(1, wanted)
        assert same(got, wanted) or (close and signs_agree), (s * x, t * y, got, wanted)


# --- order ---------------------------------------------------------------------------------------


def edges():
    """Where a function changes its method or its row of a table."""
    ln2 = math.log(2)
    steps = [(i + 0.5) * ln2 / 128 for i in range(-200, 200, 7)]
    intervals = [1 + i / 128 for i in range(-40, 60, 3)]
    changes = [0.0625, 2.0**-54, 45.0, 709.0, -45.0, -0.0625, -708.4, -740.0]
    return {
        "exp": [*steps, *changes],
        "expm1": [*steps, *changes],
        "log": [*intervals, 0.70703125, 2.0**-1022, 2.0**700],
        "log1p": [x - 1 for x in intervals if x != 1] + [2.0**-20, -(2.0**-20), 2.0**60],
        "tanh": [x / 2 for x in steps] + [2.0**-28, 0.03125, -0.03125, 19.0, 20.0],
        "asinh": [2.0**-14, 2.0**28, -(2.0**28), 1.0, *[math.sinh(math.log(x)) for x in intervals]],
    }


@pytest.mark.parametrize("name", edges())
def test_function_grows_across_each_change_of_its_method(name):
    for edge in edges()[name]:
        x = edge
        for _ in range(8):
            x = math.nextafter(x, -INF)
        neighbours = [x]
        for _ in range(15):
            neighbours.append(math.nextafter(neighbours[-1], INF))
        assert (np.diff(call_all(name, neighbours)) >= 0).all(), edge


@pytest.mark.parametrize("name", ["tanh", "asinh", "sine", "cosine"])
def test_function_of_the_negative_argument_mirrors_it(name):
    sign = 1.0 if name == "cosine" else -1.0
    x = sizes(-60, 1000)
    assert (call_all(name, -x) == sign * call_all(name, x)).all()


# --- the same bits -------------------------------------------------------------------------------


def fixed_arguments(low, high, count=500):
    """Floats from integers alone, by Knuth's generator: the same on every machine."""
    state = 1
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield low + (high - low) * ((state >> 11) / 2**53)


def digest(name):
    """The start of the hash of the results for fixed arguments of several sizes."""
    rows = []
    for high in (1.0, 1.1, 40.0, 745.0, 1e18, 1e300):
        for x in fixed_arguments(0.9 if high == 1.1 else 0.0, high):
            arguments = [(x,), (-x,)]
            if name in ("log", "log1p"):
                arguments = [(x,)]
            elif name == "power":
                y = 700.0 / (1 + abs(math.frexp(x)[1]))
                arguments = [(x, y), (x, -y), (x, 3.7)]
            rows += arguments
    values = call_all(name, *zip(*rows, strict=True))
    return hashlib.sha256(values.astype("<f8").tobytes()).hexdigest()[:16]


BITS = {
    "exp": "ace1e4200f0e1800",
    "expm1": "27ed25c95f332ff6",
    "log": "96e51966ad4e8f8f",
    "log1p": "d1e2a79552abb4bf",
    "tanh": "d5028459ce2a779e",
    "asinh": "91028f684cb2a5a9",
    "sine": "39cf60c21acd31af",
    "cosine": "76ea62bbbf8601d2",
    "power": "b0dc5e89628cb7ff",
}


@pytest.mark.parametrize("name", ALL)
def test_results_have_the_bits_of_every_other_machine(name):
    assert digest(name) == BITS[name]
