"""The settings of an AutoBank, and the scaling, slots and banks that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..bank.bank import KernelBank
from ..bank.naming import SlotNames
from ..bank.slot import Slot
from ..bank.slot_changes import accepts_columns
from ..combiners import Combiner
from ..kernels import ActiveDims
from ..losses import Loss, Squared
from ..utils import validation as check
from ..utils.validation import Floats
from .scaling.scaling import Scaling
from .seasons import AUTO, PAST, Setting, season_places
from .slots.default_pool import default_pool
from .slots.default_slots import SIZES, default_combiner
from .slots.loss_slots import needs_shift
from .slots.slot_pool import SlotPool


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
        """Whether slots without weight give their time to others; see `slot_revision`.

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
