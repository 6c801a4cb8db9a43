"""What parts are worth: figures of variants beside the full bank's, its luck and the peers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

import numpy as np

from .entries import Entry
from .peers import PEERS
from .players import BASELINES, OURS, Played, Player
from .scores import ratio, score
from .store import Store
from .tables import Grid, long
from .variants import FULL, OTHER_SEEDS, Variant


@dataclass(frozen=True)
class Outcome:
    """One variant on one entry. None: not all passes of the peers are kept."""

    row: str
    figure: float
    to_full: float
    to_peer: float | None
    first: bool | None
    close: bool | None
    microseconds: float
    jobs: int


@dataclass(frozen=True)
class Worth:
    """One variant over all rows."""

    variant: str
    part: str
    rows: int
    geometric_mean: float
    median: float
    least: float
    most: float
    """The geometric mean if one stream, with all its views, is left out: whichever is least, most.
    """
    worst: float
    worst_row: str
    best: float
    best_row: str
    worse: int | None
    better: int | None
    peer_rows: int
    first: int | None
    close: int | None
    to_peer: float | None
    microseconds: float
    jobs: int


@dataclass(frozen=True)
class Luck:
    """How far figures move when nothing but the seed does."""

    seeds: int
    least: float
    most: float
    error: float
    """Standard error of a variant's geometric mean if all its draws were new: relative."""
    row: float
    """The same for one row, the median over the rows."""


def kept_peers(entry: Entry, store: Store) -> tuple[list[Player], dict[str, Played]]:
    """Those who compete and their passes; nobody if some are not kept.

    The best of an incomplete field would make us look better than we are.
    """
    field = [player for player in (*PEERS, *BASELINES) if player.takes(entry)]
    field = [player for player in field if player.competes(entry)]
    passes = {}
    for player in field:
        played = store.get(entry, player) if player.libraries else player.play(entry)
        if played is None:
            return [], {}
        passes[player.name] = played
    return field, passes


def outcomes(entry: Entry, played: Mapping[str, Played], store: Store) -> dict[str, Outcome]:
    """Of each variant on this entry, by name. The full bank must be among them."""
    peers, passes = kept_peers(entry, store)
    scored = {}
    for name, own in played.items():
        ours = Player(name, OURS, "", lambda _: None)
        scored[name] = score(entry, [ours, *peers], {**passes, name: own})
    whole = scored[FULL].ours
    return {
        name: Outcome(
            row=row.name,
            figure=row.ours,
            to_full=ratio(entry, row.ours, whole),
            to_peer=row.ratio,
            first=row.first,
            close=row.close,
            microseconds=row.figures[name].microseconds,
            jobs=row.figures[name].jobs,
        )
        for name, row in scored.items()
    }


def luck(rows: list[dict[str, Outcome]]) -> Luck | None:
    """None if no other seed was played."""
    names = [variant.name for variant in OTHER_SEEDS if variant.name in rows[0]]
    if not names:
        return None
    logs = np.log([[row[name].to_full for name in (FULL, *names)] for row in rows])
    variances = 2 * logs.var(axis=1, ddof=1)  # of a difference of two draws
    means = np.exp(logs.mean(axis=0))
    return Luck(
        seeds=len(names),
        least=float(means[1:].min()),
        most=float(means[1:].max()),
        error=float(np.sqrt(variances.sum()) / len(rows)),
        row=float(np.median(np.sqrt(variances))),
    )


def worth(variant: Variant, rows: list[dict[str, Outcome]]) -> Worth:
    """One line of the table."""
    own = [row[variant.name] for row in rows]
    worst, best = max(own, key=_to_full), min(own, key=_to_full)
    seeds = [seed.name for seed in OTHER_SEEDS if seed.name in rows[0]]
    compared = bool(seeds) and variant.part != FULL
    draws = [[row[name].to_full for name in (FULL, *seeds)] for row in rows]
    beside = [one for one in own if one.to_peer is not None]
    less = _one_stream_less(own)
    return Worth(
        variant=variant.name,
        part=variant.part,
        rows=len(own),
        geometric_mean=_geometric_mean([one.to_full for one in own]),
        median=median(one.to_full for one in own),
        least=min(less),
        most=max(less),
        worst=worst.to_full,
        worst_row=worst.row,
        best=best.to_full,
        best_row=best.row,
        worse=sum(one.to_full > max(d) for one, d in zip(own, draws)) if compared else None,
        better=sum(one.to_full < min(d) for one, d in zip(own, draws)) if compared else None,
        peer_rows=len(beside),
        first=sum(bool(one.first) for one in beside) if beside else None,
        close=sum(bool(one.close) for one in beside) if beside else None,
        to_peer=_geometric_mean([one.to_peer for one in beside]) if beside else None,
        microseconds=median(one.microseconds for one in own),
        jobs=max(one.jobs for one in own),
    )


