"""KNLMS: normalised kernel least mean squares with the coherence criterion."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..native.dense import dot
from ..native.functions import native
from ..utils import validation as check
from .feature_steps import SELF_KERNEL, SLOPE, SQUARED_NORM, size_of
from .gram import GRAM, GramBase, append_to_gram, norm_from_gram
from .step_size import FIRST_ORDER, FirstOrder, next_rate, step_size_rule

ARGUMENTS = GRAM.extended("knlms", **FIRST_ORDER, coherence=float, epsilon=float)


@dataclass(frozen=True)
class KNLMS(FirstOrder, GramBase):
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
            budget=check.whole("Give how many centres to keep, 1 or more."),
            step_size=step_size_rule,
        )

    @staticmethod
    @native(ARGUMENTS)
    def step(a, leaf, number):
        """Admit x if it is incoherent with the centres; then a normalised step on all of them."""
        h, alpha = a.point_features, a.coefficients[leaf]  # h_j = k(x, c_j)
        self_kernel = a.sample[SELF_KERNEL]
        size = size_of(a, leaf)
        coherence = 0.0  # max_j |k(x, c_j)| / sqrt(k(x, x) k(c_j, c_j))
        for m in range(size):
            product = self_kernel * a.gram[leaf, m, m]
            if product > 0.0:
                coherence = max(coherence, abs(h[m]) / np.sqrt(product))
        if not self_kernel > 0.0:
            coherence = 1.0  # k(x, .) = 0: there is nothing to admit
        if size == 0 or (coherence <= a.coherence and size < a.capacity - 1):
            append_to_gram(a, leaf, 0.0)
            size += 1
        # alpha -= rate l' h / (epsilon + h'h)
        size2 = dot(h, h, size)
        slope, normalised = a.sample[SLOPE], a.sample[SLOPE] / (a.epsilon + size2)
        change = next_rate(a, leaf, number + 1, normalised * normalised * size2) * slope
        change /= a.epsilon + size2
        for m in range(size):
            alpha[m] -= change * h[m]
        a.sample[SQUARED_NORM] = norm_from_gram(a, leaf)
