"""`KernelBank`: slots that learn a stream on their own, and the weights that combine them."""

from .adaptive_dictionary import AdaptiveDictionary
from .bank import KernelBank
from .ledger import Ledger
from .slot import Slot
from .trace import Trace

__all__ = ["AdaptiveDictionary", "KernelBank", "Ledger", "Slot", "Trace"]
