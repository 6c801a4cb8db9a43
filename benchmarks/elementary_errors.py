"""The errors of the elementary functions of compiled code, in units of the last place.

    python benchmarks/elementary_errors.py [--samples N]

Each function is compared with NumPy's on 80-bit floats (so on x86 only) over random arguments of
all sizes. Prints the largest error and where it is, for every range.
"""

import argparse

import numpy as np

from kernelbank.native.scalar_math import elementwise


def evaluate(name, x, y=None):
    out = np.empty_like(x)
    elementwise[name](len(x), x=x, y=y, out=out)
    return out


def errors(found, exact):
    """|found - exact| in units of the last place of the exact value."""
    _, exponent = np.frexp(np.abs(exact))
    unit = np.ldexp(np.longdouble(1), np.maximum(exponent - 53, -1074))
    return np.abs(found.astype(np.longdouble) - exact) / unit


def ranges(draw, count):
    """For every function: NumPy's, and arguments by the name of their range."""

    def sizes(low, high, signed=True):
        x = np.exp2(draw.uniform(low, high, count))
        return x * draw.choice([-1.0, 1.0], count) if signed else x

    def positive():
        return draw.integers(1, 0x7FEFFFFFFFFFFFFF, count).view(np.float64)

    def between(low, high):
        return draw.uniform(low, high, count)

    waves = {
        "any": lambda: positive() * draw.choice([-1.0, 1.0], count),
        "up to 1": lambda: between(-1, 1),
        "up to 21": lambda: between(-21, 21),
        "by size": lambda: sizes(-30, 60),
        "quarter turns": lambda: np.arange(1.0, count) * (np.pi / 2),
        "far": lambda: sizes(30, 1023.9),
    }
    return {
        "exp": (np.exp, {"all": lambda: between(-746, 709.7), "small": lambda: sizes(-60, -2)}),
        "expm1": (np.expm1, {"up to 1": lambda: between(-1, 1), "by size": lambda: sizes(-60, 9)}),
        "log": (np.log, {"any": positive, "near 1": lambda: 1 + sizes(-52, -4)}),
        "log1p": (np.log1p, {"up to 1": lambda: between(-1, 1), "small": lambda: sizes(-60, -1)}),
        "tanh": (np.tanh, {"up to 21": lambda: between(-21, 21), "by size": lambda: sizes(-30, 5)}),
        "asinh": (
            np.arcsinh,
            {"up to 21": lambda: between(-21, 21), "far": lambda: sizes(-30, 60)},
        ),
        "sine": (np.sin, waves),
        "cosine": (np.cos, waves),
    }


def powers(draw, count):
    """Bases and exponents whose powers have any size."""
    near = 1 + np.exp2(draw.uniform(-40, -5, count))
    anything = draw.integers(1, 0x7FEFFFFFFFFFFFFF, count).view(np.float64)
    yield "near 1", near, draw.uniform(-1075, 1024, count) / np.log2(near)
    yield "any", anything, draw.uniform(-1075, 1024, count) / np.log2(anything)
    yield "usual", draw.uniform(0, 100, count), draw.uniform(-20, 20, count)


def show(name, title, found, exact):
    usual = np.isfinite(exact) & (np.abs(exact) < 1.797e308)
    worst = float(errors(found[usual], exact[usual]).max())
    print(f"{name:8} {title:14} largest error {worst:.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=2_000_000)
    count = parser.parse_args().samples
    draw = np.random.default_rng(11)
    with np.errstate(all="ignore"):
        for name, (reference, cases) in ranges(draw, count).items():
            for title, arguments in cases.items():
                x = arguments()
                show(name, title, evaluate(name, x), reference(x.astype(np.longdouble)))
        for title, x, y in powers(draw, count):
            exact = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
            show("power", title, evaluate("power", x, y), exact)


if __name__ == "__main__":
    main()
