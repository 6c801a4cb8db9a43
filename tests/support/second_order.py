"""A second-order learner of another shape than Norma: recursive least squares on random features.

It shows that the learner protocol carries methods whose slot is a matrix of its own: one slot per
leaf, no kernel rows, features drawn once and kept in the state, O(features^2) per step.
"""

from dataclasses import dataclass

import numpy as np
from kernelbank.kernels.sample_buffer import SampleBlock, SampleBuffer
from kernelbank.native.simd import WIDTH

from kernelbank.kernels import Gaussian
from kernelbank.learners.base import Learner, SlotGroup
from kernelbank.losses.objective import Objective
from kernelbank.utils import validation as check


def _features(x, frequencies, phases):
    return np.sqrt(2.0 / len(phases)) * np.cos(phases + frequencies @ x)


@dataclass(frozen=True)
class PrototypeRLS(Learner):
    """w minimises sum_n (w'z(x_n) - y_n)^2 + ridge |w|^2, z the random features of a Gaussian."""

    features: int = 20
    ridge: float = 0.1
    seed: int = 0
    pack_width = 1
    uses_kernel_rows = False

    def __post_init__(self):
        check.settings(
            self,
            features=check.whole("Give how many features to draw."),
            ridge=check.positive(0.1),
            seed=check.whole("Give a whole number.", least=0),
        )

    def check_kernel(self, kernel) -> None:
        if not isinstance(kernel, Gaussian):
            raise check.refuse("kernel", "be Gaussian", kernel, "Use Gaussian(width).")

    def shapes(self, objective: Objective, leaves: int, dimension: int, kernel, history_length):
        size = self.features
        return {
            "frequencies": (leaves, size, dimension),
            "phases": (leaves, size),
            "weights": (leaves, size),
            "covariance": (leaves, size, size),
            "recent": (leaves, objective.window, size),
        }

    def prepare(self, group: SlotGroup) -> None:
        for leaf in range(group.leaves):
            draw = np.random.default_rng([self.seed, int(group.columns[leaf, 0])])
            # Pairs of cosine and sine: phi(x)'phi(x) = 1 = k(x, x), so the norm is one of this space.
            count, dimension = group.state["frequencies"][leaf].shape
            drawn = draw.normal(size=(-(-count // 2), dimension)) / group.kernels[leaf][0].width
            group.state["frequencies"][leaf] = np.repeat(drawn, 2, axis=0)[:count]
            group.state["phases"][leaf] = np.resize([0.0, -np.pi / 2], count)
            group.state["covariance"][leaf] = np.eye(self.features) / self.ridge

    def learn(self, group: SlotGroup, block: SampleBlock, buffer: SampleBuffer) -> None:
        window = group.values.shape[2]
        for leaf in range(group.leaves):
            s = {name: array[leaf] for name, array in group.state.items()}
            w, covariance, recent = s["weights"], s["covariance"], s["recent"]
            for t, (x, y) in enumerate(zip(block.points, block.targets, strict=True)):
                now = _features(x, s["frequencies"], s["phases"])
                group.predictions[leaf, t, 0] = prediction = w @ now
                gain = covariance @ now
                scale = 1.0 + gain @ now
                w += gain * ((y - prediction) / scale)
                covariance -= np.outer(gain, gain) / scale
                recent[(block.first + t) % window] = now
                seen = min(block.first + t + 1, window)
                numbers = block.first + t + 1 - seen + np.arange(seen)
                # one by one: a product of matrices may round otherwise for another number of rows
                values = [w @ recent[number % window] for number in numbers]
                group.values[leaf, t + 1, window - seen :, 0] = values
                group.norms[leaf, t + 1, 0] = w @ w

    def evaluate(self, group, seen, points, statistics, wanted):
        out = np.zeros((group.leaves, len(points), WIDTH))
        for leaf in np.flatnonzero(wanted):
            s = {name: array[leaf] for name, array in group.state.items()}
            for t, x in enumerate(points):
                features = _features(x, s["frequencies"], s["phases"])
                out[leaf, t, 0] = s["weights"] @ features
        return out
