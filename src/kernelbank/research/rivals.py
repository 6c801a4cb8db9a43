"""Rivals of the paper: Raker and AdaRaker, as banks to compare with.

Both are gradient descent on random features for every kernel, mixed by exponential weights. They
are written in Python on the public protocol of a combiner (docs/own-components.md), to be read
beside their equations; a bank with `AdaRaker` is slower than one with a built-in combiner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..bank.bank import KernelBank
from ..bank.slot import Slot
from ..combiners import Combiner, Evidence, Hedge, State
from ..kernels import Kernel, gaussian_grid, kernel_list
from ..learners import FourierSGD
from ..losses import Objective
from ..utils import validation as check
from ..utils.validation import Floats

_LARGEST = 1e300
"""Losses and sums of losses beyond this count as this: adding to a sum must not overflow."""


def raker(
    dictionary: Kernel | Iterable[Kernel] | None = None,
    *,
    features: int = 100,
    learning_rate: float = 0.1,
    step_size: str = "constant",
    rate: float | None = None,
    evidence: str = "loss",
    loss: object = "squared",
    regularization: float = 0.001,
    seed: int = 0,
) -> KernelBank:
    """Raker: gradient descent on random features for every kernel, mixed by exponential weights.

    Parameters
    ----------
    dictionary : the kernels; by default Gaussians with widths 0.1, 1 and 10, as in the paper.
    features : random features of each kernel, even.
    learning_rate, step_size : of the slots.
    rate : of the exponential weights; by default it adapts to the losses (AdaHedge).
    evidence : what the weights follow: "loss", of the predictions alone, or "cost", the loss plus
        regularization / 2 * norm^2, as in the paper.
    loss, regularization : of the bank.
    seed : draws the features.

    Reference: Shen, Chen and Giannakis, Random feature-based online multi-kernel learning in
    environments with unknown dynamics, Journal of Machine Learning Research 20 (2019).

    >>> import kernelbank as kb
    >>> bank = kb.rivals.raker(features=20)
    >>> for n in range(50):
    ...     bank.learn_one(n / 10, 1.0)
    >>> bank.predict_one(5.0) > 0.5
    True
    """
    learner = FourierSGD(features, learning_rate, seed, step_size)
    rule = Hedge(rate, evidence)
    kernels = _three_widths(dictionary)
    return KernelBank(kernels, learner, rule, loss, window=1, regularization=regularization)


def adaraker(
    dictionary: Kernel | Iterable[Kernel] | None = None,
    *,
    features: int = 100,
    learning_rate: float = 0.35,
    levels: int = 13,
    restart: bool = False,
    rate: float = 1.0,
    normalize: bool = True,
    loss: object = "squared",
    regularization: float = 0.001,
    seed: int = 0,
) -> KernelBank:
    """AdaRaker: instances of Raker with step sizes for every speed of change, and weights of them.

    Instance j = 0, 1, ..., levels - 1 has one slot per kernel, with step size
    min(1/2, learning_rate / sqrt(2^j)), and stands for intervals of 2^j samples. The combiner
    `kb.rivals.AdaRaker` weights instances and the kernels inside them.

    Parameters
    ----------
    dictionary : the kernels; by default Gaussians with widths 0.1, 1 and 10, as in the paper.
    features : random features of each slot, even.
    learning_rate : of the step sizes; the default is that of the authors' program.
    levels : number of instances; the longest interval has 2^(levels - 1) samples.
    restart : whether an instance begins from nothing with each of its intervals, as the paper has
        it. The authors' program, and the default, keeps functions and weights: it predicts far
        better, because an instance on short intervals never has time to learn a function.
    rate, normalize : of the combiner (`learning_rate` there).
    loss, regularization : of the bank.
    seed : draws the features.

    Reference: see `raker`.

    >>> import kernelbank as kb
    >>> bank = kb.rivals.adaraker(features=20, levels=4)
    >>> bank.learn_one(0.0, 1.0)
    >>> len(bank.slots)  # three kernels in each of four instances
    12
    """
    kernels = _three_widths(dictionary)
    remedy = "Give the number of lengths 1, 2, 4, ... of the intervals, such as 13."
    levels = check.count("levels", levels, "adaraker", remedy, most=40)
    remedy = "Give a positive number, such as 0.35."
    learning_rate = check.number("learning_rate", learning_rate, "adaraker", remedy, above=0)
    slots = []
    for level in range(levels):
        step = min(0.5, learning_rate / 2.0 ** (level / 2))
        learner = FourierSGD(features, step, seed, restart=2**level if restart else None)
        slots += [Slot(kernel, learner) for kernel in kernels]
    rule = AdaRaker(len(kernels), rate, restart, normalize)
    return KernelBank(
        slots=slots, combiner=rule, loss=loss, window=1, regularization=regularization
    )


BANKS: tuple[Callable[..., KernelBank], ...] = (adaraker, raker)
"""The functions that make a bank, for `kernelbank compare --rivals`."""


def _three_widths(dictionary: Kernel | Iterable[Kernel] | None) -> list[Kernel]:
    """The kernels given, or Gaussians with the widths of the paper."""
    kernels = gaussian_grid(0.1, 10, 3) if dictionary is None else dictionary
    return kernel_list(kernels, "dictionary", "a rival")


@dataclass(frozen=True)
class AdaRaker(Combiner):
    """Weights over instances of Raker, one for every dyadic length of interval, and inside them.

    The slots are in groups of `kernels`: instance j = 0, 1, ... has the slots number j * kernels
    and after. Samples are numbered t = 1, 2, ... Instance j is active from t = 2^j on, and a new
    interval of it starts wherever t is a multiple of 2^j. With
    rate_j = min(1/2, learning_rate / sqrt(2^j)) and l the loss:

        v_jp proportional to exp(-rate_j * sum of l_p)            weights inside instance j     (1)
        h_j proportional to rate_j exp(rate_j * sum of (l(f, y) - l(f_j, y)))                   (2)
        f_j = sum_p v_jp f_p,  f = sum_j h_j f_j                  over active instances         (3)

    The sum in (2) is over the present interval of j. So an instance gains weight if it does better
    than the mixture: those with the step size that suits the present speed of change.

    As published, an instance is started afresh with each of its intervals: restart=True and
    slots that restart too (FourierSGD(restart=2^j)). The authors' own program keeps both the
    functions and the weights inside an instance, and starts only its h_j anew: restart=False. This
    predicts far better. `kb.rivals.adaraker` makes either bank.

    A file of a bank with this combiner is loaded as one with a combiner of your own:
    `kb.load(path, components={"AdaRaker": kb.rivals.AdaRaker})`.

    Parameters
    ----------
    kernels : slots of each instance; the last instance may have fewer.
    learning_rate : positive; 1 is the paper's. Without unit if normalize, else per unit of loss.
    restart : whether the sums of l_p are those of the present interval, instead of all samples.
    normalize : whether losses are divided by the mean of l(f, y) (over at most 2^(levels - 1)
        samples) and count at most 1. The theory needs losses between 0 and 1. False: as they are.

    Cost per sample: O(P), in Python. Memory: P numbers, and one per instance.

    Reference: Shen, Chen and Giannakis, Random feature-based online multi-kernel learning in
    environments with unknown dynamics, JMLR 20 (2019); the intervals are those of Daniely, Gonen
    and Shalev-Shwartz, Strongly adaptive online learning, ICML 2015.

    >>> import kernelbank as kb
    >>> rule = kb.rivals.AdaRaker(kernels=2)
    >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 6), combiner=rule)
    >>> trace = bank.run([0.0, 0.5, 1.0], [1.0, 1.1, 1.2])
    >>> trace.weights[0].tolist()  # one instance is active at first
    [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]
    """

    kernels: int = check.count_field(
        3, "Give how many slots each instance has: the number of kernels, such as 3.", most=10**6
    )
    learning_rate: float = check.number_field(1.0, above=0)
    restart: bool = False
    normalize: bool = True

    fixed_slots: ClassVar[str] = "its instances are slots at fixed positions"

    def first_weights(self, slots: int) -> Floats:
        """Equal weights of the slots of the first instance."""
        size = min(self.kernels, slots)
        return np.where(np.arange(slots) < size, 1.0 / size, 0.0)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        """The sums behind the weights, with J instances of K = `kernels` slots each.

        - totals (J, K): the sums of l_p in (1), relative to the least of the instance; inf for a
          slot that has failed, or is not there
        - log_shares (J,): rate_j times the sum in (2)
        - scale (1,): the mean of l(f, y)
        """
        instances = -(-slots // self.kernels)
        return {"totals": (instances, self.kernels), "log_shares": (instances,), "scale": (1,)}

    def combine(
        self, objective: Objective, evidence: Evidence, state: State, weights: Floats
    ) -> Floats:
        losses = evidence.slot_loss
        targets = evidence.targets[objective.window - 1 :]
        chosen = np.empty(losses.shape)
        with np.errstate(all="ignore"):  # of slots that have failed
            for t in range(len(losses)):
                number = evidence.first + t + 1  # of the sample, from 1
                slot_losses = self._by_instance(losses[t], np.inf)
                predictions = self._by_instance(evidence.slot_predictions[t], 0.0)
                inside, shares = self._mix(state, slot_losses, number)  # which predicted the sample
                instance_predictions = np.where(inside > 0, inside * predictions, 0.0).sum(axis=1)
                mixture = (shares * instance_predictions).sum()
                f = np.append(instance_predictions, mixture)  # (3)
                instance_losses = _bounded(objective.loss.value(f, np.full(len(f), targets[t])))
                self._learn(state, number, slot_losses, instance_losses, shares > 0)
                inside, shares = self._mix(state, slot_losses, number + 1)
                chosen[t] = (shares[:, None] * inside).ravel()[: len(weights)]
        return chosen

    def _by_instance(self, values: Floats, missing: float) -> Floats:
        """(J, K): values of the slots; `missing` for those that the last instance does not have."""
        padded = np.full(-(-len(values) // self.kernels) * self.kernels, missing)
        padded[: len(values)] = values
        return padded.reshape(-1, self.kernels)

    def _rates(self, instances: int) -> Floats:
        """(J,): rate_j."""
        rates = self.learning_rate * 2.0 ** (-0.5 * np.arange(instances))
        return np.asarray(np.minimum(0.5, rates))

    def _mix(self, state: State, slot_losses: Floats, number: int) -> tuple[Floats, Floats]:
        """v, (J, K), and h, (J,), for the prediction of sample `number`.

        Where no active instance has a slot left, the inactive ones take part. If no slot is left at
        all, h is 0.
        """
        rates = self._rates(len(slot_losses))
        alive = slot_losses < np.inf
        totals = np.where(alive, state["totals"], np.inf)
        behind = totals - totals.min(axis=1, keepdims=True)
        inside = _normalised(np.where(alive, np.exp(-rates[:, None] * behind), 0.0))  # (1)
        usable = alive.any(axis=1)
        active = usable & (number >= _interval_lengths(len(rates)))
        members = active if active.any() else usable
        log_shares = np.where(members, state["log_shares"], -np.inf)
        return inside, _normalised(rates * np.exp(log_shares - log_shares.max()))  # (2)

    def _learn(
        self, state: State, number: int, slot_losses: Floats, losses: Floats, active: np.ndarray
    ) -> None:
        """Take up the losses of sample `number`.

        slot_losses : (J, K). losses : (J + 1,), of the instances, and of the mixture as the last.
        active : (J,), the instances that have a share in the prediction.
        """
        totals, log_shares, scale = state["totals"], state["log_shares"], state["scale"]
        lengths = _interval_lengths(len(totals))
        if active.any():
            scale[0] += (abs(losses[-1]) - scale[0]) / min(number, int(lengths[-1]))
        gains = self._in_units(losses[-1:], scale[0]) - self._in_units(losses[:-1], scale[0])
        sums = np.clip(log_shares + self._rates(len(totals)) * gains, -_LARGEST, _LARGEST)
        log_shares[:] = np.where(active, sums, log_shares)

        least = slot_losses.min(axis=1, keepdims=True)
        behind = self._in_units(slot_losses, scale[0]) - self._in_units(least, scale[0])
        sums = np.where(slot_losses < np.inf, np.minimum(totals + behind, _LARGEST), np.inf)
        least = sums.min(axis=1, keepdims=True)
        totals[:] = np.where(np.isfinite(sums), sums - least, np.inf)

        new = (number + 1) % lengths == 0  # the next sample is in a new interval
        log_shares[new] = 0.0
        if self.restart:
            totals[new] = 0.0

    def _in_units(self, losses: Floats, scale: float) -> Floats:
        """losses / scale, at most 1 in size, if losses are normalised."""
        if not self.normalize:
            return losses
        return np.where(losses == 0, 0.0, np.clip(losses / scale, -1.0, 1.0))

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """shares: h of each instance; loss_above_best: (instances, kernels); scale: of losses."""
        return {
            "shares": self._by_instance(weights, 0.0).sum(axis=1),
            "loss_above_best": state["totals"].copy(),
            "scale": state["scale"].copy(),
        }


def _interval_lengths(instances: int) -> np.ndarray:
    """(J,): 2^j, at most 2^62, which no number of samples reaches."""
    return 1 << np.minimum(np.arange(instances), 62)


def _bounded(losses: Floats) -> Floats:
    """The losses; not a number or beyond 1e300: 1e300."""
    return np.where(np.abs(losses) <= _LARGEST, losses, _LARGEST)


def _normalised(numbers: Floats) -> Floats:
    """numbers >= 0 divided by their sum along the last axis; 0 where it is 0."""
    total = numbers.sum(axis=-1, keepdims=True)
    return np.where(total > 0, numbers / total, 0.0)


__all__ = ["AdaRaker", "adaraker", "raker"]
