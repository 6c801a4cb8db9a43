"""What rules have in common that solve for their weights by pairwise steps, up to a certificate."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..utils.validation import Floats
from .base import Combiner, State
from .hessian_columns import KEPT
from .pairwise import FACE


class PairwiseSolver(Combiner):
    """A rule that says how far above the least cost its weights can be.

    Its state has `figures`: the certificate, the cost, the scale by which the certificate is
    judged, and how many steps were made.
    """

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """gap: the certificate; cost: what was minimised; scale; steps: how many moves it took."""
        names = ("gap", "cost", "scale", "steps")
        return {name: np.array(x) for name, x in zip(names, state["figures"], strict=True)}


def pairwise_scratch(slots: int) -> dict[str, Any]:
    """Room for the pairwise steps of so many slots: columns of the matrix, and a face step."""
    return {
        "columns": np.zeros((min(KEPT, slots), slots)),
        "owner": np.zeros(slots + 1, dtype=np.int64),
        "support": np.zeros(slots, dtype=np.int64),
        "face": np.zeros(FACE * (FACE + 1)),
    }
