"""The default slots for a loss other than the squared one.

The strong methods, second-order ones and trees, minimise the squared loss. So the default slots go
on with the squared loss, whatever the loss of the bank: they find the conditional mean, quickly.
The loss itself is used twice. `Joint` chooses the weights by it. And, if it is a loss for
numbers, there are *shifted* slots: the prediction of another slot plus a correction that is learned
by gradient steps on this loss. The correction leads from the mean to the target of the loss, such
as a median or a quantile, as a function of the inputs. Labels have no shifted slots: the residual
of a label is not a label.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

from ...bank.slot import Slot
from ...kernels import ActiveDims, Additive, Gaussian, Kernel
from ...learners import FourierSGD
from ...losses import Loss, Squared

SHIFTED = (
    "random features, no forgetting",
    "random features, adaptive bias",
    "linear, adaptive bias",
    "random features, adaptive bias + tree 1",
)
"""The slots of each scaling that have shifted ones beside them."""

RATES = {"slow": 0.02, "fast": 0.2}
"""Learning rates of the gradient steps, in the target's deviations: errors are of the order of one
or of a tenth, and there is a rate for both."""

FEATURES = 48


def needs_shift(loss: Loss) -> bool:
    """Whether there are shifted slots."""
    return loss != Squared() and not loss.labels


def shifted_slots(
    index: Mapping[str, int], columns: Sequence[int], seed: int
) -> list[tuple[str, Slot]]:
    """The shifted slots and their names, for slots at these indices and inputs in these columns."""
    kernel = ActiveDims(_smooth_kernel(len(columns)), tuple(columns))
    return [
        (
            f"{name} + {speed} shift",
            Slot(kernel, FourierSGD(FEATURES, rate, seed), residual_of=index[name]),
        )
        for name in SHIFTED
        if name in index
        for speed, rate in RATES.items()
    ]


def _smooth_kernel(dimension: int) -> Kernel:
    """A wide kernel on single inputs and on all: the correction is smoother than the mean.

    k(x, x) = 1, so a step of rate r moves the function at x by r times the derivative of the loss.
    """
    return 0.5 * Additive(Gaussian(1.0), 1) + 0.5 * Gaussian(sqrt(dimension))
