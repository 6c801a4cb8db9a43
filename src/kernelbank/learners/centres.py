"""Learners on centres: f = sum_j alpha_j k(c_j, .), with inputs c_j of the stream; and step sizes.

With g_t the gradient of the loss at sample t = 1, 2, ..., in the space of the functions (for
`Norma`, of the window's loss), the rate of a sample is

    constant        rate_t = learning_rate
    inverse_sqrt    rate_t = learning_rate / sqrt(t)
    adagrad         rate_t = learning_rate / sqrt(|g_1|^2 + ... + |g_t|^2), per slot

The last one needs no knowledge of the scale of the loss: its learning_rate is the length of the
first step, in the norm of the space. There rate * regularization is kept at 1/2 or below.

References: Zinkevich, ICML 2003; Streeter and McMahan, Less regret via online conditioning, 2010;
Ward, Wu and Bottou, AdaGrad stepsizes, JMLR 2020 (one rate for all coordinates).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .. import _core
from ..losses import Objective
from ..utils import validation as check
from .base import Learner, count_of, forgetting_field


def step_size_field() -> Any:
    """The setting that says how the rate of a sample follows from learning_rate."""
    return check.choice_field("constant", "inverse_sqrt", "adagrad")


class _Centres(Learner):
    """Subclasses have a `budget` of centres, and may start with some."""

    budget: int

    def most_initial_terms(self, objective: Objective) -> float:
        return self.budget


@dataclass(frozen=True)
class Norma(_Centres):
    """NORMA with a sliding window, the learner of the paper.

    With S the window, the last L samples, and all gradients at the present f:

        f <- (1 - learning_rate * regularization) f
             - learning_rate * sum_{i in S} l'(f(x_i), y_i) k(x_i, .)

    and beyond `budget` terms the oldest is dropped. The step is a contraction on the window while
    learning_rate (curvature of the loss * largest eigenvalue of the window's Gram matrix
    + regularization) < 2.

    Parameters
    ----------
    learning_rate : positive number, the step size.
    budget : largest number of terms, at least the window.
    step_size : "constant"; "inverse_sqrt", learning_rate / sqrt(t) at sample t; or "adagrad",
        learning_rate over the root of the sum of all |gradient|^2 (see docs/learners.md).

    Reference: Kivinen, Smola and Williamson, IEEE Transactions on Signal Processing 52 (2004);
    windowed as in the paper of the scheme.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.Norma(learning_rate=0.05, budget=100))
    >>> bank.learn_one(0.0, 1.0)
    >>> round(bank.predict_one(0.0), 3)
    0.1
    """

    pack_width: ClassVar[int] = _core.WIDTH
    decays: ClassVar[bool] = True
    learns_window: ClassVar[bool] = True
    learning_rate: float = check.number_field(0.05, above=0)
    budget: int = count_of("terms", 100)
    step_size: str = step_size_field()

    def check(self, objective: Objective) -> None:
        if self.budget < objective.window:
            rule = f"be >= window ({objective.window})"
            raise self._refuse("budget", rule, "Raise budget or shorten window.")
        super().check(objective)

    def most_initial_terms(self, objective: Objective) -> float:
        return self.budget - objective.window

    def history_length(self) -> int:
        return self.budget


@dataclass(frozen=True)
class KLMS(_Centres):
    """Kernel least mean squares: one gradient step and one term per sample.

        f <- f - learning_rate * l'(f(x), y) k(x, .)

    and beyond `budget` terms the oldest is dropped. With the squared loss (f - y)^2 the slope is
    2 (f - y): the textbook's step size is twice this one. norm^2 follows by recursion and is
    computed again every 256 samples.

    Parameters
    ----------
    learning_rate : positive number, the step size.
    budget : largest number of terms.
    step_size : how the rate follows from learning_rate, as for `Norma`.

    Reference: Liu, Pokharel and Principe, IEEE Transactions on Signal Processing 56 (2008).
    """

    learning_rate: float = check.number_field(0.1, above=0)
    budget: int = count_of("terms", 100)
    step_size: str = step_size_field()


@dataclass(frozen=True)
class QKLMS(_Centres):
    """KLMS on quantised inputs: a sample near a centre moves that centre's coefficient.

    With c_j the centre nearest to x:

        alpha_j <- alpha_j - learning_rate * l'(f(x), y)    if |x - c_j| <= quantization,
        f <- f - learning_rate * l'(f(x), y) k(x, .)        otherwise.

    Once `budget` centres are kept, every sample moves its nearest centre.

    Parameters
    ----------
    learning_rate, step_size : as for `KLMS`.
    quantization : how near counts as the same, in units of the inputs; 0 for equal only.
    budget : largest number of centres.

    Reference: Chen, Zhao, Zhu and Principe, IEEE Transactions on Neural Networks and Learning
    Systems 23 (2012).
    """

    learning_rate: float = check.number_field(0.1, above=0)
    quantization: float = check.number_field(0.1, least=0)
    budget: int = count_of("centres", 100)
    step_size: str = step_size_field()


@dataclass(frozen=True)
class KNLMS(_Centres):
    """Normalised kernel least mean squares on a dictionary of incoherent centres.

    x becomes a centre if max_j |k(x, c_j)| / sqrt(k(x, x) k(c_j, c_j)) <= coherence and
    there are fewer than `budget`. Then, with h_j = k(x, c_j),

        alpha <- alpha - learning_rate * l'(f(x), y) h / (epsilon + h'h).

    Parameters
    ----------
    learning_rate, step_size : as for `KLMS`; the gradient is l' h / (epsilon + h'h).
    coherence : between 0 and 1; larger admits more centres.
    epsilon : positive number that bounds the normalised step.
    budget : largest number of centres.

    Reference: Richard, Bermudez and Honeine, IEEE Transactions on Signal Processing 57 (2009).
    """

    learning_rate: float = check.number_field(0.1, above=0)
    coherence: float = check.number_field(0.9, least=0, most=1)
    epsilon: float = check.number_field(0.01, above=0)
    budget: int = count_of("centres", 100)
    step_size: str = step_size_field()


# --- kernel least squares, with the inverse of the Gram matrix K of the centres -------------------
#
# The diagonal of K is raised by `jitter` of itself: smooth kernels on near inputs have Gram
# matrices that no arithmetic can invert, and a centre that is new by less than that adds nothing.
# (kafbox adds a number to the diagonal, the same for kernels with k(x, x) = 1.)


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
    """

    second_order: ClassVar[bool] = True
    budget: int = count_of("centres", 50)
    forgetting: float = forgetting_field()
    noise: float = check.number_field(0.01, above=0)
    forget_when: str = check.choice_field("after", "before")
    jitter: float = check.number_field(1e-8, least=0, most=1)
