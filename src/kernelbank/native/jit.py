"""`inline`: functions that become part of the compiled functions that call them."""

from typing import Any

from .library import COMPILING


def inline(function: Any) -> Any:
    """Mark a function for calls from compiled functions only.

    The NumPy error model lets 0/0 be NaN instead of raising. No fast-math: every sum is taken in
    the order in which it is written, so that blocks equal the loop over samples bit for bit.
    """
    if not COMPILING:
        return function
    import numba

    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(nogil=True, error_model="numpy", **options)(function)
