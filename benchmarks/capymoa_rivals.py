"""Rivals of `make accuracy` from CapyMOA, a Python front end of MOA, which runs in Java."""

from __future__ import annotations

import os
import shutil
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from kernelbank.research.competitors import RIVAL, Competitor, CompetitorRun, run_model
from kernelbank.research.datasets.stream import CLASSIFICATION, REGRESSION, Stream


def check_capymoa() -> None:
    """Stop with the commands that install what is missing."""
    missing = []
    if find_spec("capymoa") is None:
        missing.append("the package capymoa (pip install capymoa)")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        missing.append("Java (apt-get install default-jre-headless)")
    if missing:
        raise SystemExit(f"--capymoa needs {' and '.join(missing)}. Install it, or leave it out.")


class CapyModel:
    """A model of CapyMOA with `predict_one` and `learn_one`.

    A prediction is asked for with an instance whose target is 0, so no model can read the target.
    """

    def __init__(self, name: str, stream: Stream) -> None:
        from capymoa import classifier, core, regressor
        from capymoa.stream import Schema

        labels = stream.task == CLASSIFICATION
        columns = [f"x{index}" for index in range(stream.inputs.shape[1])]
        values = {"y": [str(label) for label in range(stream.classes)]} if labels else None
        self._schema = Schema.from_custom([*columns, "y"], "y", values, "stream")
        kind = core.LabeledInstance if labels else core.RegressionInstance
        self._instance = kind.from_array
        self._target: Any = int if labels else float
        self._model = getattr(classifier if labels else regressor, name)(self._schema)

    def predict_one(self, x: np.ndarray) -> float | None:
        return self._model.predict(self._instance(self._schema, x, self._target(0)))

    def learn_one(self, x: np.ndarray, y: float) -> None:
        self._model.train(self._instance(self._schema, x, self._target(y)))


def _run(names: dict[str, str], seed: int, stream: Stream) -> CompetitorRun:
    return run_model(CapyModel(names[stream.task], stream), stream)


def _rival(name: str, names: dict[str, str]) -> Competitor:
    return Competitor(
        name,
        RIVAL,
        partial(_run, names),
        accepts=lambda stream: stream.task in names,
        description=f"CapyMOA: {' or '.join(names.values())}",
        libraries=("capymoa", "numpy"),
    )


CAPYMOA = [
    _rival("soknl", {REGRESSION: "SOKNL"}),
    _rival(
        "moa-arf",
        {
            REGRESSION: "AdaptiveRandomForestRegressor",
            CLASSIFICATION: "AdaptiveRandomForestClassifier",
        },
    ),
    _rival(
        "moa-sgb",
        {
            REGRESSION: "StreamingGradientBoostedRegression",
            CLASSIFICATION: "StreamingGradientBoostedTrees",
        },
    ),
]
