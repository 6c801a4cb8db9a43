"""Where samples come from: made-up streams by name, and tables in files.

A stream is a pair (X, y): (n, d) inputs and (n,) targets, in the order in which they arrive.
"""

from collections.abc import Callable

from ...utils.validation import Floats
from .synthetic import ar1, friedman, lorenz, sine
from .tables import read_csv, standardised

Maker = Callable[[int, int], tuple[Floats, Floats]]

BUILT_IN: dict[str, Maker] = {"ar1": ar1, "friedman": friedman, "lorenz": lorenz, "sine": sine}
"""The made-up streams by name; each takes a seed and a number of samples."""

__all__ = ["ar1", "friedman", "lorenz", "read_csv", "sine", "standardised"]
