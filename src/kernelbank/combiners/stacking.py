"""Stacking: the convex combination of least discounted squared error of the predictions.

    minimise  E(w) = w'M w + ridge L |w|^2  over the simplex,  L = min_p M_pp,

with M <- discount M + e e' after every sample, where e holds the errors of the slots' predictions.
On the simplex w'f - y = w'e, so the moments M are all that is needed of the stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..losses import Objective
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Combiner, State, certificate


def _discount_field(default: float) -> Any:
    remedy = "Give 1, or a little less, such as 0.998."
    return check.number_field(default, remedy, above=0, most=1)


def _tolerance_field() -> Any:
    return check.number_field(1e-4, "Give a small positive fraction, such as 1e-4.", above=0)


def _steps_field(default: int) -> Any:
    return check.count_field(
        default, f"Give the most moves per sample, such as {default}.", most=2**31
    )


@dataclass(frozen=True)
class _Stacked(Combiner):
    """Rules that find their weights by the moments of the errors."""

    accepts_missing: ClassVar[bool] = True
    discount: float = _discount_field(0.998)
    ridge: float = check.number_field(
        0.1,
        "Give 0 or a fraction of the best slot's loss, such as 0.1; for equal weights, use "
        "Uniform.",
        least=0,
        most=1e9,
    )
    tolerance: float = _tolerance_field()
    steps: int = _steps_field(200)


@dataclass(frozen=True)
class Stacking(_Stacked):
    """Weights that minimise sum_i d^(n-i) (w'f_i - y_i)^2 + ridge L |w|^2 on the simplex.

    f_i holds the slots' predictions of sample i, made before learning it, and
    L = min_p sum_i d^(n-i) (f_ip - y_i)^2 is the loss of the best slot. So the ridge has no unit,
    and multiplying targets and predictions by a factor changes no weight. The error is squared,
    whatever the loss of the bank. On the simplex w'f_i - y_i = w'e_i with the errors
    e_i = f_i - y_i, of which only the moments sum_i d^(n-i) e_i e_i' are kept: the cost does not
    depend on the length of the memory.

    The weights are solved for after every sample, from the weights before it, until the Frank-Wolfe
    gap, an upper bound of cost(w) - least cost, is at most tolerance * scale. The scale is cost(w)
    plus 1e-4 of the cost of the weights before. `bank.evidence()` shows a larger gap if `steps` or
    the precision of the moments did not suffice. A slot with more than 2^60 times the best slot's
    loss gets no weight and is not counted in the gap.

    Parameters
    ----------
    discount : d, above 0 and at most 1: the factor by which a sample's influence shrinks with each
        later sample. The memory is about 1 / (1 - d) samples long.
    ridge : 0 to 1e9, as a fraction of the best slot's loss: pulls the weights towards equal ones.
    tolerance : above 0: how far the cost may exceed the least cost, as a fraction of it.
    steps : the most moves of weight between slots per sample.

    Reference: Wolpert, Neural Networks 1992; Breiman, Stacked regressions, Machine Learning 1996,
    who found that weights should not be negative.

    >>> import kernelbank as kb
    >>> stacking = kb.combiners.Stacking(discount=0.99)
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 8), combiner=stacking)
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> bool(bank.evidence()["gap"] <= stacking.tolerance * bank.evidence()["scale"])
    True
    """

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """gap: the certificate; cost: what is minimised; scale: of the gap; steps: the moves."""
        return certificate(state["certificate"])


@dataclass(frozen=True)
class RobustStacking(_Stacked):
    """A mean of two weights: those of `Stacking`, and those in which large errors count less.

    With v_i the second weights when sample i is predicted, and r_i = v_i'f_i - y_i their error,
    these minimise

        sum_i d^(n-i) c_i (v'f_i - y_i)^2 + ridge L |v|^2  on the simplex,
        c_i = 1 / (s_i + r_i^2 / degrees_of_freedom),  s_i = discounted mean of r_1^2 .. r_i^2,

    with L = min_p of the sum for slot p alone: samples count as in a likelihood of Student's t with
    these degrees of freedom, whose scale follows the errors. Where errors come in bursts, a few
    samples decide about the weights of `Stacking`, and say little more than others here. Where rare
    samples matter most, the second weights neglect them. So the weights are q v + (1 - q) w, with w
    those of `Stacking`, and

        q = 1/2 + 5/2 (1 - R_v / R_w) within 0 and 1,

    where R_v and R_w are the discounted sums of the squared errors of both. Not for labels: there
    the large errors are all that counts.

    Parameters
    ----------
    discount, ridge, tolerance, steps : as for `Stacking`, for each of the two.
    degrees_of_freedom : positive: the smaller, the less a large error counts.

    Reference: Lange, Little and Taylor, Journal of the American Statistical Association 1989.

    >>> import kernelbank as kb
    >>> stacking = kb.combiners.RobustStacking(discount=0.99)
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 8), combiner=stacking)
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> sorted(bank.evidence())[:4]
    ['cost', 'gap', 'mean_square', 'plain_cost']
    """

    degrees_of_freedom: float = check.number_field(4.0, above=0)

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """As for Stacking, of the second weights and, with "plain_", of the first.

        mean_square : s, of the errors of the second weights.
        share : q, of the second weights.
        """
        plain = certificate(state["plain/certificate"])
        return {
            **certificate(state["robust/certificate"]),
            **{f"plain_{name}": value for name, value in plain.items()},
            "mean_square": np.array(state["mean_square"][0]),
            "share": np.array(_share(*state["squares"])),
        }


def _share(robust: float, plain: float) -> float:
    """q, from the sums of squares of both."""
    if not plain > 0.0:
        return 0.5 if robust == 0.0 else 0.0
    return min(max(0.5 + 2.5 * (1.0 - robust / plain), 0.0), 1.0)


@dataclass(frozen=True)
class Joint(Combiner):
    """Weights that minimise sum_i d^(n-i) l(w'f_i, y_i) + sum_p (a_p + ridge) w_p^2 on the simplex.

    f_i holds the values of all slots at sample i and a_p = regularization / 2 * norm^2 of slot p.
    `Simplex` minimises a bound of this, in which errors of different slots cannot cancel. The
    evidence decides which values and samples are used:

    - "window": the slots' values on the window, after learning; this is the cost of the bank;
    - "prequential": their predictions of the last `horizon` samples, each made before learning.

    The weights are solved for after every sample, from the weights before it, until a certificate
    holds: an upper bound of cost(w) - least cost, at most tolerance * scale, as for `Stacking`. The
    bound is the Frank-Wolfe gap max_p gradient'(w - e_p); for losses with kinks (no `curvature`)
    the slopes are averaged around each prediction, and the possible error of the averaging is
    added. It is valid for every convex loss, also if `steps` did not suffice to reduce it.

    Parameters
    ----------
    evidence : "window" or "prequential".
    horizon : number of samples in prequential evidence.
    discount, tolerance, steps : as for `Stacking`; the discount is 1 for "window".
    ridge : at least 0, in units of loss: pulls the weights towards equal ones.

    Reference: the problem is that of Ruiz-Moreno and Beferull-Lozano (IEEE Signal Processing
    Letters 31, 2024, arXiv:2308.10101) before they separate it; pairwise moves: Lacoste-Julien and
    Jaggi, NeurIPS 2015; Fan, Chen and Lin (2005) for the choice of the pair.

    >>> import kernelbank as kb
    >>> joint = kb.combiners.Joint(evidence="prequential", horizon=50, discount=0.99, ridge=0.1)
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 8), combiner=joint)
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> bool(bank.evidence()["gap"] <= joint.tolerance * bank.evidence()["scale"])
    True
    """

    evidence: str = check.choice_field("window", "prequential")
    horizon: int = check.count_field(100, "Give the number of past samples to use.", most=2**31)
    discount: float = _discount_field(1.0)
    ridge: float = check.number_field(
        0.0, "Give 0 or a positive number, in units of loss.", least=0
    )
    tolerance: float = _tolerance_field()
    steps: int = _steps_field(500)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.evidence == "window" and self.discount != 1:
            remedy = 'Use evidence="prequential", or leave discount at 1.'
            raise self.refuse("discount", "be 1 for the window", remedy)

    @property
    def accepts_missing(self) -> bool:  # type: ignore[override]
        return self.evidence == "prequential"

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset(["values"] if self.evidence == "window" else [])

    def core_settings(self, objective: Objective) -> dict[str, object]:
        rows = self.horizon if self.evidence == "prequential" else objective.window
        powers = self.discount ** np.arange(float(rows))
        return super().core_settings(objective) | {"powers": powers}

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """gap: the certificate; cost: what is minimised; scale: of the gap; steps: the moves."""
        return certificate(state["certificate"])
