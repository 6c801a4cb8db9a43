"""The exceptions and warnings of kernelbank. All errors about input are `ValueError`s too."""


class KernelBankError(Exception):
    """Anything that kernelbank raises on purpose."""


class InvalidArgument(KernelBankError, ValueError):
    """An argument breaks a rule. The message names it, the rule, the value and the remedy."""


class FileRefused(KernelBankError, ValueError):
    """A file or another source cannot be read: foreign, truncated, damaged or too new."""


class PackageMissing(KernelBankError, ModuleNotFoundError):
    """A package that only an extra installs is not there; the message has the command."""


class SourceLost(KernelBankError, ConnectionError):
    """A source of rows has been out of reach for longer than it may; its position still holds."""


class ShardLost(KernelBankError, ConnectionError):
    """A shard of a bank could not be brought back; the bank stands after its last whole block."""


class HalfLearned(KernelBankError, RuntimeError):
    """A bank was cut off between two samples, and cannot be used any more."""


class CheckFailed(KernelBankError, AssertionError):
    """A component lacks a property that a bank relies on; `kb.checks` says which, and why.

    `failed` names the property.
    """

    def __init__(self, message: str, failed: str) -> None:
        super().__init__(message)
        self.failed = failed


class KernelBankWarning(UserWarning):
    """Something that a user should know and that does not stop the work."""


class UnstableStep(KernelBankWarning):
    """A learning rate is too large for the window: the slot's update is no contraction."""


class TruncationMatters(KernelBankWarning):
    """Terms dropped beyond the budget still moved the estimate by a visible amount."""


class SlotQuarantined(KernelBankWarning):
    """A slot became non-finite and has zero weight from now on."""


class BrokerConnection(KernelBankWarning):
    """A broker cannot be reached and is tried again, or is reached again."""


class FeaturesIgnored(KernelBankWarning):
    """There are more named features than a bank may make columns of."""


class LargeModel(KernelBankWarning):
    """A model has become large, because it has many classes or inputs."""


class NumbersAsText(KernelBankWarning):
    """A value that reads as a number is text, and so is taken for a category."""


class RunRefused(KernelBankError):
    """A run cannot start or go on: its folder, source or output does not allow it."""


class BadRow(KernelBankError, ValueError):
    """A row of a source cannot be used; the message says where it is, and why."""


class TooManyBadRows(KernelBankError, ValueError):
    """Most rows of a source cannot be used: something is wrong with the options or the source."""
