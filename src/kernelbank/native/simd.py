"""Vectors of four float64: the SIMD type of the compiled loops.

A leaf holds four slots, and every array of a leaf ends in an axis of four. An element of a `lanes`
array (see `arguments`) is a vector of four as a value: `+ - * /` and the functions below act on
each lane alone. So a loop over the terms of a slot reads like the formula for one slot, computes
four slots at once, and never mixes lanes or reorders a sum: the same bits on every machine,
whatever the compiler vectorises. (A machine without registers of four gives the same bits, slower.)

| function                         | in each lane                                                 |
|----------------------------------|--------------------------------------------------------------|
| `broadcast(x)`                   | the number x (arithmetic converts numbers by itself)          |
| `fma(x, y, z)`                   | x * y + z, rounded once                                      |
| `sqrt(x)`, `absolute(x)`         |                                                              |
| `where_less(x, y, yes, no)`      | `yes` where x < y, else `no`, also where one is NaN           |
| `exp2_of_product(x, y)`          | 2 ** (x * y) where x * y <= 0; 1.3 ulp; 0 below 2**-1021.5    |
| `log1p_of_fraction(u)`           | log(1 + u) for 0 <= u <= 1                                    |
| `lane(v, i)`, `four(a, b, c, d)` | one of the four numbers; a vector of four numbers             |
"""

from .library import COMPILING, compiled_only

WIDTH = 4

if COMPILING:
    from .llvm.simd import (
        absolute,
        broadcast,
        exp2_of_product,
        fma,
        four,
        lane,
        log1p_of_fraction,
        sqrt,
        where_less,
    )
else:
    absolute = broadcast = exp2_of_product = fma = four = lane = compiled_only
    log1p_of_fraction = sqrt = where_less = compiled_only

__all__ = [
    "WIDTH",
    "absolute",
    "broadcast",
    "exp2_of_product",
    "fma",
    "four",
    "lane",
    "log1p_of_fraction",
    "sqrt",
    "where_less",
]
