"""The joint rule: the convex combination of least cost, where the paper's takes a bound of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..losses import Squared
from ..losses.objective import Objective
from ..native.simd import WIDTH
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from . import joint_steps as hot
from .base import State, Steps, combiner_phase
from .pairwise_solver import PairwiseSolver, pairwise_scratch


@dataclass(frozen=True)
class Joint(PairwiseSolver):
    """Weights that minimise sum_i d^(n-i) l(w'f_i, y_i) + sum_p (a_p + ridge) w_p^2 on the simplex.

    f_i holds the values of all slots at sample i and a_p = regularization / 2 * norm^2 of slot p.
    `Simplex` minimises a bound of this, in which errors of different slots cannot cancel. The
    evidence, which slots' values and which samples, is one of

    - "window": their values on the window, after learning; the cost that the ledger charges;
    - "prequential": their predictions of the last `horizon` samples, each before it was learned.

    The weights are solved for after every sample, from those before it, until a certificate holds:
    an upper bound of cost(w) - least cost, not above tolerance * scale. The scale is cost(w) plus
    1e-4 of what the weights before would have cost (where the least cost is 0, no bound is a
    fraction of it). The bound is the Frank-Wolfe gap max_p gradient'(w - e_p); for losses with
    kinks (no `curvature`), with slopes averaged around each prediction, plus what the averaging may
    cost. It is true for every convex loss, also if `steps` or the precision of floats were not
    enough to bring it down: the gap in `bank.evidence()` is then larger.

    Parameters
    ----------
    evidence : "window" or "prequential".
    horizon : how many samples prequential evidence looks back.
    discount : d, above 0 and at most 1: how much less a sample counts with each one after it; 1 for
        "window".
    ridge : at least 0, in units of loss: draws the weights towards equal ones.
    tolerance : above 0: how far above the least cost the weights may be, as a fraction of it.
    steps : at most so many moves of weight between two slots a sample.

    Cost a sample: squared loss, O(rows * P) for each slot that moves and O(P) a step; other losses
    repeat this up to 40 times, few when the weights hardly change. Memory: horizon * (P + 1) for
    "prequential", and 64 P of scratch.

    Reference: the problem is Ruiz-Moreno and Beferull-Lozano's before they separate it; pairwise
    steps: Lacoste-Julien and Jaggi, On the global linear convergence of Frank-Wolfe optimization
    variants, NeurIPS 2015; Fan, Chen and Lin (2005) for the choice of the pair.

    >>> import kernelbank as kb
    >>> joint = kb.combiners.Joint(evidence="prequential", horizon=50, discount=0.99, ridge=0.1)
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 8), combiner=joint)
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> figures = bank.evidence()
    >>> bool(figures["gap"] <= joint.tolerance * figures["scale"])
    True
    """

    evidence: str = "window"
    horizon: int = 100
    discount: float = 1.0
    ridge: float = 0.0
    tolerance: float = 1e-4
    steps: int = 500

    def __post_init__(self) -> None:
        check.choice("evidence", self.evidence, "Joint", ("window", "prequential"))
        remedy = "Give how many samples to look back."
        horizon = check.count("horizon", self.horizon, "Joint", remedy, most=2**31)
        remedy = "Give 1, or a little less, such as 0.995."
        discount = check.number("discount", self.discount, "Joint", remedy, above=0, most=1)
        if self.evidence == "window" and discount != 1:
            remedy = 'Use evidence="prequential", or leave discount alone.'
            raise check.refuse("discount", "be 1 for the window", discount, remedy, "Joint")
        remedy = "Give 0 or a positive number, in units of loss."
        ridge = check.number("ridge", self.ridge, "Joint", remedy, least=0)
        remedy = "Give a small positive fraction, such as 1e-4."
        tolerance = check.number("tolerance", self.tolerance, "Joint", remedy, above=0)
        remedy = "Give how many moves a sample may take, such as 500."
        steps = check.count("steps", self.steps, "Joint", remedy, most=2**31)
        for name, value in (
            ("horizon", horizon),
            ("discount", discount),
            ("ridge", ridge),
            ("tolerance", tolerance),
            ("steps", steps),
        ):
            object.__setattr__(self, name, value)

    @property
    def needs_values(self) -> bool:  # type: ignore[override]
        """Whether the rule needs every slot's values on the window."""
        return self.evidence == "window"

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        if self.evidence == "window":
            return {"figures": (4,)}
        return {"figures": (4,), "values": (self.horizon, slots), "targets": (self.horizon,)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> Steps:
        slots = len(weights)
        ahead = self.evidence == "prequential"
        longest = self.horizon if ahead else objective.window
        rows = -(-longest // WIDTH) * WIDTH
        bound = objective.loss.curvature
        joint = combiner_phase(
            hot.joint,
            hot.JOINT,
            workspace,
            weights,
            window=objective.window,
            horizon=self.horizon if ahead else 0,
            kind=_kind(objective),
            steepest=np.inf if bound is None else float(bound),
            ridge=self.ridge,
            tolerance=self.tolerance,
            steps=self.steps,
            value=objective.loss.value_address,
            derivative=objective.loss.derivative_address,
            parameters=objective.loss.parameters,
            values=state["values"] if ahead else workspace.values,
            powers=self.discount ** np.arange(float(longest)),
            rows=rows,
            targets=state["targets"] if ahead else np.zeros(1),
            figures=state["figures"],
            by_row=np.ones((hot.BY_ROW, rows)),
            by_slot=np.zeros((hot.BY_SLOT, slots)),
            **pairwise_scratch(slots),
        )
        return [joint]


def _kind(objective: Objective) -> int:
    if type(objective.loss) is Squared:
        return hot.QUADRATIC
    return hot.KINKED if objective.loss.curvature is None else hot.SMOOTH
