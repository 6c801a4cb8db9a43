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
from typing import Any, NamedTuple

import numpy as np

from ..bank.bank import KernelBank
from ..bank.slot import Slot
from ..bank.slot_history import Selection
from ..combiners import Combiner, Joint, RobustStacking, Stacking
from ..kernels import (
    ActiveDims,
    Additive,
    Gaussian,
    Kernel,
    Linear,
    Matern,
    NoKernel,
    TreeKernel,
    active_coordinates,
    active_width,
    feature_counts,
)
from ..learners import (
    BoostedTrees,
    FourierRLS,
    FourierSGD,
    LastValue,
    Learner,
    LinearRLS,
    NearestNeighborGP,
    Norma,
    PartitionTree,
)
from ..losses import Loss, Squared
from ..transforms import ShiftedLog
from ..utils.validation import Floats
from .scaling import Scaling
from .seasons import SEASON_INPUTS, Schedule

# --- pool -----------------------------------------------------------------------------------------

SEVERAL_OUTPUTS, EACH_OUTPUT = 2.9, 1 / 7
"""How many times more a row may cost with several outputs, or with each of many."""

START = 1.5
"""How many times more it may cost before the first revision, which finds out what is needed."""

LARGEST_STATE = 300_000_000  # how many bytes the slots of all outputs but the first may have

SEVERAL_STATES = 4
"""Memory limit of unshared slots, such as trees, as a multiple of one output's initial slots: they
cost little time for their size."""

SHARED = 0.5  # a group is shared if a further output costs less than this part of the first one


@dataclass(frozen=True)
class PoolGroup:
    """Slots that are added and retired together.

    Parameters
    ----------
    name : of the group, for people.
    slots : their indices in the pool.
    base : the group that has the slot whose residual they learn, or None.
    cost : of the group.
    initial : whether it runs from the start, with one output.
    turn : the place among the slots of its scaling, where groups of all scalings take turns.
    """

    name: str
    slots: tuple[int, ...]
    base: int | None
    cost: Cost
    initial: bool = True
    turn: int = 0

    @property
    def is_shared(self) -> bool:
        """Whether further outputs cost little more time than one."""
        return self.cost.further < SHARED * self.cost.price


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

    def add_group(
        self,
        name: str,
        named: Sequence[tuple[str, Slot]],
        *,
        initial: bool = True,
        turn: int = 0,
        cost: Cost | None = None,
    ) -> None:
        """Add slots with their names as one group; its cost is computed if it is None."""
        first, slots = len(self.slots), [slot for _, slot in named]
        base = slots[0].residual_of
        group = None if base is None else self._group_of[base]
        cost = group_cost(slots, self.width) if cost is None else cost
        self._group_of += [len(self.groups)] * len(slots)
        indices = tuple(range(first, first + len(slots)))
        self.groups.append(PoolGroup(name, indices, group, cost, initial, turn))
        self.names += [slot_name for slot_name, _ in named]
        self.slots += slots

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
        costs = [self.groups[number].cost for number in groups]
        return sum(
            cost.price + cost.search * min(cost.memory, self.rows) + further * cost.further
            for cost in costs
        )

    def fits(self, groups: Iterable[int], factor: float = 1.0) -> bool:
        """Whether groups cost no more than this factor times the limit, and are not too large."""
        chosen = sorted(groups)
        if self.price(chosen) > factor * self.limit:
            return False
        if self.outputs == 1:
            return True
        sizes = {number: self.groups[number].cost.size for number in chosen}
        unshared = sum(size for number, size in sizes.items() if not self.groups[number].is_shared)
        first = sum(group.cost.size for group in self.groups if group.initial)
        fits_beside = (self.outputs - 1) * sum(sizes.values()) <= LARGEST_STATE
        return fits_beside and self.outputs * unshared <= SEVERAL_STATES * first

    def take(self, group: int, chosen: set[int], factor: float = 1.0) -> bool:
        """Add a group and its bases to those chosen, if all fit; whether they do.

        With several outputs, at least one has to run.
        """
        wanted = {*chosen, group}
        base = self.groups[group].base
        while base is not None:
            wanted.add(base)
            base = self.groups[base].base
        if not self.fits(wanted, factor) and (self.outputs == 1 or chosen):
            return False
        chosen |= wanted
        return True

    def can_run(self, running: Sequence[int]) -> bool:
        """Whether these groups are sorted and have their bases among them."""
        bases = {self.groups[number].base for number in running} - {None}
        return list(running) == sorted(running) and bases.issubset(running)

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


