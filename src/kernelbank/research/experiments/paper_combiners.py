"""Every rule of `kb.combiners` in the paper's experiment: its cost, and its error one step ahead.

The slots are those of the paper, so only the weights differ. No rule is tuned to the experiment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...bank.slot import short_name
from ...combiners import BUILT_IN, OMKR, Combiner, Joint, Simplex
from .paper import PaperRun, bank

VARIANTS: tuple[Combiner, ...] = (
    Simplex(evidence="prequential"),
    Joint(evidence="prequential"),
    OMKR(gradient="printed"),
)
"""Shown besides every rule with its default settings."""


@dataclass(frozen=True)
class RuleResult:
    """One rule, or one NORMA alone: a figure per seed."""

    name: str
    cost: tuple[float, ...]
    """Cumulative cost at the end."""
    loss: tuple[float, ...]
    """Mean squared error one step ahead."""

    @property
    def mean_cost(self) -> float:
        return sum(self.cost) / len(self.cost)

    @property
    def mean_loss(self) -> float:
        return sum(self.loss) / len(self.loss)


def rules() -> list[Combiner]:
    """Every built-in rule with its defaults, and the variants."""
    return [*(rule() for rule in BUILT_IN), *VARIANTS]


def run_rules(runs: Sequence[PaperRun]) -> Iterator[RuleResult]:
    """Run every rule on the signals of these runs."""
    for rule in rules():
        cost, loss = [], []
        for run in runs:
            weighted = bank(rule)
            weighted.run(run.x, run.y, record=())
            cost.append(weighted.ledger.cumulative_cost)
            loss.append(weighted.ledger.mean_loss)
        yield RuleResult(short_name(rule), tuple(cost), tuple(loss))


def single_slots(runs: Sequence[PaperRun]) -> list[RuleResult]:
    """NORMA alone: the slots that are best in hindsight, and the worst one."""
    chosen = {
        "NORMA best by cost": [run.best_by_cost for run in runs],
        "NORMA best by error": [run.best_by_loss for run in runs],
        "NORMA worst by cost": [run.worst_by_cost for run in runs],
    }
    return [
        RuleResult(
            name,
            tuple(float(r.slot_cumulative_cost[-1, p]) for r, p in zip(runs, slots, strict=True)),
            tuple(r.slot_mean_loss(p) for r, p in zip(runs, slots, strict=True)),
        )
        for name, slots in chosen.items()
    ]
