"""AutoBank with one part taken out, or put in the place of another; all else stays as it is."""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

import kernelbank as kb
from kernelbank.auto import (
    auto_serialization as files,
)
from kernelbank.auto import (
    classification,
    regression,
)
from kernelbank.auto import (
    summary as overview,
)
from kernelbank.auto import (
    task_model as desk,
)
from kernelbank.auto.config import Plan
from kernelbank.auto.default_slots import SCALINGS
from kernelbank.combiners import Combiner
from kernelbank.learners import Residual

from .entries import REGRESSION, Entry
from .players import Played

FULL = "full"
_FIRST_CALL = 40
"""Rows that are played before the timer starts, so that everything is compiled."""

Keep = Callable[[str], bool]


@dataclass(frozen=True)
class Variant:
    """A name, the kind of part it is about, and in what it differs from the full AutoBank.

    `keep` says by a slot's name, without its scaling, whether it stays.
    """

    name: str
    part: str
    keep: Keep | None = None
    scalings: tuple[str, ...] = SCALINGS
    combiner: Combiner | None = None
    starts: tuple[int, ...] = desk.STARTS
    size: str = "default"
    seed: int = 0

    def bank(self, entry: Entry) -> kb.AutoBank:
        """A bank for this entry that has learned nothing."""
        wishes = {"combiner": self.combiner, "seed": self.seed, "size": self.size}
        if self.keep is None:
            # Each size has scalings of its own: "small" is to be what users get by that name.
            own = self.scalings if self.size == "default" else None
            return kb.AutoBank(entry.task, entry.lags, scalings=own, **wishes)
        named = recipe_slots(entry, self.scalings, self.size, self.seed)
        kept = variant_slots(*zip(*named), lambda name: self.keep(name.split(": ", 1)[1]))
        return kb.AutoBank(entry.task, entry.lags, slots=kept, scalings=self.scalings, **wishes)

    def play(self, entry: Entry) -> Played:
        """One pass over the entry."""
        with warnings.catch_warnings(), starting_after(self.starts):
            warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
            record = ("predictions",)
            self.bank(entry).run(entry.X[:_FIRST_CALL], entry.y[:_FIRST_CALL], record=record)
            model = self.bank(entry)
            start = time.perf_counter()
            trace = model.run(entry.X, entry.y, record=record)
            seconds = time.perf_counter() - start
        del model
        gc.collect()  # a bank and its ledger know each other: gigabytes would pile up
        return Played(np.asarray(trace.predictions, dtype=np.float64), seconds)


def recipe_slots(
    entry: Entry, scalings: tuple[str, ...] = SCALINGS, size: str = "default", seed: int = 0
) -> list[tuple[str, kb.Slot]]:
    """The slots that AutoBank makes for this entry, and their names."""
    plan = Plan(entry.lags, size, seed, scalings, None, None, "serial")
    scaling = plan.scaling(entry.X.shape[1], target=entry.task == REGRESSION)
    return plan.named_slots(scaling)


def variant_slots(names: Sequence[str], slots: Sequence[kb.Slot], keep: Keep) -> list[kb.Slot]:
    """The slots whose names are kept, but for those that stood on one that is not.

    Residual names its base by place, so bases are numbered anew.
    """
    places: dict[int, int] = {}
    found: list[kb.Slot] = []
    for place, (name, slot) in enumerate(zip(names, slots, strict=True)):
        learner = slot.learner
        if not keep(name) or (isinstance(learner, Residual) and learner.base not in places):
            continue
        if isinstance(learner, Residual):
            learner = replace(learner, base=places[learner.base])
        places[place] = len(found)
        found.append(replace(slot, learner=learner))
    return found


@contextmanager
def starting_after(starts: tuple[int, ...]) -> Iterator[None]:
    """AutoBanks that are made and run meanwhile start anew after these numbers of rows only."""
    users = (desk, regression, classification, files, overview)
    before = [user.STARTS for user in users]
    try:
        for user in users:
            user.STARTS = starts
        yield
    finally:
        for user, value in zip(users, before, strict=True):
            user.STARTS = value


def _without(*parts: str) -> Keep:
    return lambda name: name not in parts


def _slots() -> list[Variant]:
    def tree(name: str) -> bool:
        return name.startswith("tree ")

    found: dict[str, Keep] = {
        "no mixed that never forgets": _without("mixed"),
        "no mixed, fading": _without("mixed, fading"),
        "no mixed, following": _without("mixed, following"),
        "nothing following": lambda name: tree(name) or not name.endswith("following"),
        "no linear": lambda name: not name.startswith("linear"),
        "no random features": lambda name: not name.startswith("mixed"),
        "no trees": lambda name: not tree(name),
        "trees on the target only": lambda name: " on " not in name,
        "one tree of each kind": lambda name: not tree(name) or name.startswith("tree 1"),
    }
    return [Variant(name, "slots", keep) for name, keep in found.items()]


def _scalings() -> list[Variant]:
    left = [tuple(other for other in SCALINGS if other != name) for name in SCALINGS]
    found = [
        Variant(f"no scaling {name}", "scalings", scalings=others)
        for name, others in zip(SCALINGS, left, strict=True)
    ]
    return [*found, Variant("scaling standard only", "scalings", scalings=("standard",))]


def _combiners() -> list[Variant]:
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
"""The full bank with other luck: how far these lie apart is what no part need explain."""

VARIANTS = (
    Variant(FULL, FULL),
    *OTHER_SEEDS,
    *_slots(),
    *_scalings(),
    *_combiners(),
    Variant("starts after 5, 32 rows only", "starts", starts=(5, 32)),
    Variant("start after 5 rows only", "starts", starts=(5,)),
    Variant("size small", "size", size="small"),
    Variant("size large", "size", size="large"),
)
