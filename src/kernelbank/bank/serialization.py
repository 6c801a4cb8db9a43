"""The settings of a `KernelBank` as JSON and back, and the checks of a saved state.

A file may be a stranger's: it is checked in every respect before anything is made of it, and all
arrays that are made stay within `memory_limit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from .. import combiners, kernels, learners, losses, transforms
from .._core import Bank, TooLarge
from ..errors import FileRefused, InvalidArgument
from ..io.specs import from_spec, to_spec
from ..utils import validation as check
from .adaptive_dictionary import AdaptiveDictionary
from .engines import Engine
from .engines.base import EngineBank
from .settings import BankSettings
from .slot import Slot
from .slot_history import Selection, SlotHistory

BUILT_IN = (
    *kernels.BUILT_IN,
    *learners.BUILT_IN,
    *combiners.BUILT_IN,
    *losses.BUILT_IN.values(),
    transforms.ShiftedLog,
    AdaptiveDictionary,
    Slot,
)
"""Every type that a file may name without `components`."""

_LEAST_MEMORY = 2**27
_MEMORY_PER_BYTE = 16


def under(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays whose names begin with a prefix, without it."""
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def memory_limit(arrays: Mapping[str, np.ndarray]) -> int:
    """How many bytes a bank may need beside its state, by default.

    128 MB, and 16 times the bytes of its arrays. Banks of few slots need less than 128 MB; those of
    many have arrays of many bytes.
    """
    return _LEAST_MEMORY + _MEMORY_PER_BYTE * sum(array.nbytes for array in arrays.values())


_METHOD = ("learner", "loss", "transform")
"""How a slot learns: the parts of it that many slots have in common."""


def describe_settings(settings: BankSettings) -> dict[str, object]:
    """The settings, without the engine, as JSON data."""
    slots, start = settings.slots, settings.initial
    methods = [tuple(getattr(slot, name) for name in _METHOD) for slot in slots]
    number = {method: i for i, method in enumerate(dict.fromkeys(methods))}
    header: dict[str, object] = {
        "kernels": [to_spec(slot.kernel) for slot in slots],
        "methods": [
            {n: part and to_spec(part) for n, part in zip(_METHOD, method, strict=True)}
            for method in number
        ],
        "method_of": [number[method] for method in methods],
        "residual_of": [slot.residual_of for slot in slots],
        "combiner": to_spec(settings.combiner),
        "loss": to_spec(settings.losses[0]),
    }
    if settings.outputs > 1:
        header["outputs"] = settings.outputs
        if len(set(settings.losses)) > 1:
            header["losses"] = [to_spec(loss) for loss in settings.losses]
    header |= {"window": settings.window, "regularization": settings.regularization}
    if settings.dictionary is not None and settings.selection is not None:
        header["dictionary"] = to_spec(settings.dictionary)
        header["selection"] = asdict(settings.selection)
    if start is not None:
        header["initial"] = [start.points.tolist(), start.coefficients.tolist()]
    return header | {"first_sample": settings.first_sample} | settings.history.describe()


def parse_settings(
    header: Mapping[str, Any], components: Mapping[str, object], engine: Engine
) -> BankSettings:
    """The settings that `describe_settings` described.

    components : user-made parts by name; see `kb.load`.
    """

    def part(spec: object) -> Any:
        return from_spec(spec, BUILT_IN, components)

    methods: list[dict[str, Any]] = [
        {name: method.get(name) and part(method[name]) for name in _METHOD}
        for method in header["methods"]
    ]
    arguments: dict[str, Any] = {
        "combiner": part(header["combiner"]),
        "loss": [part(loss) for loss in header.get("losses", [])] or part(header["loss"]),
        "outputs": header.get("outputs", 1),
        "window": header["window"],
        "regularization": header["regularization"],
        "initial": header.get("initial"),
    }
    if "dictionary" in header:
        arguments["dictionary"] = part(header["dictionary"])
        arguments["learner"] = methods[0]["learner"]
    else:
        columns = (header["kernels"], header["method_of"], header["residual_of"])
        arguments["slots"] = [
            Slot(part(kernel), residual_of=residual_of, **methods[int(method)])
            for kernel, method, residual_of in zip(*columns, strict=True)
        ]
    settings = BankSettings.checked(**arguments, engine=engine)
    slots, selection, dictionary = settings.slots, None, settings.dictionary
    if dictionary is not None:
        selection = Selection.parse(header["selection"], len(dictionary.kernels))
        if len(selection.running) != dictionary.size:
            raise FileRefused("its selection of slots does not fit its dictionary.")
        slots = tuple(settings.selected_slots(selection).values())
        settings = settings.with_slots(slots, settings.history, selection)
    first = check.count("first_sample", header["first_sample"], "the file", "", least=0)
    history = SlotHistory.parse(header, len(slots))
    return replace(settings, history=history, first_sample=first)


def restored_bank(
    settings: BankSettings,
    dimension: object,
    arrays: Mapping[str, np.ndarray],
    most_memory: int,
) -> EngineBank | None:
    """The bank with a saved state; refused if it does not fit, or needs too much memory to run."""
    if dimension is None:
        if arrays:
            raise FileRefused("it has arrays, but has learned nothing.")
        check_memory(settings, None, most_memory)
        settings.history.check(0)
        return None
    width = check.count("dimension", dimension, "the file", "", most=2**31 - 1)
    inputs = arrays["samples/inputs"]  # (dimension, samples)
    if inputs.ndim != 2 or len(inputs) != width:
        raise FileRefused("its inputs do not fit its arrays.")
    if settings.initial is not None and settings.initial.points.shape[1] != width:
        raise FileRefused("its inputs do not fit its initial function.")
    settings.check_width(width, "X")
    local = _local_bank(settings, width, most_memory)
    local.restore(dict(arrays))
    if not local.samples:
        raise FileRefused("its number of samples does not fit its inputs.")
    settings.history.check(local.samples)
    return settings.engine.open(settings, width, local)


def check_memory(settings: BankSettings, dimension: int | None, most_memory: int) -> None:
    """Refuse a bank that would need too much memory to work.

    dimension : columns of the inputs; None for the fewest that the kernels take.
    """
    try:
        width = settings.fewest_columns() if dimension is None else dimension
        _local_bank(settings, width, most_memory)
    except InvalidArgument as error:  # a kernel that does not exist for inputs of this width
        raise FileRefused(str(error)) from None


def _local_bank(settings: BankSettings, dimension: int, most_memory: int) -> Bank:
    """A bank in this process that has learned nothing, if it does not need too much memory."""
    try:
        settings.check_size(dimension, most_memory)
        return Bank(settings.describe(dimension), most_memory)
    except (TooLarge, MemoryError, OverflowError):
        raise FileRefused(
            "The file holds a bank that needs more memory to run than most_memory "
            f"({most_memory // 2**20} MB). Raise most_memory if you trust the file."
        ) from None
