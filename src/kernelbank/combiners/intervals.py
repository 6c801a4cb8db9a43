"""Intervals: exponential weights on every time scale at once."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..losses.objective import Objective
from ..native.arguments import Arguments, floats
from ..native.functions import native
from ..native.jit import inline
from ..native.scalar_math import exp, power
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Combiner, PhaseList, State, combiner_phase
from .exponential_weights import LARGEST_SUM, add_losses, exponential_weights, least_finite


@dataclass(frozen=True)
class Intervals(Combiner):
    """Exponential weights restarted on intervals of every dyadic length, mixed by their regrets.

    Instance i restarts at every sample number that is a multiple of 2^i. Within an interval its
    weights are v_ip proportional to exp(-rate_i * sum of u_p), with
    rate_i = min(1/2, learning_rate / sqrt(2^i)). The weights are w = sum_i h_i v_i with h_i
    proportional to rate_i exp(rate_i * sum over its interval of (w'u - v_i'u)), so that the
    instance with the best time scale gains. Short instances follow changes, long ones average
    noise. At the end of the longest interval all instances restart: choose it longer than the
    useful memory.

    The theory needs losses between 0 and 1. u_p is the loss of the slot's prediction minus the
    least loss of that sample, divided by the mean size of the combined loss w'l (over at most
    2^(levels - 1) samples), and at most 1. So losses have no unit; a slot that diverges, however
    large its loss, counts 1 and does not change the scale, as it would change a running maximum;
    and the scale follows a stream that becomes easier.

    Parameters
    ----------
    learning_rate : positive, without unit; 1 is the paper's.
    levels : number of lengths, 1 to 40; the longest interval has 2^(levels - 1) samples.

    Cost per sample: O(levels * P), two exponentials per slot and level. Memory: levels * (P + 1).

    Reference: Shen, Chen and Giannakis, Random feature-based online multi-kernel learning in
    environments with unknown dynamics, JMLR 2019: `AdaRaker` without step sizes per length.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 4), combiner=kb.combiners.Intervals(levels=3))
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> bank.weights.tolist()  # after four samples all three instances restart
    [0.25, 0.25, 0.25, 0.25]
    """

    learning_rate: float = 1.0
    levels: int = 16

    def __post_init__(self) -> None:
        remedy = "Give a positive number without unit, such as 1."
        rate = check.number("learning_rate", self.learning_rate, "Intervals", remedy, above=0)
        remedy = "Give the number of lengths 1, 2, 4, ... of the intervals, such as 16."
        levels = check.count("levels", self.levels, "Intervals", remedy, most=40)
        object.__setattr__(self, "learning_rate", rate)
        object.__setattr__(self, "levels", levels)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        return {"totals": (self.levels, slots), "log_shares": (self.levels,), "scale": (1,)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> PhaseList:
        slots = len(weights)
        phase = combiner_phase(
            _intervals,
            workspace,
            weights,
            levels=self.levels,
            rate=self.learning_rate,
            **state,
            own=np.zeros((self.levels, slots)),
            shares=np.zeros(self.levels),
            u=np.zeros(slots),
            mixture=np.zeros(slots),
        )
        return [phase]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """shares: h of each instance; loss_above_best: (levels, P); scale: of the losses."""
        rates = np.minimum(0.5, self.learning_rate / np.sqrt(2.0 ** np.arange(self.levels)))
        shares = rates * np.exp(state["log_shares"] - state["log_shares"].max())
        return {
            "shares": shares / shares.sum(),
            "loss_above_best": state["totals"].copy(),
            "scale": state["scale"].copy(),
        }


_INTERVALS = Arguments(
    "intervals",
    slots=int,
    levels=int,
    rate=float,
    slot_loss=floats(None, "slots"),
    totals=floats("levels", "slots"),  # sums of u over the present interval
    log_shares=floats("levels"),  # sums of rate_i (w'u - v_i'u) over the present interval
    scale=floats(1),  # the mean combined loss
    own=floats("levels", "slots"),  # v_i; this and the next three are scratch
    shares=floats("levels"),  # h_i
    u=floats("slots"),
    mixture=floats("slots"),  # w
    chosen=floats(None, "slots"),
)


@inline
def _level_rate(rate, level):
    """rate_i = min(1/2, rate / sqrt(2^i))."""
    return min(0.5, rate * power(2.0, -0.5 * level))


@inline
def _mix_instances(a, losses, out):
    """own[i] = v_i, the weights of instance i; shares_i = h_i; out = w = sum_i h_i v_i, (P,)."""
    for level in range(a.levels):
        rate = _level_rate(a.rate, level)
        exponential_weights(rate, a.totals[level], losses, a.own[level])
    # h_i = rate_i exp(log_shares_i), divided by their sum
    most = -np.inf
    for level in range(a.levels):
        most = max(most, a.log_shares[level])
    size = 0.0
    for level in range(a.levels):
        a.shares[level] = _level_rate(a.rate, level) * exp(a.log_shares[level] - most)
        size += a.shares[level]
    for level in range(a.levels):
        a.shares[level] /= size
    for p in range(a.slots):
        out[p] = 0.0
    for level in range(a.levels):
        for p in range(a.slots):
            out[p] += a.shares[level] * a.own[level, p]


@native(_INTERVALS)
def _intervals(a, first, count):
    """chosen[t] = the weights after sample t."""
    log_shares, scale, u, mixture = a.log_shares, a.scale, a.u, a.mixture
    longest = 1 << (a.levels - 1)
    for t in range(count):
        losses, chosen = a.slot_loss[t], a.chosen[t]
        least = least_finite(losses, losses)
        if least == np.inf:
            for p in range(a.slots):
                chosen[p] = 0.0
            continue
        _mix_instances(a, losses, mixture)
        combined = 0.0  # w'|l|
        for p in range(a.slots):
            if losses[p] < np.inf:
                combined += mixture[p] * abs(losses[p])
        number = first + t + 1
        scale[0] += (min(combined, LARGEST_SUM) - scale[0]) / min(number, longest)
        for p in range(a.slots):  # u_p = min((l_p - min l) / scale, 1)
            excess = losses[p] - least
            u[p] = 1.0 if excess > scale[0] else excess / scale[0]
            if excess == 0.0:
                u[p] = 0.0
        mixture_loss = 0.0  # w'u
        for p in range(a.slots):
            mixture_loss += mixture[p] * u[p]
        for level in range(a.levels):
            instance_loss = 0.0  # v_i'u
            for p in range(a.slots):
                instance_loss += a.own[level, p] * u[p]
            log_shares[level] += _level_rate(a.rate, level) * (mixture_loss - instance_loss)
            add_losses(a.totals[level], u, losses)
            if number % (1 << level) == 0:  # the end of its interval: restart
                log_shares[level] = 0.0
                for p in range(a.slots):
                    a.totals[level, p] = 0.0
        _mix_instances(a, losses, chosen)
