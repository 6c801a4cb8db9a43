"""BayesianStacking: weights of the mixture of densities with the best log score."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..losses.objective import Objective
from ..native.functions import native
from ..native.scalar_math import exp, log
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import PhaseList, State, combiner_phase
from .likelihood import (
    LIKELIHOOD,
    LikelihoodRule,
    check_noise,
    likelihood_arguments,
    mixture_score,
    normalize,
    score_slots,
)


@dataclass(frozen=True)
class BayesianStacking(LikelihoodRule):
    """Online Bayesian stacking: weights that are to minimise sum_i -log sum_p w_p l_ip.

    l_ip is the likelihood of sample i under slot p, a normal density with mean f_p(x) and variance
    s_p^2 (1 + v_p), v_p the variance of f_p(x) over that of the noise (0 if the learner has none).
    The problem is that of a portfolio: w_p the share of a stock, l_ip its price relative. Two
    rules, with g_p = l_p / sum_q w_q l_q at each sample:

    - learning_rate=None, Soft-Bayes: w_p <- (1 - e + e g_p) w_p e' / e + (1 - e' / e) / P, with
      e = sqrt(log(P) / (2 P n)) and e' the same for n + 1. The log score falls behind that of the
      best fixed weights by O(sqrt(P n log P)), however small a likelihood may be.
    - a learning_rate, exponentiated gradient: w_p <- w_p exp(learning_rate g_p) / sum. With all
      g_p <= G and the rate sqrt(8 log(P) / n) / G, it falls behind by G sqrt(n log(P) / 2) at most.

    Then w_p <- (1 - switching) w_p + switching / P. Unlike `BayesianAveraging` the weights do not
    end at one slot, but at the best mixture. For the logistic loss the likelihood is exp(-loss).

    Parameters
    ----------
    learning_rate : positive number without unit, such as 0.01; None for Soft-Bayes.
    switching : from 0 (none) to 1: the share of the weights that is divided equally, per sample.
    noise : variance s_p^2 of the targets' noise. None: one for each slot, the mean of
        (y - f_p(x))^2 / (1 + v_p) over the samples before, and over one more at which it is the
        mean over all slots and samples. So the first sample is no evidence.

    Cost per sample: O(P), three exponentials and three logarithms per slot. Memory: 2 P numbers.

    Reference: Waxman, Llorente and Djurić, Bayesian ensembling: insights from online optimization
    and empirical Bayes, arXiv:2505.15638 (2025); Helmbold, Schapire, Singer and Warmuth, On-line
    portfolio selection using multiplicative updates, Mathematical Finance 8 (1998); Orseau,
    Lattimore and Legg, Soft-Bayes: Prod for mixtures of experts with log-loss, ALT 2017.

    >>> import kernelbank as kb
    >>> learner = kb.learners.FourierRLS(features=20)
    >>> combiner = kb.combiners.BayesianStacking()
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 4), learner, combiner)
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> bool(bank.weights.min() > 0)
    True
    """

    learning_rate: float | None = None
    switching: float = 0.0
    noise: float | None = None

    def __post_init__(self) -> None:
        if self.learning_rate is not None:
            remedy = "Give a positive number, such as 0.01, or None for Soft-Bayes."
            owner = "BayesianStacking"
            rate = check.number("learning_rate", self.learning_rate, owner, remedy, above=0)
            object.__setattr__(self, "learning_rate", rate)
        check.settings(self, switching=check.fraction(0.01))
        object.__setattr__(self, "noise", check_noise(self.noise, "BayesianStacking"))

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> PhaseList:
        phase = combiner_phase(
            _stack,
            workspace,
            weights,
            rate=0.0 if self.learning_rate is None else self.learning_rate,
            switching=self.switching,
            **likelihood_arguments(self.noise, objective, state, len(weights)),
        )
        return [phase]


_LARGEST_RATIO = 700.0  # its exponential is still finite


@native(LIKELIHOOD.extended("bayesian_stacking", rate=float, switching=float))
def _stack(a, first, count):
    """chosen[t] = the weights after sample t."""
    log_weights = a.log_weights
    size = float(a.slots)
    for t in range(count):
        losses, chosen = a.slot_loss[t], a.chosen[t]
        number = first + t
        active = 0
        for p in range(a.slots):
            if losses[p] < np.inf:
                active += 1
        if score_slots(a, t, number):
            mixture = mixture_score(a, losses)  # log sum_q w_q l_q
            e = math.sqrt(log(size) / (2.0 * size * (number + 1.0)))
            for p in range(a.slots):
                if losses[p] < np.inf:
                    ratio = exp(min(a.scores[p] - mixture, _LARGEST_RATIO))  # g
                    if a.rate > 0.0:
                        log_weights[p] += a.rate * ratio
                    else:
                        log_weights[p] += log(1.0 - e + e * ratio)
        normalize(log_weights, losses, chosen)
        share = a.switching
        if a.rate == 0.0:  # e' / e = sqrt(n / (n + 1)): Soft-Bayes shares the rest
            kept = math.sqrt((number + 1.0) / (number + 2.0))
            share = 1.0 - (1.0 - a.switching) * kept
        if share > 0.0:
            for p in range(a.slots):
                if losses[p] < np.inf:
                    chosen[p] = (1.0 - share) * chosen[p] + share / active
                    log_weights[p] = log(chosen[p])
