"""What a bank knows, apart from the bank: settings as plain data, and arrays by name.

Arrays have the leaves of all slots in one order, so they fit a bank on any engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidArgument
from ..io.specs import to_spec
from ..kernels.dimensions import active_coordinates, without_active_dims
from ..kernels.sample_buffer import ArraySpec
from ..utils import validation as check
from ..utils.validation import Floats
from .layout import Slot
from .residual import extend_state
from .shard import Shard

if TYPE_CHECKING:
    from .bank import KernelBank


def described(bank: KernelBank) -> dict[str, Any]:
    """The settings, as what JSON can hold."""
    methods = {(slot.learner, slot.loss): None for slot in bank.slots}
    index = {method: number for number, method in enumerate(methods)}
    return {
        "kernels": [to_spec(slot.kernel) for slot in bank.slots],
        "methods": [
            {"learner": to_spec(learner), "loss": None if loss is None else to_spec(loss)}
            for learner, loss in methods
        ],
        "method_of": [index[slot.learner, slot.loss] for slot in bank.slots],
        "residual_of": [slot.residual_of for slot in bank.slots],
        "combiner": to_spec(bank.combiner),
        "loss": to_spec(bank.loss),
        "window": bank.window,
        "regularization": bank.regularization,
        "dtype": bank._objective.dtype,
        "dimension": bank._dimension,
        "said": sorted(bank._diagnostics.said),
    }


def arrays(bank: KernelBank) -> dict[str, Floats]:
    """Copies of all arrays that the next round depends on."""
    found = driver_arrays(bank)
    if bank._work is not None:
        found |= {f"slots/{name}": a for name, a in bank._work.executor.state().items()}
    return found


def driver_arrays(bank: KernelBank) -> dict[str, Floats]:
    """The same without those of the slots."""
    found = {"weights": bank.weights}
    found |= {f"ledger/{name}": array for name, array in bank.ledger.state().items()}
    if bank._work is not None:
        found["recent"] = bank._work.workspace.recent[: bank.window - 1].copy()
        found |= {f"combiner/{name}": a.copy() for name, a in bank._work.memory.items()}
    return found


def write(bank: KernelBank, given: Mapping[str, Floats]) -> None:
    """Let a bank that is open, or has learned nothing, go on from such arrays."""
    write_driver(bank, given)
    if bank._work is not None:
        bank._work.executor.restore(under("slots/", given))


def write_driver(bank: KernelBank, given: Mapping[str, Floats]) -> None:
    """The same without those of the slots."""
    bank._weights[:] = given["weights"]
    bank.ledger.restore(under("ledger/", given))
    bank._diagnostics.out = len(bank.quarantined)
    if bank._work is not None:
        bank._work.workspace.recent[: bank.window - 1] = given["recent"]
        for name, array in under("combiner/", given).items():
            bank._work.memory[name][...] = array


def array_specs(bank: KernelBank, dimension: int | None) -> dict[str, ArraySpec]:
    """Shape and dtype of the arrays for inputs of that width, without making any."""
    shapes: dict[str, tuple[int, ...]] = {"weights": (len(bank.slots),)}
    shapes |= {f"ledger/{name}": a.shape for name, a in bank.ledger.state().items()}
    slots: dict[str, ArraySpec] = {}
    if dimension is not None:
        shapes["recent"] = (bank.window - 1,)
        memory = bank.combiner.shapes(len(bank.slots))
        shapes |= {f"combiner/{name}": shape for name, shape in memory.items()}
        slots = Shard.array_specs(bank._objective, bank._layout, dimension)
    found: dict[str, ArraySpec] = {name: (shape, "float64") for name, shape in shapes.items()}
    return found | {f"slots/{name}": form for name, form in slots.items()}


def takes_up(slot: Slot, early: int, width: int) -> bool:
    """Whether a slot on so many columns can take up further ones, which were 0 until now.

    Its learner must know how, and its kernel, if it has values, must not change by zeros.
    """
    if not slot.learner.accepts_new_inputs or not slot.kernel.pairwise:
        return slot.learner.accepts_new_inputs
    some = np.zeros((5, width))
    some[:, :early] = np.sin(np.arange(5.0 * early)).reshape(5, early)
    known = some[:, :early].copy()
    try:
        return np.array_equal(slot.kernel(some, some), slot.kernel(known, known))
    except InvalidArgument:  # not for every width, or not for every number
        return False


def check_wider(old: KernelBank, new: KernelBank, dimension: int) -> None:
    """Refuse slots that cannot go on from those of another bank on wider inputs."""
    remedy = "Give it a kernel on the columns that it knows."
    if len(old.slots) != len(new.slots):
        rule = f"be as many as there are ({len(old.slots)})"
        raise check.refuse("slots", rule, len(new.slots), "Give one slot for each.", "with_inputs")
    one, other = old._layout, new._layout
    for place, (before, after) in enumerate(zip(old.slots, new.slots, strict=True)):
        seen = active_coordinates(after.kernel, dimension)
        known = active_coordinates(before.kernel, old._dimension or 0)
        base = replace(after, kernel=without_active_dims(after.kernel))
        more = seen[: len(known)] == known and takes_up(base, len(known), len(seen))
        alike = base == replace(before, kernel=without_active_dims(before.kernel))
        if not alike or not (seen == known or more):
            rule = f"go on from slot {place}, which is {before!r}"
            raise check.refuse("slots", rule, after, remedy, "with_inputs")
    if [leaf.slots for leaf in one.leaves] != [leaf.slots for leaf in other.leaves]:
        raise check.refuse("slots", "stand in groups as before", new.slots, remedy, "with_inputs")


def widen(old: KernelBank, new: KernelBank) -> None:
    """Let `new` go on from `old` on inputs with more columns, which were 0 until now.

    The slots of both correspond. A slot sees the same columns in both, or, if its learner can
    `widen`, the new ones behind them.
    """
    assert old._work is not None
    before, after = arrays(old), arrays(new)
    inputs = after["slots/inputs"]
    inputs[: old._dimension], inputs[old._dimension :] = before["slots/inputs"], 0.0
    after |= {name: a for name, a in before.items() if not name.startswith("slots/")}
    after["slots/targets"] = before["slots/targets"]
    for number, settings in enumerate(new._layout.groups):
        group = f"slots/group{number}/"
        fresh = under(group, after)
        extend_state(settings, under(group, before), fresh)
        after |= {f"{group}{name}": array for name, array in fresh.items()}
    write(new, after)
    assert new._work is not None
    new._work.executor.restore_models(old._work.executor.copy_models())
    new._diagnostics.said = set(old._diagnostics.said)


def under(prefix: str, given: Mapping[str, Floats]) -> dict[str, Floats]:
    """The arrays whose names begin so, without the beginning."""
    return {name[len(prefix) :]: a for name, a in given.items() if name.startswith(prefix)}
