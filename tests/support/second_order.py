"""A second-order learner of another shape than Norma: recursive least squares on random features.

It shows that the learner protocol carries methods whose slot is a matrix of its own: one slot per
leaf, no kernel rows, features drawn once and kept in the state, O(features^2) per step.
"""

from dataclasses import dataclass

import numba
import numpy as np

from kernelbank.kernels import Gaussian
from kernelbank.kernels.sample_buffer import SampleBlock, SampleBuffer
from kernelbank.learners.base import Learner, SlotGroup
from kernelbank.losses.objective import Objective
from kernelbank.native.simd import WIDTH
from kernelbank.utils import validation as check

compiled = numba.njit(cache=True, nogil=True, error_model="numpy")
"""A learner of the user's own may be compiled as the user likes."""


@compiled
def _features(x, frequencies, phases, out):
    size = phases.shape[0]
    for m in range(size):
        angle = phases[m]
        for k in range(x.shape[0]):
            angle += frequencies[m, k] * x[k]
        out[m] = np.sqrt(2.0 / size) * np.cos(angle)


@compiled
def _value(weights, features):
    total = 0.0
    for m in range(weights.shape[0]):
        total += weights[m] * features[m]
    return total


@compiled
def _learn(
    first,
    points,
    targets,
    frequencies,
    phases,
    weights,
    covariance,
    recent,
    values,
    norms,
    predictions,
):
    window = values.shape[2]
    size = phases.shape[1]
    now = np.zeros(size)
    gain = np.zeros(size)
    for leaf in range(values.shape[0]):
        w = weights[leaf]
        for t in range(points.shape[0]):
            _features(points[t], frequencies[leaf], phases[leaf], now)
            prediction = _value(w, now)
            predictions[leaf, t, 0] = prediction
            for i in range(size):
                gain[i] = 0.0
            for j in range(size):
                for i in range(size):
                    gain[i] += covariance[leaf, j, i] * now[j]
            scale = 1.0 + _value(gain, now)
            error = targets[t] - prediction
            for i in range(size):
                w[i] += gain[i] * error / scale
                for j in range(size):
                    covariance[leaf, i, j] -= gain[i] * gain[j] / scale
            recent[leaf, (first + t) % window] = now
            seen = min(first + t + 1, window)
            for i in range(seen):
                number = first + t - (seen - 1) + i
                value = _value(w, recent[leaf, number % window])
                values[leaf, t + 1, window - seen + i, 0] = value
            norms[leaf, t + 1, 0] = _value(w, w)


@dataclass(frozen=True)
class PrototypeRLS(Learner):
    """w minimises sum_n (w'z(x_n) - y_n)^2 + ridge |w|^2, z the random features of a Gaussian."""

    features: int = 20
    ridge: float = 0.1
    seed: int = 0
    leaf_width = 1
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
        s = group.state
        _learn(
            block.first,
            block.points,
            block.targets,
            s["frequencies"],
            s["phases"],
            s["weights"],
            s["covariance"],
            s["recent"],
            group.values,
            group.norms,
            group.predictions,
        )

    def evaluate(self, group, seen, points, statistics, wanted):
        out = np.zeros((group.leaves, len(points), WIDTH))
        now = np.zeros(self.features)
        for leaf in np.flatnonzero(wanted):
            for t, x in enumerate(points):
                _features(x, group.state["frequencies"][leaf], group.state["phases"][leaf], now)
                out[leaf, t, 0] = _value(group.state["weights"][leaf], now)
        return out
