"""What both tasks of an AutoBank have in common: scaled rows in, signals of change out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..bank.bank import KernelBank
from ..utils.validation import Floats
from . import change_detection as hot
from .config import Plan
from .replay_buffer import Kept

STARTS = (5, 32, 128)
"""Rows after which banks start anew from all of them, in their common scaling: what was learned in
figures that still moved does not fit those of later."""

CHUNK = 256
"""Rows that are worked on at once."""

LIMIT = 10_000.0
"""A false signal of a changed error comes at most once in so many rows, on average."""

MOST_CHANGES = 1000


class Change(NamedTuple):
    """A signal of change.

    what: "error grew", "error fell", "weights" (more than half of the weight has moved), "target
    level" or "input level"; row: after how many rows; column: of the input, else -1.
    """

    row: int
    what: str
    column: int = -1


class Said(NamedTuple):
    """What was answered to a question, kept until the target comes."""

    row: int
    lagged: Floats
    scores: Floats
    """The value of each bank, scaled."""
    slots: Floats
    """(banks, P): what every slot said, in the target's units; empty if many rows were asked for.
    """
    answer: Floats
    """Regression: prediction, lower, upper. Classification: one probability a class."""


class Desk(ABC):
    """Answers questions and learns from targets, for inputs of a known width."""

    def __init__(
        self, plan: Plan, dimension: int, *, target: bool, kept: int, until: float
    ) -> None:
        self.plan = plan
        self.dimension = dimension
        self._target = target
        self.lay_out(dimension)
        self.banks: list[KernelBank] = []
        self.spare: list[KernelBank] = []
        self.rows = 0
        self.blind = 0
        """How many rows were answered before anything was known: these answers do not count."""
        self.lagged = np.full(plan.lags, np.nan)
        self.changes: list[Change] = []
        self.figures = np.zeros(hot.WATCH)
        self.errors = np.zeros(500)
        self.kept_rows = Kept(kept, dimension, plan.lags, until)

    # --- what the tasks do differently ----------------------------------------------------------

    @abstractmethod
    def ask(self, X: Floats, lagged: Floats, tail: float) -> list[Said]:
        """Answers for rows with these lagged targets; changes nothing."""

    @abstractmethod
    def tell(self, x: Floats, said: Said, target: float) -> None:
        """Learn one row from the target that has come."""

    @abstractmethod
    def play(self, X: Floats, targets: Floats, tail: float, slots: bool) -> dict[str, Floats]:
        """Answer and learn the first rows of a chunk; what was answered, for as many as were done.

        The same bits as asking and telling row by row.
        """

    @abstractmethod
    def as_lag(self, said: Said) -> float:
        """The answer as a target, for forecasts that go on from it."""

    @abstractmethod
    def start(self) -> None:
        """Start scaling and banks anew from the rows that are kept."""

    @abstractmethod
    def described(self, said: Said) -> dict[str, Floats]:
        """An answer as one row of a trace."""

    # --- columns --------------------------------------------------------------------------------

    def lay_out(self, core: int) -> None:
        """Choose slots for the present inputs, of which those beyond `core` came late."""
        self.scaling = self.plan.scaling(self.dimension, core, target=self._target)
        self.names = [name for name, _ in self.plan.named_slots(self.scaling)]
        self.means = np.zeros((2, len(self.names)))

    def widen(self, count: int) -> None:
        """Take so many inputs more: all is as if they had been missing so far."""
        scaling = self.plan.scaling(
            self.dimension + count,
            self.scaling.core if self.banks else self.dimension + count,
            target=self._target,
        )
        scaling.go_on(self.scaling)
        slots = [slot for _, slot in self.plan.named_slots(scaling)]
        self.banks = [bank.with_inputs(scaling.width, slots) for bank in self.banks]
        self.spare = []
        self.dimension += count
        self.kept_rows.inputs = with_missing(self.kept_rows.inputs, count)
        if self.banks:
            self.scaling = scaling
        else:
            self.lay_out(self.dimension)

    def start_anew(self) -> None:
        """Make room for banks that start from the kept rows, on all inputs there are by now."""
        self.spare, self.banks = self.banks, []
        if self.scaling.core < self.dimension:
            self.spare = []
            self.lay_out(self.dimension)

    # --- common ---------------------------------------------------------------------------------

    def play_one(self, x: Floats, target: float, tail: float) -> dict[str, Floats]:
        """Answer and learn one row; what was answered."""
        said = self.ask(x[None], self.lagged[None], tail)[0]
        found = self.described(said)
        self.tell(x, said, target)
        return found

    def new_bank(self) -> KernelBank:
        """A bank that has learned nothing; one that is no longer needed, if there is any."""
        if self.spare and all(slot.learner.saveable for slot in self.spare[-1].slots):
            bank = self.spare.pop()
            bank.reset()
            return bank
        return self.plan.bank(self.scaling)

    def room(self) -> int:
        """How many rows may be worked on at once: none beyond the next start."""
        ahead = [start - self.rows for start in STARTS if start > self.rows]
        return min([CHUNK, *ahead])

    def weights(self) -> Floats:
        """Those of the first bank, or equal ones before there is any."""
        if self.banks:
            return self.banks[0].weights
        return np.full(len(self.names), 1 / len(self.names))

    def keep(self, X: Floats, lagged: Floats, targets: Floats, asked: Any) -> None:
        """Keep these, the last rows; each was asked for after so many rows."""
        self.kept_rows.keep(self.rows, X, lagged, targets, asked)

    def kept(self) -> tuple[Floats, Floats, Floats]:
        """The kept rows, the oldest first: inputs, lagged targets, targets."""
        return self.kept_rows.latest(self.rows)

    def replay(self, bank: KernelBank, rows: Floats, targets: Floats, chosen: Any = None) -> None:
        """Let a new bank learn the kept rows, or the chosen ones of them, as they came."""
        self.kept_rows.replay(self.rows, bank, rows, targets, chosen)

    def shift(self, target: float) -> None:
        """A new target is the newest of the lagged ones."""
        if len(self.lagged):
            self.lagged[1:] = self.lagged[:-1].copy()
            self.lagged[0] = target

    def note(self, what: str, row: int, column: int = -1) -> None:
        insort(self.changes, Change(row, what, column))  # in the order of rows, whatever the blocks
        del self.changes[:-MOST_CHANGES]

    def watch(self, sizes: Floats, weights: Floats, first: int) -> None:
        """Look for changes in the sizes of the errors and in the weights, after row `first`."""
        if len(sizes) == 1:  # the same, without arrays
            own = (self.figures, self.errors, self.means, LIMIT)
            self._signal(first, *hot.watch_row(sizes[0], weights[0], *own))
            return
        errors = np.zeros(len(sizes), dtype=np.int64)
        moves = np.zeros(len(sizes), dtype=np.bool_)
        hot.watch_rows(sizes, weights, self.figures, self.errors, self.means, LIMIT, errors, moves)
        for t in np.flatnonzero((errors != 0) | moves):
            self._signal(first + int(t), errors[t], moves[t])

    def _signal(self, row: int, error: int, moved: bool) -> None:
        if error:
            self.note("error grew" if error > 0 else "error fell", row)
        if moved:
            self.note("weights", row)

    def state(self) -> dict[str, Floats]:
        """The arrays that the next answer depends on, beside the banks'."""
        own = {
            "lagged": self.lagged,
            "watch": self.figures,
            "errors": self.errors,
            "means": self.means,
        }
        own |= self.kept_rows.state()
        return own | {f"scaling/{name}": a for name, a in self.scaling.state().items()}

    def facts(self) -> dict[str, Any]:
        """What else, as plain data."""
        changes = [list(change) for change in self.changes]
        return {"rows": self.rows, "blind": self.blind, "changes": changes}

    def restore(self, state: Mapping[str, Floats], facts: Mapping[str, Any]) -> None:
        """Go on from what `state` and `facts` said; shapes have been checked."""
        for name, array in self.state().items():
            array[...] = state[name]
        self.rows = int(facts["rows"])
        self.blind = int(facts["blind"])
        self.changes = [Change(int(r), str(w), int(c)) for r, w, c in facts["changes"]]


def with_missing(rows: Floats, count: int) -> Floats:
    """Rows with so many columns more, in which everything is missing."""
    return np.hstack([rows, np.full((len(rows), count), np.nan)])


def lagged_rows(targets: Floats, before: Floats) -> Floats:
    """(n, lags): the targets before each of these, the newest first."""
    count, lags = len(targets), len(before)
    history = np.concatenate([targets[::-1], before])
    rows = [history[count - t : count - t + lags] for t in range(count)]
    return np.array(rows).reshape(count, lags)