class Cost(NamedTuple):
    """Roughly what a slot or a group costs, on a processor of today.

    price : microseconds per row with one output, if there is nothing to search.
    further : microseconds more for each further output.
    size : bytes of each further output.
    search : microseconds more per row for each past row that is searched.
    memory : how many past rows are searched at most.
    """

    price: float
    further: float = 0.0
    size: int = 0
    search: float = 0.0
    memory: int = 0


def slot_cost(slot: Slot, width: int) -> Cost:
    """The cost of a slot; `make costs` measures it for all learners.

    Four slots on nearest neighbors that share their search cost as much as one.
    """
    learner = slot.learner
    columns = active_width(slot.kernel, width)
    shared = 0.1 + 2.5e-3 * (getattr(learner, "features", 0) + columns + 1)
    if isinstance(learner, FourierRLS):
        count = feature_counts(slot.kernel, learner.features, width)[1]
        return Cost(1.2e-4 * count**2 + 4e-3 * count, shared, 8 * count)
    if isinstance(learner, LinearRLS):
        return Cost(0.2 + 1.5e-4 * (columns + 1) ** 2, shared, 8 * (columns + 1))
    if isinstance(learner, NearestNeighborGP):  # neighbors and their systems follow from the inputs
        price = 4e-4 * learner.neighbors**3 + 0.006 * learner.neighbors * columns
        further = 4e-3 * learner.neighbors**2
        return Cost(price, further, 8 * learner.memory, 1.3e-4 * columns, learner.memory)
    if isinstance(learner, (FourierSGD, Norma)):
        return Cost(0.3, shared)
    price, numbers = 0.3, 0  # the others share nothing among outputs
    if isinstance(learner, PartitionTree):
        price = 0.7 + 0.02 * columns
        entries = (learner.nodes + 1) // 2 * (columns + 4) * learner.split_after
        numbers = 18 * learner.nodes + entries + 2
    elif isinstance(learner, BoostedTrees):
        price = 4.0 + 0.2 * columns
    return Cost(price, price, 8 * numbers)


def group_cost(slots: Sequence[Slot], width: int) -> Cost:
    """The cost of slots that run together; those on nearest neighbors share samples and search."""
    costs = [slot_cost(slot, width) for slot in slots]
    size = costs[0].size if costs[0].search else sum(cost.size for cost in costs)
    price, further = max(cost.price for cost in costs), max(cost.further for cost in costs)
    return costs[0]._replace(price=price, further=further, size=size)


# --- slots and their parts ------------------------------------------------------------------------

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

DISCOUNT, STACKING_RIDGE = 0.998, 0.03
"""Settings of the combiner: about 500 rows count; the ridge is 3 % of the best slot's error."""

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
SLOW, FAST = 0.9999, 0.8  # forgetting factors: of slots that forget, and of an adaptive bias

FORGETTING: dict[str, Any] = {"forgetting": SLOW, "forget": "prior"}
ADAPTIVE: dict[str, Any] = {**FORGETTING, "constant_forgetting": FAST}  # memories of least squares

TREE_BASES = (
    "random features, no forgetting",
    "random features, adaptive bias",
    "linear, adaptive bias",
)
"""The slots on whose residuals there are trees."""

