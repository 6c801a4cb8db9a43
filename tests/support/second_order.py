"""A second-order learner in Python: recursive least squares on random features.

It shows that a learner of a user carries methods whose state is a matrix: features drawn once and
kept in the state, O(features^2) per step.
"""

from dataclasses import dataclass

import numpy as np

from kernelbank.kernels import Gaussian
from kernelbank.learners import PythonLearner
from kernelbank.utils import validation as check


def _features(state, x):
    phases = state["phases"]
    return np.sqrt(2.0 / len(phases)) * np.cos(phases + state["frequencies"] @ x)


@dataclass(frozen=True)
class PrototypeRLS(PythonLearner):
    """w minimises sum_n (w'z(x_n) - y_n)^2 + ridge |w|^2, z the random features of a Gaussian."""

    features: int = check.count_field(20, "Give how many features to draw.")
    ridge: float = check.number_field(0.1, above=0)
    seed: int = check.count_field(0, "Give a whole number.", least=0)

    def check_kernel(self, kernel) -> None:
        if not isinstance(kernel, Gaussian):
            raise check.refuse("kernel", "be Gaussian", kernel, "Use Gaussian(width).")

    def start(self, dimension, kernel):
        count, draw = self.features, np.random.default_rng(self.seed)
        # Pairs of cosine and sine: phi(x)'phi(x) = 1 = k(x, x), so the norm is one of this space.
        drawn = draw.normal(size=(-(-count // 2), dimension)) / kernel.width
        return {
            "frequencies": np.repeat(drawn, 2, axis=0)[:count],
            "phases": np.resize([0.0, -np.pi / 2], count),
            "weights": np.zeros(count),
            "covariance": np.eye(count) / self.ridge,
        }

    def value(self, state, x, kernel):
        return state["weights"] @ _features(state, x)

    def step(self, state, x, y, slope, kernel):
        features = _features(state, x)
        gain = state["covariance"] @ features
        scale = 1.0 + gain @ features
        state["weights"] += gain * ((y - state["weights"] @ features) / scale)
        state["covariance"] -= np.outer(gain, gain) / scale

    def norm(self, state, kernel):
        return state["weights"] @ state["weights"]
