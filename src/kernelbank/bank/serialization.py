"""The settings of a `KernelBank` as JSON and back, and the checks of a saved state.

A file may be a stranger's: it is checked in every respect before anything is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import combiners, kernels, learners, losses
from ..errors import FileRefused, InvalidArgument
from ..io.specs import from_spec, to_spec
from ..utils import validation as check
from ..utils.validation import Floats
from .engines.base import workspace_bytes
from .layout import Slot
from .runtime import Runtime
from .settings import BankSettings

KNOWN = (
    *kernels.BUILT_IN,
    *learners.BUILT_IN,
    *combiners.BUILT_IN,
    *losses.BUILT_IN.values(),
    Slot,
)
"""Every type that a file may name without `components`."""

_MOST_SAMPLES = 2.0**53


def describe_settings(settings: BankSettings) -> dict[str, Any]:
    """The settings, without the engine, as JSON data."""
    slots, objective = settings.slots, settings.objective
    methods = {(slot.learner, slot.loss): None for slot in slots}
    number = {method: i for i, method in enumerate(methods)}
    return {
        "kernels": [to_spec(slot.kernel) for slot in slots],
        "methods": [
            {"learner": to_spec(learner), "loss": None if loss is None else to_spec(loss)}
            for learner, loss in methods
        ],
        "method_of": [number[slot.learner, slot.loss] for slot in slots],
        "residual_of": [slot.residual_of for slot in slots],
        "combiner": to_spec(settings.combiner),
        "loss": to_spec(settings.loss),
        "window": objective.window,
        "regularization": objective.regularization,
        "dtype": objective.dtype,
    }


def parse_settings(header: Mapping[str, Any], components: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a `KernelBank` from what `describe_settings` returned.

    components : user-made parts by name; see `kb.load`.
    """

    def part(spec: Any) -> Any:
        return from_spec(spec, KNOWN, components)

    methods = [
        (part(method["learner"]), None if method["loss"] is None else part(method["loss"]))
        for method in header["methods"]
    ]
    columns = (header["kernels"], header["method_of"], header["residual_of"])
    return {
        "slots": [
            Slot(part(kernel), *methods[int(method)], residual_of)
            for kernel, method, residual_of in zip(*columns, strict=True)
        ],
        "combiner": part(header["combiner"]),
        "loss": part(header["loss"]),
        "window": header["window"],
        "regularization": header["regularization"],
        "dtype": header["dtype"],
    }


def check_state(
    settings: BankSettings,
    runtime: Runtime,
    dimension: Any,
    arrays: Mapping[str, Floats],
    most_memory: int,
) -> None:
    """Refuse a saved state that does not fit the settings, or needs too much memory to run."""
    if dimension is not None:
        dimension = check.count("dimension", dimension, "the file", "")
        settings.check_width(dimension, "X")
    found = {name: (array.shape, array.dtype.name) for name, array in arrays.items()}
    if found != runtime.array_specs(dimension):
        raise FileRefused("its arrays do not fit its settings.")
    samples = arrays["ledger/running"][-1]
    if not (samples >= 0 and samples == np.floor(samples) and samples < _MOST_SAMPLES):
        raise FileRefused(f"it claims {samples} samples.")
    if (dimension is None) != (samples == 0):
        raise FileRefused("its number of samples does not fit its inputs.")
    if dimension is None:
        return
    try:
        needed = workspace_bytes(settings.layout, settings.objective, dimension)
    except InvalidArgument as error:  # a kernel that does not exist for inputs of this width
        raise FileRefused(str(error)) from None
    if needed > most_memory:
        raise FileRefused(
            f"The file holds a bank that needs {needed / 2**20:.0f} MB to run, more than "
            f"most_memory ({most_memory / 2**20:.0f} MB). Raise most_memory if you trust the file."
        )
