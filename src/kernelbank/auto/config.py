"""The settings of an AutoBank, checked, and the scaling, slots and banks that follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..bank.bank import KernelBank
from ..bank.slot import Slot, SlotNames, given_slots
from ..bank.slot_changes import accepts_columns
from ..combiners import Combiner
from ..kernels import ActiveDims
from ..losses import Loss, Squared, as_loss
from ..utils import validation as check
from ..utils.validation import Floats
from .default_slots import SIZES, default_combiner, default_pool, needs_shift
from .scaling import SCALINGS, Scaling
from .seasons import AUTO, PAST, Setting, season_places
from .slot_pool import SlotPool


@dataclass(frozen=True)
class AutoConfig:
    """The settings of an AutoBank, checked. `slots` are the user's own, None for the default."""

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
    lower: float | None = None
    upper: float | None = None
    seasons: Setting = None
    horizons: tuple[int, ...] = ()
    known: tuple[Any, ...] = ()
    """Names or indices of the columns that are known in advance."""
    quantiles: tuple[float, ...] = ()
    losses: tuple[Loss, ...] = ()
    """Of several outputs, if they differ."""
    labels: bool = False
    """Whether targets are labels."""
    restarts: ClassVar[tuple[int, ...]] = (5, 32, 128)
    """After these numbers of rows, scaling and banks start anew from all rows so far: what was
    learned while the running statistics still moved does not fit the later ones."""

    @cached_property
    def bounds(self) -> Floats:
        """(2,): what no target and no prediction may lie below and above."""
        lower = -np.inf if self.lower is None else self.lower
        return np.array([lower, np.inf if self.upper is None else self.upper])

    def check(self) -> None:
        """Refuse settings that cannot work together, before there is a stream."""
        if self.has_own_parts:
            self.first_bank(self.make_scaling(1))

    def check_several(self, targets: int) -> None:
        """Refuse settings that do not work with several targets per row.

        A target that is missing or far is left out, so all parts of a bank have to be able to.
        """
        for name, given in (
            ("horizons", self.horizons),
            ("quantiles", self.quantiles),
        ):
            if given:
                remedy = f"Leave {name} out, or use an AutoBank for each target."
                raise check.refuse(name, "be left out for several targets", given, remedy)
        why = self.first_bank(self.make_scaling(1)).no_missing_because
        if why:
            remedy = "Use an AutoBank for each target, or the default parts."
            rule = f"have one target per row, as one of several cannot be left out {why}"
            raise check.refuse("y", rule, f"{targets} targets", remedy)

    @property
    def has_own_parts(self) -> bool:
        """Whether slots, combiner or loss are not the default ones."""
        return self.slots is not None or self.combiner is not None or self.loss != Squared()

    @property
    def effective_combiner(self) -> Combiner:
        """The combiner of the banks: the user's own, or the default one."""
        if self.combiner is not None:
            return self.combiner
        return default_combiner(self.loss, labels=self.labels)

    @property
    def past(self) -> int:
        """How many numbers a row knows of the past: lagged targets, then those of seasons."""
        return self.lags + season_places(self.seasons) * PAST

    def make_scaling(
        self,
        dimension: int,
        core: int | None = None,
        *,
        targets: int = 1,
        outputs: int | None = None,
        periods: int | None = None,
        **past: int,
    ) -> Scaling:
        """The scaling of inputs of this width; inputs beyond `core` were added later.

        periods : how many periods are known; by default those that were named.
        past : more of the past for slots on relevant columns: `remembered` and `previous` of
            `Scaling`.
        """
        named = 0 if self.seasons is None or self.seasons == AUTO else len(self.seasons)
        return Scaling(
            dimension,
            self.lags,
            self.scalings,
            targets=targets,
            outputs=outputs,
            core=core,
            seasons=season_places(self.seasons),
            periods=named if periods is None else periods,
            relevant=bool(past),
            **past,
        )

    @property
    def revises(self) -> bool:
        """Whether slots without weight give their time to others; see `slot_pool`.

        Slots or combiners of the user's own stay as they are.
        """
        return self.slots is None and self.combiner is None and not needs_shift(self.loss)

    def make_pool(self, scaling: Scaling, outputs: int = 1) -> SlotPool:
        """All slots that may run."""
        if self.slots is None:
            return default_pool(scaling, SIZES[self.size], self.seed, self.loss, outputs)
        pool = SlotPool(scaling.width, outputs)
        slots = [_on_known_columns(slot, scaling) for slot in self.slots]
        # They all run; and the width may be that of a check, before there are inputs.
        pool.add(list(zip(SlotNames(self.slots), slots, strict=True)), price=0.0)
        return pool

    def make_bank(self, slots: Sequence[Slot], outputs: int = 1) -> KernelBank:
        """A bank with these slots that has learned nothing."""
        return KernelBank(
            slots=slots,
            outputs=outputs,
            combiner=self.effective_combiner,
            loss=list(self.losses) or self.loss,
            window=self.window,
            regularization=self.regularization,
            engine=self.engine,
        )

    def first_bank(self, scaling: Scaling) -> KernelBank:
        """A bank with the slots that run from the start."""
        pool = self.make_pool(scaling)
        return self.make_bank(pool.bank_slots(pool.members(pool.initial_groups)))


def _on_known_columns(slot: Slot, scaling: Scaling) -> Slot:
    """A user's slot, limited to the first columns if it cannot take up columns added later."""
    first = scaling.width - (scaling.dimension - scaling.core) * len(scaling.names)
    if first == scaling.width or accepts_columns(slot, first, scaling.width):
        return slot
    return replace(slot, kernel=ActiveDims(slot.kernel, tuple(range(first))))


# --- checks of arguments --------------------------------------------------------------------------

