"""The arrays of a batch of rows whose targets are classes, and the compiled steps on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..native.phases import Phase, Phases
from .calibration import calibration, softmax
from .model_batch import ModelBatch
from .scaling.scaling_batch import CHUNK


class ClassificationBatch(ModelBatch):
    """The arrays of a batch with those of scores and probabilities."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        outputs, classes = len(model.platt), model.classes
        self.scores = np.zeros((CHUNK, outputs))
        self.labels = np.zeros(CHUNK)
        self.out = np.zeros((CHUNK, classes))
        arguments: dict[str, Any] = {
            "banks": outputs,
            "classes": classes,
            "platt": model.platt,
            "common": model.common_slopes,
            "work": np.zeros((outputs, softmax.WORK)),
            "scores": self.scores,
            "labels": self.labels,
            "out": self.out,
        }
        self.predict = Phase(calibration.probability_rows, **arguments)
        self.update_platt = Phase(calibration.update_platt_rows, **arguments)
        self.predict_and_update = Phases(
            [Phase(calibration.probability_and_update_rows, **arguments)]
        )
        self.update_and_detect = Phases([self.update_platt, self.detect_changes])
        self.detect = Phases([self.detect_changes])
