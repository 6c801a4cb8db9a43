"""NORMA: stochastic gradient descent in the RKHS, with a window and a budget; and step sizes.

With g_t the gradient of the loss at sample t = 1, 2, ..., in the space of the functions (for a
gradient on the window, of the window's loss), the rate of a sample is

    constant        rate_t = learning_rate
    inverse_sqrt    rate_t = learning_rate / sqrt(t)
    adagrad         rate_t = learning_rate / sqrt(|g_1|^2 + ... + |g_t|^2), per slot

The last one needs no knowledge of the scale of the loss: its learning_rate is the length of the
first step, in the norm of the space. There rate * regularization is kept at 1/2 or below, so that
the factor 1 - rate * regularization of f is never below 1/2 whatever the gradients are.

References: Zinkevich, Online convex programming and generalized infinitesimal gradient ascent, ICML
2003; Streeter and McMahan, Less regret via online conditioning, 2010, and Ward, Wu and Bottou,
AdaGrad stepsizes, JMLR 2020 (one rate for all coordinates).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .. import _core
from ..losses.base import Objective
from ..utils import validation as check
from .base import Learner, check_terms, whole

step_size_rule = check.one_of(("constant", "inverse_sqrt", "adagrad"))
"""The check of the setting `step_size`."""


def check_decay(learner: Any, objective: Objective) -> None:
    """Refuse a learning rate at which regularization would flip the sign of f."""
    if learner.step_size != "adagrad" and learner.learning_rate * objective.regularization >= 1:
        raise check.refuse(
            "learning_rate",
            f"be < 1 / regularization ({1 / objective.regularization:g})",
            learner.learning_rate,
            "Lower learning_rate or regularization: their product must stay below 1.",
            type(learner).__name__,
        )


@dataclass(frozen=True)
class Norma(Learner):
    """NORMA with a sliding window, the learner of the paper.

    With S the window, the last L samples, and all gradients at the present f:

        f <- (1 - learning_rate * regularization) f
             - learning_rate * sum_{i in S} l'(f(x_i), y_i) k(x_i, .)

    and beyond `budget` terms the oldest is dropped. Cost per step and slot: budget kernel values
    and O(budget + L^2) products; memory O(budget * L) numbers (the window's kernel rows).
    The step is a contraction on the window while

        learning_rate (curvature of the loss * largest eigenvalue of the window's Gram matrix
                       + regularization) < 2.

    Parameters
    ----------
    learning_rate : positive number, the step size.
    budget : largest number of terms, at least the window.
    step_size : "constant", "inverse_sqrt" or "adagrad": how the rate of a sample follows from
        learning_rate (see docs/learners.md); g is the gradient of the loss on the window.

    Reference: Kivinen, Smola and Williamson, Online learning with kernels, IEEE Transactions on
    Signal Processing 52 (2004); windowed as in the paper of the scheme.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.Norma(learning_rate=0.05, budget=100))
    >>> bank.learn_one(0.0, 1.0)
    >>> round(bank.predict_one(0.0), 3)
    0.1
    """

    core_name: ClassVar[str] = "Norma"
    pack_width: ClassVar[int] = _core.WIDTH
    learns_window: ClassVar[bool] = True
    learning_rate: float = 0.05
    budget: int = 100
    step_size: str = "constant"

    def __post_init__(self) -> None:
        check.settings(
            self,
            learning_rate=check.positive(0.05),
            budget=whole("Give how many terms to keep, 1 or more."),
            step_size=step_size_rule,
        )

    def check(self, objective: Objective) -> None:
        if self.budget < objective.window:
            rule = f"be >= window ({objective.window})"
            remedy = "Raise budget or shorten window."
            raise check.refuse("budget", rule, self.budget, remedy, "Norma")
        check_decay(self, objective)

    def check_initial(self, objective: Objective, terms: int) -> None:
        check_terms(self, terms, self.budget - objective.window, "budget - window")

    def history_length(self, objective: Objective) -> int:
        return self.budget
