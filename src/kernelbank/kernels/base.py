"""What a kernel is: a positive-definite function of two inputs, closed under sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ..io.specs import Copied
from ..native.formulas import Callback
from ..utils import validation as check
from ..utils.validation import Floats
from .program import EVALUATE, BoundStatistic, Instruction, Statistic, evaluate


class Kernel(Copied):
    """A positive-definite function k(x, t).

    Call a kernel with two arrays, (n, d) and (m, d), for the (n, m) matrix of its values. Kernels
    add, multiply with each other and with positive numbers:

    >>> import kernelbank as kb
    >>> k = kb.kernels.Gaussian(width=1.0) + 0.5 * kb.kernels.Linear(offset=0.0)
    >>> k([[0.0], [1.0]], [[0.0]]).round(3).tolist()
    [[1.0], [0.607]]
    """

    domain: ClassVar[str] = "real"
    """"real", or "non-negative" for kernels that are defined only there."""

    pairwise: ClassVar[bool] = True
    """Whether k(x, t) is a function of x and t alone, so that there is a program for it."""

    def program(self) -> tuple[Instruction, ...]:
        """The postfix program that computes this kernel."""
        raise NotImplementedError

    def for_dimension(self, dimension: int) -> Kernel:
        """The kernel for inputs of this dimension; it has a program."""
        return self

    def check_width(self, width: int, name: str) -> None:
        """Refuse inputs that lack a coordinate of the kernel."""

    @property
    def structure_key(self) -> tuple[Any, ...]:
        """Kernels with equal keys differ only in constants, and are computed together."""
        return tuple(instruction.structure_key for instruction in self.program())

    @property
    def domains(self) -> frozenset[str]:
        """The domains of this kernel and of its parts."""
        return frozenset([self.domain])

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        """The user's Python functions in this kernel."""
        used = (i.statistic.statistic for i in self.program() if i.statistic is not None)
        return tuple(s.callback for s in used if hasattr(s, "callback"))

    def __call__(self, X: Any, Z: Any) -> Floats:
        left = check.samples(X, None)
        right = check.samples(Z, left.shape[1], "Z")
        self.check_width(left.shape[1], "X")
        for name, inputs in (("X", left), ("Z", right)):
            self.check_inputs(inputs, name)
        values = evaluate(self, left, right)
        for callback in self.callbacks:
            callback.check()
        return values

    def check_inputs(self, X: Floats, name: str) -> None:
        """Refuse inputs outside the kernel's domain."""
        if "non-negative" in self.domains and X.size and X.min() < 0:
            raise check.refuse(
                name,
                f"be non-negative for {self!r}",
                float(X.min()),
                "Shift or rescale the inputs, or use another kernel.",
            )

    def __add__(self, other: Any) -> Kernel:
        from .algebra import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        from .algebra import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, other)

    def __rmul__(self, factor: Any) -> Kernel:
        return self * factor


class Elementary(Kernel):
    """A kernel of one formula: k(x, t) = formula(s, a, b, c), with the statistic s of x and t.

    Subclasses state `statistic` and `_formula`, the latter as a static method in lanes.
    """

    statistic: ClassVar[Statistic]
    _formula: Callable[..., Any]

    def constants(self) -> tuple[float, ...]:
        """Up to three numbers, the a, b, c of the formula."""
        return ()

    def parameter(self) -> float:
        """The parameter of the statistic, if any."""
        return 0.0

    def program(self) -> tuple[Instruction, ...]:
        bound = BoundStatistic(self.statistic, self.parameter())
        return (Instruction(EVALUATE, bound, self._formula, self.constants()),)
