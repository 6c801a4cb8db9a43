"""The slots that an AutoBank may run, of which some run at a time.

Slots come in *units*, which are added and retired together: one slot, or the four on nearest
neighbors, which share their search. A unit may learn the residual of a slot of another one, its
base. Its price is roughly how many microseconds a row takes. `slot_revision` decides which units
run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..bank.layout import Slot
from ..kernels.dimensions import active_coordinates
from ..learners import FourierRLS, LinearRLS, NearestNeighborGP, PartitionTree
from ..utils.validation import Floats

NamedSlots = Sequence[tuple[str, Slot]]


@dataclass(frozen=True)
class SlotUnit:
    """Slots that are added and retired together.

    Parameters
    ----------
    name : of the unit, for people.
    slots : their indices in the pool.
    base : the unit that has the slot whose residual they learn, or None.
    price : roughly how many microseconds they take per row.
    initial : whether it runs from the start.
    """

    name: str
    slots: tuple[int, ...]
    base: int | None
    price: float
    initial: bool


class SlotPool:
    """All slots that may run, with their names, in units.

    Parameters
    ----------
    width : the number of columns of a scaled row.

    Attributes
    ----------
    names, slots : of every slot; `residual_of` is an index into them.
    units : every slot is in one of them; a base comes before the units that need it.
    limit : the most that all running units may cost, in microseconds per row.
    season_units : the units for seasons.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self._unit_of: list[int] = []
        self.names: list[str] = []
        self.slots: list[Slot] = []
        self.units: list[SlotUnit] = []
        self.limit = np.inf
        self.season_units: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.slots)

    def add(self, named: NamedSlots, *, initial: bool = True, price: float | None = None) -> None:
        """Add slots, each of them a unit."""
        for one in named:
            self.add_unit(one[0], [one], initial=initial, price=price)

    def add_unit(
        self, name: str, named: NamedSlots, *, initial: bool = True, price: float | None = None
    ) -> None:
        """Add slots as one unit; its price is computed if it is not given."""
        first = len(self.slots)
        base = named[0][1].residual_of
        if price is None:
            price = max(slot_price(slot, self.width) for _, slot in named)
        indices = tuple(range(first, first + len(named)))
        unit = None if base is None else self._unit_of[base]
        self._unit_of += [len(self.units)] * len(named)
        self.units.append(SlotUnit(name, indices, unit, price, initial))
        self.names += [name for name, _ in named]
        self.slots += [slot for _, slot in named]

    def index(self, name: str) -> int | None:
        """The index of the slot with that name, or None."""
        return self.names.index(name) if name in self.names else None

    @property
    def initial_units(self) -> tuple[int, ...]:
        """The units that run from the start."""
        return tuple(number for number, unit in enumerate(self.units) if unit.initial)

    def price(self, units: Iterable[int]) -> float:
        """What units cost together."""
        return sum(self.units[number].price for number in units)

    def with_bases(self, unit: int) -> list[int]:
        """A unit and all that it needs, the last base first."""
        found = [unit]
        while (base := self.units[found[0]].base) is not None:
            found.insert(0, base)
        return found

    def members(self, units: Iterable[int]) -> tuple[int, ...]:
        """The indices of the slots of units, in their order."""
        return tuple(index for number in sorted(units) for index in self.units[number].slots)

    def bank_slots(self, members: Sequence[int]) -> list[Slot]:
        """The slots of a bank that runs these; `residual_of` is then an index into them."""
        place = {index: i for i, index in enumerate(members)}
        found = []
        for index in members:
            slot = self.slots[index]
            if slot.residual_of is not None:
                slot = replace(slot, residual_of=place[slot.residual_of])
            found.append(slot)
        return found

    def unit_weights(self, weights: Floats) -> Floats:
        """(units,): the weights (slots,) of the slots of each unit together."""
        return np.array([float(sum(weights[list(unit.slots)])) for unit in self.units])


def slot_price(slot: Slot, width: int) -> float:
    """Roughly how many microseconds a row takes, on a processor of today.

    Four slots on nearest neighbors that share their search cost as much as one. `make costs`
    measures the same for all learners.
    """
    learner = slot.learner
    columns = len(active_coordinates(slot.kernel, width))
    if isinstance(learner, FourierRLS):
        count = learner.features + columns + 1
        return 1.2e-4 * count**2 + 4e-3 * count
    if isinstance(learner, LinearRLS):
        return 0.2 + 1.5e-4 * (columns + 1) ** 2
    if isinstance(learner, PartitionTree):
        return 0.7 + 0.02 * columns
    if isinstance(learner, NearestNeighborGP):
        search = 1.3e-4 * learner.memory * columns
        return search + 4e-4 * learner.neighbors**3 + 0.006 * learner.neighbors * columns
    return 0.3
