"""The arrays of a batch of rows that all models have, and the compiled steps on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..native.phases import Phase
from . import change_detection as detection
from .model_parts.single_row_steps import copy_weights
from .scaling.scaling_batch import CHUNK

if TYPE_CHECKING:
    from .task_model import TaskModel


class ModelBatch:
    """Arrays for up to CHUNK rows, and compiled phases on them and on the state of a model.

    The phases get the addresses of all arrays once. Rows are copied in, a phase runs, and the
    results are copied out.
    """

    def __init__(self, model: Any) -> None:
        self.errors = np.zeros(CHUNK)
        self.weights = np.zeros((CHUNK, len(model.pool)))
        self.error_signals = np.zeros(CHUNK, dtype=np.int64)
        self.weight_signals = np.zeros(CHUNK, dtype=np.int64)
        self.detect_changes = Phase(
            detection.detect_rows,
            slots=len(model.pool),
            limit=detection.FALSE_ALARM_ROWS,
            stats=model.detection_stats,
            ring=model.recent_errors,
            mean_weights=model.mean_weights,
            errors=self.errors,
            weights=self.weights,
            error_signals=self.error_signals,
            weight_signals=self.weight_signals,
        )

    def copy_weights(self, model: TaskModel) -> Phase:
        """A phase that writes the weights of the first output to row 0."""
        source = model.banks[0]._runtime.leader.weights
        return Phase(
            copy_weights,
            running=len(source),
            slots=len(model.pool),
            source=source,
            members=model.members,
            out=self.weights,
        )
