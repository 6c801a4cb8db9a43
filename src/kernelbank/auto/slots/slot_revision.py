"""Which slots of an AutoBank run: those without weight give their time to others.

After fixed numbers of rows the groups of slots of a `SlotPool` are revised (`bank.revision`):

1. Groups are kept in the order of their weights, each with the bases that it needs, as long as all
   together cost at most the limit of the pool. Groups that have just been added are kept first:
   they need time to earn a weight.
2. Some groups that do not run are added, if they fit: those that were tried least often, and among
   them the ones whose base has most weight. A slot on the residual of another predicts the same as
   that one at first.
3. What time is left goes to the groups without weight that ran so far, the cheapest first.

The weight of a group is the sum of the weights of its slots; that of a slot is its present weight,
a mean over the outputs, or its long running mean, whichever is larger. So a bank begins with all of
its initial slots, costs no more per row than the limit from the first revision on, and later goes
on trying others.
"""

from __future__ import annotations

from ...bank.revision import Selection
from ...utils.validation import Floats
from .slot_pool import SlotPool

FIRST_REVISION, SECOND_REVISION, PERIOD = 512, 4096, 8192
"""After which numbers of rows groups are revised first and second, and from then on."""

NEGLIGIBLE = 1e-3
"""Groups with at most this weight have none."""

MOST_ADDED, COSTLY = 3, 0.1
"""How many groups are added at once; one of them may cost more than this part of the limit."""


def rows_to_revision(rows: int) -> int:
    """How many rows are learned until the next revision; at least one."""
    later = [at - rows for at in (FIRST_REVISION, SECOND_REVISION) if at > rows]
    return later[0] if later else PERIOD - rows % PERIOD


def is_due(rows: int) -> bool:
    """Whether groups are revised after this number of rows."""
    return rows in (FIRST_REVISION, SECOND_REVISION) or (rows > 0 and rows % PERIOD == 0)


def revise(
    pool: SlotPool, before: Selection, rows: int, slot_weights: Floats
) -> tuple[Selection, dict[int, str]]:
    """The selection after a revision, and why groups were retired and added.

    slot_weights : (slots of the pool,), 0 for those that do not run.
    """
    pool.rows = rows + rows_to_revision(rows)
    weights = pool.group_weights(slot_weights)
    heavy = [group for group in before.running if weights[group] > NEGLIGIBLE]
    judged = before.judge(rows, set(before.running).difference(heavy))
    chosen: set[int] = set()
    new = [group for group in before.running if before.idle[group] < 0]
    for group in [*new, *sorted(heavy, key=lambda g: (-weights[g], g))]:
        pool.take(group, chosen)
    _add_groups(pool, before, weights, chosen)
    rest = [group for group in before.running if group not in chosen]
    for group in sorted(rest, key=lambda g: (pool.price([g]), g)):
        pool.take(group, chosen)
    after = judged.change(sorted(chosen), grace=1)
    return after, {
        group: f"{weights[group]:.2%} of the weight" if kind == "retired" else f"try {tries}"
        for kind, group in before.changes(after)
        for tries in [after.tries[group]]
    }


def _add_groups(pool: SlotPool, before: Selection, weights: Floats, chosen: set[int]) -> None:
    """Add some groups that do not run to those that are chosen, and fit together with them."""

    def order(group: int) -> tuple[float, ...]:
        base = pool.groups[group].base
        return (before.tries[group], 0.0 if base is None else -weights[base], group)

    kept, added, costly = set(chosen), 0, 0
    others = [group for group in range(len(pool.groups)) if group not in before.running]
    for group in sorted(others, key=order):
        base, is_costly = pool.groups[group].base, pool.price([group]) > COSTLY * pool.limit
        possible = added < MOST_ADDED and costly + is_costly < 2 and (base is None or base in kept)
        if possible and pool.take(group, chosen):
            added += 1
            costly += is_costly
