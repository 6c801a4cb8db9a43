"""AutoBank with one part taken out or replaced; everything else stays as it is."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

import kernelbank as kb
from kernelbank.auto import task_model
from kernelbank.auto.default_slots import SCALINGS
from kernelbank.combiners import Combiner
from kernelbank.evaluation.competitors import BANK, Competitor, CompetitorRun, run_auto_bank
from kernelbank.evaluation.datasets import Stream

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
    starts: tuple[int, ...] = task_model.RESTARTS
    size: str = "default"
    seed: int = 0
    seasons: str | None = None

    def bank(self, stream: Stream) -> kb.AutoBank:
        """A bank for this stream that has learned nothing."""
        settings = {"combiner": self.combiner, "seed": self.seed, "size": self.size}
        settings["seasons"] = self.seasons
        if self.keep is None:
            # Each size has scalings of its own: "small" is to be what users get by that name.
            own = self.scalings if self.size == "default" else None
            return kb.AutoBank(stream.task, stream.lags, scalings=own, **settings)
        named = default_slots(stream, self.scalings, self.size, self.seed)
        kept = kept_slots(*zip(*named), lambda name: self.keep(name.split(": ", 1)[1]))
        return kb.AutoBank(stream.task, stream.lags, slots=kept, scalings=self.scalings, **settings)

    def competitor(self) -> Competitor:
        return Competitor(self.name, BANK, partial(run_variant, self.name))


def run_variant(name: str, seed: int, stream: Stream) -> CompetitorRun:
    """One run. By name, because functions such as `keep` are not sent to other processes."""
    variant = next(one for one in VARIANTS if one.name == name)
    with warnings.catch_warnings(), starting_after(variant.starts):
        warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
        run = run_auto_bank(variant.bank(stream), stream, intervals=False)
    gc.collect()  # a bank and its ledger refer to each other: gigabytes would pile up
    return run


def default_slots(
    stream: Stream, scalings: tuple[str, ...] = SCALINGS, size: str = "default", seed: int = 0
) -> list[tuple[str, kb.Slot]]:
    """The slots that AutoBank makes for such a stream, and their names."""
    bank = kb.AutoBank(stream.task, stream.lags, scalings=scalings, size=size, seed=seed)
    rows = task_model.RESTARTS[0] + 1
    X = np.random.default_rng(0).normal(size=(rows, stream.X.shape[1]))
    bank.run(X, np.arange(rows) % 2.0, record=["predictions"])
    return list(zip(bank.names, bank.banks[0].slots, strict=True))


def kept_slots(names: Sequence[str], slots: Sequence[kb.Slot], keep: Keep) -> list[kb.Slot]:
    """The slots whose names are kept, without those that learn the residual of one that is not.

    A slot names the one whose residual it learns by its index, so indices are counted anew.
    """
    indices: dict[int, int] = {}
    found: list[kb.Slot] = []
    for index, (name, slot) in enumerate(zip(names, slots, strict=True)):
        base = slot.residual_of
        if not keep(name) or (base is not None and base not in indices):
            continue
        indices[index] = len(found)
        found.append(slot if base is None else replace(slot, residual_of=indices[base]))
    return found


@contextmanager
def starting_after(starts: tuple[int, ...]) -> Iterator[None]:
    """AutoBanks that are made and run meanwhile start anew only after these numbers of rows."""
    before = task_model.RESTARTS
    task_model.RESTARTS = starts
    try:
        yield
    finally:
        task_model.RESTARTS = before


def _without(*parts: str) -> Keep:
    return lambda name: name not in parts


def _slot_variants() -> list[Variant]:
    def tree(name: str) -> bool:
        return "tree " in name

    found: dict[str, Keep] = {
        "no random features, no forgetting": _without("random features, no forgetting"),
        "no random features, forgetting": _without("random features, forgetting"),
        "no random features, adaptive bias": _without("random features, adaptive bias"),
        "no adaptive bias": lambda name: not name.endswith("adaptive bias"),
        "no linear": lambda name: not name.startswith("linear"),
        "no random features": lambda name: not name.startswith("random features"),
        "no trees": lambda name: not tree(name),
        "trees on the target only": lambda name: " + " not in name,
        "one tree of each kind": lambda name: not tree(name) or "tree 1" in name,
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
    Variant("seasons auto", "seasons", seasons="auto"),
    Variant("size small", "size", size="small"),
    Variant("size large", "size", size="large"),
)
