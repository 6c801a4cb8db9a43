"""The arrays of a batch of rows whose targets are numbers, and the compiled steps on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..native.phases import Phase, Phases
from .calibration import calibration
from .calibration.normal_tails import TAILS
from .model_batch import ModelBatch
from .scaling.scaling_batch import CHUNK


class RegressionBatch(ModelBatch):
    """The arrays of a batch with those of predictions and intervals."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.tail = np.zeros(1)
        self.scores = np.zeros(CHUNK)
        self.spreads = np.zeros(CHUNK)
        self.scale = np.zeros((CHUNK, 2))
        self.targets = np.zeros(CHUNK)
        self.output = np.zeros((CHUNK, 3))
        arguments: dict[str, Any] = {
            "tracked": len(TAILS),
            "stats": model.error_stats,
            "tails": TAILS,
            "quantiles": model.quantiles,
            "tail": self.tail,
            "bounds": model.bounds,
            "scores": self.scores,
            "spreads": self.spreads,
            "scale": self.scale,
            "targets": self.targets,
            "output": self.output,
            "errors": self.errors,
        }
        predict_and_score = Phase(calibration.predict_and_score_rows, **arguments)
        self.predict_rows = Phase(calibration.predict_rows, **arguments)
        self.score_rows = Phase(calibration.score_rows, **arguments)
        self.score_and_detect = Phases([self.score_rows, self.detect_changes])
        self.predict_score_and_detect = Phases([predict_and_score, self.detect_changes])
