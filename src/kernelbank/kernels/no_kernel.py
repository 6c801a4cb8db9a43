"""NoKernel: for slots whose learner uses no kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..native.callbacks import Callback
from ..utils import validation as check
from .base import CoreSpec, Kernel
from .program import Instruction


@dataclass(frozen=True)
class NoKernel(Kernel):
    """For a slot that uses no kernel: a model of another library in `kb.learners.Adapter`.

    >>> import kernelbank as kb
    >>> kb.kernels.NoKernel()
    NoKernel()
    """

    pairwise: ClassVar[bool] = False

    @property
    def structure_key(self) -> tuple[Any, ...]:
        return ("NoKernel",)

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        return ()

    def core_spec(self, dimension: int) -> CoreSpec:
        return ("none", None, (), ())

    def program(self) -> tuple[Instruction, ...]:
        remedy = "Use a kernel of kb.kernels with this learner."
        raise check.refuse("kernel", "be a function of two inputs", self, remedy)
