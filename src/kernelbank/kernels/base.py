"""What a kernel is: a positive-definite function of two inputs; sums, products and multiples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .. import _core
from ..io.specs import Copied
from ..native.callbacks import Callback
from ..native.functions import CompiledFunction
from ..utils import validation as check
from ..utils.validation import Floats
from .program import (
    ADD,
    EVALUATE,
    MULTIPLY,
    SCALE,
    BoundStatistic,
    Instruction,
    Statistic,
)

CoreSpec = tuple[str, Any, tuple[float, ...], tuple[Any, ...]]
"""A kernel as the core is told of it: the name of its formula, the statistic, constants, parts.

statistic : (name, parameter, coordinates), and the function of a user; None for a sum, a product or
a multiple of the parts, and for a kernel that is not a function of two inputs alone.
"""


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

    def core_spec(self, dimension: int) -> CoreSpec:
        """What the core makes the kernel of, for inputs of this dimension."""
        raise NotImplementedError

    @property
    def in_python(self) -> bool:
        """Whether a function of a user in Python is part of it."""
        return False

    def program(self) -> tuple[Instruction, ...]:
        """The postfix program that computes this kernel."""
        raise NotImplementedError

    def for_dimension(self, dimension: int) -> Kernel:
        """The kernel for inputs of this dimension; it has a program."""
        return self

    def instruction_count(self, dimension: int) -> int:
        """How many instructions the program has for inputs of this dimension, without making it."""
        return 1

    def check_width(self, width: int, name: str) -> None:
        """Refuse inputs that lack a coordinate of the kernel."""

    @property
    def structure_key(self) -> tuple[Any, ...]:
        """Kernels with equal keys differ only in constants, and are computed together."""
        raise NotImplementedError

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
        return kernel_matrix(self, left, right)

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
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, other)

    def __rmul__(self, factor: Any) -> Kernel:
        return self * factor


def kernel_matrix(kernel: Kernel, X: Floats, Z: Floats) -> Floats:
    """(n, m): the kernel values of (n, d) and (m, d) inputs, as slots compute them; unchecked."""
    values: Floats = _core.kernel_matrix(kernel.core_spec(X.shape[1]), X, Z)
    return values


class Elementary(Kernel):
    """A kernel of one formula: k(x, t) = formula(s, a, b, c), with the statistic s of x and t.

    Subclasses state the names that formula and statistic have in the core (kernel_formulas.hpp).
    """

    formula: str
    statistic: ClassVar[Statistic]
    _formula: CompiledFunction

    def constants(self) -> tuple[float, ...]:
        """Up to three numbers, the a, b, c of the formula."""
        return ()

    def parameter(self) -> float:
        """The parameter of the statistic, if any."""
        return 0.0

    def core_spec(self, dimension: int) -> CoreSpec:
        statistic = (self.statistic.name, self.parameter(), tuple(range(dimension)))
        return (self.formula, statistic, self.constants(), ())

    @property
    def structure_key(self) -> tuple[Any, ...]:
        return (self.formula, self.statistic.name, self.parameter())

    def program(self) -> tuple[Instruction, ...]:
        bound = BoundStatistic(self.statistic, self.parameter())
        return (Instruction(EVALUATE, bound, self._formula, self.constants()),)


# --- sums, products and multiples -----------------------------------------------------------------


def require_kernel(name: str, value: Any, owner: str, *, pairwise: bool = True) -> None:
    """Refuse a part that is not a kernel, or that is not pairwise where it must be."""
    if not isinstance(value, Kernel):
        raise check.refuse(
            name, "be a kernel", value, "Use one of kb.kernels, or Custom for your own.", owner
        )
    if pairwise and not value.pairwise:
        remedy = "Give it a slot of its own: a bank combines slots."
        raise check.refuse(name, "be a function of two inputs alone", value, remedy, owner)


@dataclass(frozen=True)
class _Pair(Kernel):
    left: Kernel
    right: Kernel
    operation: ClassVar[str]

    def __post_init__(self) -> None:
        require_kernel("left", self.left, type(self).__name__)
        require_kernel("right", self.right, type(self).__name__)

    @property
    def structure_key(self) -> tuple[Any, ...]:
        return (type(self).__name__, self.left.structure_key, self.right.structure_key)

    @property
    def domains(self) -> frozenset[str]:
        return self.left.domains | self.right.domains

    @property
    def in_python(self) -> bool:
        return self.left.in_python or self.right.in_python

    def core_spec(self, dimension: int) -> CoreSpec:
        parts = (self.left.core_spec(dimension), self.right.core_spec(dimension))
        return (self.operation, None, (), parts)

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        return (*self.left.callbacks, *self.right.callbacks)

    def for_dimension(self, dimension: int) -> Kernel:
        return type(self)(self.left.for_dimension(dimension), self.right.for_dimension(dimension))

    def instruction_count(self, dimension: int) -> int:
        return 1 + sum(k.instruction_count(dimension) for k in (self.left, self.right))

    def check_width(self, width: int, name: str) -> None:
        self.left.check_width(width, name)
        self.right.check_width(width, name)

    def check_inputs(self, X: Floats, name: str) -> None:
        self.left.check_inputs(X, name)
        self.right.check_inputs(X, name)


@dataclass(frozen=True)
class Sum(_Pair):
    """k(x, t) = left(x, t) + right(x, t); written `left + right`."""

    operation: ClassVar[str] = "sum"

    def program(self) -> tuple[Instruction, ...]:
        return (*self.left.program(), *self.right.program(), Instruction(ADD))


@dataclass(frozen=True)
class Product(_Pair):
    """k(x, t) = left(x, t) * right(x, t); written `left * right`."""

    operation: ClassVar[str] = "product"

    def program(self) -> tuple[Instruction, ...]:
        return (*self.left.program(), *self.right.program(), Instruction(MULTIPLY))


@dataclass(frozen=True)
class Scaled(Kernel):
    """k(x, t) = factor * kernel(x, t) with factor > 0; written `factor * kernel`."""

    kernel: Kernel
    factor: float

    def __post_init__(self) -> None:
        require_kernel("kernel", self.kernel, "Scaled")
        remedy = "Scale a kernel by a positive number only: a kernel is positive definite."
        factor = check.number("factor", self.factor, "Scaled", remedy, above=0)
        object.__setattr__(self, "factor", factor)

    @property
    def structure_key(self) -> tuple[Any, ...]:
        return ("Scaled", self.kernel.structure_key)

    @property
    def in_python(self) -> bool:
        return self.kernel.in_python

    def core_spec(self, dimension: int) -> CoreSpec:
        return ("scaled", None, (self.factor,), (self.kernel.core_spec(dimension),))

    @property
    def domains(self) -> frozenset[str]:
        return self.kernel.domains

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        return self.kernel.callbacks

    def for_dimension(self, dimension: int) -> Kernel:
        return Scaled(self.kernel.for_dimension(dimension), self.factor)

    def instruction_count(self, dimension: int) -> int:
        return 1 + self.kernel.instruction_count(dimension)

    def check_width(self, width: int, name: str) -> None:
        self.kernel.check_width(width, name)

    def check_inputs(self, X: Floats, name: str) -> None:
        self.kernel.check_inputs(X, name)

    def program(self) -> tuple[Instruction, ...]:
        return (*self.kernel.program(), Instruction(SCALE, constants=(self.factor,)))
