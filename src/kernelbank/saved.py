"""Banks from files: a stranger's file is checked in every respect before anything is made of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _validate as check
from . import checkpoint, combiners, kernels, learners, losses
from .bank import KernelBank
from .errors import FileRefused
from .layout import Slot
from .specs import from_spec

_KNOWN = (
    *kernels.BUILT_IN,
    *learners.BUILT_IN,
    *combiners.BUILT_IN,
    *losses.BUILT_IN.values(),
)
"""Every type that a file may name without `components`."""


def load(
    path: str | os.PathLike[str],
    components: Mapping[str, Any] | None = None,
    engine: Any = "serial",
) -> KernelBank:
    """The bank that `KernelBank.save` wrote; it goes on bit for bit.

    Parameters
    ----------
    path : the file.
    components : the bank's user-made parts by name: instances of `Custom` kernels and losses,
        classes of your own learners and combiners.
    engine : where the slots run from now on.

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
    header, arrays = checkpoint.read(path)
    given = dict(components or {})
    try:
        methods = [from_spec(spec, _KNOWN, given) for spec in header["learners"]]
        slots = [
            Slot(from_spec(spec, _KNOWN, given), methods[int(method)])
            for spec, method in zip(header["kernels"], header["learner_of"], strict=True)
        ]
        bank = KernelBank(
            slots=slots,
            combiner=from_spec(header["combiner"], _KNOWN, given),
            loss=from_spec(header["loss"], _KNOWN, given),
            window=header["window"],
            regularization=header["regularization"],
            engine=engine,
        )
        samples = check.count("samples", header["samples"], "the file", "", least=0)
        dimension = header["dimension"]
        if dimension is not None:
            dimension = check.count("dimension", dimension, "the file", "")
        said = {str(word) for word in header["said"]}
    except FileRefused:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise FileRefused(f"{path} is damaged: {error}") from None
    if (dimension is None) != (samples == 0):
        raise FileRefused(f"{path} is damaged: its number of samples does not fit its inputs.")
    shapes = bank._shapes(dimension)
    if {name: array.shape for name, array in arrays.items()} != shapes:
        raise FileRefused(f"{path} is damaged: its arrays do not fit its settings.")
    if any(array.dtype != np.float64 for array in arrays.values()):
        raise FileRefused(f"{path} is damaged: its arrays are not of float64.")
    if dimension is not None:
        bank._open(np.zeros(dimension))
    bank._restore(arrays, samples)
    bank._notices.said = said
    return bank
