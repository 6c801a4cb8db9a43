"""The slots that an AutoBank may run: which there are, what they cost, and which run at a time.

The default slots are the same for every stream, nothing tuned; `AutoBank.names` lists the methods.
Each scaling of the inputs has its own, named `scaling: method`:

- *random features*: Bayesian least squares on random features of kernels of one, two, three and all
  inputs, with widths from narrow to wide, and on linear terms; *linear*: on the inputs alone;
- *tree k*: a partition tree on the target; *method + tree k*: on the residual of another slot.
  Their cuts are random, so there are several;

and beside those of each scaling the *last value*, *nearest neighbors*, *boosted trees*, slots on
*relevant* and *past* columns (`new_relevance`), and on *seasons*: Gaussian kernels of cosine and
sine of the phase are periodic kernels (MacKay, Introduction to Gaussian processes, 1998). Reserves
do not run from the start; `revise` tries them when others have no weight: neighbors on a residual
or on a random half of the inputs, larger trees on what the trees before them leave, other widths.

The strong methods, second-order ones and trees, minimise the squared loss. So the default slots
learn by it whatever the loss of the bank: they find the conditional mean, quickly. `Joint` chooses
the weights by the loss itself. And, if it is a loss for numbers, there are *shifted* slots: *method
+ slow shift* and *method + fast shift*, the prediction of another slot plus a correction, learned
by gradient steps on this loss, that leads from the mean to the target of the loss, such as a median
or a quantile, as a function of the inputs. The residual of a label is not a label: labels have no
shifted slots.

Slots come in *groups*, which are added and retired together: one slot, or the four on nearest
neighbors, which share their search. A group may learn the residual of a slot of another one, its
base. Its price is roughly how many microseconds a row takes; with several outputs it has a second
price, that of each further output, and a size. After fixed numbers of rows the groups of a
`SlotPool` are revised (`revise`): those without weight give their time to others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np

from ..bank.bank import KernelBank
from ..bank.slot import Slot
from ..bank.slot_history import Selection
from ..combiners import Combiner, Joint, RobustStacking, Stacking
from ..kernels import ActiveDims, Additive, Gaussian, Kernel, Linear, Matern, NoKernel, TreeKernel
from ..kernels.base import active_coordinates
from ..kernels.random_features import feature_counts
from ..learners import (
    BoostedTrees,
    FourierRLS,
    FourierSGD,
    LastValue,
    LinearRLS,
    NearestNeighborGP,
    Norma,
    PartitionTree,
)
from ..losses import Loss, Squared
from ..transforms import ShiftedLog
from ..utils.validation import Floats
from .scaling import Scaling
from .seasons import SEASON_INPUTS

# --- pool -----------------------------------------------------------------------------------------

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
        for turn, named_slot in enumerate(named):
            self.add_group(named_slot[0], [named_slot], initial=initial, turn=turn, price=price)

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
        unshared = sum(group.size for group in groups if not group.is_shared)
        first = sum(group.size for group in self.groups if group.initial)
        further = (self.outputs - 1) * sum(group.size for group in groups)
        return further <= LARGEST_STATE and self.outputs * unshared <= SEVERAL_STATES * first

    def with_bases(self, group: int) -> list[int]:
        """A group and all that it needs, the last base first."""
        chain = [group]
        while (base := self.groups[chain[0]].base) is not None:
            chain.insert(0, base)
        return chain

    def members(self, groups: Iterable[int]) -> tuple[int, ...]:
        """The indices of the slots of groups, in their order."""
        return tuple(index for number in sorted(groups) for index in self.groups[number].slots)

    def bank_slots(self, members: Sequence[int]) -> list[Slot]:
        """The slots of a bank that runs these; `residual_of` is then an index into them."""
        place = {index: i for i, index in enumerate(members)}
        slots = []
        for index in members:
            slot = self.slots[index]
            if slot.residual_of is not None:
                slot = replace(slot, residual_of=place[slot.residual_of])
            slots.append(slot)
        return slots

    def with_transform(self, transform: ShiftedLog | None) -> SlotPool:
        """The same slots, where some of them learn this transform of the target."""
        pool = copy(self)
        pool.slots = [
            replace(slot, transform=transform) if name.startswith(TRANSFORMED) else slot
            for name, slot in zip(self.names, self.slots, strict=True)
        ]
        return pool

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
    if isinstance(learner, BoostedTrees):
        return 4.0 + 0.2 * columns
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


# --- default slots of a scaling -------------------------------------------------------------------

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

LABEL_DISCOUNT = 0.9995
"""With labels about 2,000 rows count: where a class is rare, it is in few of them."""

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

_FORGETTING: dict[str, Any] = {"forgetting": SLOW, "forget": "prior"}
_ADAPTIVE: dict[str, Any] = {**_FORGETTING, "constant_forgetting": FAST}

TREE_BASES = (
    "random features, no forgetting",
    "random features, adaptive bias",
    "linear, adaptive bias",
)
"""The slots on whose residuals there are trees."""

WIDE = 200
"""With more columns than this, least squares on each of them is too slow: random features only."""


@lru_cache(maxsize=64)
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
    if labels:
        return Stacking(LABEL_DISCOUNT, STACKING_RIDGE)
    return RobustStacking(DISCOUNT, STACKING_RIDGE)


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
    mixed = ActiveDims(mixed_kernel(len(columns), size.widths), tuple(columns))
    everything = (*columns, *added)
    cells = ActiveDims(TreeKernel(decay=0.7, levels=20), everything)

    def features(**memory: Any) -> FourierRLS:
        return FourierRLS(features=size.features, ridge=RIDGE, seed=seed, **memory)

    named = [("random features, no forgetting", Slot(mixed, features()))]
    if not needs_shift(loss):
        named.append(("random features, forgetting", Slot(mixed, features(**_FORGETTING))))
    if len(columns) <= WIDE:
        line = ActiveDims(Linear(1.0), everything[:WIDE])
        named += [
            ("random features, adaptive bias", Slot(mixed, features(**_ADAPTIVE))),
            ("linear, no forgetting", Slot(line, LinearRLS(ridge=LINEAR_RIDGE))),
            ("linear, adaptive bias", Slot(line, LinearRLS(ridge=LINEAR_RIDGE, **_ADAPTIVE))),
        ]
    index = {name: first + i for i, (name, _) in enumerate(named)}
    bases = [name for name in TREE_BASES if name in index]
    for number in range((size.trees + 1) // 2 if needs_shift(loss) else size.trees):
        tree = PartitionTree(nodes=size.nodes, noise=0.1, seed=seed * 1000 + number)
        named.append((f"tree {number + 1}", Slot(cells, tree)))
        for name in bases:
            on_residual = Slot(cells, tree, residual_of=index[name])
            named.append((f"{name} + tree {number + 1}", on_residual))
    named = by_squares(named, loss)
    if needs_shift(loss):
        index = {name: first + i for i, (name, _) in enumerate(named)}
        named += shifted_slots(index, columns, seed)
    return [(f"{scaling}: {name}", slot) for name, slot in named]


# --- other losses than the squared one ------------------------------------------------------------

SHIFTED = (
    "random features, no forgetting",
    "random features, adaptive bias",
    "linear, adaptive bias",
    "random features, adaptive bias + tree 1",
)
"""The slots of each scaling that have shifted ones beside them."""

SHIFT_RATES = {"slow": 0.02, "fast": 0.2}
"""Learning rates of the gradient steps, in the target's deviations: errors are of the order of one
or of a tenth, and there is a rate for both."""

SHIFT_FEATURES = 48


def needs_shift(loss: Loss) -> bool:
    """Whether there are shifted slots."""
    return loss != Squared() and not loss.labels


def by_squares(named: NamedSlots, loss: Loss) -> list[tuple[str, Slot]]:
    """Slots that learn by the squared loss, in a bank with this loss."""
    if loss == Squared():
        return list(named)
    return [(name, replace(slot, loss=Squared())) for name, slot in named]


def shifted_slots(
    index: Mapping[str, int], columns: Sequence[int], seed: int
) -> list[tuple[str, Slot]]:
    """The shifted slots and their names, for slots at these indices and inputs in these columns."""
    kernel = ActiveDims(_smooth_kernel(len(columns)), tuple(columns))
    return [
        (
            f"{name} + {speed} shift",
            Slot(kernel, FourierSGD(SHIFT_FEATURES, rate, seed), residual_of=index[name]),
        )
        for name in SHIFTED
        if name in index
        for speed, rate in SHIFT_RATES.items()
    ]


def _smooth_kernel(dimension: int) -> Kernel:
    """A wide kernel on single inputs and on all: the correction is smoother than the mean.

    k(x, x) = 1, so a step of rate r moves the function at x by r times the derivative of the loss.
    """
    return 0.5 * Additive(Gaussian(1.0), 1) + 0.5 * Gaussian(sqrt(dimension))


# --- seasons --------------------------------------------------------------------------------------


def season_slots(scaling: Scaling, size: Size, seed: int, loss: Loss) -> list[tuple[str, Slot]]:
    """The slots for seasons and their names; none without seasons.

    They are the only ones that see the targets of earlier periods, and see the inputs in their
    first scaling too. As long as no period is known they are idle: least squares on a column of
    zeros, which costs next to nothing and gets no weight.
    """
    if not scaling.seasons:
        return []
    first = scaling.columns_of[scaling.names[0]]
    added = scaling.dimension - scaling.core
    inputs, later = first[: len(first) - added], first[len(first) - added :]
    seasons = scaling.season_columns[: scaling.periods * SEASON_INPUTS]
    if scaling.periods:
        line = ActiveDims(Linear(1.0), (*seasons, *inputs, *later)[:WIDE])
        columns = (*seasons, *inputs)
        linear = Slot(line, LinearRLS(ridge=LINEAR_RIDGE, **_ADAPTIVE))
        features = Slot(
            ActiveDims(mixed_kernel(len(columns), size.widths), columns),
            FourierRLS(features=size.features, ridge=RIDGE, seed=seed, **_ADAPTIVE),
        )
    else:
        zeros = ActiveDims(Linear(1.0), scaling.season_columns[:1])
        linear = features = Slot(zeros, LinearRLS(ridge=LINEAR_RIDGE))
    named = [
        ("season: linear, adaptive bias", linear),
        ("season: random features, adaptive bias", features),
    ]
    return by_squares(named, loss)


# --- nearest neighbors ----------------------------------------------------------------------------

NEIGHBOR_KERNELS = ((0.3, 0.1), (1.0, 0.01), (1.0, 0.1), (3.0, 0.01))
"""Widths and noises of the slots on nearest neighbors."""

NOISE = 0.1
"""The noise in units of their kernels, which are scaled accordingly."""

BOOSTED_VALUES = 2**18
"""How many numbers the inputs of all samples have from which boosted trees are grown."""

MOST_SAMPLES = 2**14
"""The most samples among which neighbors are searched."""


def neighbor_slots(
    name: str, columns: Sequence[int], size: Size, base: int | None
) -> list[tuple[str, Slot]]:
    """Four slots on nearest neighbors, which share their search; on the residual of `base`."""
    dimension, count = len(columns), size.neighbors
    memory = max(size.neighbor_values // dimension, 8 * count)
    learner = NearestNeighborGP(count, min(memory, MOST_SAMPLES), noise=NOISE)
    named = []
    for width, noise in NEIGHBOR_KERNELS:
        kernel = (NOISE / noise) * Matern(width * sqrt(dimension))
        slot = Slot(ActiveDims(kernel, tuple(columns)), learner, residual_of=base)
        named.append((f"{name}, width {width:g}, noise {noise:g}", slot))
    return named


# --- all slots ------------------------------------------------------------------------------------

LIMIT = 0.7
"""What all slots may cost per row, as a part of what the slots of each scaling would cost."""

LARGER_TREES, LARGEST_TREE = 8, 4_000_000
"""How many times more nodes the trees of reserves have, and roughly how many bytes at most."""

SUBSETS = 3
"""How many random halves of the inputs there are."""

RELEVANT_WIDTHS = {"wide": 2.0, "medium": 1.0, "narrow": 0.5}
"""Of the kernels of all relevant columns: in standard deviations, times sqrt(columns)."""

TRANSFORMED = ("rank: ", "relevant: ")
"""How the names of slots begin that learn the transform of a skewed target (`log_shift`)."""


def default_pool(scaling: Scaling, size: Size, seed: int, loss: Loss, outputs: int = 1) -> SlotPool:
    """All slots that an AutoBank with the default slots may run.

    They are the same for any number of outputs; which of them run first, and what they cost, is
    not.
    """
    pool = SlotPool(scaling.width, outputs)
    added = scaling.dimension - scaling.core
    columns_of = {}
    for name, columns in scaling.columns_of.items():
        columns_of[name], later = columns[: len(columns) - added], columns[len(columns) - added :]
        pool.add(default_slots(name, columns_of[name], later, len(pool), size, seed, loss))
    if needs_shift(loss):  # other slots would aim at the mean, and nothing at what the loss does
        pool.add(season_slots(scaling, size, seed, loss))
        return pool
    pool.first_limit = LIMIT * sum(group.price for group in pool.groups)
    builder = _Builder(pool, scaling, columns_of, size, seed, loss)
    builder.add_last_value()
    builder.add_neighbors()
    builder.add_relevant()
    builder.add_boosted()
    first = len(pool.groups)
    pool.add(season_slots(scaling, size, seed, loss))
    pool.season_groups = tuple(range(first, len(pool.groups)))
    builder.add_reserves()
    return pool.with_transform(scaling.target_transform)


class _Builder:
    """Adds the slots beyond those of each scaling to a pool."""

    def __init__(
        self,
        pool: SlotPool,
        scaling: Scaling,
        columns_of: dict[str, tuple[int, ...]],
        size: Size,
        seed: int,
        loss: Loss,
    ) -> None:
        self.pool, self.scaling, self.columns_of = pool, scaling, columns_of
        self.size, self.seed, self.loss = size, seed, loss
        self.first = scaling.names[0]
        """The scaling whose columns the slots here use."""
        self.columns = columns_of[self.first]
        self.cells = ActiveDims(TreeKernel(decay=0.7, levels=20), self.columns)

    def _add(self, name: str, slot: Slot, *, initial: bool = True) -> int:
        """Add one slot; its index."""
        self._add_group(name, [(name, slot)], initial=initial)
        return len(self.pool) - 1

    def _add_group(self, name: str, named: NamedSlots, *, initial: bool = True) -> None:
        self.pool.add_group(name, by_squares(named, self.loss), initial=initial)

    def _tree(self, number: int, nodes: int) -> PartitionTree:
        return PartitionTree(nodes=nodes, noise=0.1, seed=self.seed * 1000 + number)

    def _features(self, columns: Sequence[int], narrowest: float = NARROWEST) -> ActiveDims:
        kernel = mixed_kernel(len(columns), self.size.widths, narrowest)
        return ActiveDims(kernel, tuple(columns))

    def _rls(self, **memory: Any) -> FourierRLS:
        return FourierRLS(features=self.size.features, ridge=RIDGE, seed=self.seed, **memory)

    def add_last_value(self) -> None:
        """The last target, and slots on the change from one target to the next."""
        # A forecast of several rows goes on from its own predictions, which are lagged targets.
        single = self.scaling.lags and self.scaling.outputs <= 1
        column = self.columns[self.scaling.core] if single else None
        last = self._add("last value", Slot(NoKernel(), LastValue(column)))
        line = ActiveDims(Linear(1.0), self.columns[:WIDE])
        linear = LinearRLS(ridge=LINEAR_RIDGE, **_FORGETTING)
        on_line = self._add("last value + linear", Slot(line, linear, residual_of=last))
        features = Slot(self._features(self.columns), self._rls(**_FORGETTING), residual_of=last)
        self._add("last value + random features", features)
        for number in range(self.size.trees):
            tree = self._tree(number, self.size.nodes)
            name = f"last value + tree {number + 1}"
            self._add(name, Slot(self.cells, tree, residual_of=last))
        tree = self._tree(0, self.size.nodes)
        self._add("last value + linear + tree 1", Slot(self.cells, tree, residual_of=on_line))

    def _neighbors(
        self, name: str, columns: Sequence[int], base: int | None, *, initial: bool
    ) -> None:
        """Add the slots on nearest neighbors in these columns."""
        named = neighbor_slots(name, columns, self.size, base)
        self._add_group(name, named, initial=initial)

    def add_neighbors(self) -> None:
        """Nearest neighbors by all columns, and by the ranks of the inputs alone."""
        self._neighbors(f"{self.first}: nearest neighbors", self.columns, None, initial=True)
        other = "rank" if "rank" in self.columns_of else self.first
        inputs = self.columns_of[other][: self.scaling.core]
        if inputs != self.columns:
            self._neighbors(f"{other}: nearest neighbors", inputs, None, initial=True)

    def add_relevant(self) -> None:
        """Slots on the relevant columns, and lines on the same columns as they are."""
        columns = self.scaling.relevant_columns
        if not columns:
            return
        first = len(self.pool)
        for name, width in RELEVANT_WIDTHS.items():
            kernel = ActiveDims(Gaussian(width * sqrt(len(columns))), columns)
            self._add(f"relevant: random features, {name}", Slot(kernel, self._rls(**_FORGETTING)))
        base = "relevant: random features, medium"
        index = self.pool.index(base)
        self._neighbors(f"{base} + nearest neighbors", columns, index, initial=True)
        self.pool.relevant_slots = tuple(range(first, len(self.pool)))
        self.pool.metric_slot = index
        line = ActiveDims(Linear(1.0), (*self.columns, *self.scaling.past_columns))
        for name, memory in (("forgetting", _FORGETTING), ("adaptive bias", _ADAPTIVE)):
            linear = LinearRLS(ridge=LINEAR_RIDGE, **memory)
            self._add(f"past: linear, {name}", Slot(line, linear))

    def add_boosted(self) -> None:
        """Boosted trees on the inputs and the last targets."""
        memory = min(BOOSTED_VALUES // len(self.columns), MOST_SAMPLES)
        kernel = ActiveDims(NoKernel(), self.columns)
        learner = BoostedTrees(memory=memory, seed=self.seed)
        self._add("boosted trees", Slot(kernel, learner))

    def add_reserves(self) -> None:
        """Slots that do not run from the start."""
        pool, core = self.pool, self.scaling.core
        for base in ("last value", f"{self.first}: random features, adaptive bias"):
            index = pool.index(base)
            if index is not None:
                self._neighbors(f"{base} + nearest neighbors", self.columns, index, initial=False)
        self._add_chains()
        inputs = self.columns[:core]
        for number in range(1, SUBSETS + 1):
            draw = np.random.default_rng([self.seed, number])
            half = np.sort(draw.permutation(core)[: (core + 1) // 2])
            name = f"{self.first}: nearest neighbors on some inputs {number}"
            self._neighbors(name, [inputs[k] for k in half], None, initial=False)
        for scaling, columns in self.columns_of.items():
            narrow = Slot(self._features(columns, 0.4 * NARROWEST), self._rls())
            self._add(f"{scaling}: random features, narrow", narrow, initial=False)
        full = Gaussian(sqrt(len(self.columns)))
        every = Slot(ActiveDims(full, self.columns), self._rls(**_FORGETTING))
        self._add(f"{self.first}: random features, all inputs", every, initial=False)

    def _larger_nodes(self, dimension: int) -> int:
        """How many nodes a larger tree has: an odd number, at least that of the others."""
        split_after = PartitionTree().split_after
        fitting = LARGEST_TREE // (4 * split_after * (dimension + 4))  # half of them store samples
        nodes = min(LARGER_TREES * (self.size.nodes + 1) - 1, fitting - 1 + fitting % 2)
        return max(nodes, self.size.nodes)

    def _add_chains(self) -> None:
        """Larger trees on the residual of the last tree on each base."""
        trees = self.size.trees
        for scaling in self.columns_of:
            for base in TREE_BASES:
                name = f"{scaling}: {base} + tree {trees}"
                index = self.pool.index(name)
                if index is None:
                    continue
                cells = self.pool.slots[index].kernel
                nodes = self._larger_nodes(len(self.columns_of[scaling]))
                for number in (trees + 1, trees + 2):
                    tree = self._tree(number, nodes)
                    name = f"{name} + tree {number}"
                    index = self._add(name, Slot(cells, tree, residual_of=index), initial=False)


# --- relevance ------------------------------------------------------------------------------------

LEAST_RELEVANCE = 1e-4
"""The least m_k, in units of their mean: a column that says nothing now may say something later."""

RELEVANCE_ROWS = 256
"""How many of the newest rows the gradients are averaged over."""


def new_relevance(bank: KernelBank, slot: int, rows: Floats, relevance: Floats) -> Floats:
    """The relevance of each relevant column, by the functions of a slot on all of them.

    A kernel of many inputs sees little if most of them say nothing. So the *relevant columns* of a
    scaled row are its inputs, the last targets and the inputs of the row before, each multiplied by
    its relevance

        r_k = sqrt(m_k / mean(m)),  m_k = the mean of (d f / d x_k)^2 over the newest rows,

    with f the function that one slot on these columns has found so far. The relevance is 1 at
    first, and is computed anew when slots restart or are revised; the slots then learn the newest
    rows again with it. So kernels become narrow along the inputs that matter, and flat along the
    others: this is the diagonal of the average gradient outer product. With several outputs the
    squared derivatives of their functions are added up.

    Reference: Radhakrishnan, Beaglehole, Pandit and Belkin, Mechanism for feature learning in
    neural networks and backpropagation-free machine learning models, Science 383 (2024).

    slot : the index of one with random features.
    rows : (n, width), scaled with the present `relevance`.
    """
    width, kernel, learner = rows.shape[1], bank.slots[slot].kernel, bank.slots[slot].learner
    assert isinstance(learner, FourierRLS)
    columns = active_coordinates(kernel, width)
    features = learner.feature_map(kernel, width, bank.identities[slot])
    state = bank.slot_state(slot)
    points = rows[:, list(columns)]
    total = np.zeros(len(relevance))
    for k in range(bank.outputs):
        total += features.squared_gradients(points, state[f"output{k}/weights"])
    total *= relevance**2  # f is a function of relevance * x, not of x
    mean = float(np.cumsum(total)[-1]) / len(total)
    if not 0.0 < mean < np.inf:
        return relevance
    shares = np.maximum(total / mean, LEAST_RELEVANCE)
    return np.sqrt(shares / (float(np.cumsum(shares)[-1]) / len(shares)))


# --- revision -------------------------------------------------------------------------------------

FIRST_REVISION, SECOND_REVISION, PERIOD = 512, 4096, 8192
"""After which numbers of rows groups are revised first and second, and from then on."""

NEGLIGIBLE = 1e-3
"""Groups with at most this weight have none."""

CHEAP = 0.01
"""Groups that cost less than this part of the limit, and need no other, are never retired."""

MOST_ADDED, COSTLY = 3, 0.1
"""How many groups are added at once; one of them may cost more than this part of the limit."""


def rows_to_revision(rows: int) -> int:
    """How many rows are learned until the next revision; at least one."""
    later = [at - rows for at in (FIRST_REVISION, SECOND_REVISION) if at > rows]
    return later[0] if later else PERIOD - rows % PERIOD


def revision_is_due(rows: int) -> bool:
    """Whether groups are revised after this number of rows."""
    return rows in (FIRST_REVISION, SECOND_REVISION) or (rows > 0 and rows % PERIOD == 0)


def revise(
    pool: SlotPool, before: Selection, rows: int, slot_weights: Floats, slot_losses: Floats
) -> tuple[Selection, dict[int, str]]:
    """The selection after a revision, and why groups were retired and added.

    1. Groups are kept in the order of their weights, each with the bases that it needs, as long as
       all together cost at most the limit of the pool. Before them are kept those that have just
       been added, which need time to earn a weight, and cheap ones: lines of each memory, which a
       stream may need later. Among nearest neighbors it is chance which has the weight, so that of
       least loss counts with the weight of all.
    2. Some groups that do not run are added, if they fit: those that were tried least often, and
       among them the ones whose base has most weight. A slot on the residual of another predicts
       the same as that one at first.
    3. What time is left goes to the groups without weight that ran so far, the cheapest first.

    slot_weights : (slots of the pool,), 0 for those that do not run: the present weight of a slot,
        a mean over the outputs, or its long running mean, whichever is larger. The weight of a
        group is the sum of the weights of its slots.
    slot_losses : (slots of the pool,), their mean losses, NaN for those that do not run.
    """
    pool.rows = rows + rows_to_revision(rows)
    weights = pool.group_weights(slot_weights)
    heavy = [group for group in before.running if weights[group] > NEGLIGIBLE]
    judged = before.judge(rows, set(before.running).difference(heavy))
    chosen: set[int] = set()
    new = [group for group in before.running if before.idle[group] < 0]
    cheap = [
        group
        for group in before.running
        if pool.price([group]) < CHEAP * pool.limit and pool.groups[group].base is None
    ]
    worth = _with_common_weight(pool, before.running, weights, slot_losses)
    for group in [*new, *cheap, *sorted(heavy, key=lambda g: (-worth[g], g))]:
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


def _with_common_weight(
    pool: SlotPool, running: Sequence[int], weights: Floats, slot_losses: Floats
) -> Floats:
    """The weights (groups,), where the best group on nearest neighbors has that of all of them."""
    slots = {group: list(pool.groups[group].slots) for group in running}
    searching = [
        g for g in running if isinstance(pool.slots[slots[g][0]].learner, NearestNeighborGP)
    ]
    if searching:
        best = min(searching, key=lambda group: float(min(slot_losses[slots[group]])))
        weights = weights.copy()
        weights[best] = sum(weights[searching])
    return weights


def _add_groups(pool: SlotPool, before: Selection, weights: Floats, chosen: set[int]) -> None:
    """Add some groups that do not run to those that are chosen, and fit together with them."""

    def order(group: int) -> tuple[float, ...]:
        base = pool.groups[group].base
        return (before.tries[group], 0.0 if base is None else -weights[base], group)

    running, added, costly = set(chosen), 0, 0
    others = [group for group in range(len(pool.groups)) if group not in before.running]
    for group in sorted(others, key=order):
        base, is_costly = pool.groups[group].base, pool.price([group]) > COSTLY * pool.limit
        possible = (
            added < MOST_ADDED and costly + is_costly < 2 and (base is None or base in running)
        )
        if possible and pool.take(group, chosen):
            added += 1
            costly += is_costly
