"""Raker and AdaRaker: gradient descent on random features, mixed by exponential weights."""

from __future__ import annotations

from typing import Any

from ...bank.bank import KernelBank
from ...bank.layout import Slot
from ...combiners import AdaRaker, Hedge
from ...kernels import Kernel
from ...kernels.dictionary import Dictionary, gaussian_grid
from ...learners import FourierSGD
from ...utils import validation as check


def raker(
    dictionary: Any = None,
    *,
    features: int = 100,
    learning_rate: float = 0.1,
    step_size: str = "constant",
    rate: float | None = None,
    evidence: str = "loss",
    loss: Any = "squared",
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
    >>> bank = kb.presets.raker(features=20)
    >>> for n in range(50):
    ...     bank.learn_one(n / 10, 1.0)
    >>> bank.predict_one(5.0) > 0.5
    True
    """
    learner = FourierSGD(features, learning_rate, seed, step_size)
    rule = Hedge(rate, evidence)
    kernels = three_widths(dictionary)
    return KernelBank(kernels, learner, rule, loss, window=1, regularization=regularization)


def adaraker(
    dictionary: Any = None,
    *,
    features: int = 100,
    learning_rate: float = 0.35,
    levels: int = 13,
    restart: bool = False,
    rate: float = 1.0,
    normalize: bool = True,
    evidence: str = "loss",
    loss: Any = "squared",
    regularization: float = 0.001,
    seed: int = 0,
) -> KernelBank:
    """AdaRaker: instances of Raker with step sizes for every speed of change, and weights of them.

    Instance j = 0, 1, ..., levels - 1 has one slot per kernel, with step size
    min(1/2, learning_rate / sqrt(2^j)), and stands for intervals of 2^j samples. The combiner
    `kb.combiners.AdaRaker` weights instances and the kernels inside them.

    Parameters
    ----------
    dictionary : the kernels; by default Gaussians with widths 0.1, 1 and 10, as in the paper.
    features : random features of each slot, even.
    learning_rate : of the step sizes; the default is that of the authors' program.
    levels : number of instances; the longest interval has 2^(levels - 1) samples.
    restart : whether an instance begins from nothing with each of its intervals, as the paper has
        it. The authors' program, and the default, keeps functions and weights: it predicts far
        better, because an instance on short intervals never has time to learn a function.
    rate, normalize, evidence : of the combiner (`learning_rate` there).
    loss, regularization : of the bank.
    seed : draws the features.

    Reference: see `raker`.

    >>> import kernelbank as kb
    >>> bank = kb.presets.adaraker(features=20, levels=4)
    >>> bank.learn_one(0.0, 1.0)
    >>> len(bank.slots)  # three kernels in each of four instances
    12
    """
    kernels = three_widths(dictionary)
    remedy = "Give the number of lengths 1, 2, 4, ... of the intervals, such as 13."
    levels = check.count("levels", levels, "adaraker", remedy, most=40)
    remedy = "Give a positive number, such as 0.35."
    learning_rate = check.number("learning_rate", learning_rate, "adaraker", remedy, above=0)
    slots = []
    for level in range(levels):
        step = min(0.5, learning_rate / 2.0 ** (level / 2))
        learner = FourierSGD(features, step, seed, restart=2**level if restart else None)
        slots += [Slot(kernel, learner) for kernel in kernels]
    rule = AdaRaker(len(kernels), rate, restart, normalize, evidence)
    return KernelBank(
        slots=slots, combiner=rule, loss=loss, window=1, regularization=regularization
    )


def three_widths(dictionary: Any) -> Dictionary:
    """The kernels given, or Gaussians with the widths of the paper."""
    if dictionary is None:
        return gaussian_grid(0.1, 10, 3)
    return Dictionary([dictionary] if isinstance(dictionary, Kernel) else dictionary)
