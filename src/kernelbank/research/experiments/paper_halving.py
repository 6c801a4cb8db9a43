"""OMKR's rate is "halved every 50 steps until a minimum value of 1e-5": what other readings change.

The reading of `kb.combiners.OMKR` counts in the index n of the weights w(n), as the paper does in
its learning rate: max(8e-4 * 2^-floor((n - 1) / 50), 1e-5), with w(1) = 0 given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...combiners import OMKR, Combiner
from ...combiners.base import Evidence, State
from ...losses.base import Objective
from ...utils.validation import Floats
from .paper import SCHEME, PaperRun, bank


def as_read(n: int) -> float:
    """The rate of w(n) in the reading of `OMKR`."""
    return max(8e-4 * 2.0 ** -((n - 1) // 50), 1e-5)


@dataclass(frozen=True)
class ScheduledOMKR(Combiner):
    """OMKR for the squared loss, in Python, whose rate of w(n) is any function of n."""

    rate_of: Callable[[int], float] = as_read
    on_simplex: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = frozenset(["values"])

    def first_weights(self, slots: int) -> Floats:
        return np.zeros(slots)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        return {"rate": (1,)}

    def combine(
        self, objective: Objective, evidence: Evidence, state: State, weights: Floats
    ) -> Floats:
        chosen = np.empty_like(evidence.curvature)
        window = objective.window
        for t, curvature in enumerate(evidence.curvature):
            n = evidence.first + t + 2  # the weights after sample number n - 1, the first is 1
            seen = min(n - 1, window)
            values = evidence.values[t, window - seen :]  # (seen, P)
            targets = evidence.targets[t + window - seen : t + window]
            slope = 2 * (values @ weights - targets)  # l'(w'f(x_i), y_i)
            gradient = slope @ values + 2 * curvature * weights
            state["rate"][0] = self.rate_of(n)
            weights = weights - state["rate"] * gradient
            chosen[t] = weights
        return chosen


OTHER_READINGS: dict[str, Combiner] = {
    "one step sooner": ScheduledOMKR(rate_of=lambda n: as_read(n + 1)),
    "one step later": ScheduledOMKR(rate_of=lambda n: as_read(n - 1)),
    "down to 1.25e-5": OMKR(least_rate=1.25e-5),  # the last halving that stays above 1e-5
    "without a least rate": OMKR(least_rate=0.0),
    "continuously": ScheduledOMKR(rate_of=lambda n: max(8e-4 * 2.0 ** (-(n - 1) / 50), 1e-5)),
}


def seeds_below(runs: Sequence[PaperRun], rule: Combiner) -> int:
    """On how many seeds the scheme's cumulative cost ends below that of a reading of OMKR."""
    below = 0
    for run in runs:
        cost = bank(rule).run(run.x, run.y, record=["cumulative_cost"]).cumulative_cost[-1]
        below += run.final_cost(SCHEME) < cost
    return int(below)
