"""Stacking: the convex combination whose predictions would have been best, from moments alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..losses.objective import Objective
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from . import stacking_steps as hot
from .base import State, Steps, combiner_phase
from .pairwise_solver import PairwiseSolver, pairwise_scratch


@dataclass(frozen=True)
class Stacking(PairwiseSolver):
    """Weights that minimise sum_i d^(n-i) (w'f_i - y_i)^2 + ridge L |w|^2 on the simplex.

    f_i holds the slots' predictions of sample i, each made before the slot learned it, and
    L = min_p sum_i d^(n-i) (f_ip - y_i)^2 is the loss of the best slot. So the ridge has no unit,
    and multiplying targets and predictions by a factor changes no weight. Slots are judged by
    squared error, whatever the loss of the bank.

    On the simplex w'f_i - y_i = w'e_i with the errors e_i = f_i - y_i. All that is kept of the
    stream are their moments sum_i d^(n-i) e_i e_i'; hence the same cost for a memory of any length,
    where `Joint(evidence="prequential")` walks through its horizon.

    The weights are solved for after every sample, from those before it, until the Frank-Wolfe gap,
    an upper bound of cost(w) - least cost, is not above tolerance * scale. The scale is cost(w)
    plus 1e-4 of what the weights before would have cost. The gap in `bank.evidence()` is larger if
    `steps` or the precision of the moments were not enough: where errors cancel, a cost below about
    1e-15 of the slots' own is rounding.

    Parameters
    ----------
    discount : d, above 0 and at most 1: how much less a sample counts with each one after it. The
        memory is about 1 / (1 - d) samples long.
    ridge : 0 to 1e9, as a fraction of the best slot's loss: draws the weights towards equal ones.
    tolerance : above 0: how far above the least cost the weights may be, as a fraction of it.
    steps : at most so many moves of weight between slots a sample.

    Cost a sample: O(P^2), and O(P) a move. Memory: P^2 + 4, and at most 64 P of scratch. An error
    beyond 2^470, about 3e141, counts as 2^470, and a slot with more than 2^60 times the best slot's
    loss gets no weight and is not counted in the gap.

    Reference: Wolpert, Stacked generalization, Neural Networks 1992; Breiman, Stacked regressions,
    Machine Learning 1996, who found that weights should not be negative.

    >>> import kernelbank as kb
    >>> stacking = kb.combiners.Stacking(discount=0.99)
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 8), combiner=stacking)
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> figures = bank.evidence()
    >>> bool(figures["gap"] <= stacking.tolerance * figures["scale"])
    True
    """

    discount: float = 0.998
    ridge: float = 0.1
    tolerance: float = 1e-4
    steps: int = 200

    def __post_init__(self) -> None:
        owner = type(self).__name__
        remedy = "Give 1, or a little less, such as 0.998."
        discount = check.number("discount", self.discount, owner, remedy, above=0, most=1)
        remedy = "Give 0 or a fraction of the best slot's loss, such as 0.1; for equal weights, "
        remedy += "use Uniform."
        ridge = check.number("ridge", self.ridge, owner, remedy, least=0, most=1e9)
        remedy = "Give a small positive fraction, such as 1e-4."
        tolerance = check.number("tolerance", self.tolerance, owner, remedy, above=0)
        remedy = "Give how many moves a sample may take, such as 200."
        steps = check.count("steps", self.steps, owner, remedy, most=2**31)
        for name, value in (
            ("discount", discount),
            ("ridge", ridge),
            ("tolerance", tolerance),
            ("steps", steps),
        ):
            object.__setattr__(self, name, value)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        return {"figures": (4,), "moments": (slots, slots)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> Steps:
        return [combiner_phase(hot.stacking, hot.STACKING, workspace, weights, **self._own(state))]

    def _own(self, state: State) -> dict[str, Any]:
        """What the table holds beside what rules share."""
        slots = len(state["moments"])
        return {
            "discount": self.discount,
            "ridge": self.ridge,
            "tolerance": self.tolerance,
            "steps": self.steps,
            **state,
            "by_slot": np.zeros((hot.BY_SLOT, slots)),
            **pairwise_scratch(slots),
        }
