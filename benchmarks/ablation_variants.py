"""AutoBank with one part taken out or replaced; everything else stays as it is."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import kernelbank as kb
from kernelbank.auto import config, model, slots
from kernelbank.auto import scaling as scaling_module
from kernelbank.auto.scaling import log_shift
from kernelbank.auto.slots import (
    DISCOUNT,
    LIMIT,
    SCALINGS,
    STACKING_RIDGE,
    SlotPool,
    default_combiner,
    default_pool,
)
from kernelbank.combiners import Combiner
from kernelbank.research.competitors import BANK, Competitor, CompetitorRun, run_model
from kernelbank.research.datasets import Stream

Keep = Callable[[str], bool]
FULL = "full"


@dataclass(frozen=True)
class Variant:
    """A name, the part that it is about, and in what it differs from the full AutoBank.

    `keep` says by a slot's name, without its scaling, whether it stays.
    """

    name: str
    part: str
    keep: Keep | None = None
    scalings: tuple[str, ...] = SCALINGS
    combiner: Combiner | None = None
    starts: tuple[int, ...] = config.AutoConfig.restarts
    size: str = "default"
    seed: int = 0
    seasons: str | None = None
    revises: bool = True
    limit: float = LIMIT
    transforms: bool = True
    robust: bool = True

    def bank(self, stream: Stream) -> kb.AutoBank:
        """A bank for this stream that has learned nothing; to be run inside `in_force`."""
        # Each size has scalings of its own: "small" is to be what users get by that name.
        own = self.scalings if self.size == "default" else None
        return kb.AutoBank(
            stream.task,
            stream.lags,
            scalings=own,
            combiner=self.combiner,
            seed=self.seed,
            size=self.size,
            seasons=self.seasons,
        )

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """AutoBanks that are made and run meanwhile start, revise and have slots as it says."""

        def pool(*arguments: Any) -> SlotPool:
            found = default_pool(*arguments)
            return found if self.keep is None else kept_pool(found, self.keep)

        with ExitStack() as stack:
            patches = (
                (config.AutoConfig, "restarts", self.starts),
                (config, "default_pool", pool),
                (model, "revision_is_due", slots.revision_is_due if self.revises else _never),
                (slots, "LIMIT", self.limit),
                (scaling_module, "log_shift", log_shift if self.transforms else _no_shift),
                (config, "default_combiner", default_combiner if self.robust else _plain_stacking),
            )
            for module, name, value in patches:
                stack.callback(setattr, module, name, getattr(module, name))
                setattr(module, name, value)
            yield

    def competitor(self) -> Competitor:
        return Competitor(self.name, BANK, self.run)

    def run(self, seed: int, stream: Stream) -> CompetitorRun:
        """One run."""
        with warnings.catch_warnings(), self.in_force():
            warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
            run = run_model(self.bank(stream), stream)
        gc.collect()  # a bank and its ledger refer to each other: gigabytes would pile up
        return run


def _never(rows: int) -> bool:
    return False


def _no_shift(deviations: Any) -> float:
    return 0.0


def _plain_stacking(loss: Any, *, labels: bool) -> Combiner:
    return kb.combiners.Stacking(DISCOUNT, STACKING_RIDGE)


def kept_pool(pool: SlotPool, keep: Keep) -> SlotPool:
    """The groups whose slots are all kept, without those on the residual of one that is not."""
    found = SlotPool(pool.width)
    found.first_limit = pool.first_limit
    places: dict[int, int] = {}
    for number, group in enumerate(pool.groups):
        named = [(pool.names[i], pool.slots[i]) for i in group.slots]
        base = named[0][1].residual_of
        if not all(keep(without_scaling(name)) for name, _ in named):
            continue
        if base is not None and base not in places:
            continue
        places |= {index: len(found) + k for k, index in enumerate(group.slots)}
        on = None if base is None else places[base]
        slots = [(name, replace(slot, residual_of=on)) for name, slot in named]
        if number in pool.season_groups:
            found.season_groups = (*found.season_groups, len(found.groups))
        found.add_group(group.name, slots, initial=group.initial)
    found.relevant_slots = tuple(places[i] for i in pool.relevant_slots if i in places)
    found.metric_slot = None if pool.metric_slot is None else places.get(pool.metric_slot)
    return found


def without_scaling(name: str) -> str:
    """The name of a slot without its scaling; slots on the past have none."""
    return name if name.startswith(("relevant", "past")) else name.split(": ", 1)[-1]


def _without(*parts: str) -> Keep:
    return lambda name: name not in parts


def _slot_variants() -> list[Variant]:
    def tree(name: str) -> bool:
        return "tree " in name

    def reserve(name: str) -> bool:
        parts = ("tree 3", "tree 4", "narrow", "all inputs", "some inputs", "+ nearest neighbors")
        return not name.startswith("relevant") and any(part in name for part in parts)

    found: dict[str, Keep] = {
        "no random features, no forgetting": _without("random features, no forgetting"),
        "no random features, forgetting": _without("random features, forgetting"),
        "no random features, adaptive bias": _without("random features, adaptive bias"),
        "no adaptive bias": lambda name: not name.endswith("adaptive bias"),
        "no linear": lambda name: not name.startswith("linear"),
        "no random features": lambda name: not name.startswith("random features"),
        "no trees": lambda name: not tree(name),
        "trees on the target only": lambda name: " + " not in name,
        "one tree of each kind": lambda name: not tree(name) or name.endswith("tree 1"),
        "no nearest neighbors": lambda name: "nearest neighbors" not in name,
        "no last value": lambda name: not name.startswith("last value"),
        "no relevant columns": lambda name: not name.startswith("relevant"),
        "nothing on the past": lambda name: not name.startswith(("relevant", "past")),
        "no reserves": lambda name: not reserve(name),
    }
    return [Variant(name, "slots", keep) for name, keep in found.items()]


def _scaling_variants() -> list[Variant]:
    left = [tuple(other for other in SCALINGS if other != name) for name in SCALINGS]
    found = [
        Variant(f"no scaling {name}", "scalings", scalings=others)
        for name, others in zip(SCALINGS, left, strict=True)
    ]
    return [*found, Variant("scaling standard only", "scalings", scalings=("standard",))]


def _combiner_variants() -> list[Variant]:
    rules = kb.combiners
    found = {
        "Joint, prequential": rules.Joint(evidence="prequential", horizon=500, discount=0.998),
        "Simplex (the paper's)": rules.Simplex(),
        "Simplex, prequential": rules.Simplex(evidence="prequential", horizon=500),
        "Hedge": rules.Hedge(),
        "FixedShare": rules.FixedShare(),
        "Uniform": rules.Uniform(),
        "Best": rules.Best(),
    }
    return [Variant(name, "combiner", combiner=rule) for name, rule in found.items()]


OTHER_SEEDS = tuple(Variant(f"full, seed {seed}", FULL, seed=seed) for seed in (1, 2, 3))
"""The full bank with other random draws: differences among them are chance."""

VARIANTS = (
    Variant(FULL, FULL),
    *OTHER_SEEDS,
    *_slot_variants(),
    *_scaling_variants(),
    *_combiner_variants(),
    Variant("starts after 5, 32 rows only", "starts", starts=(5, 32)),
    Variant("start after 5 rows only", "starts", starts=(5,)),
    Variant("no logarithm of skewed targets", "transforms", transforms=False),
    Variant("Stacking, not RobustStacking", "combiner", robust=False),
    Variant("no revision: all initial slots run", "revision", revises=False),
    Variant("revision within half of the time", "revision", limit=0.5 * LIMIT),
    Variant("revision within one and a half times the time", "revision", limit=1.5 * LIMIT),
    Variant("seasons auto", "seasons", seasons="auto"),
    Variant("size small", "size", size="small"),
    Variant("size large", "size", size="large"),
)
