"""AutoBank: the bank for people who want no parameters."""

from .bank import AutoBank
from .desk import Change
from .ledger import AutoLedger
from .trace import AutoTrace

__all__ = ["AutoBank", "AutoLedger", "AutoTrace", "Change"]
