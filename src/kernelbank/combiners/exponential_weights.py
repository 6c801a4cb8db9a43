"""Sums and weights of the rules that weight slots by exp(-rate * their losses).

Only differences of losses matter: every sum is kept relative to the sum of the best slot. So it
does not grow with the stream, and its rounding is that of the differences. A slot with infinite
loss has failed: its sum is infinite and its weight is 0.
"""

# mypy: disable-error-code="no-untyped-def"
import numpy as np

from ..native.jit import inline
from ..native.scalar_math import exp
from ..native.workspace import Workspace
from ..utils.validation import Floats

EVIDENCE = ("loss", "cost")
"""What the sums are of: losses of predictions, or costs of the slots, which include the norm."""

LARGEST_SUM = 1e300  # a slot this far behind has weight 0; adding to the sum must not overflow


def slot_losses(workspace: Workspace, evidence: str) -> Floats:
    """(n, P): the losses or the costs of the slots, before they learn each sample."""
    return workspace.slot_loss if evidence == "loss" else workspace.slot_cost


@inline
def least_finite(numbers, losses):
    """The least number among slots that have not failed; inf if all have. Both are (P,)."""
    least = np.inf
    for p in range(len(losses)):
        if losses[p] < np.inf and numbers[p] < least:
            least = numbers[p]
    return least


@inline
def exponential_weights(rate, totals, losses, out):
    """out_p = exp(-rate totals_p) / sum_q exp(-rate totals_q), over slots that have not failed.

    totals, losses, out: (P,). With infinite rate the best slots share the weight. All weights are
    0 if all slots have failed.
    """
    slots = len(losses)
    least = least_finite(totals, losses)
    size = 0.0
    for p in range(slots):
        out[p] = 0.0
        if losses[p] < np.inf:
            behind = totals[p] - least
            if behind == 0.0:  # also where the rate is infinite
                out[p] = 1.0
            elif rate < np.inf:
                out[p] = exp(-rate * behind)
            size += out[p]
    if size > 0.0:
        for p in range(slots):
            out[p] /= size


@inline
def add_losses(totals, excess, losses):
    """totals_p += excess_p, then totals -= min totals. All are (P,)."""
    slots = len(losses)
    for p in range(slots):
        totals[p] = min(totals[p] + excess[p], LARGEST_SUM) if losses[p] < np.inf else np.inf
    least = least_finite(totals, losses)
    for p in range(slots):
        if losses[p] < np.inf:
            totals[p] -= least
