"""Joint: the convex combination of least cost, where the paper minimises a bound of the cost.

    minimise  E(w) = sum_i d_i l(w'f_i, y_i) + sum_p (a_p + ridge) w_p^2  over the simplex.

Each round models E by a quadratic, minimises that by moves of weight between two slots, and goes
towards its minimiser as long as E falls. For squared loss the model is E itself.

The certificate is the Frank-Wolfe gap with numbers c_i for the slopes of the losses. If the
derivative is continuous, c_i is the derivative. Otherwise it is the slope of the loss averaged over
m around the prediction z_i, c_i = (l(z_i + m) - l(z_i - m)) / 2m. That is a subgradient of l
somewhere within m of z_i, so with any subgradient s_i at z_i, and for every z,

    l(z) >= l(z_i) + c_i (z - z_i) - m |c_i - s_i|,

and E(w) is above its minimum by at most the gap with c plus sum_i d_i m |c_i - s_i|, the slack. The
averaged loss has a second derivative, so Newton's method applies; m shrinks until the slack is
small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..losses.objective import Objective
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Combiner, State, certificate


@dataclass(frozen=True)
class Joint(Combiner):
    """Weights that minimise sum_i d^(n-i) l(w'f_i, y_i) + sum_p (a_p + ridge) w_p^2 on the simplex.

    f_i holds the values of all slots at sample i and a_p = regularization / 2 * norm^2 of slot p.
    `Simplex` minimises a bound of this, in which errors of different slots cannot cancel. The
    evidence decides which values and samples are used:

    - "window": the slots' values on the window, after learning; this is the cost of the bank;
    - "prequential": their predictions of the last `horizon` samples, each made before learning.

    The weights are solved for after every sample, from the weights before it, until a certificate
    holds: an upper bound of cost(w) - least cost, at most tolerance * scale. The scale is cost(w)
    plus 1e-4 of the cost of the weights before (if the least cost is 0, no bound is a fraction of
    it). The bound is the Frank-Wolfe gap max_p gradient'(w - e_p); for losses with kinks (no
    `curvature`) the slopes are averaged around each prediction, and the possible error of the
    averaging is added. The bound is valid for every convex loss, also if `steps` or the precision
    of floats did not suffice to reduce it: then `bank.evidence()` shows a larger gap.

    Parameters
    ----------
    evidence : "window" or "prequential".
    horizon : number of samples in prequential evidence.
    discount : d, above 0 and at most 1: the factor by which a sample's influence shrinks with each
        later sample; 1 for "window".
    ridge : at least 0, in units of loss: pulls the weights towards equal ones.
    tolerance : above 0: how far the cost may exceed the least cost, as a fraction of it.
    steps : the most moves of weight between two slots per sample.

    Cost per sample: squared loss, O(rows * P) per slot that moves and O(P) per move; other losses
    repeat this up to 40 times, fewer when the weights hardly change. Memory: horizon * (P + 1) for
    "prequential", and 64 P of scratch.

    Reference: the problem is that of Ruiz-Moreno and Beferull-Lozano before they separate it (IEEE
    Signal Processing Letters 31, 2024, arXiv:2308.10101); pairwise moves: Lacoste-Julien and Jaggi,
    On the global linear convergence of Frank-Wolfe optimization variants, NeurIPS 2015; Fan, Chen
    and Lin (2005) for the choice of the pair.

    >>> import kernelbank as kb
    >>> joint = kb.combiners.Joint(evidence="prequential", horizon=50, discount=0.99, ridge=0.1)
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 8), combiner=joint)
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> shown = bank.evidence()
    >>> bool(shown["gap"] <= joint.tolerance * shown["scale"])
    True
    """

    core_name: ClassVar[str] = "Joint"
    evidence: str = "window"
    horizon: int = 100
    discount: float = 1.0
    ridge: float = 0.0
    tolerance: float = 1e-4
    steps: int = 500

    def __post_init__(self) -> None:
        check.choice("evidence", self.evidence, "Joint", ("window", "prequential"))
        remedy = "Give the number of past samples to use."
        horizon = check.count("horizon", self.horizon, "Joint", remedy, most=2**31)
        remedy = "Give 1, or a little less, such as 0.995."
        discount = check.number("discount", self.discount, "Joint", remedy, above=0, most=1)
        if self.evidence == "window" and discount != 1:
            remedy = 'Use evidence="prequential", or leave discount at 1.'
            raise check.refuse("discount", "be 1 for the window", discount, remedy, "Joint")
        remedy = "Give 0 or a positive number, in units of loss."
        ridge = check.number("ridge", self.ridge, "Joint", remedy, least=0)
        remedy = "Give a small positive fraction, such as 1e-4."
        tolerance = check.number("tolerance", self.tolerance, "Joint", remedy, above=0)
        remedy = "Give the most moves per sample, such as 500."
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
    def accepts_missing(self) -> bool:  # type: ignore[override]
        return self.evidence == "prequential"

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset(["values"] if self.evidence == "window" else [])

    def core_settings(self, objective: Objective) -> dict[str, Any]:
        rows = self.horizon if self.evidence == "prequential" else objective.window
        powers = self.discount ** np.arange(float(rows))
        return super().core_settings(objective) | {"powers": powers}

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """gap: the certificate; cost: what is minimised; scale: of the gap; steps: the moves."""
        return certificate(state["certificate"])
