"""Run compiled code that checks every index, and print what it found, as JSON.

    KERNELBANK_NATIVE=jit KERNELBANK_DEBUG=1 NUMBA_CACHE_DIR=... python -m support.debug_build all

The code has an address of this process in it: the folder of the cache must be a new one.
"""

import json
import sys
import warnings

import numpy as np
from kernelbank.native.arguments import DEBUG, OUT_OF_BOUNDS, Arguments, floats, lanes
from kernelbank.native.functions import native
from kernelbank.native.views import columns_from, load_four

ARRAYS = Arguments(
    "arrays", i=int, j=int, matrix=floats(None, None), values=lanes(None), out=floats(1)
)


@native(ARRAYS)
def element(a, first, count):
    a.out[0] = a.matrix[a.i, a.j]


@native(ARRAYS)
def row(a, first, count):
    a.out[0] = a.matrix[a.i][a.j]


@native(ARRAYS)
def part(a, first, count):
    a.out[0] = len(a.matrix[a.i :]) + a.j


@native(ARRAYS)
def four(a, first, count):
    load_four(a.matrix[a.i], a.j)


@native(ARRAYS)
def column(a, first, count):
    columns_from(a.matrix, a.j)


@native(ARRAYS)
def written(a, first, count):
    a.values[a.i] = 1.0


def wrong_indices():
    """By function and indices, how many were outside a matrix (3, 5) and lanes (3,)."""
    found = {}
    for function in (element, row, part, four, column, written):
        for i, j in [(0, 0), (2, 1), (2, 4), (3, 0), (0, 5), (-1, 0), (3, 5)]:
            OUT_OF_BOUNDS[0] = 0
            function(i=i, j=j, matrix=np.zeros((3, 5)), values=np.zeros((3, 4)), out=np.zeros(1))
            found[f"{function.__name__} {i} {j}"] = int(OUT_OF_BOUNDS[0])
    return found


def every_bank():
    """By case, how many indices were outside their arrays: in blocks, and in single samples."""
    from support.every_bank import all_cases

    warnings.simplefilter("ignore")
    found = {}
    for name, case in all_cases().items():
        OUT_OF_BOUNDS[0] = 0
        bank = case.make("serial")
        bank.run(case.X[:100], case.y[:100], record="all")
        for n in range(100, 200):
            bank.predict_one(case.X[n])
            bank.learn_one(case.X[n], case.y[n].item())
        bank.run(case.X[200:], case.y[200:])
        bank.predict(case.X[:20])
        found[name] = int(OUT_OF_BOUNDS[0])
    return found


if __name__ == "__main__":
    if not DEBUG:
        raise SystemExit("set KERNELBANK_DEBUG=1: otherwise wrong indices destroy memory")
    print(json.dumps(every_bank() if sys.argv[1:] == ["all"] else wrong_indices()))
