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
from ..bank.engines import Engine, Serial, as_engine
from ..bank.slot import Slot, SlotNames, slot_tuple
from ..bank.slot_changes import accepts_columns
from ..combiners import Combiner
from ..errors import FileRefused
from ..io.cells import MissingValues
from ..io.specs import callable_field, check_names, to_spec
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
    WINDOW,
    Setting,
    season_places,
)
from .slots import SIZES, Cost, SlotPool, default_combiner, default_pool, needs_shift
from .state import Json, Reading

Column = str | int  # the name or the index of a column


OWNER = "AutoBank"
"""Whose settings they are; the `kind` in the header of a file, which a `KernelBank` has not."""


@dataclass(frozen=True)
class AutoConfig:
    """The settings of an AutoBank. `slots` are the user's own, None for the default ones."""

    task: str = "regression"
    lags: int = 0
    size: str = "default"
    slots: tuple[Slot, ...] | None = None
    combiner: Combiner | None = None
    loss: Loss = field(default_factory=Squared)
    window: int = 1
    regularization: float = 0.0
    scalings: tuple[str, ...] = ()
    lower: float | None = None
    upper: float | None = None
    seasons: Setting = None
    horizons: tuple[int, ...] = ()
    known: tuple[Column, ...] = ()
    """Names or indices of the columns that are known in advance."""
    quantiles: tuple[float, ...] = ()
    missing: tuple[float | str, ...] = ()
    """Values of inputs and targets that mean that there is none."""
    engine: Engine = field(default_factory=Serial, metadata=callable_field())  # in no file
    seed: int = 0
    losses: tuple[Loss, ...] = ()
    """Of several outputs, if they differ."""
    restarts: ClassVar[tuple[int, ...]] = (5, 16, 32, 128)
    """After these numbers of rows, scaling and banks start anew from all rows so far: what was
    learned while the running statistics still moved does not fit the later ones."""

    @classmethod
    def checked(cls, arguments: Json) -> AutoConfig:
        """The settings that are among the arguments of an AutoBank, checked one after the other."""
        config = cls(**{name: arguments[name] for name in ARGUMENTS})
        for name, rule in RULES.items():
            object.__setattr__(config, name, rule(getattr(config, name), config))
        return config

    @property
    def labels(self) -> bool:
        """Whether targets are labels."""
        return self.task == "classification"

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
        check_names([self.loss])
        check_names(self.slots or ())
        spec = to_spec(self)
        del spec["type"]
        return spec | {"kind": OWNER} | dict.fromkeys(("columns", "dimension", "model"))

    def check(self) -> None:
        """Refuse settings that cannot work together, before there is a stream."""
        if self.has_own_parts:
            self.first_bank(self.make_scaling(1))

    def check_several(self, targets: int) -> None:
        """Refuse settings that do not work with several targets per row.

        A target that is missing or far is left out, so all parts of a bank have to be able to.
        """
        if self.horizons:
            remedy = "Leave horizons out, or use an AutoBank for each target."
            raise check.refuse("horizons", "be left out for several targets", self.horizons, remedy)
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
    def one_bank(self) -> bool:
        """Whether all classes see the same row: without labels of the past among its inputs."""
        return not (self.labels and (self.lags or self.seasons is not None))

    @property
    def knows_previous(self) -> bool:
        """Whether a row knows the inputs of the last one, unless they are many."""
        return self.revises and self.one_bank

    def make_scaling(self, dimension: int, **options: int) -> Scaling:
        """The scaling of inputs of this width; `options` are arguments of `Scaling`."""
        named = len(self.seasons) if isinstance(self.seasons, tuple) else 0
        options = {"seasons": season_places(self.seasons), "periods": named} | options
        return Scaling(dimension, self.lags, self.scalings, **options)

    @property
    def revises(self) -> bool:
        """Whether slots without weight give their time to others; see `slot_pool`.

        Slots or combiners of the user's own stay as they are.
        """
        return self.slots is None and self.combiner is None and not needs_shift(self.loss)

    @property
    def keeps_rows(self) -> bool:
        """Whether the newest rows are kept also after the last restart."""
        return self.labels or self.revises

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


# --- checks of settings --------------------------------------------------------------------------

LONGEST_HORIZON = 1000  # how many rows ahead a forecast may be

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


def _only_numbers(name: str, config: AutoConfig, remedy: str = "Leave it out.") -> None:
    """Refuse a setting that classification does not have."""
    if config.labels:
        setting = getattr(config, name)
        raise check.refuse(name, "be left out for classification", setting, remedy, OWNER)


def _lags(lags: Any, _: AutoConfig) -> int:
    remedy = "Give how many of the last targets are inputs, 0 for none."
    return check.count("lags", lags, OWNER, remedy, least=0, most=1000)


def _slots(slots: Any, _: AutoConfig) -> tuple[Slot, ...] | None:
    remedy = "Give a list of kb.Slot(kernel, learner), or leave it out for the default ones."
    return None if slots is None else slot_tuple(slots, OWNER, remedy)


def _combiner(combiner: Any, _: AutoConfig) -> Combiner | None:
    if combiner is not None and not isinstance(combiner, Combiner):
        remedy = "Use one of kb.combiners, such as kb.combiners.Stacking()."
        raise check.refuse("combiner", "be a combiner", combiner, remedy, OWNER)
    return combiner


