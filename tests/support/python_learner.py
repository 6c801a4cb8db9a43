"""A learner in Python, as a user may write one: KLMS, once more."""

from dataclasses import dataclass

import numpy as np

from kernelbank.learners import PythonLearner


@dataclass(frozen=True)
class Gradient(PythonLearner):
    """f moves along the gradient; beyond the budget the oldest term goes."""

    learning_rate: float = 0.1
    budget: int = 12

    def start(self, dimension, kernel):
        return {"centres": np.zeros((self.budget, dimension)), "terms": np.zeros(self.budget)}

    def value(self, state, x, kernel):
        return (kernel(x[None], state["centres"])[0] * state["terms"]).sum()

    def step(self, state, x, y, slope, kernel):
        state["centres"] = np.vstack([state["centres"][1:], x])
        state["terms"] = np.append(state["terms"][1:], -self.learning_rate * slope)

    def norm(self, state, kernel):
        gram = kernel(state["centres"], state["centres"])
        return (state["terms"][:, None] * gram * state["terms"]).sum()
