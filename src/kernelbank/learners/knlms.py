"""KNLMS: normalised kernel least mean squares with the coherence criterion."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..native.dense import dot
from ..native.phases import argument_fields, float_array, read_float, read_int
from ..utils import validation as check
from .feature_learner import SAMPLE, coefficients_of, size_of
from .gram import GRAM_FIELDS, GramBase, append_to_gram, gram_of, norm_from_gram

FIELDS = argument_fields(*GRAM_FIELDS._fields, "learning_rate", "coherence", "epsilon")


@dataclass(frozen=True)
class KNLMS(GramBase):
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

    Reference: Richard, Bermudez and Honeine, Online prediction of time series data with kernels,
    IEEE Transactions on Signal Processing 57 (2009).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.KNLMS(learning_rate=0.25))
    >>> for n in range(100):
    ...     bank.learn_one(n / 10, 1.0)
    >>> bank.predict_one(5.0) > 0.5
    True
    """

    learning_rate: float = 0.1
    coherence: float = 0.9
    epsilon: float = 0.01
    budget: int = 100
    arguments = FIELDS

    def __post_init__(self) -> None:
        check.settings(
            self,
            learning_rate=check.positive(0.1),
            coherence=check.fraction(0.9),
            epsilon=check.positive(0.01),
            budget=check.whole("Give how many centres to keep, 1 or more."),
        )

    @staticmethod
    def step(args, leaf, number):
        """Admit x if it is incoherent with the centres; then a normalised step on all of them."""
        sample = float_array(args, FIELDS.sample)
        capacity = read_int(args, FIELDS.capacity)
        h = float_array(args, FIELDS.point_features)  # h_j = k(x, c_j)
        size = size_of(args, leaf)
        gram = gram_of(args, leaf)
        coherence = 0.0  # max_j |k(x, c_j)| / sqrt(k(x, x) k(c_j, c_j))
        for m in range(size):
            product = sample[SAMPLE.self_kernel] * gram[m * capacity + m]
            if product > 0.0:
                coherence = max(coherence, abs(h[m]) / np.sqrt(product))
        if not sample[SAMPLE.self_kernel] > 0.0:
            coherence = 1.0  # k(x, .) = 0: there is nothing to admit
        if size == 0 or (coherence <= read_float(args, FIELDS.coherence) and size < capacity - 1):
            append_to_gram(args, leaf, 0.0)
            size += 1
        # alpha -= learning_rate l' h / (epsilon + h'h)
        change = read_float(args, FIELDS.learning_rate) * sample[SAMPLE.slope]
        change /= read_float(args, FIELDS.epsilon) + dot(h, h, size)
        coefficients = coefficients_of(args, leaf)
        for m in range(size):
            coefficients[m] -= change * h[m]
        sample[SAMPLE.squared_norm] = norm_from_gram(args, leaf, float_array(args, FIELDS.work))
