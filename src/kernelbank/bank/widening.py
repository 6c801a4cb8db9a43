"""Continuing a bank on inputs with more columns, which count as 0 until now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..errors import InvalidArgument
from ..kernels.dimensions import active_coordinates, without_active_dims
from ..utils import validation as check
from ..utils.validation import Floats
from .layout import Layout, Slot
from .runtime_state import under
from .slot_targets import extend_state

_OWNER = "with_inputs"


def accepts_columns(slot: Slot, known: int, width: int) -> bool:
    """Whether a slot on `known` columns can use all of `width`, where the new ones were 0 so far.

    Its learner must know how, and the values of a pairwise kernel must not change by zeros.
    """
    if not slot.learner.accepts_new_inputs or not slot.kernel.pairwise:
        return slot.learner.accepts_new_inputs
    wide = np.zeros((5, width))
    wide[:, :known] = np.sin(np.arange(5.0 * known)).reshape(5, known)
    narrow = wide[:, :known].copy()
    try:
        return np.array_equal(slot.kernel(wide, wide), slot.kernel(narrow, narrow))
    except InvalidArgument:  # not for every width, or not for every number
        return False


def check_wider(old: Layout, old_dimension: int, new: Layout, dimension: int) -> None:
    """Refuse slots that cannot continue those of another bank on wider inputs."""
    remedy = "Give it a kernel on the columns that it knows."
    if len(old.slots) != len(new.slots):
        rule = f"be as many as there are ({len(old.slots)})"
        raise check.refuse("slots", rule, len(new.slots), "Give one slot for each.", _OWNER)
    for index, (before, after) in enumerate(zip(old.slots, new.slots, strict=True)):
        columns = active_coordinates(after.kernel, dimension)
        known = active_coordinates(before.kernel, old_dimension)
        base = replace(after, kernel=without_active_dims(after.kernel))
        more = columns[: len(known)] == known and accepts_columns(base, len(known), len(columns))
        alike = base == replace(before, kernel=without_active_dims(before.kernel))
        if not alike or not (columns == known or more):
            rule = f"continue slot {index}, which is {before!r}"
            raise check.refuse("slots", rule, after, remedy, _OWNER)
    if [leaf.slots for leaf in old.leaves] != [leaf.slots for leaf in new.leaves]:
        raise check.refuse("slots", "form the same groups as before", new.slots, remedy, _OWNER)


def widened_arrays(
    layout: Layout, old: Mapping[str, Floats], fresh: Mapping[str, Floats]
) -> dict[str, Floats]:
    """The arrays `old` of a runtime in the shapes of `fresh`, those of one on more columns.

    A slot sees the same columns in both, or, if its learner accepts them, the new ones after these.
    """
    result = dict(fresh)
    known = len(old["slots/inputs"])
    inputs = result["slots/inputs"]
    inputs[:known], inputs[known:] = old["slots/inputs"], 0.0
    result |= {name: array for name, array in old.items() if not name.startswith("slots/")}
    result["slots/targets"] = old["slots/targets"]
    for number, settings in enumerate(layout.groups):
        group = f"slots/group{number}/"
        own = under(group, result)
        extend_state(settings, under(group, old), own)
        result |= {f"{group}{name}": array for name, array in own.items()}
    return result
