"""The default slots of an AutoBank: which kernels, which learners, how many.

The same for every stream, nothing tuned. Each scaling of the inputs has its own slots, named
`scaling: method`, such as "standard: random features, no forgetting":

- *random features*: Bayesian least squares on random features of kernels of one, two, three and all
  inputs, with widths from narrow to wide, and on linear terms. There are three kinds of memory:
  *no forgetting*; *forgetting*, slowly; and *adaptive bias*, which forgets slowly but the constant
  fast, so that this follows the last errors.
- *linear*: the same with linear terms only, which learn from few rows.
- *tree k*: a partition tree on the target. Trees see steps and interactions for which random
  features need many rows. Their cuts are random, so there are several.
- *method + tree k*: the prediction of another slot plus a tree on its residual.

For losses other than the squared one see `loss_slots`, which adds *method + slow shift* and *method
+ fast shift*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from ...bank.slot import Slot
from ...combiners import Combiner, Joint, RobustStacking, Stacking
from ...kernels import ActiveDims, Additive, Gaussian, Kernel, Linear, TreeKernel
from ...learners import FourierRLS, LinearRLS, PartitionTree
from ...losses import Loss, Squared
from .loss_slots import needs_shift, shifted_slots

SCALINGS = ("standard", "asinh", "rank")
"""The scalings of the inputs, see `Scaling`; each has its own slots."""


@dataclass(frozen=True)
class Size:
    """How many slots and features a bank has."""

    features: int
    widths: int
    trees: int
    nodes: int
    scalings: tuple[str, ...]
    neighbors: int
    neighbor_values: int
    """How many numbers the inputs of all samples have among which neighbors are searched."""


SIZES = {
    "small": Size(96, 3, 1, 255, ("standard", "rank"), 16, 2**15),
    "default": Size(192, 6, 2, 511, SCALINGS, 32, 2**17),
    "large": Size(384, 8, 6, 1023, SCALINGS, 48, 2**18),
}

ORDERS = (1, 2, 3)
NARROWEST, WIDEST = 0.3, 2.4
"""Widths of kernels of one input, in its standard deviations; of k inputs, times sqrt(k)."""

DISCOUNT, STACKING_RIDGE = 0.998, 0.1
"""Settings of the combiner: about 500 rows count; the ridge is a tenth of the best slot's error."""

JOINT: dict[str, Any] = {
    "horizon": 300,
    "discount": 0.995,
    "ridge": 0.1,
    "tolerance": 1e-3,
    "steps": 50,
}
"""Settings of the combiner for another loss than the squared one: about 200 rows count."""

RIDGE = 0.01
LINEAR_RIDGE = 1.0
SLOW, FAST = 0.9999, 0.8
"""Forgetting factors: of slots that forget, and of an adaptive bias."""

TREE_BASES = (
    "random features, no forgetting",
    "random features, adaptive bias",
    "linear, adaptive bias",
)
"""The slots on whose residuals there are trees."""

WIDE = 200
"""With more columns than this, least squares on each of them is too slow: random features only."""


def mixed_kernel(dimension: int, widths: int, narrowest: float = NARROWEST) -> Kernel:
    """The mean of Gaussians of low and full order and of several widths, plus linear terms."""
    ratio = WIDEST / NARROWEST
    steps = [narrowest * ratio ** ((i + 0.5) / widths) for i in range(widths)]
    parts: list[Kernel] = [
        Additive(Gaussian(width * sqrt(order)), order) for order in ORDERS for width in steps
    ]
    parts += [Gaussian(width * sqrt(dimension)) for width in steps]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    mean = (1.0 / len(parts)) * total
    return mean if dimension > WIDE else mean + Linear(1.0)


def default_combiner(loss: Loss, *, labels: bool) -> Combiner:
    """The combiner where none was given.

    Labels have no outliers: there large errors are all that counts.
    """
    if loss != Squared():
        return Joint("prequential", **JOINT)
    rule = Stacking if labels else RobustStacking
    return rule(DISCOUNT, STACKING_RIDGE)


def default_slots(
    scaling: str,
    columns: Sequence[int],
    added: Sequence[int],
    first: int,
    size: Size,
    seed: int,
    loss: Loss,
) -> list[tuple[str, Slot]]:
    """The default slots of one scaling, with their names; this module's text explains them.

    Parameters
    ----------
    scaling : the name of the scaling.
    columns : its columns in a scaled row.
    added : its columns of inputs that were added later: for linear slots and trees, which can take
        them up; random features are drawn once.
    first : the index of the first of these slots in the bank.
    size, seed, loss : settings of the AutoBank. Shifted slots, which other losses than the squared
        one need, replace one slot of random features and half of the trees, which cost as much.
    """
    forgetting: dict[str, Any] = {"forgetting": SLOW, "forget": "prior"}
    adaptive: dict[str, Any] = {**forgetting, "constant_forgetting": FAST}
    mixed = ActiveDims(mixed_kernel(len(columns), size.widths), tuple(columns))
    everything = (*columns, *added)
    cells = ActiveDims(TreeKernel(decay=0.7, levels=20), everything)

    def features(**memory: Any) -> FourierRLS:
        return FourierRLS(features=size.features, ridge=RIDGE, seed=seed, **memory)

    found = [("random features, no forgetting", Slot(mixed, features()))]
    if not needs_shift(loss):
        found.append(("random features, forgetting", Slot(mixed, features(**forgetting))))
    if len(columns) <= WIDE:
        line = ActiveDims(Linear(1.0), everything[:WIDE])
        found += [
            ("random features, adaptive bias", Slot(mixed, features(**adaptive))),
            ("linear, no forgetting", Slot(line, LinearRLS(ridge=LINEAR_RIDGE))),
            ("linear, adaptive bias", Slot(line, LinearRLS(ridge=LINEAR_RIDGE, **adaptive))),
        ]
    index = {name: first + i for i, (name, _) in enumerate(found)}
    bases = [name for name in TREE_BASES if name in index]
    for number in range((size.trees + 1) // 2 if needs_shift(loss) else size.trees):
        tree = PartitionTree(nodes=size.nodes, noise=0.1, seed=seed * 1000 + number)
        found.append((f"tree {number + 1}", Slot(cells, tree)))
        for name in bases:
            on_residual = Slot(cells, tree, residual_of=index[name])
            found.append((f"{name} + tree {number + 1}", on_residual))
    if loss != Squared():
        found = [(name, replace(slot, loss=Squared())) for name, slot in found]
    if needs_shift(loss):
        index = {name: first + i for i, (name, _) in enumerate(found)}
        found += shifted_slots(index, columns, seed)
    return [(f"{scaling}: {name}", slot) for name, slot in found]