def _to_full(one: Outcome) -> float:
    return one.to_full


def _geometric_mean(ratios: list[float]) -> float:
    with np.errstate(divide="ignore"):
        return float(np.exp(np.mean(np.log(ratios))))


def _one_stream_less(own: list[Outcome]) -> list[float]:
    """Geometric means without each of the streams; of all rows if there is but one stream."""
    streams = {one.row.split("/")[0] for one in own}
    rest = [[one.to_full for one in own if one.row.split("/")[0] != name] for name in streams]
    everything = [one.to_full for one in own]
    return [_geometric_mean(ratios or everything) for ratios in rest]


def overall(found: list[Worth]) -> Grid:
    """One line a variant: beside the full bank, its seeds and the peers."""
    columns = ["variant", "to full", "one less", "median", "worse", "better", "first", "close"]
    columns += ["to peer", "us"]
    lines = [
        [
            one.variant,
            _three(one.geometric_mean),
            "" if one.variant == FULL else f"{_three(one.least)}-{_three(one.most)}",
            _three(one.median),
            *(_number(value) for value in (one.worse, one.better, one.first, one.close)),
            _three(one.to_peer),
            f"{'~' if one.jobs > 1 else ''}{one.microseconds:.0f}",
        ]
        for one in found
    ]
    rows = f"{found[0].rows} row" + "s" * (found[0].rows != 1)
    return Grid(f"what parts of AutoBank are worth, {rows}", columns, lines)


def extremes(found: list[Worth]) -> Grid:
    """One line a variant: where its part is missed most and least."""
    lines = [
        [one.variant, _three(one.worst), one.worst_row, _three(one.best), one.best_row]
        for one in found
        if one.variant != FULL
    ]
    columns = ["variant", "worst", "on", "best", "on"]
    return Grid("largest and smallest figure / full bank's", columns, lines)


def legend(found: list[Worth], spread: Luck | None) -> list[str]:
    """What the columns mean, and what is luck."""
    lines = [
        "to full: geometric mean of figure / full AutoBank's; above 1, the part that is missing "
        "or replaced was worth having; median: of the same",
        "one less: least and largest geometric mean if any one stream is left out; a range that "
        "reaches 1 says that a single stream carries the result",
    ]
    if spread is not None:
        chance = found[0].rows / (spread.seeds + 2)
        lines += [
            f"worse, better: rows beyond all of the full bank's {spread.seeds + 1} seeds; if a "
            f"variant were but another draw, {chance:.1f} each were to be expected",
            f"luck: the full bank's other seeds come out between {spread.least:.3f} and "
            f"{spread.most:.3f} of seed 0; a variant whose draws are all new is off by about "
            f"{spread.error:.1%} (one standard error), on a typical row by {spread.row:.1%}; other "
            "combiners and starts keep the full bank's draws",
        ]
    else:
        lines.append("luck: no other seed was played, so what is noise is not known")
    if found[0].peer_rows:
        lines.append(
            "first, close, to peer: as in `make accuracy`, on "
            f"{found[0].peer_rows} rows whose peers are kept"
        )
    else:
        lines.append("first, close, to peer: not known, no peers are kept; run `make accuracy`")
    return [
        *lines,
        "without a slot go the trees that stood on it; no linear: neither of the two",
        "us: microseconds a sample, to predict and to learn, median over the rows"
        + ("; ~: measured side by side" if found[0].jobs > 1 else ""),
    ]


def _three(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if math.isfinite(value) and value < 100 else long(value)


def _number(value: int | None) -> str:
    return "" if value is None else str(value)
