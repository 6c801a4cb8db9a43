"""The slots that an AutoBank may run, and which of them run at a time.

Slots come in *groups*, which are added and retired together: one slot, or the four on nearest
neighbors, which share their search. A group may learn the residual of a slot of another one, its
base. Its price is roughly how many microseconds a row takes; a search among past rows costs the
more the more rows there have been.

With several outputs (classes) some slots compute most of what they need once, and others, such as
trees, once per output: so a group has a second price, that of each further output, and a size.

After fixed numbers of rows the groups of a `SlotPool` are revised (`bank.revision`): those without
weight give their time to others.

1. Groups are kept in the order of their weights, each with the bases that it needs, as long as all
   together cost at most the limit of the pool. Groups that have just been added are kept first:
   they need time to earn a weight.
2. Some groups that do not run are added, if they fit: those that were tried least often, and among
   them the ones whose base has most weight. A slot on the residual of another predicts the same as
   that one at first.
3. What time is left goes to the groups without weight that ran so far, the cheapest first.

The weight of a group is the sum of the weights of its slots; that of a slot is its present weight,
a mean over the outputs, or its long running mean, whichever is larger. So a bank begins with all of
its initial slots, costs no more per row than the limit from the first revision on, and later goes
on trying others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..bank.slot import Slot
from ..bank.slot_history import Selection
from ..kernels.dimensions import active_coordinates
from ..kernels.random_features import feature_counts
from ..learners import FourierRLS, FourierSGD, LinearRLS, NearestNeighborGP, Norma, PartitionTree
from ..utils.validation import Floats

NamedSlots = Sequence[tuple[str, Slot]]

SEVERAL_OUTPUTS, EACH_OUTPUT = 2.9, 1 / 7
"""How many times more a row may cost with several outputs, or with each of many."""

START = 1.5
"""How many times more it may cost before the first revision, which finds out what is needed."""

LARGEST_STATE = 300_000_000
"""How many bytes the slots of all outputs but the first may have."""

SEVERAL_STATES = 4
"""How many times more bytes than the initial slots of one output those slots of all outputs may
have that are not shared, such as trees: they cost little time for their size."""

SHARED = 0.5
"""A group is shared if a further output costs less than this part of the first one."""


@dataclass(frozen=True)
class PoolGroup:
    """Slots that are added and retired together.

    Parameters
    ----------
    name : of the group, for people.
    slots : their indices in the pool.
    base : the group that has the slot whose residual they learn, or None.
    price : roughly how many microseconds they take per row, with one output, if there is nothing
        to search.
    initial : whether it runs from the start, with one output.
    further : how many microseconds more each further output takes.
    size : roughly how many bytes each further output has.
    turn : the place among the slots of its scaling, where groups of all scalings take turns.
    search : how many microseconds more a row takes for each past row that is searched.
    memory : how many past rows are searched at most.
    """

    name: str
    slots: tuple[int, ...]
    base: int | None
    price: float
    initial: bool
    further: float = 0.0
    size: int = 0
    turn: int = 0
    search: float = 0.0
    memory: int = 0

    @property
    def is_shared(self) -> bool:
        """Whether further outputs cost little more time than one."""
        return self.further < SHARED * self.price


class SlotPool:
    """All slots that may run, with their names, in groups.

    Parameters
    ----------
    width : the number of columns of a scaled row.
    outputs : of the banks; it may grow.

    Attributes
    ----------
    names, slots : of every slot; `residual_of` is an index into them.
    groups : every slot is in one of them; a base comes before the groups that need it.
    limit : the most that all running groups may cost, in microseconds per row.
    rows : how many rows there will have been when the groups are revised next.
    season_groups : the groups for seasons.
    relevant_slots : the slots on relevant columns, which start anew with another relevance.
    metric_slot : the one of them whose function gives the relevance; None without them.
    """

    def __init__(self, width: int, outputs: int = 1) -> None:
        self.width, self.outputs = width, outputs
        self._group_of: list[int] = []
        self.names: list[str] = []
        self.slots: list[Slot] = []
        self.groups: list[PoolGroup] = []
        self.rows = 0
        self.first_limit = np.inf
        """The limit with one output."""
        self.season_groups: tuple[int, ...] = ()
        self.relevant_slots: tuple[int, ...] = ()
        self.metric_slot: int | None = None

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def limit(self) -> float:
        """The most that all running groups may cost, in microseconds per row."""
        if self.outputs == 1:
            return self.first_limit
        return self.first_limit * max(SEVERAL_OUTPUTS, self.outputs * EACH_OUTPUT)

    def add(self, named: NamedSlots, *, initial: bool = True, price: float | None = None) -> None:
        """Add slots, each of them a group."""
        for turn, one in enumerate(named):
            self.add_group(one[0], [one], initial=initial, turn=turn, price=price)

    def add_group(
        self,
        name: str,
        named: NamedSlots,
        *,
        initial: bool = True,
        turn: int = 0,
        price: float | None = None,
    ) -> None:
        """Add slots as one group; its price is computed if it is not given."""
        first = len(self.slots)
        slots = [slot for _, slot in named]
        base = slots[0].residual_of
        further, size = 0.0, 0
        search, memory = 0.0, 0
        if price is None:
            price = max(slot_price(slot, self.width) for slot in slots)
            search, memory = search_price(slots[0], self.width)
            further = max(output_price(slot, self.width) for slot in slots)
            size = output_size(slots, self.width)
        indices = tuple(range(first, first + len(named)))
        group = None if base is None else self._group_of[base]
        self._group_of += [len(self.groups)] * len(named)
        self.groups.append(
            PoolGroup(name, indices, group, price, initial, further, size, turn, search, memory)
        )
        self.names += [name for name, _ in named]
        self.slots += [slot for _, slot in named]

    def index(self, name: str) -> int | None:
        """The index of the slot with that name, or None."""
        return self.names.index(name) if name in self.names else None

    @property
    def initial_groups(self) -> tuple[int, ...]:
        """The groups that run from the start: with several outputs those that fit.

        Groups that cost little more for further outputs come first, then those of all scalings in
        turns.
        """
        initial = [number for number, group in enumerate(self.groups) if group.initial]
        if self.outputs == 1 or self.first_limit == np.inf:
            return tuple(initial)

        def order(number: int) -> tuple[int, int, int]:
            group = self.groups[number]
            return (int(not group.is_shared), group.turn, number)

        chosen: set[int] = set()
        for number in sorted(initial, key=order):
            self.take(number, chosen, START)
        return tuple(sorted(chosen))

    def price(self, groups: Iterable[int]) -> float:
        """What groups cost together."""
        further = self.outputs - 1
        chosen = [self.groups[number] for number in groups]
        return sum(
            group.price + group.search * min(group.memory, self.rows) + further * group.further
            for group in chosen
        )

    def fits(self, groups: Iterable[int], factor: float = 1.0) -> bool:
        """Whether groups cost no more than this factor times the limit, and are not too large."""
        chosen = sorted(groups)
        return self.price(chosen) <= factor * self.limit and self._has_room(chosen)

    def take(self, group: int, chosen: set[int], factor: float = 1.0) -> bool:
        """Add a group and its bases to those chosen, if all fit; whether they do.

        With several outputs, at least one has to run.
        """
        wanted = chosen.union(self.with_bases(group))
        if not self.fits(wanted, factor) and (self.outputs == 1 or chosen):
            return False
        chosen |= wanted
        return True

    def can_run(self, running: Sequence[int]) -> bool:
        """Whether these groups are sorted and have their bases among them."""
        bases = {self.groups[number].base for number in running} - {None}
        return list(running) == sorted(running) and bases.issubset(running)

    def _has_room(self, chosen: Sequence[int]) -> bool:
        """Whether groups of several outputs are not too large."""
        if self.outputs == 1:
            return True
        groups = [self.groups[number] for number in chosen]
        own = sum(group.size for group in groups if not group.is_shared)
        first = sum(group.size for group in self.groups if group.initial)
        further = (self.outputs - 1) * sum(group.size for group in groups)
        return further <= LARGEST_STATE and self.outputs * own <= SEVERAL_STATES * first

    def with_bases(self, group: int) -> list[int]:
        """A group and all that it needs, the last base first."""
        found = [group]
        while (base := self.groups[found[0]].base) is not None:
            found.insert(0, base)
        return found

    def members(self, groups: Iterable[int]) -> tuple[int, ...]:
        """The indices of the slots of groups, in their order."""
        return tuple(index for number in sorted(groups) for index in self.groups[number].slots)

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

    def group_weights(self, weights: Floats) -> Floats:
        """(groups,): the weights (slots,) of the slots of each group together."""
        return np.array([float(sum(weights[list(group.slots)])) for group in self.groups])


# --- prices ---------------------------------------------------------------------------------------


def slot_price(slot: Slot, width: int) -> float:
    """Roughly how many microseconds a row takes, on a processor of today, without a search.

    Four slots on nearest neighbors that share their search cost as much as one. `make costs`
    measures the same for all learners.
    """
    learner = slot.learner
    columns = len(active_coordinates(slot.kernel, width))
    if isinstance(learner, FourierRLS):
        count = feature_counts(slot.kernel, learner.features, width)[1]
        return 1.2e-4 * count**2 + 4e-3 * count
    if isinstance(learner, LinearRLS):
        return 0.2 + 1.5e-4 * (columns + 1) ** 2
    if isinstance(learner, PartitionTree):
        return 0.7 + 0.02 * columns
    if isinstance(learner, NearestNeighborGP):
        return 4e-4 * learner.neighbors**3 + 0.006 * learner.neighbors * columns
    return 0.3


def search_price(slot: Slot, width: int) -> tuple[float, int]:
    """How many microseconds a row takes for each past row that is searched, and how many may be."""
    learner = slot.learner
    if not isinstance(learner, NearestNeighborGP):
        return 0.0, 0
    return 1.3e-4 * len(active_coordinates(slot.kernel, width)), learner.memory


def output_price(slot: Slot, width: int) -> float:
    """Roughly how many microseconds more a row takes for each further output."""
    learner = slot.learner
    if isinstance(learner, NearestNeighborGP):  # neighbors and their systems follow from the inputs
        return 4e-3 * learner.neighbors**2
    if not isinstance(learner, (FourierRLS, FourierSGD, LinearRLS, Norma)):  # shares nothing
        return slot_price(slot, width)
    columns = len(active_coordinates(slot.kernel, width))
    return 0.1 + 2.5e-3 * (getattr(learner, "features", 0) + columns + 1)


def output_size(slots: Sequence[Slot], width: int) -> int:
    """Roughly how many bytes slots of one group have for each further output.

    Recursive least squares have weights of their own, nearest neighbors the targets of the
    remembered samples (once for four slots), trees all of their cells and entries.
    """
    kernel, learner = slots[0].kernel, slots[0].learner
    columns = len(active_coordinates(kernel, width))
    numbers = 0
    if isinstance(learner, FourierRLS):
        numbers = len(slots) * feature_counts(kernel, learner.features, width)[1]
    elif isinstance(learner, LinearRLS):
        numbers = len(slots) * (columns + 1)
    elif isinstance(learner, NearestNeighborGP):
        numbers = -(-len(slots) // learner.pack_width) * learner.memory
    elif isinstance(learner, PartitionTree):
        entries = (learner.nodes + 1) // 2 * (columns + 4) * learner.split_after
        numbers = len(slots) * (18 * learner.nodes + entries + 2)
    return 8 * numbers


# --- revision -------------------------------------------------------------------------------------

FIRST_REVISION, SECOND_REVISION, PERIOD = 512, 4096, 8192
"""After which numbers of rows groups are revised first and second, and from then on."""

NEGLIGIBLE = 1e-3
"""Groups with at most this weight have none."""

MOST_ADDED, COSTLY = 3, 0.1
"""How many groups are added at once; one of them may cost more than this part of the limit."""


def rows_to_revision(rows: int) -> int:
    """How many rows are learned until the next revision; at least one."""
    later = [at - rows for at in (FIRST_REVISION, SECOND_REVISION) if at > rows]
    return later[0] if later else PERIOD - rows % PERIOD


def is_due(rows: int) -> bool:
    """Whether groups are revised after this number of rows."""
    return rows in (FIRST_REVISION, SECOND_REVISION) or (rows > 0 and rows % PERIOD == 0)


def revise(
    pool: SlotPool, before: Selection, rows: int, slot_weights: Floats
) -> tuple[Selection, dict[int, str]]:
    """The selection after a revision, and why groups were retired and added.

    slot_weights : (slots of the pool,), 0 for those that do not run.
    """
    pool.rows = rows + rows_to_revision(rows)
    weights = pool.group_weights(slot_weights)
    heavy = [group for group in before.running if weights[group] > NEGLIGIBLE]
    judged = before.judge(rows, set(before.running).difference(heavy))
    chosen: set[int] = set()
    new = [group for group in before.running if before.idle[group] < 0]
    for group in [*new, *sorted(heavy, key=lambda g: (-weights[g], g))]:
        pool.take(group, chosen)
    _add_groups(pool, before, weights, chosen)
    rest = [group for group in before.running if group not in chosen]
    for group in sorted(rest, key=lambda g: (pool.price([g]), g)):
        pool.take(group, chosen)
    after = judged.change(sorted(chosen), grace=1)
    return after, {
        group: f"{weights[group]:.2%} of the weight" if kind == "retired" else f"try {tries}"
        for kind, group in before.changes(after)
        for tries in [after.tries[group]]
    }


def _add_groups(pool: SlotPool, before: Selection, weights: Floats, chosen: set[int]) -> None:
    """Add some groups that do not run to those that are chosen, and fit together with them."""

    def order(group: int) -> tuple[float, ...]:
        base = pool.groups[group].base
        return (before.tries[group], 0.0 if base is None else -weights[base], group)

    kept, added, costly = set(chosen), 0, 0
    others = [group for group in range(len(pool.groups)) if group not in before.running]
    for group in sorted(others, key=order):
        base, is_costly = pool.groups[group].base, pool.price([group]) > COSTLY * pool.limit
        possible = added < MOST_ADDED and costly + is_costly < 2 and (base is None or base in kept)
        if possible and pool.take(group, chosen):
            added += 1
            costly += is_costly
