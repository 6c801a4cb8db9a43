"""What an AutoBank was told, and the banks that follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..bank import KernelBank
from ..combiners import Combiner, Stacking
from ..layout import Slot
from .recipe import SIZES, slots_on
from .scaling import Scaling

DISCOUNT, RIDGE = 0.998, 0.1
"""Of the default combiner: about 500 rows decide, and a tenth of the best slot's error evens out.
"""


@dataclass(frozen=True)
class Plan:
    """The settings of an AutoBank, checked."""

    lags: int
    size: str
    seed: int
    scalings: tuple[str, ...]
    slots: tuple[Slot, ...] | None
    combiner: Combiner | None
    engine: Any

    def scaling(self, dimension: int, *, target: bool) -> Scaling:
        """The scaling of inputs of this width."""
        return Scaling(dimension, self.lags, self.scalings, target=target)

    def named_slots(self, scaling: Scaling) -> list[tuple[str, Slot]]:
        """The slots and what people call them."""
        if self.slots is not None:
            return [(f"{slot.kernel!r}", slot) for slot in self.slots]
        found: list[tuple[str, Slot]] = []
        for name, columns in scaling.places.items():
            found += slots_on(name, columns, len(found), SIZES[self.size], self.seed)
        return found

    @property
    def rule(self) -> Combiner:
        """The combiner of the banks."""
        return self.combiner if self.combiner is not None else Stacking(DISCOUNT, RIDGE)

    def bank(self, scaling: Scaling) -> KernelBank:
        """A bank that has learned nothing. Targets are in deviations: no regularisation needed."""
        return KernelBank(
            slots=[slot for _, slot in self.named_slots(scaling)],
            combiner=self.rule,
            window=1,
            regularization=0.0,
            engine=self.engine,
        )
