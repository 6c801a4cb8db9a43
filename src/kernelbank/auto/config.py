"""The settings of an AutoBank, checked, and the scaling, slots and banks that follow from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..bank.bank import KernelBank
from ..bank.engines import Engine
from ..bank.slot import Slot, SlotNames, given_slots
from ..bank.slot_changes import accepts_columns
from ..combiners import Combiner
from ..errors import FileRefused
from ..io.cells import MissingValues
from ..io.specs import check_names, to_spec
from ..kernels import ActiveDims
from ..losses import Loss, Squared, as_loss
from ..utils import validation as check
from ..utils.validation import Floats
from .inputs import as_category
from .scaling import SCALINGS, Scaling
from .seasons import (
    AUTO,
    LARGEST_PERIOD,
    MOST_PERIODS,
    PLACES,
    SEASON_PAST,
    WINDOW,
    Setting,
    season_places,
)
from .slots import SIZES, Cost, SlotPool, default_combiner, default_pool, needs_shift
from .state import Json, Reading

Column = str | int
"""The name or the index of a column."""


AUTO_BANK = "AutoBank"
"""The `kind` in the header of an AutoBank; a `KernelBank` has none."""

_PLAIN = ("lags", "size", "seed", "window", "regularization", "lower", "upper")
"""Settings that a file has as they are."""

_LISTS = ("horizons", "known", "quantiles", "missing")
"""Settings that a file has as lists, if it has them."""


@dataclass(frozen=True)
class AutoConfig:
    """The settings of an AutoBank, checked. `slots` are the user's own, None for the default."""

    lags: int
    size: str
    seed: int
    scalings: tuple[str, ...]
    slots: tuple[Slot, ...] | None
    combiner: Combiner | None
    engine: Engine
    loss: Loss = field(default_factory=Squared)
    window: int = 1
    regularization: float = 0.0
    lower: float | None = None
    upper: float | None = None
    seasons: Setting = None
    horizons: tuple[int, ...] = ()
    known: tuple[Column, ...] = ()
    """Names or indices of the columns that are known in advance."""
    quantiles: tuple[float, ...] = ()
    losses: tuple[Loss, ...] = ()
    """Of several outputs, if they differ."""
    labels: bool = False
    """Whether targets are labels."""
    missing: tuple[float | str, ...] = ()
    """Values of inputs and targets that mean that there is none."""
    restarts: ClassVar[tuple[int, ...]] = (5, 16, 32, 128)
    """After these numbers of rows, scaling and banks start anew from all rows so far: what was
    learned while the running statistics still moved does not fit the later ones."""

    @cached_property
    def bounds(self) -> Floats:
        """(2,): what no target and no prediction may lie below and above."""
        lower = -np.inf if self.lower is None else self.lower
        return np.array([lower, np.inf if self.upper is None else self.upper])

    @cached_property
    def missing_values(self) -> MissingValues | None:
        """The values that mean that there is none, if there are some."""
        return MissingValues.of(map(as_category, self.missing)) if self.missing else None

    def describe(self) -> Json:
        """The settings, without the engine, as JSON data; None where a bank has to say more."""
        slots = self.slots or ()
        check_names([self.loss])
        check_names(slots)
        return {
            "kind": AUTO_BANK,
            "task": "classification" if self.labels else "regression",
            **{name: getattr(self, name) for name in _PLAIN},
            **{name: list(getattr(self, name)) for name in ("scalings", *_LISTS)},
            "slots": [to_spec(slot) for slot in slots],
            "combiner": None if self.combiner is None else to_spec(self.combiner),
            "loss": to_spec(self.loss),
            "seasons": list(self.seasons) if isinstance(self.seasons, tuple) else self.seasons,
            **dict.fromkeys(("columns", "dimension", "model")),
        }

    def check(self) -> None:
        """Refuse settings that cannot work together, before there is a stream."""
        if self.has_own_parts:
            self.first_bank(self.make_scaling(1))

    def check_several(self, targets: int) -> None:
        """Refuse settings that do not work with several targets per row.

        A target that is missing or far is left out, so all parts of a bank have to be able to.
        """
        for name, setting in (("horizons", self.horizons), ("quantiles", self.quantiles)):
            if setting:
                remedy = f"Leave {name} out, or use an AutoBank for each target."
                raise check.refuse(name, "be left out for several targets", setting, remedy)
        why = self.first_bank(self.make_scaling(1)).no_missing_because
        if why:
            remedy = "Use an AutoBank for each target, or the default parts."
            rule = f"have one target per row, as one of several cannot be left out {why}"
            raise check.refuse("y", rule, f"{targets} targets", remedy)

    @cached_property
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
        return self.lags + season_places(self.seasons) * SEASON_PAST

    @property
    def one_bank(self) -> bool:
        """Whether all classes see the same row: without labels of the past among its inputs."""
        return not (self.labels and self.past)

    @property
    def knows_previous(self) -> bool:
        """Whether a row knows the inputs of the last one, unless they are many."""
        return self.revises and self.one_bank

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
        for name, slot in zip(SlotNames(self.slots), self.slots, strict=True):
            # They all run; and the width may be that of a check, before there are inputs.
            named = (name, _on_known_columns(slot, scaling))
            pool.add_group(name, [named], cost=Cost(0.0))
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

