"""The function along one input, the others at their medians."""

from __future__ import annotations

import numpy as np

from ..auto import AutoBank
from .history import DRAWN, GRID, Snapshot


def snapshot(bank: AutoBank, row: int, numeric: int, coverage: float) -> Snapshot | None:
    """The present function along the first of the `numeric` inputs; None before there is one."""
    desk = bank._desk
    if desk is None or not desk.banks:
        return None
    typical = desk.scaling.typical()
    columns = tuple(range(min(numeric, DRAWN)))
    rows = np.tile(typical[:, 0], (len(columns) * GRID, 1))
    values = np.empty((len(columns), 4, GRID))
    for k in columns:
        values[k, 0] = np.linspace(typical[k, 1], typical[k, 2], GRID)
        rows[k * GRID : (k + 1) * GRID, k] = values[k, 0]
    if columns:
        answers = bank.survey(rows, coverage)
        if bank.task == "classification":
            answers = np.repeat(answers[:, :1], 3, axis=1)
        values[:, 1:] = answers.reshape(len(columns), GRID, 3).transpose(0, 2, 1)
    return Snapshot(row, columns, values)
