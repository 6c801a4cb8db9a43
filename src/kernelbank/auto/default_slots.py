"""The slots of an AutoBank: which kernels, which learners, how many.

One recipe for every stream, nothing tuned. Each scaling of the inputs has its own slots:

- *mixed*: Bayesian least squares on random features of kernels of one, two, three and all inputs,
  with widths from narrow to wide, and linear terms. Three kinds of memory: everything counts for
  ever; everything fades slowly; everything fades slowly and the constant fast, so that it follows
  what the others leave (an autoregression of the error).
- *linear*: the same with linear terms only, which learn from few rows.
- *trees*: nested cells on the target and on what a linear and two mixed slots leave. They see steps
  and interactions that cosines need many rows for. Their cuts are random: so several.

For losses other than the squared one `any_loss` tells what becomes of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from ..bank.layout import Slot
from ..combiners import Combiner, NewtonStacking, Stacking
from ..kernels import ActiveDims, Additive, Gaussian, Kernel, Linear, TreeKernel
from ..learners import FourierRLS, LinearRLS, PartitionTree
from ..losses import Loss, Squared
from .loss_slots import shifted_slots, shifts

SCALINGS = ("standard", "asinh", "rank")
"""How inputs are shown to the slots of the recipe; see `Scaling`."""


@dataclass(frozen=True)
class Size:
    """How much a bank may spend."""

    features: int
    widths: int
    trees: int
    nodes: int
    scalings: tuple[str, ...]


SIZES = {
    "small": Size(96, 3, 1, 255, ("standard", "rank")),
    "default": Size(192, 6, 2, 511, SCALINGS),
    "large": Size(384, 8, 6, 1023, SCALINGS),
}

ORDERS = (1, 2, 3)
NARROWEST, WIDEST = 0.3, 2.4
"""Widths of kernels of one input, in its standard deviations; of k inputs, times sqrt(k)."""

DISCOUNT, STACKING_RIDGE = 0.998, 0.1
"""Of the combiner: about 500 rows decide, and a tenth of the best slot's error evens out."""

RIDGE = 0.01
LINEAR_RIDGE = 1.0
SLOW, FAST = 0.9999, 0.8
"""What a row leaves of weights that fade, and of the constant that follows."""

WIDE = 200
"""Beyond so many columns least squares on each of them is too slow: random features only."""


def mixed_kernel(dimension: int, widths: int) -> Kernel:
    """The mean of Gaussians of low and full order and of several widths, plus linear terms."""
    ratio = WIDEST / NARROWEST
    steps = [NARROWEST * ratio ** ((i + 0.5) / widths) for i in range(widths)]
    parts: list[Kernel] = [
        Additive(Gaussian(width * sqrt(order)), order) for order in ORDERS for width in steps
    ]
    parts += [Gaussian(width * sqrt(dimension)) for width in steps]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    mean = (1.0 / len(parts)) * total
    return mean if dimension > WIDE else mean + Linear(1.0)


def default_combiner(loss: Loss) -> Combiner:
    """The rule for the weights where none was given."""
    rule = Stacking if loss == Squared() else NewtonStacking
    return rule(DISCOUNT, STACKING_RIDGE)


def slots_on(
    name: str,
    columns: Sequence[int],
    late: Sequence[int],
    base: int,
    size: Size,
    seed: int,
    loss: Loss,
) -> list[tuple[str, Slot]]:
    """The named slots of one scaling, which stands in these columns; `base` come before them.

    Columns that came late are for lines and trees, which can take them up as they go; random
    features are drawn once. Slots that are shifted cost the time of a mixed one and of some trees.
    """
    fading: dict[str, Any] = {"forgetting": SLOW, "forget": "prior"}
    following: dict[str, Any] = {**fading, "constant_forgetting": FAST}
    mixed = ActiveDims(mixed_kernel(len(columns), size.widths), tuple(columns))
    everything = (*columns, *late)
    cells = ActiveDims(TreeKernel(decay=0.7, levels=20), everything)

    def features(**memory: Any) -> FourierRLS:
        return FourierRLS(features=size.features, ridge=RIDGE, seed=seed, **memory)

    found = [("mixed", Slot(mixed, features()))]
    if not shifts(loss):
        found.append(("mixed, fading", Slot(mixed, features(**fading))))
    if len(columns) <= WIDE:
        line = ActiveDims(Linear(1.0), everything[:WIDE])
        found += [
            ("mixed, following", Slot(mixed, features(**following))),
            ("linear", Slot(line, LinearRLS(ridge=LINEAR_RIDGE))),
            ("linear, following", Slot(line, LinearRLS(ridge=LINEAR_RIDGE, **following))),
        ]
    places = {slot_name: base + place for place, (slot_name, _) in enumerate(found)}
    under = [part for part in ("mixed", "mixed, following", "linear, following") if part in places]
    for number in range((size.trees + 1) // 2 if shifts(loss) else size.trees):
        tree = PartitionTree(nodes=size.nodes, noise=0.1, seed=seed * 1000 + number)
        found.append((f"tree {number + 1}", Slot(cells, tree)))
        for part in under:
            on_part = Slot(cells, tree, residual_of=places[part])
            found.append((f"tree {number + 1} on {part}", on_part))
    if loss != Squared():
        found = [(slot_name, replace(slot, loss=Squared())) for slot_name, slot in found]
    if shifts(loss):
        places = {slot_name: base + place for place, (slot_name, _) in enumerate(found)}
        found += shifted_slots(places, columns, seed)
    return [(f"{name}: {slot_name}", slot) for slot_name, slot in found]
