"""`make ablation`: what each part of AutoBank is worth.

AutoBank runs on the streams of `make accuracy`, scored in the same way: once as it is, with other
seeds, and then with one part taken out or replaced at a time. Written are ablation.md and
ablation.json, anew after every stream.
"""

from __future__ import annotations

import argparse
import gc
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import median
from typing import Any

from accuracy import add_stream_options, chosen_streams, facts, progress_bar, show
from accuracy_streams import chosen_names
from accuracy_tables import TextTable, geometric_mean

import kernelbank as kb
from kernelbank.auto import config, model, scaling, slots
from kernelbank.combiners import Combiner
from kernelbank.research.competitors import BANK, Competitor, CompetitorRun, run_model
from kernelbank.research.datasets import Stream
from kernelbank.research.results import NORMALISED, finite

Keep = Callable[[str], bool]
FULL = "full"

# --- AutoBank with one part taken out or replaced -------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """A name, and in what it differs from the full AutoBank.

    - keep: by a slot's name, without its scaling, whether it stays
    - revises, limit: whether slots are revised, and within how many times the time
    - transforms: whether slots may learn the logarithm of skewed targets
    - restarts: after how many rows all slots restart
    - keeps: whether revisions keep cheap groups, and credit the best neighbors with all weight
    """

    name: str
    keep: Keep | None = None
    combiner: Combiner | None = None
    size: str = "default"
    seed: int = 0
    revises: bool = True
    limit: float = slots.LIMIT
    transforms: bool = True
    restarts: tuple[int, ...] = config.AutoConfig.restarts
    keeps: bool = True

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """AutoBanks that are made and run meanwhile have slots and revisions as it says."""

        def pool(*arguments: Any) -> slots.SlotPool:
            every = slots.default_pool(*arguments)
            return every if self.keep is None else kept_pool(every, self.keep)

        patches = [
            (config, "default_pool", pool),
            (slots, "LIMIT", self.limit),
            (config.AutoConfig, "restarts", self.restarts),
        ]
        if not self.keeps:
            patches.append((slots, "CHEAP", 0.0))
            patches.append((slots, "_with_common_weight", lambda pool, running, own, losses: own))
        if not self.revises:
            patches.append((model, "REVISIONS", slots.Schedule((), 10**18)))
        if not self.transforms:
            patches.append((scaling, "log_shift", lambda deviations: 0.0))
        with ExitStack() as stack:
            for module, name, value in patches:
                stack.callback(setattr, module, name, getattr(module, name))
                setattr(module, name, value)
            yield

    def bank(self, stream: Stream) -> kb.AutoBank:
        """A bank for this stream that has learned nothing; to be run inside `in_force`."""
        options = {"combiner": self.combiner, "seed": self.seed, "size": self.size}
        return kb.AutoBank(stream.task, stream.lags, **options)

    def run(self, seed: int, stream: Stream) -> CompetitorRun:
        with warnings.catch_warnings(), self.in_force():
            warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
            run = run_model(self.bank(stream), stream)
        gc.collect()  # a bank and its ledger refer to each other: gigabytes would pile up
        return run


def kept_pool(pool: slots.SlotPool, keep: Keep) -> slots.SlotPool:
    """The groups whose slots are all kept, without those on the residual of one that is not."""
    kept = slots.SlotPool(pool.width)
    kept.first_limit = pool.first_limit
    places: dict[int, int] = {}
    for number, group in enumerate(pool.groups):
        named = [(pool.names[i], pool.slots[i]) for i in group.slots]
        base = named[0][1].residual_of
        if not all(keep(without_scaling(name)) for name, _ in named):
            continue
        if base is not None and base not in places:
            continue
        places |= {index: len(kept) + k for k, index in enumerate(group.slots)}
        on = None if base is None else places[base]
        if number in pool.season_groups:
            kept.season_groups = (*kept.season_groups, len(kept.groups))
        residuals = [(name, replace(slot, residual_of=on)) for name, slot in named]
        kept.add_group(group.name, residuals, initial=group.initial)
    kept.relevant_slots = tuple(places[i] for i in pool.relevant_slots if i in places)
    kept.metric_slot = None if pool.metric_slot is None else places.get(pool.metric_slot)
    return kept


def without_scaling(name: str) -> str:
    """The name of a slot without its scaling; slots on the past have none."""
    return name if name.startswith(("relevant", "past")) else name.split(": ", 1)[-1]


def _is_reserve(name: str) -> bool:
    parts = ("tree 3", "tree 4", "narrow", "all inputs", "some inputs", "+ nearest neighbors")
    return not name.startswith("relevant") and any(part in name for part in parts)


OTHER_SEEDS = tuple(f"full, seed {seed}" for seed in (1, 2, 3))
"""The full bank with other random draws: differences among them are chance."""

SLOTS: dict[str, Keep] = {
    "no random features": lambda name: not name.startswith("random features"),
    "no trees": lambda name: "tree " not in name,
    "no boosted trees": lambda name: name != "boosted trees",
    "no nearest neighbors": lambda name: "nearest neighbors" not in name,
    "no last value": lambda name: not name.startswith("last value"),
    "no relevant columns": lambda name: not name.startswith("relevant"),
    "nothing on the past": lambda name: not name.startswith(("relevant", "past")),
    "no reserves": lambda name: not _is_reserve(name),
}
PLAIN = kb.combiners.Stacking(slots.DISCOUNT, slots.STACKING_RIDGE)
VARIANTS = (
    Variant(FULL),
    *(Variant(name, seed=seed) for seed, name in enumerate(OTHER_SEEDS, 1)),
    *(Variant(name, keep) for name, keep in SLOTS.items()),
    Variant("no logarithm of skewed targets", transforms=False),
    Variant("Stacking, not RobustStacking", combiner=PLAIN),
    Variant("Hedge", combiner=kb.combiners.Hedge()),
    Variant("Simplex (the paper's)", combiner=kb.combiners.Simplex()),
    Variant("Uniform", combiner=kb.combiners.Uniform()),
    Variant("no revision: all initial slots run", revises=False),
    Variant("revision by weight alone", keeps=False),
    Variant("no restart after 16 rows", restarts=(5, 32, 128)),
    Variant("revision within half of the time", limit=0.5 * slots.LIMIT),
    Variant("revision within one and a half times the time", limit=1.5 * slots.LIMIT),
    Variant("size small", size="small"),
    Variant("size large", size="large"),
)

# --- figures --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VariantSummary:
    """One variant over all streams; ratios are of its error to the full AutoBank's.

    - least, most: the geometric mean if one data set, with and without lags, is left out:
      whichever is least, most
    - worse, better: streams beyond all seeds of the full AutoBank
    """

    variant: str
    geometric_mean: float
    least: float
    most: float
    median: float
    worse: int
    better: int
    microseconds: float


def ratios(comparison: kb.Comparison, name: str) -> dict[str, float]:
    """By stream, the mean loss of a variant over the full AutoBank's."""
    pairs = [[comparison.result(s, n) for n in (name, FULL)] for s in comparison.streams]
    return {own.stream: own.ratio(own.mean_loss, full.mean_loss) for own, full in pairs}


