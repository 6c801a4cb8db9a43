"""What the rules with a feedback graph share: rates, random draws, losses of the slots shown."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from ..native.arguments import Arguments, floats
from ..native.hash_rng import mix_key, unit_interval
from ..native.jit import inline
from .exponential_weights import LARGEST_SUM, exponential_weights

STEP_SIZES = ("constant", "inverse_sqrt")

FEEDBACK = Arguments(
    "feedback_graph",
    slots=int,
    rate=float,
    exploration=float,
    decaying=int,  # 1: rate and exploration are divided by sqrt(t)
    least_probability=float,
    seed=int,
    slot_loss=floats(None, "slots"),
    totals=floats("slots"),  # minus the logarithms of w, relative to the least
    shown=floats("slots"),  # 1 for slots that the present prediction uses
    probabilities=floats("slots"),  # q: with which a slot was shown
    posterior=floats("slots"),  # scratch: w / sum of w
    excess=floats("slots"),  # scratch: what is added to the sums
    chosen=floats(None, "slots"),
)


@inline
def decayed(a, value, number):
    """A rate at the sample t = `number` >= 1."""
    return value / np.sqrt(float(number)) if a.decaying == 1 else value


@inline
def uniform_draw(a, number, node, draw):
    """A number in [0, 1) for a node and a draw of sample t = `number`: a hash of seed and these."""
    return unit_interval(mix_key(mix_key(mix_key(np.uint64(a.seed), number), node), draw))


@inline
def draw_index(probabilities, losses, u):
    """The first index whose cumulative probability exceeds u, among slots that have not failed."""
    last = -1
    total = 0.0
    for p in range(len(losses)):
        if losses[p] < np.inf and probabilities[p] > 0.0:
            last = p
            total += probabilities[p]
            if u < total:
                return p
    return last  # rounding: the sum was below 1


@inline
def weigh_shown(a, losses, out):
    """out_p = w_p / sum of w over the slots shown, and 0 elsewhere. `excess` is used as scratch."""
    for p in range(a.slots):
        a.excess[p] = losses[p] if a.shown[p] > 0.0 else np.inf
    exponential_weights(1.0, a.totals, a.excess, out)


@inline
def estimate_losses(a, losses, rate):
    """excess_p = rate l_p / max(q_p, least) for slots that were shown, 0 for the others."""
    for p in range(a.slots):
        a.excess[p] = 0.0
        if a.shown[p] > 0.0 and losses[p] < np.inf:
            q = max(a.probabilities[p], a.least_probability)
            if q > 0.0:
                a.excess[p] = min(rate * losses[p] / q, LARGEST_SUM)