def _loss(loss: Any, config: AutoConfig) -> Loss:
    checked = as_loss(loss)
    if checked.labels and not config.labels:
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


def _scalings(scalings: Any, config: AutoConfig) -> tuple[str, ...]:
    """Their names in the usual order; by default those of the size, or one for own slots."""
    if scalings is None:
        return SIZES[config.size].scalings if config.slots is None else SCALINGS[:1]
    remedy = 'Give one or a list of some of them, such as ["standard", "rank"].'
    if not isinstance(scalings, Iterable):
        raise check.refuse("scalings", "be a word or a list of words", scalings, remedy, OWNER)
    names = _different(
        "scalings", scalings, remedy, lambda name: check.choice("scalings", name, OWNER, SCALINGS)
    )
    return tuple(name for name in SCALINGS if name in names)


def _bound(name: str, bound: Any, config: AutoConfig) -> float | None:
    if bound is None:
        return None
    _only_numbers(name, config, "Leave it out: labels have no bounds.")
    remedy, most = "Give the number that no target can pass, or leave it out.", check.LARGEST
    return check.number(name, bound, OWNER, remedy, least=-most, most=most)


def _upper(upper: Any, config: AutoConfig) -> float | None:
    high = _bound("upper", upper, config)
    if high is not None and config.lower is not None and not config.lower < high:
        remedy = "Give the smaller number as lower and the larger one as upper."
        raise check.refuse("lower", f"be less than upper, which is {high:g}", config.lower, remedy)
    return high


def checked_seasons(seasons: Any) -> Setting:
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
        f"name at least one and at most {MOST_PERIODS} periods, none twice",
        most=MOST_PERIODS,
    )
    return tuple(sorted(periods))


def _horizons(horizons: Any, config: AutoConfig) -> tuple[int, ...]:
    """In ascending order."""
    _only_numbers("horizons", config)
    remedy = "Give rows ahead, such as (1, 6, 24), or 24 for 1 to 24."

    def horizon(rows: object) -> int:
        return check.count("horizons", rows, OWNER, remedy, most=LONGEST_HORIZON)

    rows = _different("horizons", horizons, remedy, horizon)
    return tuple(sorted(rows)) if isinstance(horizons, Iterable) else tuple(range(1, rows[0] + 1))


def _known(known: Any, config: AutoConfig) -> tuple[Column, ...]:
    if not config.horizons:
        rule, remedy = "be given with horizons only", "Add horizons, such as horizons=24."
        raise check.refuse("known", rule, known, remedy, OWNER)
    remedy = 'Give names or indices of columns, such as ["hour", "price"].'

    def column(member: object) -> Column:
        if isinstance(member, str):
            return member
        return check.count("known", member, OWNER, remedy, least=0)

    return tuple(_different("known", known, remedy, column))


def _quantiles(quantiles: Any, config: AutoConfig) -> tuple[float, ...]:
    """Levels in ascending order."""
    _only_numbers("quantiles", config)
    remedy = "Give levels between 0 and 1, such as (0.05, 0.5, 0.95)."

    def level(share: object) -> float:
        return check.number("quantiles", share, OWNER, remedy, above=0, below=1)

    rule = "be two levels or more, none twice"
    advice = f"{remedy} For one quantile use loss=kb.losses.Pinball(level)."
    return tuple(sorted(_different("quantiles", quantiles, advice, level, rule, least=2)))


def _missing(missing: Any, _: AutoConfig) -> tuple[float | str, ...]:
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


Rule = Callable[[Any, AutoConfig], object]


def _if_any(rule: Rule) -> Rule:
    """The rule of a setting that may be None."""
    return lambda value, config: () if value is None else rule(value, config)


RULES: dict[str, Rule] = {
    "task": lambda v, _: check.choice("task", v, OWNER, ("regression", "classification")),
    "lags": _lags,
    "size": lambda v, _: check.choice("size", v, OWNER, SIZES),
    "slots": _slots,
    "combiner": _combiner,
    "seed": lambda v, _: check.count("seed", v, OWNER, "Give a whole number.", least=0, most=2**31),
    "scalings": _scalings,
    "engine": lambda v, _: as_engine(v),
    "loss": _loss,
    "lower": lambda v, config: _bound("lower", v, config),
    "upper": _upper,
    "seasons": lambda v, _: checked_seasons(v),
    "horizons": _if_any(_horizons),
    "known": _if_any(_known),
    "quantiles": _if_any(_quantiles),
    "missing": _if_any(_missing),
}
"""By setting: what checks a value, after those before, and makes it what it is."""

ARGUMENTS = (*RULES, "window", "regularization")  # the settings that are arguments of an AutoBank


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


def config_arguments(header: Json, reading: Reading) -> Json:
    """The arguments of an `AutoBank` from what `AutoConfig.describe` returned."""
    spec = {name: header[name] for name in ARGUMENTS if name != "engine"}
    config = reading.component({"type": "AutoConfig", **spec}, AutoConfig)
    arguments = {name: getattr(config, name) for name in ARGUMENTS} | {"engine": reading.engine}
    return {name: None if value == () else value for name, value in arguments.items()}
