"""AdaRaker: an instance of Raker per dyadic length of interval, and weights over the instances."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..losses.objective import Objective
from ..native.arguments import Arguments, floats, lanes
from ..native.functions import native
from ..native.jit import inline
from ..native.scalar_math import exp, power
from ..native.simd import WIDTH
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Combiner, PhaseList, State, combiner_phase
from .exponential_weights import (
    EVIDENCE,
    LARGEST_SUM,
    add_losses,
    exponential_weights,
    slot_losses,
)
from .newton_stacking import loss_at


@dataclass(frozen=True)
class AdaRaker(Combiner):
    """Weights over instances of Raker, one for every dyadic length of interval, and inside them.

    The slots are in groups of `kernels`: instance j = 0, 1, ... has the slots number j * kernels
    and after. Samples are numbered t = 1, 2, ... Instance j is active from t = 2^j on, and a new
    interval of it starts wherever t is a multiple of 2^j. With
    rate_j = min(1/2, learning_rate / sqrt(2^j)) and l the loss:

        v_jp proportional to exp(-rate_j * sum of l_p)            weights inside instance j
        f_j = sum_p v_jp f_p,  f = sum_j h_j f_j                  over active instances
        h_j proportional to rate_j exp(rate_j * sum of (l(f, y) - l(f_j, y)))

    The last sum is over the present interval of j. So an instance gains weight if it does better
    than the mixture: those with the step size that suits the present speed of change.

    As published, an instance is started afresh with each of its intervals: restart=True and
    slots that restart too (FourierSGD(restart=2^j)). The authors' own program keeps both the
    functions and the weights inside an instance, and starts only its h_j anew: restart=False. This
    predicts far better (see docs/combiners.md). `kb.presets.adaraker` makes either bank.

    Parameters
    ----------
    kernels : slots of each instance; the last instance may have fewer.
    learning_rate : positive; 1 is the paper's. Without unit if normalize, else per unit of loss.
    restart : whether the sums of l_p are those of the present interval, instead of all samples.
    normalize : whether losses are divided by the mean of l(f, y) (over at most 2^(levels - 1)
        samples) and count at most 1. The theory needs losses between 0 and 1. False: as they are.
    evidence : "loss", of the predictions alone, or "cost", with the norm (see `Hedge`): for l_p.

    Cost per sample: O(P), two exponentials per slot. Memory: 2 P numbers.

    Reference: Shen, Chen and Giannakis, Random feature-based online multi-kernel learning in
    environments with unknown dynamics, JMLR 20 (2019); the intervals are those of Daniely, Gonen
    and Shalev-Shwartz, Strongly adaptive online learning, ICML 2015.

    >>> import kernelbank as kb
    >>> rule = kb.combiners.AdaRaker(kernels=2)
    >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 6), combiner=rule)
    >>> trace = bank.run([0.0, 0.5, 1.0], [1.0, 1.1, 1.2])
    >>> trace.weights[0].tolist()  # one instance is active at first
    [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]
    """

    kernels: int = 3
    learning_rate: float = 1.0
    restart: bool = False
    normalize: bool = True
    evidence: str = "loss"

    fixed_slots: ClassVar[str] = "its instances are slots at fixed positions"

    def __post_init__(self) -> None:
        remedy = "Give how many slots each instance has: the number of kernels, such as 3."
        kernels = check.count("kernels", self.kernels, "AdaRaker", remedy, most=1_000_000)
        remedy = "Give a positive number, such as 1."
        rate = check.number("learning_rate", self.learning_rate, "AdaRaker", remedy, above=0)
        check.choice("evidence", self.evidence, "AdaRaker", EVIDENCE)
        object.__setattr__(self, "kernels", kernels)
        object.__setattr__(self, "learning_rate", rate)
        object.__setattr__(self, "restart", bool(self.restart))
        object.__setattr__(self, "normalize", bool(self.normalize))

    def _levels(self, slots: int) -> int:
        """The number of instances."""
        return -(-slots // self.kernels)

    def first_weights(self, slots: int) -> Floats:
        """Equal weights of the slots of the first instance."""
        size = min(self.kernels, slots)
        return np.where(np.arange(slots) < size, 1.0 / size, 0.0)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        levels = self._levels(slots)
        return {"totals": (levels, self.kernels), "log_shares": (levels,), "scale": (1,)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> PhaseList:
        levels = self._levels(len(weights))
        phase = combiner_phase(
            _adaraker,
            workspace,
            weights,
            levels=levels,
            kernels=self.kernels,
            rate=self.learning_rate,
            restart=int(self.restart),
            normalize=int(self.normalize),
            slot_loss=slot_losses(workspace, self.evidence),
            **state,
            value=objective.loss.value_address,
            parameters=objective.loss.parameters,
            losses=np.zeros((levels, self.kernels)),
            own=np.zeros((levels, self.kernels)),
            shares=np.zeros(levels),
            excess=np.zeros(self.kernels),
            one=np.zeros((3, 1, WIDTH)),
        )
        return [phase]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """shares: h of each instance; loss_above_best: (instances, kernels); scale: of losses."""
        slots, width = len(weights), self.kernels
        groups = range(0, slots, width)
        return {
            "shares": np.array([weights[start : start + width].sum() for start in groups]),
            "loss_above_best": state["totals"].copy(),
            "scale": state["scale"].copy(),
        }


_ADARAKER = Arguments(
    "adaraker",
    slots=int,
    levels=int,
    kernels=int,
    rate=float,
    restart=int,
    normalize=int,
    slot_loss=floats(None, "slots"),
    slot_predictions=floats(None, "slots"),
    new_targets=floats(None),
    totals=floats("levels", "kernels"),  # sums of l_p, relative to the instance's least
    log_shares=floats("levels"),  # sums of rate_j (l(f, y) - l(f_j, y)) over the present interval
    scale=floats(1),  # the mean of l(f, y)
    value=int,  # address of the loss
    parameters=floats(None),  # of the loss
    losses=floats("levels", "kernels"),  # scratch: l_p; inf for a slot that failed, or is not there
    own=floats("levels", "kernels"),  # scratch: v
    shares=floats("levels"),  # scratch: h
    excess=floats("kernels"),  # scratch: what is added to the sums
    one=lanes(3, 1),  # scratch of `loss_at`
    chosen=floats(None, "slots"),
)


@inline
def _rate(a, level):
    """rate_j = min(1/2, rate / sqrt(2^j))."""
    return min(0.5, a.rate * power(2.0, -0.5 * level))


@inline
def _is_multiple(number, level):
    """Whether `number` >= 1 is a multiple of 2^level."""
    return level < 62 and number % (1 << level) == 0


@inline
def _is_active(number, level):
    """Whether `number` >= 2^level."""
    return level < 62 and number >= (1 << level)


@inline
def _mix(a, number):
    """own = v and shares = h of the prediction of sample t = `number`; the sum of h, 1 or 0.

    Where no active instance has a slot left, the inactive ones take part.
    """
    size = 0.0
    for attempt in range(2):
        most = -np.inf
        for level in range(a.levels):
            exponential_weights(_rate(a, level), a.totals[level], a.losses[level], a.own[level])
            a.shares[level] = 0.0
            for p in range(a.kernels):
                if a.own[level, p] > 0.0 and (attempt == 1 or _is_active(number, level)):
                    a.shares[level] = 1.0
            if a.shares[level] > 0.0:
                most = max(most, a.log_shares[level])
        for level in range(a.levels):
            if a.shares[level] > 0.0:
                a.shares[level] = _rate(a, level) * exp(a.log_shares[level] - most)
                size += a.shares[level]
        if size > 0.0:
            break
    for level in range(a.levels):
        if size > 0.0:
            a.shares[level] /= size
    return 1.0 if size > 0.0 else 0.0


@inline
def _instance_prediction(a, t, level):
    """f_j = v_j'f."""
    value = 0.0
    for p in range(a.kernels):
        if a.own[level, p] > 0.0:
            value += a.own[level, p] * a.slot_predictions[t, level * a.kernels + p]
    return value


