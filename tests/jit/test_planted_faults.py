"""Faults planted in compiled combiners: the checks of their definitions find them."""

import numpy as np
import pytest

from kernelbank.combiners import stacking
from kernelbank.native.functions import native
from kernelbank.native.jit import inline
from support.compiled_variants import variant
from support.stacking_checks import (
    check_definition,
    check_extreme_prediction,
    check_scale,
    check_sizes,
)

pytestmark = pytest.mark.filterwarnings("ignore::kernelbank.errors.KernelBankWarning")


@inline
def _without_discount(a):
    for p in range(a.slots):
        for q in range(a.slots):
            a.moments[p, q] += a.errors[p] * a.errors[q]


_solve = stacking.solve_weights


@inline
def _ridge_with_a_unit(a, penalty, w):
    _solve(a, 0.1, w)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("instead", "finds"),
    [
        ({"_add_errors": _without_discount}, lambda: check_definition(0.95, 0.1)),
        ({"solve_weights": _ridge_with_a_unit}, lambda: check_scale(2.0**3)),
        ({"LARGEST_ERROR": np.inf}, lambda: check_sizes(1e160)),
        ({"WORST_RATIO": np.inf}, check_extreme_prediction),
    ],
    ids=["no discount", "ridge with a unit", "errors without bound", "no limit of the loss ratio"],
)
def test_stacking_with_a_fault_fails_its_check(instead, finds, monkeypatch):
    finds()
    name = "stacking_" + "_".join(instead).lower()
    update = inline(variant(stacking.update_weights.py_func, f"{name}_update", **instead))
    other = variant(stacking._stacking.function, name, update_weights=update)
    monkeypatch.setattr(stacking, "_stacking", native(stacking.STACKING)(other))
    with pytest.raises(AssertionError):
        finds()