def summarise(comparison: kb.Comparison, name: str) -> VariantSummary:
    own = ratios(comparison, name)
    draws = [ratios(comparison, n) for n in (FULL, *OTHER_SEEDS) if n in comparison.names]
    data_sets = {stream.split(" +")[0] for stream in own}
    others = [[r for s, r in own.items() if s.split(" +")[0] != one] for one in data_sets]
    without = [geometric_mean(rest or list(own.values())) for rest in others]
    times = [r.seconds_per_sample * 1e6 for r in comparison.results if r.name == name]
    return VariantSummary(
        variant=name,
        geometric_mean=geometric_mean(list(own.values())),
        least=min(without),
        most=max(without),
        median=median(own.values()),
        worse=sum(own[s] > max(draw[s] for draw in draws) for s in own),
        better=sum(own[s] < min(draw[s] for draw in draws) for s in own),
        microseconds=median(times),
    )


def table(rows: list[VariantSummary], streams: int) -> TextTable:
    columns = ["variant", "to full", "one less", "median", "worse", "better", "us"]
    cells = [
        [
            one.variant,
            f"{one.geometric_mean:.3f}",
            f"{one.least:.3f}-{one.most:.3f}",
            f"{one.median:.3f}",
            str(one.worse),
            str(one.better),
            f"{one.microseconds:.0f}",
        ]
        for one in rows
    ]
    return TextTable(f"what parts of AutoBank are worth, {streams} streams", columns, cells)


LEGEND = [
    "to full: geometric mean of error / full AutoBank's; above 1, the part that is missing or "
    "replaced was worth having; median: of the same",
    "one less: least and largest geometric mean if any one data set is left out; a range that "
    "includes 1 says that a single data set decides the result",
    "worse, better: streams beyond all seeds of the full AutoBank; its other seeds show what is "
    "chance",
    "without a slot go the trees that learned its residual",
    "us: microseconds per sample, to predict and to learn, median over the streams",
]


def write(comparison: kb.Comparison, chosen: argparse.Namespace) -> list[TextTable]:
    """The files, for the streams that are done."""
    rows = [summarise(comparison, name) for name in comparison.names if name in BY_NAME]
    grid = table(rows, len(comparison.streams))
    text = "\n".join([grid.markdown(), *(f"- {line}" for line in LEGEND)])
    (chosen.out / "ablation.md").write_text(text + "\n")
    variants = [asdict(row) for row in rows]
    content = facts(chosen) | {"variants": variants, "results": comparison.table()}
    text = json.dumps(finite(content), indent=1, allow_nan=False)
    (chosen.out / "ablation.json").write_text(text + "\n")
    return [grid]


BY_NAME = {variant.name: variant for variant in VARIANTS}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_stream_options(parser)
    parser.add_argument("--variants", default="", help="names, separated by semicolons")
    chosen = parser.parse_args(arguments)
    wanted = [name.strip() for name in chosen.variants.split(";") if name.strip()]
    names = dict.fromkeys([FULL, *chosen_names(list(BY_NAME), wanted, "--variants")])
    streams = chosen_streams(chosen)
    chosen.out.mkdir(parents=True, exist_ok=True)
    with progress_bar() as progress:
        comparison = kb.compare(
            {name: Competitor(name, BANK, BY_NAME[name].run) for name in names},
            streams,
            loss=NORMALISED,
            skip=chosen.skip,
            progress=progress,
            report=partial(write, chosen=chosen),
        )
    show(write(comparison, chosen), LEGEND, chosen.out)


if __name__ == "__main__":
    main()
