"""BayesianAveraging: weights by the products of the slots' likelihoods, with forgetting."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..losses.objective import Objective
from ..native.functions import native
from ..native.scalar_math import log
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import PhaseList, State, combiner_phase
from .likelihood import (
    LIKELIHOOD,
    LikelihoodRule,
    check_noise,
    likelihood_arguments,
    normalize,
    score_slots,
)


@dataclass(frozen=True)
class BayesianAveraging(LikelihoodRule):
    """Online Bayesian model averaging: weights are the probabilities of the slots, given the past.

    With l_p the likelihood of the sample under slot p, a normal density with mean f_p(x) and
    variance s_p^2 (1 + v_p), and v_p the variance of f_p(x) over that of the noise (0 without one):

        w_p <- (w_p l_p)^forgetting / sum,  then  w_p <- (1 - switching) w_p + switching / P.

    forgetting < 1 is dynamic model averaging; switching > 0 lets the true slot change, with this
    probability per sample, to any slot. Without both, the log score of the mixture of the densities
    is below that of the best slot by at most log P over any stream, and the weights end at one
    slot, the closest in Kullback-Leibler divergence. With switching a, against any sequence of
    slots with m changes, by log P + m log(P / a) + (n - m - 1) log(1 / (1 - a)).

    For the logistic loss the likelihood is exp(-loss).

    Parameters
    ----------
    forgetting : above 0 and at most 1 (none): the power of the past.
    switching : from 0 (never) to 1, per sample.
    noise : variance s_p^2 of the targets' noise. None: one for each slot, the mean of
        (y - f_p(x))^2 / (1 + v_p) over the samples before, and over one more at which it is the
        mean over all slots and samples. So the first sample is no evidence.

    Cost per sample: O(P), one exponential and three logarithms per slot. Memory: 2 P numbers.

    Reference: Hoeting, Madigan, Raftery and Volinsky, Bayesian model averaging, Statistical Science
    14 (1999); Raftery, Kárný and Ettler, Online prediction under model uncertainty via dynamic
    model averaging, Technometrics 52 (2010); Herbster and Warmuth (1998) for switching.

    >>> import kernelbank as kb
    >>> learner = kb.learners.FourierRLS(features=20)
    >>> combiner = kb.combiners.BayesianAveraging()
    >>> bank = kb.KernelBank(kb.gaussian_grid(0.1, 10, 4), learner, combiner)
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> sorted(bank.evidence())
    ['log_weights', 'residuals']
    """

    forgetting: float = 1.0
    switching: float = 0.0
    noise: float | None = None

    def __post_init__(self) -> None:
        forgetting = check.fraction(0.99, positive=True)
        check.settings(self, forgetting=forgetting, switching=check.fraction(0.01))
        object.__setattr__(self, "noise", check_noise(self.noise, "BayesianAveraging"))

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> PhaseList:
        phase = combiner_phase(
            _average,
            workspace,
            weights,
            forgetting=self.forgetting,
            switching=self.switching,
            **likelihood_arguments(self.noise, objective, state, len(weights)),
        )
        return [phase]


@native(LIKELIHOOD.extended("bayesian_averaging", forgetting=float, switching=float))
def _average(a, first, count):
    """chosen[t] = the weights after sample t."""
    log_weights = a.log_weights
    for t in range(count):
        losses, chosen = a.slot_loss[t], a.chosen[t]
        informed = score_slots(a, t, first + t)
        active = 0
        for p in range(a.slots):
            if losses[p] < np.inf:
                active += 1
                if informed:
                    log_weights[p] = a.forgetting * (log_weights[p] + a.scores[p])
        normalize(log_weights, losses, chosen)
        if a.switching > 0.0:
            for p in range(a.slots):
                if losses[p] < np.inf:
                    chosen[p] = (1.0 - a.switching) * chosen[p] + a.switching / active
                    log_weights[p] = log(chosen[p])
