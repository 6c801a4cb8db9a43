"""The settings of a `KernelBank` as JSON and back, and the checks of a saved state.

A file may be a stranger's: it is checked in every respect before anything is made of it. No array
is made before it is known that the file has as large a one, or that work arrays stay within
`memory_limit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import combiners, kernels, learners, losses, transforms
from ..errors import FileRefused, InvalidArgument
from ..io.specs import from_spec, to_spec
from ..utils import validation as check
from ..utils.validation import Floats
from .adaptive_dictionary import AdaptiveDictionary
from .engines.base import workspace_bytes
from .layout import Slot
from .runtime import Runtime
from .settings import BankSettings

KNOWN = (
    *kernels.BUILT_IN,
    *learners.BUILT_IN,
    *combiners.BUILT_IN,
    *losses.BUILT_IN.values(),
    *transforms.BUILT_IN,
    AdaptiveDictionary,
    Slot,
)
"""Every type that a file may name without `components`."""

_MOST_SAMPLES = 2.0**53

_LEAST_MEMORY = 2**27
_MEMORY_PER_BYTE = 16
_WIDEST = 2**20


def memory_limit(arrays: Mapping[str, Floats]) -> int:
    """How many bytes a bank may need beside its state, by default.

    128 MB, and 16 times the bytes of its arrays. Banks of few slots need less than 128 MB; those of
    many have arrays of many bytes.
    """
    return _LEAST_MEMORY + _MEMORY_PER_BYTE * sum(array.nbytes for array in arrays.values())


def describe_settings(settings: BankSettings) -> dict[str, Any]:
    """The settings, without the engine, as JSON data."""
    slots, objective = settings.slots, settings.objective
    methods = {_method(slot): None for slot in slots}
    number = {method: i for i, method in enumerate(methods)}
    start = settings.initial
    return {
        "kernels": [to_spec(slot.kernel) for slot in slots],
        "methods": [_describe_method(method) for method in methods],
        "method_of": [number[_method(slot)] for slot in slots],
        "residual_of": [slot.residual_of for slot in slots],
        "combiner": to_spec(settings.combiner),
        "loss": to_spec(settings.loss),
        **_describe_outputs(settings),
        "window": objective.window,
        "regularization": objective.regularization,
        **_describe_dictionary(settings),
        **({} if start is None else {"initial": [a.tolist() for a in start.argument()]}),
    }


_METHOD = ("learner", "loss", "transform")


def _method(slot: Slot) -> tuple[Any, ...]:
    """How a slot learns: the parts of it that many slots have in common."""
    return tuple(getattr(slot, name) for name in _METHOD)


def _describe_method(method: tuple[Any, ...]) -> dict[str, Any]:
    parts = zip(_METHOD, method, strict=True)
    return {name: None if part is None else to_spec(part) for name, part in parts}


def _describe_outputs(settings: BankSettings) -> dict[str, Any]:
    if settings.outputs == 1:
        return {}
    losses = [to_spec(loss) for loss in settings.losses]
    return {"outputs": settings.outputs} | ({"losses": losses} if losses else {})


def _describe_dictionary(settings: BankSettings) -> dict[str, Any]:
    if settings.dictionary is None or settings.selection is None:
        return {}
    selection = settings.selection.describe()
    return {"dictionary": to_spec(settings.dictionary), "selection": selection}


def parse_settings(
    header: Mapping[str, Any], arrays: Mapping[str, Floats], components: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a `KernelBank` from what `describe_settings` returned.

    components : user-made parts by name; see `kb.load`.
    """
    if arrays["weights"].shape != (len(header["kernels"]),):
        raise FileRefused("its weights do not fit its slots.")
    outputs = header.get("outputs", 1)
    if outputs != 1 and arrays["missing"].shape != (outputs,):
        raise FileRefused("its arrays do not fit its outputs.")

    def part(spec: Any) -> Any:
        return from_spec(spec, KNOWN, components)

    methods: list[dict[str, Any]] = [
        {name: None if method.get(name) is None else part(method[name]) for name in _METHOD}
        for method in header["methods"]
    ]
    columns = (header["kernels"], header["method_of"], header["residual_of"])
    slots: dict[str, Any]
    if "dictionary" in header:
        slots = {"dictionary": part(header["dictionary"]), "learner": methods[0]["learner"]}
    else:
        slots = {
            "slots": [
                Slot(part(kernel), residual_of=residual_of, **methods[int(method)])
                for kernel, method, residual_of in zip(*columns, strict=True)
            ]
        }
    return {
        **slots,
        "combiner": part(header["combiner"]),
        "loss": [part(loss) for loss in header.get("losses", [])] or part(header["loss"]),
        "outputs": outputs,
        "window": header["window"],
        "regularization": header["regularization"],
        "initial": header.get("initial"),
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
        inputs = arrays["slots/inputs"]  # (dimension, samples)
        if not inputs.size or len(inputs) != dimension:
            raise FileRefused("its inputs do not fit its arrays.")
        if settings.initial is not None and settings.initial.points.shape[1] != dimension:
            raise FileRefused("its inputs do not fit its initial function.")
        settings.check_width(dimension, "X")
    found = {name: (array.shape, array.dtype.name) for name, array in arrays.items()}
    if found != runtime.array_specs(dimension):
        raise FileRefused("its arrays do not fit its settings.")
    check_memory(settings, runtime, dimension, most_memory, saved=dimension is not None)
    samples = arrays["ledger/running"][-1]
    if not (samples >= 0 and samples == np.floor(samples) and samples < _MOST_SAMPLES):
        raise FileRefused(f"it claims {samples} samples.")
    if (dimension is None) != (samples == 0):
        raise FileRefused("its number of samples does not fit its inputs.")


def check_memory(
    settings: BankSettings,
    runtime: Runtime,
    dimension: int | None,
    most_memory: int,
    *,
    saved: bool,
) -> None:
    """Refuse a bank that would need too much memory to work.

    dimension : columns of the inputs; None for the fewest that the kernels take.
    saved : whether the file has the state. Else nothing was learned, and the state counts too.
    """
    state = 0
    try:
        width = _fewest_columns(settings) if dimension is None else dimension
        if not saved:
            state = runtime.state_bytes(width)
        needed = state + workspace_bytes(settings.layout, settings.objective, width)
    except InvalidArgument as error:  # a kernel that does not exist for inputs of this width
        raise FileRefused(str(error)) from None
    if needed > most_memory:
        raise FileRefused(
            f"The file holds a bank that needs {needed // 2**20} MB to run, more than most_memory "
            f"({most_memory // 2**20} MB). Raise most_memory if you trust the file."
        )


def _fewest_columns(settings: BankSettings) -> int:
    """A power of two near the fewest columns of inputs that all kernels take."""
    width = 1
    while True:
        try:
            settings.check_width(width, "X")
        except InvalidArgument:
            if width == _WIDEST:
                raise
            width *= 2
        else:
            return width