WIDE = 200
"""With more columns than this, least squares on each of them is too slow: random features only."""

SHIFTED = (
    "random features, no forgetting",
    "random features, adaptive bias",
    "linear, adaptive bias",
    "random features, adaptive bias + tree 1",
)
"""The slots of each scaling that have shifted ones beside them, for another loss."""

SHIFT_RATES = {"slow": 0.02, "fast": 0.2}
"""Learning rates of the gradient steps, in the target's deviations: errors are of the order of one
or of a tenth, and there is a rate for both."""

SHIFT_FEATURES = 48

NEIGHBOR_KERNELS = ((0.3, 0.1), (1.0, 0.01), (1.0, 0.1), (3.0, 0.01))
"""Widths and noises of the slots on nearest neighbors."""

NOISE = 0.1  # the noise in units of their kernels, which are scaled accordingly
MOST_SAMPLES = 2**14  # the most samples among which neighbors are searched


def needs_shift(loss: Loss) -> bool:
    """Whether there are shifted slots."""
    return loss != Squared() and not loss.labels


def default_combiner(loss: Loss, *, labels: bool) -> Combiner:
    """The combiner where none was given.

    Labels have no outliers: there large errors are all that counts.
    """
    if loss != Squared():
        return Joint("prequential", **JOINT)
    if labels:
        return Stacking(LABEL_DISCOUNT, STACKING_RIDGE)
    return RobustStacking(DISCOUNT, STACKING_RIDGE)


@lru_cache(maxsize=64)
def mixed_kernel(dimension: int, widths: int, narrowest: float) -> Kernel:
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


def line_on(columns: Sequence[int]) -> ActiveDims:
    """The kernel of a line on the first of these columns."""
    return ActiveDims(Linear(1.0), tuple(columns[:WIDE]))


def cells_on(columns: Sequence[int]) -> ActiveDims:
    """The kernel of a tree on these columns."""
    return ActiveDims(TreeKernel(decay=0.7, levels=20), tuple(columns))


