"""NearestNeighborGP: at every point a small Gaussian process on the nearest past samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .. import _core
from ..kernels.base import Kernel
from ..kernels.dimensions import active_coordinates
from ..losses import Squared
from ..losses.base import Objective
from ..utils import validation as check
from .base import Learner, whole


@dataclass(frozen=True)
class NearestNeighborGP(Learner):
    """Gaussian process regression from the nearest of the last samples, anew at every point.

    With z_1 .. z_k the nearest inputs to x among the last `memory` samples, v their targets, and
    K the matrix of k(z_i, z_j) + constant:

        f(x) = q' (K + noise I)^-1 v,   q_i = k(x, z_i) + constant.

    Near means a small Euclidean distance, in the coordinates of `ActiveDims` if the kernel has it;
    of equally near inputs the newer are taken. So the capacity grows with the stream, up to
    `memory` samples, where a method with a fixed number of features or centres stands still. The
    samples are forgotten when `memory` newer ones have come. Inputs are rounded to single
    precision, so that more of them can be searched.

    f is a posterior mean, but of another small process at every x, so it is not a function of the
    kernel's space: norm^2 is 0, which means none.

    The four slots of a pack, with kernels of one structure, share the search: four widths cost
    little more than one. Cost per step and pack: memory * inputs products for the search, and
    O(neighbors^3 / 6) for the local systems of four slots; `window` times more with a window.
    Memory: memory * (inputs + 1).

    Parameters
    ----------
    neighbors : k, how many samples a prediction is computed from.
    memory : how many of the last samples are kept, more than `neighbors`.
    noise : variance of the targets' error, positive, in the unit of the kernel's values.
    constant : variance of an unknown constant, 0 or more, in the same unit: where the targets are
        not near 0 everywhere, the prediction far from all samples is then near their mean.

    It learns by the squared loss; a slot of a bank for another loss can: kb.Slot(...,
    loss="squared").

    Reference: Vecchia, Estimation and model identification for continuous spatial processes,
    Journal of the Royal Statistical Society B 50 (1988); Datta, Banerjee, Finley and Gelfand,
    Hierarchical nearest-neighbor Gaussian process models for large geostatistical datasets, Journal
    of the American Statistical Association 111 (2016).

    >>> import numpy as np, kernelbank as kb
    >>> x = np.random.default_rng(0).uniform(0, 6, 500)
    >>> bank = kb.KernelBank([kb.kernels.Matern(1.0)], kb.learners.NearestNeighborGP(noise=0.01))
    >>> trace = bank.run(x, np.sin(x))
    >>> bank.predict([1.0, 4.0]).round(2).tolist() == np.sin([1.0, 4.0]).round(2).tolist()
    True
    """

    core_name: ClassVar[str] = "NearestNeighborGP"
    pack_width: ClassVar[int] = _core.WIDTH
    neighbors: int = 32
    memory: int = 4096
    noise: float = 0.1
    constant: float = 1.0

    def __post_init__(self) -> None:
        noise = "Give the variance of the targets' error, such as 0.1."
        constant = "Give a variance, such as 1, or 0 for no constant."
        check.settings(
            self,
            neighbors=whole("Give how many samples a prediction uses, such as 32."),
            noise=lambda name, value, owner: check.scale(name, value, owner, noise),
            constant=lambda name, value, owner: check.number(name, value, owner, constant, least=0),
        )
        check.settings(self, memory=whole("Raise memory, or lower neighbors.", self.neighbors + 1))

    def check(self, objective: Objective) -> None:
        if objective.loss != Squared():
            raise check.refuse(
                "loss",
                "be the squared one for NearestNeighborGP",
                objective.loss,
                'Use "squared", another learner, or let this one learn by squares all the same: '
                'kb.Slot(..., loss="squared").',
            )

    def core_settings(
        self, kernels: Sequence[Kernel], dimension: int, identity: int
    ) -> dict[str, object]:
        coordinates = np.array(active_coordinates(kernels[0], dimension), dtype=float)
        return super().core_settings(kernels, dimension, identity) | {"coordinates": coordinates}
