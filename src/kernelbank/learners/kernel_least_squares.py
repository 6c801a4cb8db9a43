"""Kernel least squares on a budget of centres, with the inverse of their Gram matrix K.

The diagonal of K is raised by `jitter` of itself: smooth kernels on near inputs have Gram matrices
that no arithmetic can invert, and a centre that is new by less than that adds nothing. (kafbox adds
a number to the diagonal, the same for kernels with k(x, x) = 1.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..utils import validation as check
from .base import Learner, count_of, forgetting_field


@dataclass(frozen=True)
class KRLS(Learner):
    """Kernel recursive least squares: the least-squares fit of all samples on a sparse dictionary.

    With d = K^-1 k(x, centres), delta = k(x, x) - k' d and the error e = y - f(x): x becomes a
    centre if delta > novelty * k(x, x), and

        alpha <- (alpha - d e / delta, e / delta),    P <- diag(P, 1);

    otherwise, with q = P d / (1 + d' P d),

        alpha <- alpha + K^-1 q e,    P <- P - q d' P.

    For other losses e is the step -l' / c and the 1 is 2 / c. For the logistic loss
    c = tanh(f / 2) / 2 f, which bounds its curvature from above. Else c is the loss's `curvature`,
    divided by 4, up to eight times, as long as the step leaves at least half of l'.

    It has no ridge: a new centre fits its sample exactly, so with noisy labels and the logistic
    loss `KRLSTracker` does better.

    Parameters
    ----------
    novelty : an input becomes a centre if more than this fraction of k(x, x) is new; from 0 to 1.
    budget : largest number of centres; once it is reached, no input becomes a centre.
    jitter : part of itself by which the diagonal of K is raised, so that K can be inverted; from 0
        to 1. kafbox and the paper have 0.

    Reference: Engel, Mannor and Meir, IEEE Transactions on Signal Processing 52 (2004).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.KRLS(novelty=0.001))
    >>> trace = bank.run([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])
    >>> round(bank.predict_one(1.0), 2)
    1.0
    """

    second_order: ClassVar[bool] = True
    novelty: float = check.number_field(0.001, least=0, most=1)
    budget: int = count_of("centres", 100)
    jitter: float = check.number_field(1e-8, least=0, most=1)


@dataclass(frozen=True)
class SlidingWindowKRLS(Learner):
    """Kernel ridge regression on the last `budget` samples, by up- and downdating.

        alpha = (K + ridge I)^-1 y    over the last `budget` samples.

    Older samples are forgotten: the shorter the budget, the faster it follows change. For other
    losses the responses are f - l' / c and the ridge is 2 ridge / c, with f as it was when the
    sample came, and c as in `KRLS`. The inverse is computed again once in `budget` samples.

    Parameters
    ----------
    budget : number of samples that are kept.
    ridge : positive number on the diagonal: the noise's variance over the kernel's scale.

    Reference: Van Vaerenbergh, Via and Santamaria, ICASSP 2006.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.SlidingWindowKRLS(budget=30))
    >>> trace = bank.run([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])
    >>> round(bank.predict_one(1.0), 2)
    1.0
    """

    second_order: ClassVar[bool] = True
    budget: int = count_of("samples", 50)
    ridge: float = check.number_field(0.01, above=0)


@dataclass(frozen=True)
class FixedBudgetKRLS(Learner):
    """Kernel ridge regression on `budget` samples; the least significant one is removed.

    A new sample is kept. Beyond the budget, with A = K + ridge I and alpha = A^-1 y, the sample
    with the least |alpha_j| / (A^-1)_jj, its leave-one-out error, is removed. With label_rate > 0
    the kept responses first move towards the new one, so that old samples follow change:
    y_j <- y_j - label_rate * k(c_j, x) (y_j - y). For other losses see `SlidingWindowKRLS`.

    Parameters
    ----------
    budget : number of samples that are kept.
    ridge : positive number on the diagonal: the noise's variance over the kernel's scale.
    label_rate : 0 to 1, how far old responses follow new ones.

    Reference: Van Vaerenbergh, Santamaria, Liu and Principe, ICASSP 2010.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.FixedBudgetKRLS(budget=30))
    >>> trace = bank.run([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])
    >>> round(bank.predict_one(1.0), 2)
    1.0
    """

    second_order: ClassVar[bool] = True
    budget: int = count_of("samples", 50)
    ridge: float = check.number_field(0.01, above=0)
    label_rate: float = check.number_field(0.0, "Give a fraction such as 0.1.", least=0, most=1)


@dataclass(frozen=True)
class KRLSTracker(Learner):
    """The kernel recursive least-squares tracker: a Gaussian process on `budget` centres.

    It keeps the posterior mean m and covariance S of f at the centres. With q = K^-1 k(x, centres),
    gamma = k(x, x) - k' q, h = S q and s = noise + gamma + q' h, a new sample changes them by

        m <- (m, q'm) + p (y - q'm) / s,    p = (h, gamma + q'h),
        S <- (S h; h' gamma + q'h) - p p' / s;

    beyond the budget the centre whose removal moves the mean least is removed. Then it forgets
    towards the prior, with r = forgetting: S <- r S + (1 - r) K, m <- sqrt(r) m. For other losses:
    a step to f - l' / c with noise 2 noise / c, with c as in `KRLS`. The predictive variance is
    given by `bank.predict_variance_slots`.

    Parameters
    ----------
    budget : largest number of centres.
    forgetting : factor per step of the weight of the past, above 0 and at most 1 (no forgetting).
    noise : variance of the targets' noise.
    forget_when : "after" a sample is learned, so that f, with its sqrt(r), predicts the next one;
        or "before" a sample is learned, when it has been predicted, as kafbox does.
    jitter : part of itself by which the diagonal of K is raised, so that K can be inverted; from 0
        to 1. kafbox has 1e-6, for kernels with k(x, x) = 1.

    Reference: Van Vaerenbergh, Lazaro-Gredilla and Santamaria, IEEE Transactions on Neural
    Networks and Learning Systems 23 (2012).

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.KRLSTracker(budget=30))
    >>> trace = bank.run([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])
    >>> round(bank.predict_one(1.0), 2)
    1.0
    """

    second_order: ClassVar[bool] = True
    budget: int = count_of("centres", 50)
    forgetting: float = forgetting_field()
    noise: float = check.number_field(0.01, above=0)
    forget_when: str = check.choice_field("after", "before")
    jitter: float = check.number_field(1e-8, least=0, most=1)
