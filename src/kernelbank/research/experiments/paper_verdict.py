"""The paper's first claim at several lengths: does the scheme's cumulative cost end below?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .paper import EXACT, PRINTED, SCHEME, PaperRun

LENGTHS = (300, 500, 1000, 2000, 5000)
"""Numbers of samples: the paper does not say how many it ran."""

BEST = "best NORMA"
RIVALS = (EXACT, PRINTED, BEST)


@dataclass(frozen=True)
class Standing:
    """The scheme beside one rival after some samples, over all seeds."""

    samples: int
    rival: str
    below: int
    """On how many seeds the scheme's cumulative cost is lower."""
    margin: float
    """The mean over the seeds of 1 - the scheme's cost / the rival's."""


def standings(runs: Sequence[PaperRun], lengths: Sequence[int]) -> list[Standing]:
    """The scheme beside every rival, after each of these numbers of samples."""
    found = []
    for samples in lengths:
        scheme = np.array([run.cumulative_cost[SCHEME][samples - 1] for run in runs])
        for rival in RIVALS:
            cost = np.array([_cost(run, rival, samples) for run in runs])
            margin = float(np.mean(1 - scheme / cost))
            found.append(Standing(samples, rival, int(np.sum(scheme < cost)), margin))
    return found


def _cost(run: PaperRun, rival: str, samples: int) -> float:
    """The rival's cumulative cost; the best NORMA is the one that is best up to this sample."""
    if rival == BEST:
        return float(run.slot_cumulative_cost[samples - 1].min())
    return float(run.cumulative_cost[rival][samples - 1])
