"""`kb.load`: a KernelBank or an AutoBank from a file.

A file may come from anywhere: it is checked in every respect before anything is made of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from ...bank.bank import KernelBank
from ...bank.engines import Engine, as_engine
from ...bank.serialization import KNOWN, memory_limit, under
from ...errors import FileRefused, KernelBankError
from ...io import checkpoint
from ...io.specs import from_spec
from ...utils import validation as check
from ..auto_serialization import AUTO_BANK
from .restored_auto import restore_auto

RUN = "Run"
"""The `kind` in the header of the state of a run, which contains a bank."""

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
    components: Mapping[str, Any] | None = None,
    engine: Any = "serial",
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
    given = components if components is not None else {}
    if not isinstance(given, Mapping):
        remedy = "Give a dictionary from names to components."
        raise check.refuse("components", "be a dictionary", components, remedy)
    chosen = as_engine(engine)
    header, arrays = checkpoint.read(path)
    try:
        if header.get("kind") == RUN:
            header, arrays = header["bank"], under("bank/", arrays)
        return restore(header, arrays, chosen, given, most_memory)
    except DAMAGE as error:
        if str(error).startswith(_NO_DAMAGE) and isinstance(error, KernelBankError):
            raise
        raise FileRefused(f"{path} is damaged: {checkpoint.damage_text(error)}.") from None


def restore(
    header: Mapping[str, Any],
    arrays: Mapping[str, Any],
    engine: Engine,
    components: Mapping[str, Any],
    most_memory: int | None,
) -> Any:
    """The bank, of either kind, that a header and arrays describe."""
    limit = memory_limit(arrays) if most_memory is None else most_memory
    is_auto = header.get("kind") == AUTO_BANK
    if is_auto:
        limit //= max(len(header["banks"]), 1)  # they are alike
    inner = partial(KernelBank.restored, engine=engine, components=components, most_memory=limit)
    if not is_auto:
        return inner(header, arrays)
    component = partial(from_spec, known=KNOWN, components=components)
    auto = restore_auto(header, dict(arrays), component, inner, engine)
    model = auto._model
    if model is None or not model.banks:
        scaling = auto._config.make_scaling(1, target=True) if model is None else model.scaling
        bank = auto._config.first_bank(scaling)
        bank.check_memory(scaling.width, limit)
    return auto