class SlotBuilder:
    """Adds slots to a pool, by the settings of an AutoBank."""

    def __init__(self, pool: SlotPool, size: Size, seed: int, loss: Loss) -> None:
        self.pool, self.size, self.seed = pool, size, seed
        self.loss = None if loss == Squared() else Squared()
        """Of the slots: whatever the loss of the bank, they learn by squares."""

    def features(self, **memory: Any) -> FourierRLS:
        """Least squares on random features."""
        return FourierRLS(features=self.size.features, ridge=RIDGE, seed=self.seed, **memory)

    def mixed(self, columns: Sequence[int], narrowest: float = NARROWEST) -> ActiveDims:
        """The kernel of random features on these columns."""
        kernel = mixed_kernel(len(columns), self.size.widths, narrowest)
        return ActiveDims(kernel, tuple(columns))

    def tree(self, number: int, nodes: int | None = None) -> PartitionTree:
        """The tree of a number, from which its cuts follow."""
        seed = self.seed * 1000 + number
        return PartitionTree(nodes=nodes or self.size.nodes, noise=0.1, seed=seed)

    def add(
        self,
        name: str,
        kernel: Kernel,
        learner: Learner,
        base: int | None = None,
        *,
        initial: bool = True,
        turn: int = 0,
    ) -> int:
        """Add a slot as a group; its index."""
        slot = Slot(kernel, learner, self.loss, residual_of=base)
        self.pool.add_group(name, [(name, slot)], initial=initial, turn=turn)
        return len(self.pool) - 1

    def add_neighbors(
        self, name: str, columns: Sequence[int], base: int | None = None, *, initial: bool = True
    ) -> None:
        """Add four slots on nearest neighbors, which share their search, as a group."""
        dimension, count = len(columns), self.size.neighbors
        memory = max(self.size.neighbor_values // dimension, 8 * count)
        learner = NearestNeighborGP(count, min(memory, MOST_SAMPLES), noise=NOISE)
        named = []
        for width, noise in NEIGHBOR_KERNELS:
            kernel = ActiveDims((NOISE / noise) * Matern(width * sqrt(dimension)), tuple(columns))
            slot = Slot(kernel, learner, self.loss, residual_of=base)
            named.append((f"{name}, width {width:g}, noise {noise:g}", slot))
        self.pool.add_group(name, named, initial=initial)

    def add_scaling(
        self, scaling: str, columns: Sequence[int], added: Sequence[int], *, shifted: bool
    ) -> None:
        """Add the default slots of one scaling; this module's text explains them.

        Parameters
        ----------
        columns : of the scaling in a scaled row.
        added : its columns of inputs that were added later: for linear slots and trees, which can
            take them up; random features are drawn once.
        shifted : whether there are shifted slots. They replace one slot of random features and half
            of the trees, which cost as much.
        """
        first, index = len(self.pool), dict[str, int]()

        def add(name: str, kernel: Kernel, learner: Learner, base: int | None = None) -> None:
            turn = len(self.pool) - first
            index[name] = self.add(f"{scaling}: {name}", kernel, learner, base, turn=turn)

        everything = (*columns, *added)
        mixed, line, cells = self.mixed(columns), line_on(everything), cells_on(everything)
        add("random features, no forgetting", mixed, self.features())
        if not shifted:
            add("random features, forgetting", mixed, self.features(**FORGETTING))
        if len(columns) <= WIDE:
            add("random features, adaptive bias", mixed, self.features(**ADAPTIVE))
            add("linear, no forgetting", line, LinearRLS(ridge=LINEAR_RIDGE))
            add("linear, adaptive bias", line, LinearRLS(ridge=LINEAR_RIDGE, **ADAPTIVE))
        bases = [name for name in TREE_BASES if name in index]
        for number in range((self.size.trees + 1) // 2 if shifted else self.size.trees):
            tree, name = self.tree(number), f"tree {number + 1}"
            add(name, cells, tree)
            for base in bases:
                add(f"{base} + {name}", cells, tree, index[base])
        if not shifted:
            return
        # A wide kernel on single inputs and on all: the correction is smoother than the mean.
        # k(x, x) = 1, so a step of rate r moves the function at x by r times the derivative.
        wide = 0.5 * Additive(Gaussian(1.0), 1) + 0.5 * Gaussian(sqrt(len(columns)))
        kernel = ActiveDims(wide, tuple(columns))
        for base in (name for name in SHIFTED if name in index):
            for speed, rate in SHIFT_RATES.items():
                learner = FourierSGD(SHIFT_FEATURES, rate, self.seed)
                name = f"{scaling}: {base} + {speed} shift"
                slot = Slot(kernel, learner, residual_of=index[base])
                self.pool.add_group(name, [(name, slot)], turn=len(self.pool) - first)

    def add_seasons(self, scaling: Scaling) -> None:
        """Add the slots for seasons; none without seasons.

        They are the only ones that see the targets of earlier periods, and see the inputs in their
        first scaling too. As long as no period is known they are idle: least squares on a column of
        zeros, which costs next to nothing and gets no weight.
        """
        if not scaling.seasons:
            return
        inputs, later = scaling.split_columns(scaling.names[0])
        seasons = scaling.season_columns[: scaling.periods * SEASON_INPUTS]
        line: Kernel = line_on(scaling.season_columns[:1])
        linear: Learner = LinearRLS(ridge=LINEAR_RIDGE)
        mixed, features = line, linear
        if scaling.periods:
            line, mixed = line_on((*seasons, *inputs, *later)), self.mixed((*seasons, *inputs))
            linear = LinearRLS(ridge=LINEAR_RIDGE, **ADAPTIVE)
            features = self.features(**ADAPTIVE)
        self.add("season: linear, adaptive bias", line, linear)
        self.add("season: random features, adaptive bias", mixed, features, turn=1)


# --- all slots ------------------------------------------------------------------------------------

LIMIT = 0.7
"""What all slots may cost per row, as a part of what the slots of each scaling would cost."""

BOOSTED_VALUES = 2**18
"""How many numbers the inputs of all samples have from which boosted trees are grown."""

LARGER_TREES, LARGEST_TREE = 8, 4_000_000
"""How many times more nodes the trees of reserves have, and roughly how many bytes at most."""

SUBSETS = 3  # how many random halves of the inputs there are

RELEVANT_WIDTHS = {"wide": 2.0, "medium": 1.0, "narrow": 0.5}
"""Of the kernels of all relevant columns: in standard deviations, times sqrt(columns)."""

TRANSFORMED = ("rank: ", "relevant: ")
"""How the names of slots begin that learn the transform of a skewed target (`log_shift`)."""


def default_pool(scaling: Scaling, size: Size, seed: int, loss: Loss, outputs: int = 1) -> SlotPool:
    """All slots that an AutoBank with the default slots may run.

    They are the same for any number of outputs; which of them run first, and what they cost, is
    not.
    """
    pool, shifted = SlotPool(scaling.width, outputs), needs_shift(loss)
    builder = SlotBuilder(pool, size, seed, loss)
    columns_of: dict[str, tuple[int, ...]] = {}
    for name in scaling.columns_of:
        columns_of[name], later = scaling.split_columns(name)
        builder.add_scaling(name, columns_of[name], later, shifted=shifted)
    if shifted:  # other slots would aim at the mean, and nothing at what the loss does
        builder.add_seasons(scaling)
        return pool
    pool.first_limit = LIMIT * sum(group.cost.price for group in pool.groups)
    first = scaling.names[0]  # the slots beyond those of each scaling use its columns
    columns = columns_of[first]
    _add_last_value(builder, scaling, columns)
    builder.add_neighbors(f"{first}: nearest neighbors", columns)
    other = "rank" if "rank" in columns_of else first
    inputs = columns_of[other][: scaling.core]  # without the last targets
    if inputs != columns:
        builder.add_neighbors(f"{other}: nearest neighbors", inputs)
    if scaling.relevant_columns:
        _add_relevant(builder, scaling, columns)
    boosted = BoostedTrees(memory=min(BOOSTED_VALUES // len(columns), MOST_SAMPLES), seed=seed)
    builder.add("boosted trees", ActiveDims(NoKernel(), columns), boosted)
    group = len(pool.groups)
    builder.add_seasons(scaling)
    pool.season_groups = tuple(range(group, len(pool.groups)))
    _add_reserves(builder, scaling, columns_of)
    return pool.with_transform(scaling.target_transform)


def _add_last_value(builder: SlotBuilder, scaling: Scaling, columns: tuple[int, ...]) -> None:
    """The last target, and slots on the change from one target to the next."""
    # A forecast of several rows goes on from its own predictions, which are lagged targets.
    single = scaling.lags and scaling.outputs <= 1
    learner = LastValue(columns[scaling.core] if single else None)
    last = builder.add("last value", NoKernel(), learner)
    linear, cells = LinearRLS(ridge=LINEAR_RIDGE, **FORGETTING), cells_on(columns)
    line = builder.add("last value + linear", line_on(columns), linear, last)
    name, features = "last value + random features", builder.features(**FORGETTING)
    builder.add(name, builder.mixed(columns), features, last)
    for number in range(builder.size.trees):
        builder.add(f"last value + tree {number + 1}", cells, builder.tree(number), last)
    builder.add("last value + linear + tree 1", cells, builder.tree(0), line)


def _add_relevant(builder: SlotBuilder, scaling: Scaling, columns: tuple[int, ...]) -> None:
    """Slots on the relevant columns, and lines on the same columns as they are."""
    pool, relevant = builder.pool, scaling.relevant_columns
    first = len(pool)
    for name, width in RELEVANT_WIDTHS.items():
        kernel = ActiveDims(Gaussian(width * sqrt(len(relevant))), relevant)
        features = builder.features(**FORGETTING)
        builder.add(f"relevant: random features, {name}", kernel, features)
    base = "relevant: random features, medium"
    pool.metric_slot = pool.index(base)
    builder.add_neighbors(f"{base} + nearest neighbors", relevant, pool.metric_slot)
    pool.relevant_slots = tuple(range(first, len(pool)))
    line = ActiveDims(Linear(1.0), (*columns, *scaling.past_columns))
    for name, memory in (("forgetting", FORGETTING), ("adaptive bias", ADAPTIVE)):
        builder.add(f"past: linear, {name}", line, LinearRLS(ridge=LINEAR_RIDGE, **memory))


def _add_reserves(
    builder: SlotBuilder, scaling: Scaling, columns_of: Mapping[str, tuple[int, ...]]
) -> None:
    """Slots that do not run from the start."""
    pool, size, first = builder.pool, builder.size, scaling.names[0]
    columns, core = columns_of[first], scaling.core
    for base in ("last value", f"{first}: random features, adaptive bias"):
        index = pool.index(base)
        if index is not None:
            name = f"{base} + nearest neighbors"
            builder.add_neighbors(name, columns, index, initial=False)
    for scaled, base in ((scaled, base) for scaled in columns_of for base in TREE_BASES):
        # Larger trees on the residual of the last tree on each base.
        chain = f"{scaled}: {base} + tree {size.trees}"
        index = pool.index(chain)
        if index is not None:
            cells, nodes = pool.slots[index].kernel, _larger_nodes(size, len(columns_of[scaled]))
            for number in (size.trees + 1, size.trees + 2):
                chain = f"{chain} + tree {number}"
                tree = builder.tree(number, nodes)
                index = builder.add(chain, cells, tree, index, initial=False)
    for number in range(1, SUBSETS + 1):
        draw = np.random.default_rng([builder.seed, number])
        half = np.sort(draw.permutation(core)[: (core + 1) // 2])
        name = f"{first}: nearest neighbors on some inputs {number}"
        builder.add_neighbors(name, [columns[k] for k in half], initial=False)
    for scaled, its_columns in columns_of.items():
        narrow, name = builder.mixed(its_columns, 0.4 * NARROWEST), "random features, narrow"
        builder.add(f"{scaled}: {name}", narrow, builder.features(), initial=False)
    full = ActiveDims(Gaussian(sqrt(len(columns))), columns)
    features = builder.features(**FORGETTING)
    builder.add(f"{first}: random features, all inputs", full, features, initial=False)


def _larger_nodes(size: Size, dimension: int) -> int:
    """How many nodes a larger tree has: an odd number, at least that of the others."""
    split_after = PartitionTree().split_after
    fitting = LARGEST_TREE // (4 * split_after * (dimension + 4))  # half of them store samples
    nodes = min(LARGER_TREES * (size.nodes + 1) - 1, fitting - 1 + fitting % 2)
    return max(nodes, size.nodes)


# --- relevance ------------------------------------------------------------------------------------

LEAST_RELEVANCE = 1e-4
"""The least m_k, in units of their mean: a column that says nothing now may say something later."""

RELEVANCE_ROWS = 256  # how many of the newest rows the gradients are averaged over


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
REVISIONS = Schedule((FIRST_REVISION, SECOND_REVISION), PERIOD)  # when groups are revised
NEGLIGIBLE = 1e-3  # groups with at most this weight have none

CHEAP = 0.01
"""Groups that cost less than this part of the limit, and need no other, are never retired."""

MOST_ADDED, COSTLY = 3, 0.1
"""How many groups are added at once; one of them may cost more than this part of the limit."""


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
    pool.rows = rows + REVISIONS.rows_left(rows)
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
