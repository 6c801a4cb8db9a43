"""A copy of the state of an AutoBank, from which a failed step is undone.

It is made before each step of a bank that calls users' functions, which may raise anywhere.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .auto_state import AutoBankState

_SETTINGS = ("_turn", "_config", "_ledger")
"""Attributes that no step changes."""


class StateCopy:
    """Everything that learning changes."""

    def __init__(self, bank: AutoBankState) -> None:
        memo: dict[int, Any] = {}
        memo |= {id(part): part for part in (bank, bank._config)}
        state = {name: value for name, value in bank.__dict__.items() if name not in _SETTINGS}
        self._state: dict[str, Any] = copy.deepcopy(state, memo)

    def restore(self, bank: AutoBankState) -> None:
        """Let the bank be as it was; to be called once."""
        bank.__dict__.update(self._state)
