"""Raker and AdaRaker."""

from __future__ import annotations

from typing import Any

from ...bank.bank import KernelBank
from ...combiners import Hedge, Intervals
from ...kernels.dictionary import Dictionary, gaussian_grid
from ...learners import FourierSGD


def raker(
    dictionary: Any = None,
    *,
    features: int = 100,
    learning_rate: float = 0.1,
    rate: float | None = None,
    loss: Any = "squared",
    regularization: float = 0.001,
    seed: int = 0,
) -> KernelBank:
    """Raker: gradient descent on random features for every kernel, mixed by exponential weights.

    Parameters
    ----------
    dictionary : the kernels; by default Gaussians with widths 0.1, 1 and 10, as in the paper.
    features : random features of each kernel, even.
    learning_rate : step size of the slots.
    rate : of the exponential weights; by default it adapts to the losses (AdaHedge).
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
    combiner = Hedge(rate)
    return _mixed(dictionary, combiner, features, learning_rate, loss, regularization, seed)


def adaraker(
    dictionary: Any = None,
    *,
    features: int = 100,
    learning_rate: float = 0.1,
    loss: Any = "squared",
    regularization: float = 0.001,
    seed: int = 0,
) -> KernelBank:
    """AdaRaker: as `raker`, with weights that are learned anew on every dyadic interval of time.

    The mixture over the intervals follows changes of unknown speed (see `kb.combiners.Intervals`).
    Here the slots themselves are not restarted.

    Parameters and reference: see `raker`.

    >>> import kernelbank as kb
    >>> bank = kb.presets.adaraker(features=20)
    >>> bank.learn_one(0.0, 1.0)
    >>> bank.samples
    1
    """
    combiner = Intervals()
    return _mixed(dictionary, combiner, features, learning_rate, loss, regularization, seed)


def _mixed(
    dictionary: Any,
    combiner: Any,
    features: int,
    learning_rate: float,
    loss: Any,
    regularization: float,
    seed: int,
) -> KernelBank:
    kernels: Dictionary | Any = gaussian_grid(0.1, 10, 3) if dictionary is None else dictionary
    learner = FourierSGD(features, learning_rate, seed)
    return KernelBank(kernels, learner, combiner, loss, window=1, regularization=regularization)