OWNER = "AutoBank"


T = TypeVar("T")


def _different(
    name: str,
    setting: object,
    remedy: str,
    checked: Callable[[object], T],
    rule: str = "name at least one, none twice",
    least: int = 1,
    most: int = 10**6,
) -> list[T]:
    """The members of a list, each checked, none twice; or one value as a list of it."""
    is_list = isinstance(setting, Iterable) and not isinstance(setting, (str, bytes))
    members = [checked(member) for member in (setting if is_list else [setting])]  # type: ignore[attr-defined]
    if not least <= len(members) <= most or len(set(members)) < len(members):
        raise check.refuse(name, rule, setting, remedy, OWNER)
    return members


def _only_numbers(name: str, setting: object, task: str, remedy: str = "Leave it out.") -> None:
    """Refuse a setting that classification does not have."""
    if task == "classification" and setting is not None:
        raise check.refuse(name, "be left out for classification", setting, remedy, OWNER)


def checked_slots(slots: Iterable[Slot]) -> tuple[Slot, ...]:
    """The user's own slots."""
    remedy = "Give a list of kb.Slot(kernel, learner), or leave it out for the default ones."
    return given_slots(slots, OWNER, remedy)


def checked_loss(loss: Loss | str, task: str) -> Loss:
    """A loss that fits the task."""
    checked = as_loss(loss)
    if checked.labels and task == "regression":
        remedy = 'Use task="classification", or a loss for numbers, such as "squared".'
        raise check.refuse("loss", "be one for numbers in regression", loss, remedy, OWNER)
    if not checked.labels and not checked.any_target:
        remedy = (
            'Use "squared" with lower=0, which predicts the mean of counts, or '
            "kb.KernelBank(loss=...), which takes targets as they are."
        )
        rule = "be one for all numbers, because targets are standardised"
        raise check.refuse("loss", rule, loss, remedy, OWNER)
    return checked


def checked_bounds(lower: object, upper: object, task: str) -> tuple[float | None, float | None]:
    """What no target lies below and above; None for no bound."""

    def bound(name: str, limit: object) -> float | None:
        _only_numbers(name, limit, task, "Leave it out: labels have no bounds.")
        remedy, most = "Give the number that no target can pass, or leave it out.", check.LARGEST
        if limit is None:
            return None
        return check.number(name, limit, OWNER, remedy, least=-most, most=most)

    low, high = bound("lower", lower), bound("upper", upper)
    if low is not None and high is not None and not low < high:
        remedy = "Give the smaller number as lower and the larger one as upper."
        raise check.refuse("lower", f"be less than upper, which is {high:g}", low, remedy)
    return low, high


def checked_horizons(horizons: object, task: str) -> tuple[int, ...]:
    """Horizons in ascending order; none for None."""
    if horizons is None:
        return ()
    _only_numbers("horizons", horizons, task)
    remedy = "Give rows ahead, such as (1, 6, 24), or 24 for 1 to 24."
    most = LONGEST_HORIZON
    rows = _different(
        "horizons",
        horizons,
        remedy,
        lambda horizon: check.count("horizons", horizon, OWNER, remedy, most=most),
    )
    return tuple(sorted(rows)) if isinstance(horizons, Iterable) else tuple(range(1, rows[0] + 1))


