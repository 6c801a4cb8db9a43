"""Kernel perceptrons on a budget: they change f on a mistake only, y f(x) <= 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..losses.objective import Objective
from ..utils import validation as check
from .base import Learner, whole


def _check_labels(learner: Learner, objective: Objective) -> None:
    """Refuse a loss for regression."""
    if not objective.loss.labels:
        raise check.refuse(
            "loss",
            f"be one for labels -1 and +1 for {type(learner).__name__}",
            objective.loss,
            'Use "hinge", "squared_hinge" or "logistic", or another learner.',
        )


@dataclass(frozen=True)
class Forgetron(Learner):
    """The self-tuned Forgetron: a kernel perceptron on a budget, for labels -1 and +1.

    On a mistake, y f(x) <= 0, the term y k(x, .) is added. Beyond `budget` terms all coefficients
    are multiplied by the largest phi <= 1 for which the total deviation stays below 15/32 of the
    mistakes, and the oldest term is dropped. Its relative mistake bound holds for kernels with
    k(x, x) <= 1. Cost per step: budget kernel values and, on a mistake, O(budget^2) products (for
    norm^2); memory O(budget^2).

    Parameters
    ----------
    budget : largest number of terms.

    Reference: Dekel, Shalev-Shwartz and Singer, The Forgetron: a kernel-based perceptron on a
    budget, SIAM Journal on Computing 37 (2008).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.Forgetron(budget=20), loss="hinge")
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0 if n % 40 < 20 else -1.0)
    >>> bank.ledger.samples
    100
    """

    core_name: ClassVar[str] = "Forgetron"
    budget: int = 100

    def __post_init__(self) -> None:
        check.settings(self, budget=whole("Give how many terms to keep, 1 or more."))

    def check(self, objective: Objective) -> None:
        _check_labels(self, objective)


@dataclass(frozen=True)
class Projectron(Learner):
    """The Projectron: on a mistake it adds the sample, or the sample's projection on the centres.

    On a mistake, y f(x) <= 0, with d = K^-1 k(x, centres) and the new part of x,
    delta = sqrt(k(x, x) - k' d):

        alpha <- alpha + y d      if delta <= tolerance, or the budget is full,
        f <- f + y k(x, .)        otherwise.

    Cost per step: budget kernel values and, on a mistake, O(budget^2) products; memory O(budget^2).

    The diagonal of K is raised by 1e-8 of itself, so that it can be inverted.

    Parameters
    ----------
    tolerance : how far a projection may be from its sample, in the norm of the RKHS; 0 or more.
    budget : largest number of centres.

    Reference: Orabona, Keshet and Caputo, Bounded kernel-based online learning, Journal of Machine
    Learning Research 10 (2009).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.Projectron(), loss="hinge")
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0 if n % 40 < 20 else -1.0)
    >>> bank.ledger.samples
    100
    """

    core_name: ClassVar[str] = "Projectron"
    tolerance: float = 0.1
    budget: int = 100

    def __post_init__(self) -> None:
        check.settings(
            self,
            tolerance=check.at_least(0, 0.1),
            budget=whole("Give how many centres to keep, 1 or more."),
        )

    def check(self, objective: Objective) -> None:
        _check_labels(self, objective)
