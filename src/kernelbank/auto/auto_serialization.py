"""An AutoBank as plain data and arrays, for files; `loading` is the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..io.specs import check_names, to_spec
from ..utils.validation import Floats

if TYPE_CHECKING:
    from .auto_state import AutoBankState
    from .forecasts.forecaster import Forecaster

Arrays = dict[str, Floats]

AUTO_BANK = "AutoBank"
"""The `kind` in the header of an AutoBank; a `KernelBank` has none."""


def describe(auto: AutoBankState) -> tuple[dict[str, Any], Arrays]:
    """Everything that the next prediction depends on: settings as plain data, and arrays."""
    config, model = auto._config, auto._model
    own = config.slots or ()
    check_names([config.loss])
    check_names(own)
    header: dict[str, Any] = {
        "kind": AUTO_BANK,
        "task": auto.task,
        "lags": config.lags,
        "size": config.size,
        "seed": config.seed,
        "scalings": list(config.scalings),
        "slots": [to_spec(slot) for slot in own],
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
        "counters": None,
        "banks": [],
    }
    arrays: Arrays = {}
    if auto._encoder is not None:
        arrays |= {f"columns/{name}": array for name, array in auto._encoder.arrays().items()}
    if model is None:
        return header, arrays
    header["dimension"] = model.dimension
    header["core"] = model.core
    header["previous"] = model.previous
    header["counters"] = model.counters()
    header["stale"] = auto._pending.stale
    arrays |= {f"model/{name}": array.copy() for name, array in model.state().items()}
    arrays |= {f"pending/{name}": array for name, array in _pending_arrays(auto).items()}
    for number, bank in enumerate(model.banks):
        inner, state = bank.describe()
        header["banks"].append(inner)
        arrays |= {f"bank{number}/{name}": array for name, array in state.items()}
    forecaster = getattr(model, "forecaster", None)
    if forecaster is not None:
        header["forecaster"], state = _describe_forecaster(forecaster)
        arrays |= {f"forecaster/{name}": array for name, array in state.items()}
    part = getattr(model, "quantile_part", None)
    if part is not None:
        header["quantile_part"] = {"counters": part.counters(), "bank": None}
        arrays |= {f"quantiles/state/{n}": array.copy() for n, array in part.state().items()}
        for bank in part.model.banks:
            header["quantile_part"]["bank"], state = bank.describe()
            arrays |= {f"quantiles/bank/{n}": array for n, array in state.items()}
    return header, arrays


def _describe_forecaster(forecaster: Forecaster) -> tuple[dict[str, Any], Arrays]:
    """The forecasts of an AutoBank as plain data and arrays."""
    header: dict[str, Any] = {"counters": forecaster.counters(), "bank": None, "known": None}
    arrays: Arrays = {f"state/{n}": array.copy() for n, array in forecaster.state().items()}
    parts = {"line": forecaster.line.bank}
    if forecaster.model.banks:
        parts["bank"] = forecaster.model.banks[0]
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


def pending_width(auto: AutoBankState) -> int:
    """How many numbers a pending input has: as many as columns, where they have names."""
    assert auto._model is not None
    return auto._model.dimension if auto._encoder is None else len(auto._encoder.columns)


def _pending_arrays(auto: AutoBankState) -> Arrays:
    """The pending predictions, filled up with NaN where some had fewer banks or classes.

    sizes (n, 3): the numbers of scores, of banks with slot predictions, and of outputs.
    """
    model = auto._model
    assert model is not None
    items = auto._pending.items
    banks = max((one.scores.shape[1] for _, one in items), default=0)
    outputs = max((one.output.shape[1] for _, one in items), default=0)
    arrays = {
        "rows_before": np.zeros(len(items)),
        "sizes": np.zeros((len(items), 3)),
        "inputs": np.zeros((len(items), pending_width(auto))),
        "lagged": np.zeros((len(items), model.past)),
        "scores": np.full((len(items), banks), np.nan),
        "slots": np.full((len(items), banks, len(model.names)), np.nan),
        "outputs": np.full((len(items), outputs), np.nan),
    }
    for i, (key, one) in enumerate(items):
        scores, slots, output = (
            one.scores[0],
            one.slots[:, :1].reshape(-1, len(model.names)),
            one.output[0],
        )
        arrays["rows_before"][i] = one.rows_before
        arrays["sizes"][i] = (len(scores), len(slots), len(output))
        arrays["inputs"][i] = np.frombuffer(key)
        arrays["lagged"][i] = one.lagged[0]
        arrays["scores"][i, : len(scores)] = scores
        arrays["slots"][i, : len(slots)] = slots
        arrays["outputs"][i, : len(output)] = output
    return arrays