@inline
def _bounded_loss(a, prediction, target):
    """l(prediction, target); not a number or beyond 1e300: 1e300."""
    loss = loss_at(a, a.value, prediction, target)
    if not abs(loss) <= LARGEST_SUM:
        return LARGEST_SUM
    return loss


@inline
def _normalized(a, loss):
    """loss / scale, at most 1 in size; or the loss itself."""
    if a.normalize == 0 or loss == 0.0:
        return loss
    if abs(loss) >= a.scale[0]:
        return 1.0 if loss > 0.0 else -1.0
    return loss / a.scale[0]


@native(_ADARAKER)
def _adaraker(a, first, count):
    """chosen[t] = the weights after sample t."""
    longest = 1 << min(a.levels - 1, 61)
    for t in range(count):
        number = first + t + 1
        for level in range(a.levels):
            for p in range(a.kernels):
                slot = level * a.kernels + p
                a.losses[level, p] = a.slot_loss[t, slot] if slot < a.slots else np.inf

        # The losses of the mixture and of the instances, by the weights that predicted.
        alive = _mix(a, number)
        target = a.new_targets[t]
        mixture = 0.0
        for level in range(a.levels):
            if a.shares[level] > 0.0:
                mixture += a.shares[level] * _instance_prediction(a, t, level)
        combined = _bounded_loss(a, mixture, target)
        if alive > 0.0:
            a.scale[0] += (abs(combined) - a.scale[0]) / min(number, longest)
        mixture_loss = _normalized(a, combined)
        for level in range(a.levels):
            if a.shares[level] > 0.0:
                lost = _bounded_loss(a, _instance_prediction(a, t, level), target)
                gain = _rate(a, level) * (mixture_loss - _normalized(a, lost))
                total = a.log_shares[level] + gain
                a.log_shares[level] = min(max(total, -LARGEST_SUM), LARGEST_SUM)
            least = np.inf
            for p in range(a.kernels):
                least = min(least, a.losses[level, p])
            for p in range(a.kernels):
                if a.losses[level, p] < np.inf:
                    behind = _normalized(a, a.losses[level, p]) - _normalized(a, least)
                    a.excess[p] = min(behind, LARGEST_SUM)
            add_losses(a.totals[level], a.excess, a.losses[level])
            if _is_multiple(number + 1, level):  # the next sample is in a new interval
                a.log_shares[level] = 0.0
                if a.restart != 0:
                    for p in range(a.kernels):
                        a.totals[level, p] = 0.0

        _mix(a, number + 1)
        for p in range(a.slots):
            level = p // a.kernels
            a.chosen[t, p] = a.shares[level] * a.own[level, p - level * a.kernels]
