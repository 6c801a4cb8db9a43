"""VAW^2: the forecaster of Vovk, Azoury and Warmuth, on random features and on kernels."""

from __future__ import annotations

from typing import Any

from ...bank.bank import KernelBank
from ...bank.layout import Slot
from ...combiners import VAW
from ...learners import FourierVAW
from ...losses import Squared
from .raker import three_widths


def vaw(
    dictionary: Any = None,
    *,
    features: int = 100,
    ridge: float = 0.01,
    ridge_over_kernels: float = 1.0,
    loss: Any = "squared",
    seed: int = 0,
) -> KernelBank:
    """VAW^2: least squares on random features for every kernel, combined by least squares.

    Both levels predict as Vovk, Azoury and Warmuth do: see `kb.learners.FourierVAW` and
    `kb.combiners.VAW`, also for the regret. The targets are to have mean 0 or so, since the
    function 0 is what both levels shrink to.

    Parameters
    ----------
    dictionary : the kernels; by default Gaussians with widths 0.1, 1 and 10.
    features : random features of each kernel, even.
    ridge : of the first level.
    ridge_over_kernels : of the second level, in squared units of the target.
    loss : of the bank; slots and weights are learned by squares, whatever it is.
    seed : draws the features.

    Reference: Rokhlin and Gurtovaya, Random feature-based double Vovk-Azoury-Warmuth algorithm for
    online multi-kernel learning, arXiv:2503.20087 (2025).

    >>> import kernelbank as kb
    >>> bank = kb.presets.vaw(features=20)
    >>> for n in range(50):
    ...     bank.learn_one(n / 10, 1.0)
    >>> round(bank.predict_one(5.0), 1)
    1.0
    """
    learner = FourierVAW(features, ridge, seed)
    slots = [Slot(kernel, learner, loss=Squared()) for kernel in three_widths(dictionary)]
    return KernelBank(slots=slots, combiner=VAW(ridge_over_kernels), loss=loss, window=1)
