"""AutoBank: the bank for people who want no parameters."""

from .auto_bank import AutoBank
from .auto_ledger import AutoLedger
from .task_model import Change

__all__ = ["AutoBank", "AutoLedger", "Change"]
