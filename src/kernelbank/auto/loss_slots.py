"""What the recipe becomes for a loss other than the squared one.

The methods that make a bank strong, second-order ones and trees, know squares. So the slots of the
recipe go on learning by squares, whatever the loss: they find the mean, quickly. The loss itself
comes in twice. It decides the weights, by `NewtonStacking`. And, if it is one for numbers, there are
*shifted* slots: some of the others, each with what gradient steps by that loss add to it. These
take a slot from the mean to what the loss aims at, be it a median or a quantile, and differently
for different inputs. Labels cannot be shifted: what a slot leaves of a label is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

from ..bank.layout import Slot
from ..kernels import ActiveDims, Additive, Gaussian, Kernel
from ..learners import FourierSGD
from ..losses import Loss, Squared

SHIFTED = ("mixed", "mixed, following", "linear, following", "tree 1 on mixed, following")
"""The slots of each scaling that stand shifted beside themselves."""

RATES = {"slowly": 0.02, "quickly": 0.2}
"""Of the gradient steps, in the target's deviations: errors are of the order of one, or of a tenth
of it, and there is a rate for both."""

FEATURES = 48


def shifts(loss: Loss) -> bool:
    """Whether there are shifted slots, which others have to make room for."""
    return loss != Squared() and not loss.labels


def shifted_slots(
    places: Mapping[str, int], columns: Sequence[int], seed: int
) -> list[tuple[str, Slot]]:
    """The named slots that stand, shifted, on those at these places; inputs are in the columns."""
    kernel = ActiveDims(_smooth_kernel(len(columns)), tuple(columns))
    return [
        (
            f"{name}, shifted {how}",
            Slot(kernel, FourierSGD(FEATURES, rate, seed), residual_of=places[name]),
        )
        for name in SHIFTED
        if name in places
        for how, rate in RATES.items()
    ]


def _smooth_kernel(dimension: int) -> Kernel:
    """Wide, of single inputs and of all: how errors spread is a simpler function than the mean.

    k(x, x) = 1, so that a step of rate r moves the function by r times the slope there.
    """
    return 0.5 * Additive(Gaussian(1.0), 1) + 0.5 * Gaussian(sqrt(dimension))
