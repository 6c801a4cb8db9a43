"""From a file: the model of an AutoBank, without its banks, and the predictions that wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import FileRefused
from .. import model_state
from ..auto_bank import AutoBank
from ..auto_serialization import Arrays, pending_width
from ..classification import ClassificationModel
from ..model_parts.replay_buffer import REPLAY
from ..pending_predictions import LARGEST_LIMIT
from ..prediction import Prediction
from ..scaling.scaling import CHANGE_AFTER
from .saved_forecasts import whole_number

_MAY_MISS = (("lagged", "inputs"), ("lagged", "inputs", "replay_targets"))
"""How the names of arrays end that may hold NaN: with one target, and with several."""


def restore_model(auto: AutoBank, header: Mapping[str, Any], state: Arrays) -> None:
    """The model of an AutoBank, without its banks."""
    counters = header["counters"]
    outputs = tuple(inner.get("outputs", 1) for inner in header["banks"])
    dimension = whole_number(header["dimension"], 1, 10**6, "inputs")
    targets = auto._target_names
    kept = auto.task == "classification" or (targets is None and auto._config.revises)
    rows = REPLAY if kept else model_state.RESTARTS[-1]
    # Before anything is made for so many inputs: the largest array that depends on them alone.
    if state["replay_inputs"].shape != (rows, dimension):
        raise FileRefused("its inputs do not fit its arrays.")
    if targets is not None and state["replay_targets"].shape != (rows, len(targets)):
        raise FileRefused("its targets do not fit its arrays.")
    model = auto._model_for(dimension)
    core = whole_number(header["core"], 1, model.dimension, "the first inputs")
    if model.seasons is not None:
        model.seasons.restore_periods(counters)
    previous = whole_number(header["previous"], 0, model.previous, "inputs of the row before")
    model.use_previous(previous)
    if core < model.dimension or previous < model.dimension or model.seasons is not None:
        model.lay_out(core)
    rows = whole_number(counters["rows"], 0, 2**53, "rows")
    whole_number(counters["unscored"], 0, rows, "predictions that do not count")
    held = whole_number(counters.get("held", 0), 0, CHANGE_AFTER - 1, "rows held back")
    needed: tuple[int, ...] = (model.target_count,)
    if isinstance(model, ClassificationModel):
        classes = whole_number(counters["classes"], 0, len(header["classes"]), "classes")
        for number in outputs:
            whole_number(number, 1, max(classes, 1), "the outputs of a bank")
        model.allocate(classes, sum(outputs))
        whole_number(counters["last_class"] + 1, 0, classes, "the last class")
        needed = model.outputs_per_bank
    if {n: a.shape for n, a in state.items()} != {n: a.shape for n, a in model.state().items()}:
        raise FileRefused("its arrays do not fit its settings.")
    for name, array in state.items():
        # Inputs, lagged targets and some of several targets may be missing; statistics never are.
        if not np.isfinite(array).all() and not name.endswith(_MAY_MISS[model.target_count > 1]):
            raise FileRefused(f"its statistics are not numbers: {name}.")
    model.restore(state, counters)
    if outputs != (needed if model.started else ()):
        raise FileRefused("it has the wrong number of banks or outputs.")
    if not model.is_plausible(held):
        raise FileRefused("no stream has such running statistics.")


def restore_pending(auto: AutoBank, arrays: Arrays) -> None:
    """The predictions of an AutoBank whose targets have not come."""
    model = auto._model
    assert model is not None
    count = len(arrays["rows_before"])
    banks, outputs = arrays["scores"].shape[1], arrays["outputs"].shape[1]
    shapes = {
        "rows_before": (count,),
        "sizes": (count, 3),
        "inputs": (count, pending_width(auto)),
        "lagged": (count, model.past),
        "scores": (count, banks),
        "slots": (count, banks, len(model.names)),
        "outputs": (count, outputs),
    }
    if (
        {name: array.shape for name, array in arrays.items()} != shapes
        or count > LARGEST_LIMIT
        or banks > max(model.outputs, model.target_count)
    ):
        raise FileRefused("its pending predictions do not fit its settings.")
    for i in range(count):
        scores, slots, output = (
            whole_number(n, 0, most, "a pending prediction")
            for n, most in zip(arrays["sizes"][i], (banks, banks, outputs), strict=True)
        )
        several = model.target_count
        length = 3 * several + 2 * len(auto.quantiles)
        if auto.task == "regression" and (output != length or scores != several):
            raise FileRefused("a pending prediction has no value.")
        prediction = Prediction(
            whole_number(arrays["rows_before"][i], 0, model.rows, "rows"),
            arrays["lagged"][i : i + 1].copy(),
            arrays["scores"][i : i + 1, :scores].copy(),
            arrays["slots"][i, :slots, None].copy(),
            arrays["outputs"][i : i + 1, :output].copy(),
        )
        auto._pending.append(arrays["inputs"][i].tobytes(), prediction)
