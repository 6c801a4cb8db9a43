"""Data sets: synthetic streams and public benchmarks by name, and tables in files.

A data set is a pair (X, y): (n, d) inputs and (n,) targets, in the order in which they arrive; or
a `Stream`, which also says the task and the number of lags.
"""

from collections.abc import Callable

from ...utils.validation import Floats
from .benchmarks import BENCHMARKS as BENCHMARKS
from .benchmarks import Benchmark, load
from .synthetic import ar1, friedman, lorenz, sine
from .tables import Stream, read_csv, standardised

BUILT_IN: dict[str, Callable[[int, int], tuple[Floats, Floats]]] = {
    "ar1": ar1,
    "friedman": friedman,
    "lorenz": lorenz,
    "sine": sine,
}
"""The synthetic streams by name; each takes a seed and a number of samples."""

__all__ = [
    "Benchmark",
    "Stream",
    "ar1",
    "friedman",
    "load",
    "lorenz",
    "read_csv",
    "sine",
    "standardised",
]
