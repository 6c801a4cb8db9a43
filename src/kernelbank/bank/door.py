"""The short way in for single samples; see `_hot/door.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..losses.objective import Objective
from ..native.phases import PhaseArguments, Phases
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils.validation import LARGEST, Floats
from . import single_sample as hot
from .ledger import Ledger


class Door:
    """Lets in what is easily seen to be right; all else goes the long way, past all checks."""

    def __init__(
        self,
        learning: Phases,
        looking: Phases,
        objective: Objective,
        ledger: Ledger,
        workspace: Workspace,
        blended: Floats,
    ) -> None:
        dimension = workspace.points.shape[1]
        self._table = PhaseArguments(
            hot.DOOR,
            learning=learning.address,
            learning_count=learning.number,
            looking=looking.address,
            looking_count=looking.number,
            dimension=dimension,
            largest=LARGEST,
            labels=int(objective.loss.labels),
            slide_period=SLIDE_PERIOD,
            point=workspace.points,
            target=workspace.new_targets,
            query_point=workspace.query_point,
            blended=blended,
            running=ledger.running,
        )
        self._kept = (learning, looking)
        self._address = self._table.address
        hot.prepare(dimension)

    def look(self, x: Any) -> float:
        """The proposal at x, or NaN."""
        if isinstance(x, float) or _is_row(x):
            return float(hot.look(self._address, x))
        return float("nan")

    def learn(self, x: Any, y: Any) -> int:
        """Learn (x, y): `TURNED_AWAY`, `LEARNED`, or `NEWS` if the notices should have a look."""
        if isinstance(y, float) and (isinstance(x, float) or _is_row(x)):
            return int(hot.learn(self._address, x, y))
        return hot.TURNED_AWAY


def _is_row(x: Any) -> bool:
    return type(x) is np.ndarray and x.ndim == 1 and x.dtype == np.float64 and x.flags.carray


__all__ = ["Door"]
