"""Which slots of an AutoBank run: those without weight give their time to others.

After fixed numbers of rows the units of slots (`slot_pool`) are *revised*, by their weights alone:

1. Units are kept in the order of their weights, each with the bases that it needs, as long as all
   together cost at most the limit of the pool. Units that have just been added are kept too: they
   need time to earn a weight.
2. Some units that do not run are added, if they fit: those that were tried least often, and among
   them the ones whose base has most weight. A unit on the residual of another starts beside it: it
   predicts the same at first.
3. What time is left goes to the units without weight that ran so far.

So a bank begins with all of its initial slots, costs no more per row than the limit from the first
revision on, and later goes on trying others. Nothing depends on how a stream is cut into batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...errors import FileRefused
from ...utils.validation import Floats
from .slot_pool import SlotPool

FIRST_REVISION, SECOND_REVISION, PERIOD = 512, 4096, 8192
"""After which numbers of rows units are revised first and second, and from then on."""

NEGLIGIBLE = 1e-3
"""Units with less weight than this have none."""

MOST_ADDED, COSTLY = 3, 0.1
"""The most units that are added at once, of which one may cost more than this part of the limit."""

MOST_CHANGES = 1000
"""How many changes are kept: the newest."""


class UnitChange(NamedTuple):
    """Slots that were added to a bank, or retired from it.

    row : after how many rows.
    kind : "added" or "retired".
    name : of the slot, or of several that go together.
    """

    row: int
    kind: str
    name: str


def rows_to_revision(rows: int) -> int:
    """How many rows are learned until the next revision; at least one."""
    later = [at - rows for at in (FIRST_REVISION, SECOND_REVISION) if at > rows]
    return later[0] if later else PERIOD - rows % PERIOD


def is_due(rows: int) -> bool:
    """Whether units are revised after this number of rows."""
    return rows in (FIRST_REVISION, SECOND_REVISION) or (rows > 0 and rows % PERIOD == 0)


class RunningUnits:
    """The units of a pool that run, and how often each was tried."""

    def __init__(self, pool: SlotPool) -> None:
        self.pool = pool
        self.running = pool.initial_units
        self.added: tuple[int, ...] = ()
        """Those that the last revision has added."""
        self.tries = [int(number in self.running) for number in range(len(pool.units))]
        self.changes: list[UnitChange] = []
        """The newest changes, oldest first."""

    @property
    def members(self) -> tuple[int, ...]:
        """The indices, in the pool, of the slots that run."""
        return self.pool.members(self.running)

    def add(self, units: tuple[int, ...]) -> None:
        """Let these units run too, at least up to the revision after the next."""
        self.running = tuple(sorted({*self.running, *units}))
        self.added = tuple(sorted({*self.added, *units}))

    def revise(self, rows: int, weights: Floats) -> bool:
        """Choose the units from now on; whether they are others.

        weights : (slots of the pool,), 0 for those that do not run.
        """
        before = set(self.running)
        self.pool.rows = rows + rows_to_revision(rows)
        kept = self._heaviest(self.pool.unit_weights(weights))
        added = self._candidates(kept, weights)
        chosen = kept | set(added)
        for unit in sorted(before - chosen, key=lambda u: (self.pool.price([u]), u)):
            self._take(unit, chosen)
        for number in sorted(before - chosen):
            self.changes.append(UnitChange(rows, "retired", self.pool.units[number].name))
        new = sorted(chosen - before)
        for number in new:
            self.tries[number] += 1
            self.changes.append(UnitChange(rows, "added", self.pool.units[number].name))
        del self.changes[:-MOST_CHANGES]
        self.running, self.added = tuple(sorted(chosen)), tuple(new)
        return chosen != before

    def _take(self, unit: int, chosen: set[int]) -> bool:
        """Add a unit and its bases to those chosen, if they fit."""
        more = set(self.pool.with_bases(unit)) - chosen
        fits = self.pool.fits(chosen | more)
        if self.pool.outputs > 1 and not chosen:  # at least one has to run
            fits = True
        if fits:
            chosen |= more
        return fits

    def _heaviest(self, weights: Floats) -> set[int]:
        """The units with weight and those that are new, as far as they fit."""
        chosen: set[int] = set()
        for unit in self.added:
            self._take(unit, chosen)
        for unit in sorted(self.running, key=lambda u: (-weights[u], u)):
            if weights[unit] > NEGLIGIBLE:
                self._take(unit, chosen)
        return chosen

    def _candidates(self, kept: set[int], weights: Floats) -> list[int]:
        """The units to add, which fit together with those that are kept."""
        units, chosen = self.pool.units, set(kept)
        unit_weights = self.pool.unit_weights(weights)

        def order(number: int) -> tuple[float, ...]:
            base = units[number].base
            return (self.tries[number], 0.0 if base is None else -unit_weights[base], number)

        found: list[int] = []
        costly = 0
        idle = [n for n in range(len(units)) if n not in self.running]
        for number in sorted(idle, key=order):
            base, is_costly = (
                units[number].base,
                self.pool.price([number]) > COSTLY * self.pool.limit,
            )
            ready = len(found) < MOST_ADDED and (base is None or base in kept)
            if ready and costly + is_costly < 2 and self._take(number, chosen):
                found.append(number)
                costly += is_costly
        return found

    # --- saving ---------------------------------------------------------------------------------

    def counters(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "running": list(self.running),
            "added": list(self.added),
            "tries": list(self.tries),
            "changes": [list(change) for change in self.changes],
        }

    def restore(self, counters: Mapping[str, Any]) -> None:
        """Continue from what `counters` returned, which may come from anybody."""
        count = len(self.pool.units)
        running, added, tries = counters["running"], counters["added"], counters["tries"]
        whole = all(type(number) is int for number in (*running, *added, *tries))
        bases = set()
        if whole and all(0 <= unit < count for unit in running):
            bases = {self.pool.units[unit].base for unit in running} - {None}
        if not (
            whole
            and running == sorted(set(running))
            and running
            and 0 <= running[0] <= running[-1] < count
            and bases.issubset(running)
            and set(added) <= set(running)
            and len(tries) == count
            and all(0 <= number <= 2**53 for number in tries)
            and len(counters["changes"]) <= MOST_CHANGES
        ):
            raise FileRefused("its running slots do not fit its settings.")
        self.running, self.added, self.tries = tuple(running), tuple(added), list(tries)
        self.changes = [
            UnitChange(int(row), str(kind), str(name)) for row, kind, name in counters["changes"]
        ]
