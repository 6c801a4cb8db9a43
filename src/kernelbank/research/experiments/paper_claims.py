"""The experiment as a table and as text: what the paper claims, and on how many seeds it held.

The first claim, that the scheme's cost ends below those of its rivals, is in `paper_verdict`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .paper import EXACT, PRINTED, SCHEME, PaperRun


@dataclass(frozen=True)
class SeedRow:
    """One row of the table: a quantity of every seed."""

    name: str
    values: tuple[float | None, ...]
    digits: int = 1

    def cells(self) -> tuple[str, str, str, str, str]:
        """Name, seed 0, mean, least and most; `never` where a seed has no value."""
        known = [value for value in self.values if value is not None]
        never = len(self.values) - len(known)
        first = _show(self.values[0], self.digits)
        if not known:
            return self.name, first, "never", "", ""
        mean = _show(float(np.mean(known)), self.digits)
        if never:
            mean += f" ({never} never)"
        return (
            self.name,
            first,
            mean,
            _show(min(known), self.digits),
            _show(max(known), self.digits),
        )


def _show(value: float | None, digits: int) -> str:
    return "never" if value is None else f"{value:.{digits}f}"


def table(runs: Sequence[PaperRun]) -> list[tuple[str, list[SeedRow]]]:
    """The quantities of all seeds, in three sections."""

    def row(name: str, of: Callable[[PaperRun], float | None], digits: int = 1) -> SeedRow:
        return SeedRow(name, tuple(of(run) for run in runs), digits)

    combiners = (SCHEME, EXACT, PRINTED)
    cost = [row(name, lambda g, name=name: g.final_cost(name)) for name in combiners]  # type: ignore[misc]
    cost += [
        row("best NORMA", lambda g: float(g.slot_cumulative_cost[-1].min())),
        row("worst NORMA", lambda g: float(g.slot_cumulative_cost[-1].max())),
    ]
    steps = [row(name, lambda g, name=name: g.overtakes(name), 0) for name in combiners]  # type: ignore[misc]
    loss = [row(name, lambda g, name=name: g.mean_loss(name), 4) for name in combiners]  # type: ignore[misc]
    loss += [
        row("NORMA best by cost", lambda g: g.slot_mean_loss(g.best_by_cost), 4),
        row("NORMA best by this error", lambda g: g.slot_mean_loss(g.best_by_loss), 4),
        row("NORMA worst by cost", lambda g: g.slot_mean_loss(g.worst_by_cost), 4),
    ]
    return [
        ("cumulative cost at the end", cost),
        ("step from which on it stays below the best NORMA", steps),
        ("mean squared error one step ahead, on unseen samples", loss),
    ]


@dataclass(frozen=True)
class Claim:
    """A statement and the seeds on which it held."""

    statement: str
    held: tuple[int, ...]
    failed: tuple[int, ...]

    def text(self) -> str:
        """The statement, its count, and the seeds on which it held or failed, if they are fewer."""
        total = number_of_seeds(len(self.held) + len(self.failed))
        if not self.held:
            return f"{self.statement}: held on none of {total}."
        if not self.failed:
            return f"{self.statement}: held on all of {total}."
        few = _names(self.held) if len(self.held) < len(self.failed) else None
        seeds = f"only {few}" if few else f"not on {_names(self.failed)}"
        return f"{self.statement}: held on {len(self.held)} of {total}, {seeds}."


def number_of_seeds(count: int) -> str:
    """Such as "1 seed" or "20 seeds"."""
    return f"{count} seed" + ("" if count == 1 else "s")


def _names(seeds: Sequence[int]) -> str:
    word = "seed" if len(seeds) == 1 else "seeds"
    return f"{word} {', '.join(map(str, seeds))}"


def claims(runs: Sequence[PaperRun]) -> tuple[list[Claim], list[Claim]]:
    """What the paper claims, and what it does not say."""

    def claim(statement: str, holds: Callable[[PaperRun], bool]) -> Claim:
        won = tuple(run.seed for run in runs if holds(run))
        lost = tuple(run.seed for run in runs if not holds(run))
        return Claim(statement, won, lost)

    def sooner(run: PaperRun, other: str) -> bool:
        own, rival = run.overtakes(SCHEME), run.overtakes(other)
        return own is not None and (rival is None or own < rival)

    def rate(run: PaperRun, name: str) -> float:
        half = len(run.x) // 2
        return run.final_cost(name) - float(run.cumulative_cost[name][half - 1])

    paper = [
        claim(
            "The scheme's cost grows more slowly than OMKR's over the second half",
            lambda g: len(g.x) > 1 and rate(g, SCHEME) < rate(g, EXACT),
        ),
        claim(
            "The scheme overtakes the best NORMA for good sooner than OMKR does",
            lambda g: sooner(g, EXACT),
        ),
    ]
    beyond = [
        claim(
            "One step ahead, the scheme beats the NORMA that is best by cost",
            lambda g: g.mean_loss(SCHEME) < g.slot_mean_loss(g.best_by_cost),
        ),
        claim(
            "One step ahead, the scheme beats the NORMA that is best by that error in hindsight",
            lambda g: g.mean_loss(SCHEME) < g.slot_mean_loss(g.best_by_loss),
        ),
        claim(
            "One step ahead, the scheme beats OMKR",
            lambda g: g.mean_loss(SCHEME) < g.mean_loss(EXACT),
        ),
    ]
    return paper, beyond
