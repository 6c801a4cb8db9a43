"""The likelihood of each sample under each slot, for the Bayesian rules.

Slot p predicts a normal distribution with mean f_p(x) and variance s_p^2 (1 + v_p): v_p is the
variance of f_p(x) in units of the noise's, 0 if the learner has none, and s_p^2 is the variance of
the noise. If the user does not give s_p^2, it is estimated from the samples before, n of them: with

    r_p = (y - f_p(x))^2 / (1 + v_p),

s_p^2 = (sum of r_p + m) / (n + 1), where m is the mean of r over all samples and all slots that
have not failed. So the first sample is no evidence (s_p^2 = 0), and no slot is certain after a few
lucky ones. Multiplying targets and predictions by a factor changes no weight.

For the logistic loss the likelihood of a label is exp(-loss).
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..losses import Logistic
from ..losses.objective import Objective
from ..native.arguments import Arguments, floats
from ..native.jit import inline
from ..native.scalar_math import exp, log
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Combiner, State

LIKELIHOOD = Arguments(
    "likelihood",
    slots=int,
    noise=float,  # 0: estimated
    logistic=int,
    new_targets=floats(None),
    slot_predictions=floats(None, "slots"),
    slot_loss=floats(None, "slots"),
    variances=floats(None, "slots"),
    log_weights=floats("slots"),  # state: of the next prediction; -inf for a slot that has failed
    residuals=floats("slots"),  # state: sum of r
    scores=floats("slots"),  # scratch: log likelihoods, minus the largest
    chosen=floats(None, "slots"),
)
"""Arguments that the Bayesian rules share."""

_LARGEST = 1e300


def check_noise(value: Any, owner: str) -> float | None:
    """A variance, or None."""
    if value is None:
        return None
    remedy = "Give the variance of the targets' noise, or None to estimate it."
    return check.number("noise", value, owner, remedy, above=0)


def likelihood_arguments(
    noise: float | None, objective: Objective, state: State, slots: int
) -> dict[str, Any]:
    """The arguments that are not part of the workspace."""
    return {
        "noise": 0.0 if noise is None else noise,
        "logistic": isinstance(objective.loss, Logistic),
        "scores": np.zeros(slots),
        **state,
    }


class LikelihoodRule(Combiner):
    """What the Bayesian rules share: the evidence that they need, and their state."""

    needs: ClassVar[frozenset[str]] = frozenset(["variances"])

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        return {"log_weights": (slots,), "residuals": (slots,)}

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """log_weights: relative to the largest; residuals: sums of squared standardised errors."""
        return super().diagnostics(state, weights)


@inline
def score_slots(a, t, number):
    """scores[p] = log likelihood of sample t, minus the largest; then the sums of r follow.

    Returns whether there is any evidence. Slots that have failed keep whatever stands in scores.
    """
    scores, residuals, losses = a.scores, a.residuals, a.slot_loss[t]
    mean, active = 0.0, 0  # of residuals / number
    for p in range(a.slots):
        if losses[p] < np.inf:
            active += 1
            mean += residuals[p]
    mean = mean / (active * number) if active > 0 and number > 0 else 0.0
    largest, informed = -np.inf, True
    for p in range(a.slots):
        if not losses[p] < np.inf:
            continue
        if a.logistic != 0:
            scores[p] = -losses[p]
        else:
            v = a.variances[t, p]
            spread = 1.0 + v if v > 0.0 else 1.0  # NaN: no variance
            error = a.new_targets[t] - a.slot_predictions[t, p]
            r = min(error * error / spread, _LARGEST)
            s = a.noise if a.noise > 0.0 else (residuals[p] + mean) / (number + 1.0)
            if s > 0.0:
                scores[p] = max(-0.5 * (log(s) + log(spread) + r / s), -_LARGEST)
            else:
                informed = False
            residuals[p] = min(residuals[p] + r, _LARGEST)
        largest = max(largest, scores[p])
    for p in range(a.slots):
        if losses[p] < np.inf:
            scores[p] -= largest
    return informed and active > 0


@inline
def mixture_score(a, losses):
    """log sum_p w_p exp(scores[p]), from log_weights of any scale."""
    top, size, total = -np.inf, 0.0, 0.0
    for p in range(a.slots):
        if losses[p] < np.inf:
            top = max(top, a.log_weights[p])
    highest = -np.inf
    for p in range(a.slots):
        if losses[p] < np.inf:
            size += exp(a.log_weights[p] - top)
            highest = max(highest, a.log_weights[p] + a.scores[p])
    for p in range(a.slots):
        if losses[p] < np.inf:
            total += exp(a.log_weights[p] + a.scores[p] - highest)
    return highest + log(total) - top - log(size)


@inline
def normalize(log_weights, losses, chosen):
    """log_weights -= their largest; chosen = exp(log_weights) / sum; 0 for failed slots. (P,)."""
    top, size = -np.inf, 0.0
    slots = len(losses)
    for p in range(slots):
        if losses[p] < np.inf:
            top = max(top, log_weights[p])
    for p in range(slots):
        if losses[p] < np.inf:
            log_weights[p] = max(log_weights[p] - top, -_LARGEST)
            chosen[p] = exp(log_weights[p])
            size += chosen[p]
        else:
            log_weights[p] = -np.inf
            chosen[p] = 0.0
    if size > 0.0:
        for p in range(slots):
            chosen[p] /= size
