"""Signals of change: in the size of the errors, and in the weights."""

from __future__ import annotations

from typing import NamedTuple

FALSE_ALARM_ROWS = 10_000.0
"""A false signal of a changed error comes at most once in this many rows, on average."""

RECENT_ERRORS = 500
"""Errors among which a new one is ranked, to detect changes."""

MAX_CHANGES = 1000
"""Signals of change that are kept."""


class Change(NamedTuple):
    """A signal of change.

    row : after how many rows.
    what : "error grew", "error fell", "weights" (more than half of the weight has moved), "target
        level", "input level" or "season" (a period was found).
    column : of the input, else -1.
    period : of the season in rows, else 0.
    """

    row: int
    what: str
    column: int = -1
    period: int = 0
