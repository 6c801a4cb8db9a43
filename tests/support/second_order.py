"""A second-order learner of the user's: recursive least squares on random features."""

from dataclasses import dataclass

import numpy as np

import kernelbank as kb
from kernelbank.utils import validation as check


@dataclass(frozen=True)
class PrototypeRLS(kb.learners.PythonLearner):
    """w minimises sum_n (w'z(x_n) - y_n)^2 + ridge |w|^2, z the random features of a Gaussian."""

    features: int = 20
    ridge: float = 0.1
    seed: int = 0

    def __post_init__(self):
        check.settings(
            self,
            features=check.whole("Give how many features to draw."),
            ridge=check.positive(0.1),
            seed=check.whole("Give a whole number.", least=0),
        )

    def check_kernel(self, kernel):
        if not isinstance(kernel, kb.kernels.Gaussian):
            raise check.refuse("kernel", "be Gaussian", kernel, "Use Gaussian(width).")

    def start(self, dimension, kernel):
        # Pairs of cosine and sine: z(x)'z(x) = 1 = k(x, x), so the norm is one of this space.
        draw, count = np.random.default_rng(self.seed), self.features
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
        z = _features(state, x)
        gain = state["covariance"] @ z
        scale = 1.0 + gain @ z
        state["weights"] += gain * ((y - state["weights"] @ z) / scale)
        state["covariance"] -= np.outer(gain, gain) / scale

    def norm(self, state, kernel):
        return state["weights"] @ state["weights"]


def _features(state, x):
    angles = state["phases"] + state["frequencies"] @ x
    return np.sqrt(2.0 / len(angles)) * np.cos(angles)
