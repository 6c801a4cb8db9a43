"""`make ablation`: what each part of AutoBank is worth.

AutoBank runs on the streams of `make accuracy`, scored in the same way: once as it is, with other
seeds, and then with one part taken out or replaced at a time. Rivals are not run: where
`make accuracy` has kept their runs in OUT/rivals, variants are compared with them.
Written are ablation.md and ablation.json, anew after every stream.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict, dataclass, replace
from statistics import median

import numpy as np
from ablation_variants import FULL, OTHER_SEEDS, VARIANTS, Variant
from accuracy import (
    add_rival_options,
    add_stream_options,
    chosen_rivals,
    chosen_streams,
    facts,
    progress_bar,
    show,
)
from accuracy_competitors import RunCache, competes
from accuracy_tables import TextTable, best_rivals, geometric_mean, is_close, long

import kernelbank as kb
from kernelbank.research.competitors import RIVAL, Competitor
from kernelbank.research.datasets import Stream
from kernelbank.research.results import NORMALISED, finite


@dataclass(frozen=True)
class VariantSummary:
    """One variant over all streams; ratios are to the full AutoBank.

    - least, most: the geometric mean if one data set, with and without lags, is left out:
      whichever is least, most
    - worse, better: streams beyond all seeds of the full AutoBank
    - rival_streams: on how many the rivals are known; to_rival: geometric mean of the ratio to the
      best of them
    """

    variant: str
    part: str
    streams: int
    geometric_mean: float
    median: float
    least: float
    most: float
    worst: float
    worst_stream: str
    best: float
    best_stream: str
    worse: int | None
    better: int | None
    rival_streams: int
    first: int | None
    close: int | None
    to_rival: float | None
    microseconds: float


@dataclass(frozen=True)
class SeedSpread:
    """How far figures move when nothing but the seed does.

    - error: standard error of a variant's geometric mean if all its draws were new: relative
    - stream_error: the same for one stream, the median over the streams
    """

    seeds: int
    least: float
    most: float
    error: float
    stream_error: float


# --- running --------------------------------------------------------------------------------------


def options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add_stream_options(parser)
    add_rival_options(parser)
    parser.add_argument(
        "--variants", help="variants or kinds of parts, separated by semicolons; by default all"
    )
    return parser.parse_args(arguments)


def chosen_variants(names: str | None) -> list[Variant]:
    """The full bank is always among them."""
    if names is None:
        return list(VARIANTS)
    wanted = [name.strip() for name in names.split(";") if name.strip()]
    known = dict.fromkeys([*(v.part for v in VARIANTS), *(v.name for v in VARIANTS)])
    for name in wanted:
        if name not in known:
            raise SystemExit(f"--variants: there is no {name!r}. There are {'; '.join(known)}.")
    return [v for v in VARIANTS if v.name == FULL or v.name in wanted or v.part in wanted]


def cached_rivals(rivals: list[Competitor], cache: RunCache) -> list[Competitor]:
    """These rivals, on streams for which the runs of all of them are kept.

    The best of some of them would make AutoBank look better than it is.
    """

    def all_kept(stream: Stream) -> bool:
        takers = [rival for rival in rivals if rival.takes(stream)]
        return all(cache.get(rival, stream) is not None for rival in takers)

    def accepts(rival: Competitor, stream: Stream) -> bool:
        return rival.takes(stream) and all_kept(stream)

    return [
        replace(cache.cached(rival), accepts=lambda stream, rival=rival: accepts(rival, stream))
        for rival in rivals
    ]


def run(chosen: argparse.Namespace, variants: list[Variant]) -> kb.Comparison:
    cache = RunCache(chosen.out / "rivals")
    rivals = cached_rivals(chosen_rivals(chosen), cache)
    competitors = [*(one.competitor() for one in variants), *rivals]
    with progress_bar() as progress:
        return kb.compare(
            {one.name: one for one in competitors},
            chosen_streams(chosen),
            loss=NORMALISED,
            skip=chosen.skip,
            progress=progress,
            report=lambda so_far: write(so_far, chosen, variants),
        )


# --- figures --------------------------------------------------------------------------------------


def ratios(found: kb.Comparison, name: str) -> dict[str, float]:
    """By stream, the mean loss of a variant over the full AutoBank's."""
    pairs = {
        stream: (found.result(stream, name), found.result(stream, FULL)) for stream in found.streams
    }
    return {s: own.ratio(own.mean_loss, full.mean_loss) for s, (own, full) in pairs.items()}


def seed_ratios(found: kb.Comparison) -> dict[str, dict[str, float]]:
    """The ratios of the full AutoBank with other seeds, if they were run."""
    ran = {one.name for one in found.results}
    return {one.name: ratios(found, one.name) for one in OTHER_SEEDS if one.name in ran}


def seed_spread(found: kb.Comparison) -> SeedSpread | None:
    """None if no other seed was run."""
    others = seed_ratios(found)
    if not others:
        return None
    every = [ratios(found, FULL), *others.values()]
    logs = np.log([[one[stream] for one in every] for stream in found.streams])
    variances = 2 * logs.var(axis=1, ddof=1)  # of a difference of two draws
    means = np.exp(logs.mean(axis=0))
    return SeedSpread(
        seeds=len(others),
        least=float(means[1:].min()),
        most=float(means[1:].max()),
        error=float(np.sqrt(variances.sum()) / len(logs)),
        stream_error=float(np.median(np.sqrt(variances))),
    )


