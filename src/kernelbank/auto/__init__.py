"""AutoBank: the bank for people who want no parameters."""

from .auto_bank import AutoBank
from .model import AutoTrace
from .status import AutoLedger, Change

__all__ = ["AutoBank", "AutoLedger", "AutoTrace", "Change"]
