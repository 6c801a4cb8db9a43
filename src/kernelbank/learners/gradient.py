"""Gradient steps on centres: f = sum_j alpha_j k(c_j, .), with kept inputs c_j."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..losses.base import Objective
from ..utils import validation as check
from .base import Learner, check_terms, whole
from .norma import check_decay, step_size_rule


@dataclass(frozen=True)
class KLMS(Learner):
    """Kernel least mean squares: one gradient step and one term per sample.

        f <- f - learning_rate * l'(f(x), y) k(x, .)

    and beyond `budget` terms the oldest is dropped. With the squared loss (f - y)^2 the slope is
    2 (f - y): the textbook's step size is twice this one. Cost per step: 2 budget kernel values and
    O(budget + window) products; memory O(budget (dimension + window)) numbers. norm^2 follows by
    recursion and is computed again every 256 samples.

    Parameters
    ----------
    learning_rate : positive number, the step size.
    budget : largest number of terms.
    step_size : "constant", "inverse_sqrt" or "adagrad": how the rate of a sample follows from
        learning_rate (see docs/learners.md).

    Reference: Liu, Pokharel and Principe, The kernel least-mean-square algorithm, IEEE Transactions
    on Signal Processing 56 (2008).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.KLMS(learning_rate=0.1))
    >>> bank.learn_one(0.0, 1.0)
    >>> round(bank.predict_one(0.0), 3)
    0.2
    """

    core_name: ClassVar[str] = "KLMS"
    learning_rate: float = 0.1
    budget: int = 100
    step_size: str = "constant"

    def __post_init__(self) -> None:
        check.settings(
            self,
            learning_rate=check.positive(0.1),
            budget=whole("Give how many terms to keep, 1 or more."),
            step_size=step_size_rule,
        )

    def check_initial(self, objective: Objective, terms: int) -> None:
        check_terms(self, terms, self.budget, "budget")


@dataclass(frozen=True)
class QKLMS(Learner):
    """KLMS on quantised inputs: a sample near a centre moves that centre's coefficient.

    With c_j the centre nearest to x:

        alpha_j <- alpha_j - learning_rate * l'(f(x), y)    if |x - c_j| <= quantization,
        f <- f - learning_rate * l'(f(x), y) k(x, .)        otherwise.

    Once `budget` centres are kept, every sample moves its nearest centre. Cost per step: 2 budget
    kernel values and O(budget (dimension + window)) products; memory O(budget (dimension +
    window)).

    Parameters
    ----------
    learning_rate : positive number, the step size (half of the textbook's with the squared loss).
    quantization : how near counts as the same, in units of the inputs; 0 for equal only.
    budget : largest number of centres.
    step_size : "constant", "inverse_sqrt" or "adagrad": how the rate of a sample follows from
        learning_rate (see docs/learners.md).

    Reference: Chen, Zhao, Zhu and Principe, Quantized kernel least mean square algorithm, IEEE
    Transactions on Neural Networks and Learning Systems 23 (2012).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.QKLMS(quantization=0.5))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> bank.predict_one(5.0) > 0.5
    True
    """

    core_name: ClassVar[str] = "QKLMS"
    learning_rate: float = 0.1
    quantization: float = 0.1
    budget: int = 100
    step_size: str = "constant"

    def __post_init__(self) -> None:
        check.settings(
            self,
            learning_rate=check.positive(0.1),
            quantization=check.at_least(0, 0.1),
            budget=whole("Give how many centres to keep, 1 or more."),
            step_size=step_size_rule,
        )

    def check_initial(self, objective: Objective, terms: int) -> None:
        check_terms(self, terms, self.budget, "budget")


@dataclass(frozen=True)
class KNLMS(Learner):
    """Normalised kernel least mean squares on a dictionary of incoherent centres.

    x becomes a centre if max_j |k(x, c_j)| / sqrt(k(x, x) k(c_j, c_j)) <= coherence and
    there are fewer than `budget`. Then, with h_j = k(x, c_j),

        alpha <- alpha - learning_rate * l'(f(x), y) h / (epsilon + h'h).

    Cost per step: budget kernel values and O(budget^2) products (for norm^2); memory O(budget^2).

    Parameters
    ----------
    learning_rate : positive number, the step size (half of the textbook's with the squared loss).
    coherence : between 0 and 1; larger admits more centres.
    epsilon : positive number that bounds the normalised step.
    budget : largest number of centres.
    step_size : "constant", "inverse_sqrt" or "adagrad": how the rate of a sample follows from
        learning_rate (see docs/learners.md); the gradient is l' h / (epsilon + h'h).

    Reference: Richard, Bermudez and Honeine, Online prediction of time series data with kernels,
    IEEE Transactions on Signal Processing 57 (2009).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.KNLMS(learning_rate=0.25))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> bank.predict_one(5.0) > 0.5
    True
    """

    core_name: ClassVar[str] = "KNLMS"
    learning_rate: float = 0.1
    coherence: float = 0.9
    epsilon: float = 0.01
    budget: int = 100
    step_size: str = "constant"

    def __post_init__(self) -> None:
        check.settings(
            self,
            learning_rate=check.positive(0.1),
            coherence=check.fraction(0.9),
            epsilon=check.positive(0.01),
            budget=whole("Give how many centres to keep, 1 or more."),
            step_size=step_size_rule,
        )

    def check_initial(self, objective: Objective, terms: int) -> None:
        check_terms(self, terms, self.budget, "budget")


@dataclass(frozen=True)
class POLK(Learner):
    """Parsimonious online learning with kernels: a gradient step, then compression.

        g <- (1 - learning_rate * regularization) f - learning_rate * l'(f(x), y) k(x, .)
        f <- the projection of g on as few of its centres as keep |f - g| <= compression

    by kernel orthogonal matching pursuit: the centre whose removal costs least,
    alpha_j^2 / (K^-1)_jj, goes first. Beyond `budget` centres it goes whatever it costs. Cost per
    step: budget kernel values and O(budget^2) products for each centre that goes, usually one;
    memory O(budget^2).

    The diagonal of K is raised by 1e-8 of itself, so that it can be inverted.

    Parameters
    ----------
    learning_rate : positive number, the step size.
    compression : how far, in the norm of the RKHS, a step's result may be moved.
    budget : largest number of centres.
    step_size : "constant", "inverse_sqrt" or "adagrad": how the rate of a sample follows from
        learning_rate (see docs/learners.md).

    Reference: Koppel, Warnell, Stump and Ribeiro, Parsimonious online learning with kernels via
    sparse projections in function space, Journal of Machine Learning Research 20 (2019).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.POLK(learning_rate=0.2))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> bank.predict_one(5.0) > 0.5
    True
    """

    core_name: ClassVar[str] = "POLK"
    learning_rate: float = 0.1
    compression: float = 0.01
    budget: int = 100
    step_size: str = "constant"

    def __post_init__(self) -> None:
        check.settings(
            self,
            learning_rate=check.positive(0.1),
            compression=check.at_least(0, 0.01),
            budget=whole("Give how many centres to keep, 1 or more."),
            step_size=step_size_rule,
        )

    def check(self, objective: Objective) -> None:
        check_decay(self, objective)


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