def summarise(found: kb.Comparison, variant: Variant) -> VariantSummary:
    """One row of the table."""
    own = ratios(found, variant.name)
    worst, best = max(own, key=own.__getitem__), min(own, key=own.__getitem__)
    others = seed_ratios(found)
    compared = bool(others) and variant.part != FULL
    draws = [ratios(found, FULL), *others.values()]
    rivals = {one.stream for one in found.results if one.kind == RIVAL}
    beside = [one for one in best_rivals(found, variant.name, competes) if one.stream in rivals]
    results = [found.result(stream, variant.name) for stream in own]
    without = _without_each_data_set(own)
    return VariantSummary(
        variant=variant.name,
        part=variant.part,
        streams=len(own),
        geometric_mean=geometric_mean(list(own.values())),
        median=median(own.values()),
        least=min(without),
        most=max(without),
        worst=own[worst],
        worst_stream=worst,
        best=own[best],
        best_stream=best,
        worse=sum(own[s] > max(d[s] for d in draws) for s in own) if compared else None,
        better=sum(own[s] < min(d[s] for d in draws) for s in own) if compared else None,
        rival_streams=len(beside),
        first=sum(one.first for one in beside) if beside else None,
        close=sum(is_close(one) for one in beside) if beside else None,
        to_rival=geometric_mean([one.ratio for one in beside]) if beside else None,
        microseconds=median(one.seconds_per_sample * 1e6 for one in results),
    )


def _without_each_data_set(own: dict[str, float]) -> list[float]:
    """Geometric means without each of the data sets; of everything if there is only one."""
    names = {stream.split(" +")[0] for stream in own}
    rest = [[r for stream, r in own.items() if stream.split(" +")[0] != name] for name in names]
    return [geometric_mean(some or list(own.values())) for some in rest]


# --- tables ---------------------------------------------------------------------------------------


def overall(rows: list[VariantSummary]) -> TextTable:
    """One row per variant: beside the full AutoBank, its seeds and the rivals."""
    columns = ["variant", "to full", "one less", "median", "worse", "better", "first", "close"]
    cells = [
        [
            one.variant,
            _three(one.geometric_mean),
            "" if one.variant == FULL else f"{_three(one.least)}-{_three(one.most)}",
            _three(one.median),
            *(_number(value) for value in (one.worse, one.better, one.first, one.close)),
            _three(one.to_rival),
            f"{one.microseconds:.0f}",
        ]
        for one in rows
    ]
    count = f"{rows[0].streams} stream" + "s" * (rows[0].streams != 1)
    title = f"what parts of AutoBank are worth, {count}"
    return TextTable(title, [*columns, "to rival", "us"], cells)


def extremes(rows: list[VariantSummary]) -> TextTable:
    """One row per variant: where its part is missed most and least."""
    cells = [
        [one.variant, _three(one.worst), one.worst_stream, _three(one.best), one.best_stream]
        for one in rows
        if one.variant != FULL
    ]
    columns = ["variant", "worst", "on", "best", "on"]
    return TextTable("largest and smallest error / full AutoBank's", columns, cells)


def legend(rows: list[VariantSummary], spread: SeedSpread | None) -> list[str]:
    """What the columns mean, and what is chance."""
    lines = [
        "to full: geometric mean of error / full AutoBank's; above 1, the part that is missing "
        "or replaced was worth having; median: of the same",
        "one less: least and largest geometric mean if any one data set is left out; a range that "
        "includes 1 says that a single data set decides the result",
    ]
    if spread is not None:
        expected = rows[0].streams / (spread.seeds + 2)
        lines += [
            f"worse, better: streams beyond all {spread.seeds + 1} seeds of the full AutoBank; if "
            f"a variant were only another draw, {expected:.1f} each would be expected",
            f"chance: the full AutoBank's other seeds are between {spread.least:.3f} and "
            f"{spread.most:.3f} of seed 0; a variant whose draws are all new is off by about "
            f"{spread.error:.1%} (one standard error), on a typical stream by "
            f"{spread.stream_error:.1%}; other combiners and starts keep the full AutoBank's draws",
        ]
    else:
        lines.append("chance: no other seed was run, so the noise is not known")
    if rows[0].rival_streams:
        lines.append(
            "first, close, to rival: as in `make accuracy`, on "
            f"{rows[0].rival_streams} streams for which all rivals are kept"
        )
    else:
        lines.append("first, close, to rival: not known, no rivals are kept; run `make accuracy`")
    return [
        *lines,
        "without a slot go the trees that learned its residual; no linear: neither of the two",
        "us: microseconds per sample, to predict and to learn, median over the streams",
    ]


def _three(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if math.isfinite(value) and value < 100 else long(value)


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def write(found: kb.Comparison, chosen: argparse.Namespace, variants: list[Variant]) -> None:
    """The files, for the streams that are done."""
    rows = [summarise(found, variant) for variant in variants]
    spread = seed_spread(found)
    lines = [f"- {line}" for line in legend(rows, spread)]
    grids = [overall(rows).markdown(), extremes(rows).markdown()]
    (chosen.out / "ablation.md").write_text("\n".join([*grids, *lines]) + "\n")
    content = facts(chosen) | {
        "chance": None if spread is None else asdict(spread),
        "variants": [asdict(row) for row in rows],
        "results": found.table(),
    }
    text = json.dumps(finite(content), indent=1, allow_nan=False)
    (chosen.out / "ablation.json").write_text(text + "\n")


def main(arguments: list[str] | None = None) -> None:
    chosen = options(arguments)
    variants = chosen_variants(chosen.variants)
    chosen.out.mkdir(parents=True, exist_ok=True)
    found = run(chosen, variants)
    rows = [summarise(found, variant) for variant in variants]
    show([overall(rows), extremes(rows)], legend(rows, seed_spread(found)), chosen.out)


if __name__ == "__main__":
    main()
