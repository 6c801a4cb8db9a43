"""AutoBank: the bank for people who want no parameters."""

from .bank import AutoBank
from .ledger import AutoLedger
from .task_model import Change

__all__ = ["AutoBank", "AutoLedger", "Change"]
