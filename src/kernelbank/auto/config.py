"""What an AutoBank was told, and the banks that follow from it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ..bank.bank import KernelBank
from ..bank.layout import Slot
from ..bank.naming import SlotNames
from ..bank.state import takes_up
from ..combiners import Combiner
from ..kernels import ActiveDims
from ..losses import Loss, Squared
from .default_slots import SIZES, default_combiner, slots_on
from .scaling import Scaling


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
    loss: Loss = field(default_factory=Squared)
    window: int = 1
    regularization: float = 0.0

    def check(self) -> None:
        """Refuse what cannot work together, before there is a stream."""
        if self.slots is None and self.combiner is None and self.loss == Squared():
            return  # the recipe
        self.bank(self.scaling(1, target=True))

    def scaling(self, dimension: int, core: int | None = None, *, target: bool) -> Scaling:
        """The scaling of inputs of this width, of which those beyond `core` came later."""
        return Scaling(dimension, self.lags, self.scalings, target=target, core=core)

    def named_slots(self, scaling: Scaling) -> list[tuple[str, Slot]]:
        """The slots and what people call them."""
        if self.slots is not None:
            names = SlotNames(self.slots)
            return [(n, _seeing(s, scaling)) for n, s in zip(names, self.slots, strict=True)]
        found: list[tuple[str, Slot]] = []
        late = scaling.dimension - scaling.core
        for name, columns in scaling.places.items():
            first, rest = columns[: len(columns) - late], columns[len(columns) - late :]
            size = SIZES[self.size]
            found += slots_on(name, first, rest, len(found), size, self.seed, self.loss)
        return found

    @property
    def rule(self) -> Combiner:
        """The combiner of the banks."""
        return self.combiner if self.combiner is not None else default_combiner(self.loss)

    def bank(self, scaling: Scaling) -> KernelBank:
        """A bank that has learned nothing."""
        return KernelBank(
            slots=[slot for _, slot in self.named_slots(scaling)],
            combiner=self.rule,
            loss=self.loss,
            window=self.window,
            regularization=self.regularization,
            engine=self.engine,
        )


def _seeing(slot: Slot, scaling: Scaling) -> Slot:
    """A slot of the user's own: it takes up columns that came late, or does not see them."""
    early = scaling.width - (scaling.dimension - scaling.core) * len(scaling.names)
    if early == scaling.width or takes_up(slot, early, scaling.width):
        return slot
    return replace(slot, kernel=ActiveDims(slot.kernel, tuple(range(early))))
