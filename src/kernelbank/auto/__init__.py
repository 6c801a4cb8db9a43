"""AutoBank: the bank for people who want no parameters."""

from .auto_bank import AutoBank
from .auto_ledger import AutoLedger
from .change_detection import Change

__all__ = ["AutoBank", "AutoLedger", "Change"]
