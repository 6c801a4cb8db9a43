"""Loss and transform formulas on NumPy arrays of any shape."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np

from ..utils.validation import Floats
from .arguments import Arguments, floats, lanes
from .formulas import call_loss
from .functions import native
from .simd import WIDTH


@native(
    Arguments(
        "apply_formula",
        formula=int,  # address
        left=lanes(None),
        right=lanes(None),
        parameters=floats(None),
        out=lanes(None),
    )
)
def _apply_formula(a, first, count):
    """out = the formula of left and right, in `count` rows of four."""
    call_loss(a.formula, a.left, a.right, count, a.parameters, a.out)


def apply_formula(address: int, parameters: Floats, left: Any, right: Any) -> Any:
    """The formula at that address, element by element, of numbers or arrays."""
    one, other = np.broadcast_arrays(np.asarray(left, float), np.asarray(right, float))
    rows = -(-one.size // WIDTH)
    padded = np.ones((2, rows, WIDTH))
    padded[0].flat[: one.size] = one.ravel()
    padded[1].flat[: one.size] = other.ravel()
    out = np.empty((rows, WIDTH))
    _apply_formula(
        rows, formula=address, left=padded[0], right=padded[1], parameters=parameters, out=out
    )
    return out.ravel()[: one.size].reshape(one.shape)[()]
