"""`kb.load`: a KernelBank or an AutoBank from a file.

A file may come from anywhere: it is checked in every respect before anything is made of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..bank.bank import KernelBank
from ..bank.engines import Engine, as_engine
from ..bank.serialization import memory_limit, under
from ..errors import FileRefused, KernelBankError
from ..io import checkpoint
from ..utils import validation as check
from .auto_bank import AutoBank
from .config import OWNER
from .state import Arrays, Json, Reading

RUN = "Run"  # the `kind` in the header of the state of a run, which contains a bank

DAMAGE = (
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""The errors that a forged file may cause; those of ours are `ValueError`s."""

_NO_DAMAGE = ("'components[", "The file needs", "The file holds a bank that needs")
"""How errors begin that another argument of `load` can mend."""


def load(
    path: str | os.PathLike[str],
    components: Mapping[str, object] | None = None,
    engine: Engine | str = "serial",
    most_memory: int | None = None,
) -> Any:
    """Load the bank that `KernelBank.save` or `AutoBank.save` wrote; it continues bit for bit.

    Also the bank of a `kernelbank run`, from the file state.kb in its folder.

    Parameters
    ----------
    path : the file.
    components : the bank's user-made components by name: instances of `Custom` kernels and losses,
        classes of your own learners and combiners.
    engine : where the slots run from now on.
    most_memory : refuse a file whose bank would need more bytes than this to work, beside its
        state, which is as large as the file; by default 128 MB and 16 times the bytes of its
        arrays.

    A file that is truncated, damaged, foreign or from a newer version is refused with a
    `ValueError` that says which. Every minor version of kernelbank reads the files of the one
    before.

    Whatever a file claims, loading it takes at most 64 times its length and 256 MB of memory
    (unless `most_memory` allows more): no number in it is believed before it was compared with
    the arrays that are there.

    >>> import kernelbank as kb, os, tempfile
    >>> bank = kb.KernelBank()
    >>> bank.learn_one(0.0, 1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     bank.save(os.path.join(folder, "bank.kb"))
    ...     again = kb.load(os.path.join(folder, "bank.kb"))
    >>> again.predict_one(0.5) == bank.predict_one(0.5)
    True
    """
    return _loaded(lambda: checkpoint.read(path), path, components, engine, most_memory)


def from_bytes(
    data: bytes | bytearray | memoryview,
    components: Mapping[str, object] | None = None,
    engine: Engine | str = "serial",
    most_memory: int | None = None,
) -> Any:
    """The bank that `KernelBank.to_bytes` or `AutoBank.to_bytes` returned; see `load`.

    >>> import kernelbank as kb
    >>> bank = kb.AutoBank()
    >>> bank.learn_one([1.0], 2.0)
    >>> kb.from_bytes(bank.to_bytes()).predict_one([1.0])
    2.0
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        remedy = "Give what to_bytes() returned."
        raise check.refuse("data", "be bytes", type(data).__name__, remedy, "from_bytes")
    whole, name = bytes(data), "the state in 'data'"
    return _loaded(
        lambda: checkpoint.from_bytes(whole, name), name, components, engine, most_memory
    )


def _loaded(
    read: Callable[[], tuple[Json, Arrays]],
    path: object,
    components: Mapping[str, object] | None,
    engine: Engine | str,
    most_memory: int | None,
) -> KernelBank | AutoBank:
    parts = {} if components is None else components
    if not isinstance(parts, Mapping):
        remedy = "Give a dictionary from names to components."
        raise check.refuse("components", "be a dictionary", components, remedy)
    chosen = as_engine(engine)
    header, arrays = read()
    try:
        if header.get("kind") == RUN:
            header, arrays = header["bank"], under("bank/", arrays)
        return restore(header, arrays, chosen, parts, most_memory)
    except DAMAGE as error:
        if str(error).startswith(_NO_DAMAGE) and isinstance(error, KernelBankError):
            raise
        raise FileRefused(f"{path} is damaged: {checkpoint.damage_text(error)}.") from None


def restore(
    header: Json,
    arrays: Mapping[str, np.ndarray],
    engine: Engine,
    components: Mapping[str, object],
    most_memory: int | None,
) -> KernelBank | AutoBank:
    """The bank, of either kind, that a header and arrays describe."""
    limit = memory_limit(arrays) if most_memory is None else most_memory
    if header.get("kind") != OWNER:
        return KernelBank.restored(header, arrays, engine, components, limit)
    if header["model"] is not None:
        limit //= max(len(header["model"]["outputs"]), 1)  # they are alike
    check_precision(arrays)
    return AutoBank.restored(header, dict(arrays), Reading(engine, components, limit))


def check_precision(arrays: Mapping[str, np.ndarray]) -> None:
    """Refuse arrays that are neither in double precision nor whole numbers; a bank may keep others.

    Objects of the core look at the types of their arrays themselves.
    """
    for name, array in arrays.items():
        of_bank = any(part.startswith(("bank", "line")) for part in name.split("/")[:4])
        if not of_bank and array.dtype not in (np.float64, np.int64):
            raise FileRefused(f"its array {name} is not in double precision.")
