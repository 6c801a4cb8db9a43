"""Banks from files: a stranger's file is checked in every respect before anything is made of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from .. import combiners, kernels, learners, losses
from ..bank.bank import KernelBank
from ..bank.engines import Engine, as_engine
from ..bank.engines.base import workspace_bytes
from ..bank.layout import Slot
from ..bank.state import array_specs, under
from ..errors import FileRefused, InvalidArgument
from ..io import checkpoint
from ..io.specs import from_spec
from ..utils import validation as check
from .auto_serialization import KIND, rebuild

_KNOWN = (
    *kernels.BUILT_IN,
    *learners.BUILT_IN,
    *combiners.BUILT_IN,
    *losses.BUILT_IN.values(),
    Slot,
)
"""Every type that a file may name without `components`."""

RUN = "Run"
"""What the header of the state of a run says, in which a bank is a part."""

_MOST_SAMPLES = 2.0**53
DAMAGE = (
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    OverflowError,
    MemoryError,
    RecursionError,
)
"""What may come of a file that somebody has made up."""


def load(
    path: str | os.PathLike[str],
    components: Mapping[str, Any] | None = None,
    engine: Any = "serial",
    most_memory: int = 2**30,
) -> Any:
    """The bank that `KernelBank.save` or `AutoBank.save` wrote; it goes on bit for bit.

    Also that of a `kernelbank run`, from the file state.kb in its folder.

    Parameters
    ----------
    path : the file.
    components : the bank's user-made parts by name: instances of `Custom` kernels and losses,
        classes of your own learners and combiners.
    engine : where the slots run from now on.
    most_memory : refuse a file whose bank would need more bytes than this to work, beside its
        state, which is as large as the file.

    A file that is truncated, damaged, foreign or from a newer version is refused with a
    `ValueError` that says which.

    >>> import kernelbank as kb, os, tempfile
    >>> bank = kb.KernelBank()
    >>> bank.learn_one(0.0, 1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     bank.save(os.path.join(folder, "bank.kb"))
    ...     again = kb.load(os.path.join(folder, "bank.kb"))
    >>> again.predict_one(0.5) == bank.predict_one(0.5)
    True
    """
    given = components if components is not None else {}
    if not isinstance(given, Mapping):
        remedy = "Give a dictionary from names to parts."
        raise check.refuse("components", "be a dictionary", components, remedy)
    chosen = as_engine(engine)
    header, arrays = checkpoint.read(path)
    try:
        if header.get("kind") == RUN:
            header, arrays = header["bank"], under("bank/", arrays)
        return restored(header, arrays, chosen, given, most_memory)
    except (FileRefused, InvalidArgument) as error:
        if "components" in str(error) or "most_memory" in str(error):
            raise
        raise FileRefused(f"{path} is damaged: {error}") from None
    except DAMAGE as error:
        raise FileRefused(f"{path} is damaged: {error}") from None


def restored(
    header: Mapping[str, Any],
    arrays: Mapping[str, Any],
    engine: Engine,
    components: Mapping[str, Any],
    most_memory: int,
) -> Any:
    """The bank, of either kind, that a header and arrays describe."""
    restore = partial(_restored, given=components, engine=engine, most_memory=most_memory)
    if header.get("kind") == KIND:
        part = partial(from_spec, known=_KNOWN, components=components)
        return rebuild(header, dict(arrays), part, restore, engine)
    return restore(header, arrays)


def _restored(
    header: Mapping[str, Any],
    arrays: Mapping[str, Any],
    given: Mapping[str, Any],
    engine: Engine,
    most_memory: int,
) -> KernelBank:
    """The bank that a header and arrays describe."""
    bank, dimension, said = _bank_of(header, given, engine)
    found = {name: (array.shape, array.dtype.name) for name, array in arrays.items()}
    if found != array_specs(bank, dimension):
        raise FileRefused("its arrays do not fit its settings.")
    samples = arrays["ledger/running"][-1]
    if not (samples >= 0 and samples == np.floor(samples) and samples < _MOST_SAMPLES):
        raise FileRefused(f"it claims {samples} samples.")
    if (dimension is None) != (samples == 0):
        raise FileRefused("its number of samples does not fit its inputs.")
    if dimension is not None:
        _check_workspace(bank, dimension, most_memory)
        bank._open(np.zeros(dimension))
    bank._restore(arrays)
    bank._diagnostics.said = said
    return bank


def _bank_of(
    header: Mapping[str, Any], given: Mapping[str, Any], engine: Engine
) -> tuple[KernelBank, int | None, set[str]]:
    """The bank that a header describes, without its state; the width of its inputs; its notices."""
    methods = [
        [
            None if spec is None else from_spec(spec, _KNOWN, given)
            for spec in (m["learner"], m["loss"])
        ]
        for m in header["methods"]
    ]
    slots = [
        Slot(from_spec(spec, _KNOWN, given), *methods[int(method)], base)
        for spec, method, base in zip(
            header["kernels"], header["method_of"], header["residual_of"], strict=True
        )
    ]
    bank = KernelBank(
        slots=slots,
        combiner=from_spec(header["combiner"], _KNOWN, given),
        loss=from_spec(header["loss"], _KNOWN, given),
        window=header["window"],
        regularization=header["regularization"],
        dtype=header["dtype"],
        engine=engine,
    )
    dimension = header["dimension"]
    if dimension is not None:
        dimension = check.count("dimension", dimension, "the file", "")
        for slot in slots:
            slot.kernel.check_width(dimension, "X")
    return bank, dimension, {str(word) for word in header["said"]}


def _check_workspace(bank: KernelBank, dimension: int, most_memory: int) -> None:
    """Refuse a file whose bank would need more memory to work than the caller wants to give."""
    try:
        needed = workspace_bytes(bank._layout, bank._objective, dimension)
    except InvalidArgument as error:  # a kernel that cannot be for inputs of this width
        raise FileRefused(str(error)) from None
    if needed > most_memory:
        raise FileRefused(
            f"The file holds a bank that needs {needed / 2**20:.0f} MB to work, more than "
            f"most_memory ({most_memory / 2**20:.0f} MB). Raise most_memory if you trust the file."
        )