def checked_quantiles(quantiles: object, task: str) -> tuple[float, ...]:
    """Levels in ascending order; none for None."""
    if quantiles is None:
        return ()
    _only_numbers("quantiles", quantiles, task)
    remedy = "Give levels between 0 and 1, such as (0.05, 0.5, 0.95)."
    levels = _different(
        "quantiles",
        quantiles,
        f"{remedy} For one quantile use loss=kb.losses.Pinball(level).",
        lambda level: check.number("quantiles", level, OWNER, remedy, above=0, below=1),
        "be two levels or more, none twice",
        least=2,
    )
    return tuple(sorted(levels))


def checked_known(known: object, horizons: tuple[int, ...]) -> tuple[Column, ...]:
    """Names or indices of columns whose future values are known; none for None."""
    if known is None:
        return ()
    if not horizons:
        rule, remedy = "be given with horizons only", "Add horizons, such as horizons=24."
        raise check.refuse("known", rule, known, remedy, OWNER)
    remedy = 'Give names or indices of columns, such as ["hour", "price"].'

    def column(member: object) -> Column:
        if isinstance(member, str):
            return member
        return check.count("known", member, OWNER, remedy, least=0)

    return tuple(_different("known", known, remedy, column))


def checked_missing(missing: object) -> tuple[float | str, ...]:
    """Values that mean that there is none: numbers or texts; none for None."""
    if missing is None:
        return ()
    remedy = 'Give numbers or texts, such as (-999, "NA"). NaN and None are always missing.'

    def checked(value: object) -> float | str:
        if isinstance(value, str) and value.strip():
            return value.strip()
        if isinstance(value, Real) and not isinstance(value, bool):
            number = check.as_float(value)
            if math.isfinite(number):
                return number
        raise check.refuse("missing", "hold finite numbers or texts", value, remedy, OWNER)

    return tuple(_different("missing", missing, remedy, checked))


def checked_scalings(scalings: object, usual: tuple[str, ...]) -> tuple[str, ...]:
    """The names of scalings, in their usual order; `usual` if None is given."""
    if scalings is None:
        return usual
    remedy = 'Give one or a list of some of them, such as ["standard", "rank"].'
    if not isinstance(scalings, Iterable):
        raise check.refuse("scalings", "be a word or a list of words", scalings, remedy, OWNER)

    names = _different(
        "scalings", scalings, remedy, lambda name: check.choice("scalings", name, OWNER, SCALINGS)
    )
    return tuple(name for name in SCALINGS if name in names)


def checked_seasons(seasons: object) -> Setting:
    """None, "auto", or different periods in their order."""
    remedy = 'Give the rows of a period, such as 24 or (24, 168), or "auto", or None.'
    if seasons is None or (isinstance(seasons, str) and seasons == AUTO):
        return seasons
    if isinstance(seasons, str):
        raise check.refuse("seasons", 'be periods, "auto" or None', seasons, remedy, OWNER)
    periods = _different(
        "seasons",
        seasons,
        remedy,
        lambda rows: check.count("seasons", rows, OWNER, remedy, least=2, most=LARGEST_PERIOD),
        f"name 1 to {MOST_PERIODS} periods, none twice",
        most=MOST_PERIODS,
    )
    return tuple(sorted(periods))


# --- checks of what a file says -------------------------------------------------------------------


def restored_periods(setting: Setting, periods: object) -> tuple[int, ...]:
    """The periods of a file with these settings."""
    checked = checked_seasons(periods or None) or ()
    if isinstance(checked, str):
        raise FileRefused("its periods are not numbers.")
    if setting != AUTO and checked != (setting or ()):
        raise FileRefused("its periods are not those of its settings.")
    if setting == AUTO and (len(checked) > PLACES or max(checked, default=0) > WINDOW // 4):
        raise FileRefused("such periods cannot be found.")
    return checked


def config_arguments(header: Json, reading: Reading) -> dict[str, Any]:
    """The arguments of an `AutoBank` from what `AutoConfig.describe` returned."""
    combiner = header["combiner"]
    return {
        "task": header["task"],
        **{name: header[name] for name in (*_PLAIN, "scalings")},
        "slots": [reading.component(slot) for slot in header["slots"]] or None,
        "combiner": None if combiner is None else reading.component(combiner),
        "loss": reading.component(header["loss"]),
        "seasons": header.get("seasons"),
        **{name: header.get(name) or None for name in _LISTS},
        "engine": reading.engine,
    }
