"""LastValue: the last target again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from .. import _core
from ..kernels import NoKernel
from ..kernels.base import CoreSpec, Kernel
from ..utils import validation as check
from .base import Learner, whole

_COLUMN = "Give the index, from 0, of an input, or None."


@dataclass(frozen=True)
class LastValue(Learner):
    """f = the last target, at every input: the baseline of every stream that moves slowly.

    In a stack it has its say from the second sample on, and a slot on its residual
    (`kb.Slot(..., residual_of=...)`) learns the change from one target to the next. f is 0 before
    the first sample. Cost per step: O(window). Memory: one number.

    It needs no kernel: use it with `kb.kernels.NoKernel()`. So norm^2 is 0, which means none.

    Parameters
    ----------
    column : index of an input that is the last target already, in its units; f(x) is then this
        input, from the second sample on. By default the targets themselves are remembered.

    per_output : whether output k of a bank with several uses the input at column + k.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(slots=[kb.Slot(kb.kernels.NoKernel(), kb.learners.LastValue())])
    >>> bank.learn_one(1.0, 5.0)
    >>> bank.predict_one(2.0)
    5.0
    """

    core_name: ClassVar[str] = "LastValue"
    pack_width: ClassVar[int] = _core.WIDTH
    column: int | None = None
    per_output: bool = False

    def __post_init__(self) -> None:
        if self.column is not None:
            check.settings(self, column=whole(_COLUMN, least=0))

    def check_kernel(self, kernel: Kernel) -> None:
        if not isinstance(kernel, NoKernel):
            remedy = "Use kb.Slot(kb.kernels.NoKernel(), kb.learners.LastValue())."
            raise check.refuse("kernel", "be NoKernel for LastValue", kernel, remedy)

    def check_width(self, width: int) -> None:
        if self.column is not None and self.column >= width:
            rule = f"be the index of one of {width} inputs"
            raise check.refuse("column", rule, self.column, _COLUMN, "LastValue")

    def core_kernels(self, kernels: Sequence[Kernel], dimension: int) -> list[CoreSpec]:
        return []
