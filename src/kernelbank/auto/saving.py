"""An AutoBank as plain data and arrays, for files; `loading` is the way back."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ..io.specs import check_names, to_spec
from ..utils.validation import Floats
from .classes import ClassModel
from .model import Model
from .numbers import NumberModel

if TYPE_CHECKING:
    from .auto_bank import AutoBank
    from .forecaster import Forecaster


Arrays = dict[str, Floats]

AUTO_BANK = "AutoBank"
"""The `kind` in the header of an AutoBank; a `KernelBank` has none."""


def describe(auto: AutoBank) -> tuple[dict[str, Any], Arrays]:
    """Everything that the next prediction depends on: settings as plain data, and arrays."""
    config, model = auto._config, auto._model
    slots = config.slots or ()
    check_names([config.loss])
    check_names(slots)
    header: dict[str, Any] = {
        "kind": AUTO_BANK,
        "task": auto.task,
        "lags": config.lags,
        "size": config.size,
        "seed": config.seed,
        "scalings": list(config.scalings),
        "slots": [to_spec(slot) for slot in slots],
        "combiner": None if config.combiner is None else to_spec(config.combiner),
        "loss": to_spec(config.loss),
        "window": config.window,
        "regularization": config.regularization,
        "lower": config.lower,
        "upper": config.upper,
        "seasons": list(config.seasons) if isinstance(config.seasons, tuple) else config.seasons,
        "classes": auto._classes.known,
        "max_classes": auto._classes.limit,
        "classes_named": auto._classes.named,
        "columns": None if auto._encoder is None else auto._encoder.to_json(),
        "targets": None if auto._target_names is None else list(auto._target_names),
        "horizons": list(config.horizons),
        "known": list(config.known),
        "quantiles": list(config.quantiles),
        "dimension": None,
        "model": None,
    }
    arrays: Arrays = {}
    if auto._encoder is not None:
        arrays |= {f"columns/{name}": array for name, array in auto._encoder.arrays().items()}
    if model is None:
        return header, arrays
    header["dimension"] = model.dimension
    header["stale"] = auto._pending.stale
    header["model"], own = describe_model(model)
    arrays |= {f"model/{name}": array for name, array in own.items()}
    arrays |= {f"pending/{name}": array for name, array in _pending_arrays(auto).items()}
    if model.forecasting.forecaster is not None:
        header["forecaster"], own = _describe_forecaster(model.forecasting.forecaster)
        arrays |= {f"forecaster/{name}": array for name, array in own.items()}
    part = model.quantile_part if isinstance(model, NumberModel) else None
    if part is not None:
        header["quantile_part"], own = describe_model(part.model)
        header["quantiles_scored"] = part.scored
        arrays |= {f"quantiles/{name}": array for name, array in own.items()}
        arrays["quantiles/totals"] = part.totals.copy()
    return header, arrays


def describe_model(model: Model) -> tuple[dict[str, Any], Arrays]:
    """A model with its banks, without forecasts and quantiles."""
    header: dict[str, Any] = {
        "first_inputs": model.first_inputs,
        "previous": model.previous,
        "periods": list(model.periods),
        "selection": model.selection.describe(),
        "slot_changes": [asdict(change) for change in model.slot_changes],
        "changes": [list(change) for change in model.changes],
        "held": model.core.held if isinstance(model, NumberModel) else 0,
        "classes": model.classes if isinstance(model, ClassModel) else 0,
        "banks": [],
    }
    arrays: Arrays = {f"core/{name}": array for name, array in model.core.state().items()}
    for number, bank in enumerate(model.banks):
        inner, state = bank.describe()
        header["banks"].append(inner)
        arrays |= {f"bank{number}/{name}": array for name, array in state.items()}
    return header, arrays


def _describe_forecaster(forecaster: Forecaster) -> tuple[dict[str, Any], Arrays]:
    """The forecasts of an AutoBank as plain data and arrays."""
    header: dict[str, Any] = {"counters": forecaster.counters(), "bank": None, "known": None}
    arrays: Arrays = {f"state/{n}": array.copy() for n, array in forecaster.state().items()}
    parts = {"line": forecaster.line.bank}
    if forecaster.model.bank is not None:
        parts["bank"] = forecaster.model.bank
    for name, bank in parts.items():
        header[name], own = bank.describe()
        arrays |= {f"{name}/{n}": array for n, array in own.items()}
    if forecaster.known is not None:
        for name, part in (("known", forecaster.known.bank), ("late", forecaster.known.late)):
            header[name], own = describe(part)
            arrays |= {f"{name}/{n}": array for n, array in own.items()}
    if forecaster.plain is not None:
        header["plain"], own = _describe_forecaster(forecaster.plain)
        arrays |= {f"plain/{n}": array for n, array in own.items()}
    return header, arrays


def pending_width(auto: AutoBank) -> int:
    """How many numbers a pending input has: as many as columns, where they have names."""
    assert auto._model is not None
    return auto._model.dimension if auto._encoder is None else len(auto._encoder.columns)


def _pending_arrays(auto: AutoBank) -> Arrays:
    """The pending predictions, filled up with NaN where some had fewer outputs or classes.

    sizes (n, 3): the numbers of scores, of outputs with slot predictions, and of results.
    """
    model = auto._model
    assert model is not None
    items = [(key, one, np.append(one.output, one.more)) for key, one in auto._pending.items]
    outputs = max((len(one.scores) for _, one, _ in items), default=0)
    results = max((len(found) for _, _, found in items), default=0)
    arrays = {
        "rows_before": np.zeros(len(items)),
        "sizes": np.zeros((len(items), 3)),
        "inputs": np.zeros((len(items), pending_width(auto))),
        "past": np.zeros((len(items), model.core.past)),
        "scores": np.full((len(items), outputs), np.nan),
        "slots": np.full((len(items), outputs, len(model.names)), np.nan),
        "results": np.full((len(items), results), np.nan),
        "ends": np.zeros((len(items), model.core.ends)),
    }
    for i, (key, one, found) in enumerate(items):
        scores, slots = one.scores, one.slots
        arrays["rows_before"][i] = one.rows_before
        arrays["sizes"][i] = (len(scores), len(slots), len(found))
        arrays["inputs"][i] = np.frombuffer(key)
        arrays["past"][i] = one.past
        arrays["scores"][i, : len(scores)] = scores
        arrays["slots"][i, : len(slots)] = slots
        arrays["results"][i, : len(found)] = found
        arrays["ends"][i] = one.ends
    return arrays