LONGEST_HORIZON = 1000
"""How many rows ahead a forecast may be."""


def checked_coverage(coverage: Any) -> float:
    """The coverage of an interval, between 0 and 1."""
    remedy = "Give a share between 0 and 1, such as 0.9."
    return check.number("coverage", coverage, "AutoBank", remedy, above=0, below=1)


def checked_slots(slots: Any) -> tuple[Slot, ...]:
    """The user's own slots."""
    remedy = "Give a list of kb.Slot(kernel, learner), or leave it out for the default ones."
    return given_slots(slots, "AutoBank", remedy)


def checked_loss(loss: Any, task: str) -> Loss:
    """A loss that fits the task."""
    found = as_loss(loss)
    if found.labels and task == "regression":
        remedy = 'Use task="classification", or a loss for numbers, such as "squared".'
        raise check.refuse("loss", "be one for numbers in regression", loss, remedy, "AutoBank")
    if not found.labels and not found.any_target:
        remedy = (
            'Use "squared" with lower=0, which predicts the mean of counts, or '
            "kb.KernelBank(loss=...), which takes targets as they are."
        )
        rule = "be one for all numbers, because targets are standardised"
        raise check.refuse("loss", rule, loss, remedy, "AutoBank")
    return found


def checked_bounds(lower: Any, upper: Any, task: str) -> tuple[float | None, float | None]:
    """What no target lies below and above; None for no bound."""
    found = []
    for name, bound in (("lower", lower), ("upper", upper)):
        if bound is not None and task == "classification":
            remedy = "Leave it out: labels have no bounds."
            raise check.refuse(name, "be left out for classification", bound, remedy, "AutoBank")
        remedy = "Give the number that no target can pass, or leave it out."
        known = bound is not None
        most = check.LARGEST
        found.append(
            check.number(name, bound, "AutoBank", remedy, least=-most, most=most) if known else None
        )
    low, high = found
    if low is not None and high is not None and not low < high:
        remedy = "Give the smaller number as lower and the larger one as upper."
        raise check.refuse("lower", f"be less than upper, which is {high:g}", low, remedy)
    return low, high


def checked_horizons(horizons: Any, task: str) -> tuple[int, ...]:
    """Horizons in ascending order; none for None."""
    if horizons is None:
        return ()
    owner, remedy = "AutoBank", "Give rows ahead, such as (1, 6, 24), or 24 for 1 to 24."
    if task == "classification":
        rule = "be left out for classification"
        raise check.refuse("horizons", rule, horizons, "Leave it out.", owner)
    if isinstance(horizons, Iterable) and not isinstance(horizons, (str, bytes)):
        given = [
            check.count("horizons", one, owner, remedy, most=LONGEST_HORIZON) for one in horizons
        ]
        if not given or len(set(given)) < len(given):
            raise check.refuse("horizons", "name at least one, none twice", given, remedy, owner)
        return tuple(sorted(given))
    last = check.count("horizons", horizons, owner, remedy, most=LONGEST_HORIZON)
    return tuple(range(1, last + 1))


def checked_quantiles(quantiles: Any, task: str) -> tuple[float, ...]:
    """Levels in ascending order; none for None."""
    if quantiles is None:
        return ()
    owner, remedy = "AutoBank", "Give levels between 0 and 1, such as (0.05, 0.5, 0.95)."
    if task == "classification":
        rule = "be left out for classification"
        raise check.refuse("quantiles", rule, quantiles, "Leave it out.", owner)
    is_list = isinstance(quantiles, Iterable) and not isinstance(quantiles, (str, bytes))
    listed = list(quantiles) if is_list else [quantiles]
    levels = [check.number("quantiles", level, owner, remedy, above=0, below=1) for level in listed]
    if len(levels) < 2 or len(set(levels)) < len(levels):
        rule = "be two levels or more, none twice"
        remedy += " For one quantile use loss=kb.losses.Pinball(level)."
        raise check.refuse("quantiles", rule, quantiles, remedy, owner)
    return tuple(sorted(levels))


def checked_known(known: Any, horizons: tuple[int, ...]) -> tuple[Any, ...]:
    """Names or indices of columns whose future values are known; none for None."""
    if known is None:
        return ()
    remedy = 'Give names or indices of columns, such as ["hour", "price"].'
    listed = list(known) if isinstance(known, Iterable) and not isinstance(known, str) else [known]
    if not horizons:
        rule = "be given with horizons only"
        raise check.refuse("known", rule, known, "Add horizons, such as horizons=24.", "AutoBank")
    for one in listed:
        whole = isinstance(one, (int, np.integer)) and not isinstance(one, bool) and one >= 0
        if not (isinstance(one, str) or whole):
            raise check.refuse("known", "be names or indices of columns", one, remedy, "AutoBank")
    if not listed or len(set(listed)) < len(listed):
        raise check.refuse("known", "name at least one, none twice", known, remedy, "AutoBank")
    return tuple(one if isinstance(one, str) else int(one) for one in listed)


def checked_scalings(scalings: Any, usual: tuple[str, ...]) -> tuple[str, ...]:
    """The names of scalings, in their usual order; `usual` if None is given."""
    if scalings is None:
        return usual
    remedy = 'Give one or a list of some of them, such as ["standard", "rank"].'
    if not isinstance(scalings, Iterable):
        raise check.refuse("scalings", "be a word or a list of words", scalings, remedy, "AutoBank")
    words = [scalings] if isinstance(scalings, str) else scalings
    given = tuple(check.choice("scalings", name, "AutoBank", SCALINGS) for name in words)
    if not given or len(set(given)) < len(given):
        raise check.refuse("scalings", "name at least one, none twice", given, remedy, "AutoBank")
    return tuple(name for name in SCALINGS if name in given)
