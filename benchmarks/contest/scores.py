"""From predictions to figures: errors, who is first, and by how much.

The figure of a regression entry is the mean squared error over the variance of the target, both
over the scored rows: 1 is as good as their own mean. In classification it is the error rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from kernelbank.evaluation.significance import diebold_mariano

from .entries import CLASSIFICATION, REGRESSION, Entry
from .players import OURS, PERSISTENCE, Played, Player

CLOSE = 0.02
"""Ours counts as first within this share of the best figure, or one standard error of the mean
difference of the losses if that is more."""


@dataclass(frozen=True)
class Figure:
    """What one player reached on one entry. An infinite figure: it diverged or failed."""

    player: str
    kind: str
    figure: float
    microseconds: float
    jobs: int
    note: str


@dataclass(frozen=True)
class Scored:
    """One row of the table. None: ours did not play, or has no such thing."""

    stream: str
    view: str
    task: str
    scored: int
    dimension: int
    figures: dict[str, Figure]
    best_peer: str | None
    ours: float | None
    ratio: float | None
    first: bool | None
    close: bool | None
    standard_error: float | None
    best_slot: float | None
    slot_ratio: float | None
    coverage: float | None = None
    coverage_error: float | None = None
    width: float | None = None
    """Mean width of the interval in standard deviations of the target."""

    curves: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        return f"{self.stream}/{self.view}"

    @property
    def best(self) -> float:
        return math.inf if self.best_peer is None else self.figures[self.best_peer].figure

    @property
    def persistence(self) -> float | None:
        found = self.figures.get(PERSISTENCE)
        return None if found is None else found.figure


def losses(entry: Entry, predictions: np.ndarray) -> np.ndarray:
    """The loss of every row in the figure's unit, infinite where there is no finite prediction.

    The mean over the scored rows is the figure.
    """
    finite = np.isfinite(predictions)
    values = np.full(len(entry.y), math.inf)
    if entry.task == CLASSIFICATION:
        values[finite] = predictions[finite] != entry.y[finite]
        return values
    with np.errstate(over="ignore"):
        values[finite] = (predictions[finite] - entry.y[finite]) ** 2
    variance = float(entry.y[entry.skip :].var())
    return values / (variance if variance > 0 else 1.0)


def score(entry: Entry, players: list[Player], passes: dict[str, Played]) -> Scored:
    """Everything about one entry."""
    known = {player.name: player for player in players if player.name in passes}
    lost = {name: losses(entry, passes[name].predictions) for name in known}
    figures = {
        name: Figure(
            name,
            player.kind,
            float(lost[name][entry.skip :].mean()),
            passes[name].seconds / len(entry.y) * 1e6,
            passes[name].jobs,
            passes[name].note,
        )
        for name, player in known.items()
    }
    rivals = [name for name, player in known.items() if player.competes(entry)]
    best = min(rivals, key=lambda name: figures[name].figure, default=None)
    ours = next((name for name, player in known.items() if player.kind == OURS), None)
    facts = {} if ours is None else _ours(entry, ours, best, passes[ours], lost, figures)
    nothing = dict.fromkeys(
        ("ours", "ratio", "first", "close", "standard_error", "best_slot", "slot_ratio")
    )
    return Scored(
        stream=entry.stream,
        view=entry.view,
        task=entry.task,
        scored=len(entry.y) - entry.skip,
        dimension=entry.inputs.shape[1],
        figures=figures,
        best_peer=best,
        curves=lost,
        **{**nothing, **facts},
    )


def _ours(
    entry: Entry,
    ours: str,
    best: str | None,
    played: Played,
    lost: dict[str, np.ndarray],
    figures: dict[str, Figure],
) -> dict[str, float | bool | None]:
    own = figures[ours].figure
    facts: dict[str, float | bool | None] = {"ours": own}
    if best is not None:
        other = figures[best].figure
        with np.errstate(invalid="ignore"):
            difference = diebold_mariano([(lost[ours] - lost[best])[entry.skip :]])
        error = difference.standard_error
        allowed = max(CLOSE * other, 0.0 if math.isnan(error) else error)
        facts["ratio"] = ratio(entry, own, other)
        facts["first"] = own <= other and math.isfinite(own)
        facts["close"] = own <= other + allowed and math.isfinite(own)
        facts["standard_error"] = None if math.isnan(error) else error
    slots = played.extras.get("slot_predictions")
    if slots is not None and slots.ndim == 2 and entry.classes <= 2:
        facts["best_slot"] = best_slot(entry, slots)
        facts["slot_ratio"] = ratio(entry, own, facts["best_slot"])
    if entry.task == REGRESSION and {"lower", "upper"} <= played.extras.keys():
        facts |= _intervals(entry, played.extras["lower"], played.extras["upper"])
    return facts


def ratio(entry: Entry, own: float, other: float) -> float:
    """own / other. An error rate of 0 counts as half an error, so that no ratio is 0 or infinite
    where nobody, or only one, erred."""
    if entry.task == CLASSIFICATION:
        half = 0.5 / (len(entry.y) - entry.skip)
        own, other = max(own, half), max(other, half)
    if own == other:
        return 1.0
    if math.isinf(other):
        return 0.0
    return own / other if other > 0 else math.inf


def best_slot(entry: Entry, slots: np.ndarray) -> float:
    """The least figure of any single slot, chosen after the fact. Scores above 0 are label 1."""
    found = []
    for column in slots.T:
        predictions = column
        if entry.task == CLASSIFICATION:
            predictions = np.where(np.isfinite(column), column > 0, np.nan)
        found.append(float(losses(entry, predictions)[entry.skip :].mean()))
    return min(found)


def _intervals(entry: Entry, lower: np.ndarray, upper: np.ndarray) -> dict[str, float]:
    """How often the target lies inside; the error of that share counts correlations in time."""
    y, low, high = (rows[entry.skip :] for rows in (entry.y, lower, upper))
    inside = ((low <= y) & (y <= high)).astype(np.float64)
    deviation = float(y.std()) or 1.0
    return {
        "coverage": float(inside.mean()),
        "coverage_error": diebold_mariano([inside]).standard_error,
        "width": float((high - low).mean()) / deviation,
    }


@dataclass(frozen=True)
class Summary:
    """All rows in a few figures; None where ours did not play."""

    rows: int
    first: int
    close: int
    geometric_mean: float
    worst: float
    worst_row: str
    slot_rows: int
    at_or_below_slot: int
    microseconds: float | None


def summary(rows: list[Scored], narrow: int = 20) -> Summary | None:
    """What the bars are set on. Times are of entries with at most `narrow` inputs."""
    played = [row for row in rows if row.ratio is not None]
    if not played:
        return None
    ratios = [row.ratio for row in played]
    worst = max(played, key=lambda row: row.ratio)
    with_slots = [row for row in played if row.slot_ratio is not None]
    times = [
        figure.microseconds
        for row in played
        if row.dimension <= narrow
        for figure in row.figures.values()
        if figure.kind == OURS
    ]
    with np.errstate(divide="ignore"):
        mean = float(np.exp(np.mean(np.log(ratios))))
    return Summary(
        rows=len(played),
        first=sum(bool(row.first) for row in played),
        close=sum(bool(row.close) for row in played),
        geometric_mean=mean,
        worst=worst.ratio,
        worst_row=worst.name,
        slot_rows=len(with_slots),
        at_or_below_slot=sum(row.slot_ratio <= 1 for row in with_slots),
        microseconds=max(times, default=None),
    )
