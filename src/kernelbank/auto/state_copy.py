"""A copy of the state of an AutoBank, from which a failed step is undone.

It is made before each step of a bank that calls users' functions, which may raise anywhere.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from ..bank.bank import KernelBank

if TYPE_CHECKING:
    from .auto_state import AutoBankState

_SETTINGS = ("_turn", "_config", "_ledger")
"""Attributes that no step changes."""


class StateCopy:
    """Everything that learning changes."""

    def __init__(self, bank: AutoBankState) -> None:
        model = bank._model
        inner = [] if model is None else model.banks
        # Inner banks are kept as arrays: making new ones is slow, and most steps do not fail.
        memo: dict[int, Any] = {id(one): _KeptBank(one) for one in inner}
        memo |= {id(part): part for part in (bank, bank._config)}
        state = {name: value for name, value in bank.__dict__.items() if name not in _SETTINGS}
        self._state: dict[str, Any] = copy.deepcopy(state, memo)

    def restore(self, bank: AutoBankState) -> None:
        """Let the bank be as it was; to be called once."""
        model = self._state["_model"]
        if model is not None:
            model.banks = [kept.bank() for kept in model.banks]
        bank.__dict__.update(self._state)


class _KeptBank:
    """A bank as the arguments that make an equal one."""

    def __init__(self, bank: KernelBank) -> None:
        self._make, self._arguments = bank.__reduce__()

    def bank(self) -> Any:
        return self._make(*self._arguments)
