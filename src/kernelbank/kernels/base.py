"""What a kernel is: a positive-definite function of two inputs; sums, products and multiples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .. import _core
from ..utils import validation as check
from ..utils.validation import Floats

CoreSpec = tuple[str, tuple[Any, ...] | None, tuple[float, ...], tuple[Any, ...]]
"""A kernel as the core is told of it: the name of its formula, the statistic, constants, parts.

statistic : (name, parameter, coordinates), and the function of a user; None for a sum, a product or
a multiple of the parts, and for a kernel that is not a function of two inputs alone.
"""


class Kernel:
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
    """Whether k(x, t) is a function of x and t alone."""

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels that it is made of."""
        return ()

    def core_spec(self, dimension: int) -> CoreSpec:
        """What the core makes the kernel of, for inputs of this dimension."""
        raise NotImplementedError

    @property
    def in_python(self) -> bool:
        """Whether a function of a user in Python is part of it."""
        return any(part.in_python for part in self.parts)

    def term_count(self, dimension: int) -> int:
        """How many elementary kernels it is made of, for inputs of this dimension."""
        return sum(part.term_count(dimension) for part in self.parts) or 1

    def check_width(self, width: int, name: str) -> None:
        """Refuse inputs that lack a coordinate of the kernel."""
        for part in self.parts:
            part.check_width(width, name)

    @property
    def structure_key(self) -> tuple[object, ...]:
        """Kernels with equal keys differ only in constants, and are computed together."""
        return (type(self).__name__, *(part.structure_key for part in self.parts))

    @property
    def domains(self) -> frozenset[str]:
        """The domains of the kernel's parts, or its own."""
        if not self.parts:
            return frozenset([self.domain])
        return frozenset().union(*(part.domains for part in self.parts))

    def __call__(self, X: object, Z: object) -> Floats:
        if not self.pairwise:
            remedy = "TreeKernel is for kb.learners.PartitionTree, which makes its cells; NoKernel "
            remedy += "is for models of other libraries. Evaluate another kernel."
            rule = "be a function of two inputs alone to be evaluated"
            raise check.refuse("kernel", rule, self, remedy)
        left = check.samples(X, None)
        right = check.samples(Z, left.shape[1], "Z")
        self.check_width(left.shape[1], "X")
        for name, inputs in (("X", left), ("Z", right)):
            self.check_inputs(inputs, name)
        return kernel_matrix(self, left, right)

    def check_inputs(self, X: Floats, name: str) -> None:
        """Refuse inputs outside the kernel's domain."""
        for part in self.parts:
            part.check_inputs(X, name)
        if self.domain == "non-negative":
            self.check_non_negative(X, name)

    def check_non_negative(self, X: Floats, name: str) -> None:
        """Refuse inputs below 0."""
        if X.size and X.min() < 0:
            raise check.refuse(
                name,
                f"be non-negative for {self!r}",
                float(X.min()),
                "Shift or rescale the inputs, or use another kernel.",
            )

    def __add__(self, other: object) -> Kernel:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, other)

    def __rmul__(self, factor: float) -> Kernel:
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
    statistic: ClassVar[str]

    def constants(self) -> tuple[float, ...]:
        """Up to three numbers, the a, b, c of the formula."""
        return ()

    def parameter(self) -> float:
        """The parameter of the statistic, if any."""
        return 0.0

    def core_spec(self, dimension: int) -> CoreSpec:
        statistic = (self.statistic, self.parameter(), tuple(range(dimension)))
        return (self.formula, statistic, self.constants(), ())

    @property
    def structure_key(self) -> tuple[object, ...]:
        return (self.formula, self.statistic, self.parameter())


@dataclass(frozen=True)
class NoKernel(Kernel):
    """For a slot that uses no kernel: a model of another library in `kb.learners.Adapter`.

    >>> import kernelbank as kb
    >>> kb.kernels.NoKernel()
    NoKernel()
    """

    pairwise: ClassVar[bool] = False

    def core_spec(self, dimension: int) -> CoreSpec:
        return ("none", None, (), ())


# --- sums, products and multiples -----------------------------------------------------------------


def require_kernel(name: str, value: object, owner: str, *, pairwise: bool = True) -> None:
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
    def parts(self) -> tuple[Kernel, ...]:
        return (self.left, self.right)

    def core_spec(self, dimension: int) -> CoreSpec:
        specs = tuple(part.core_spec(dimension) for part in self.parts)
        return (self.operation, None, (), specs)


@dataclass(frozen=True)
class Sum(_Pair):
    """k(x, t) = left(x, t) + right(x, t); written `left + right`."""

    operation: ClassVar[str] = "sum"


@dataclass(frozen=True)
class Product(_Pair):
    """k(x, t) = left(x, t) * right(x, t); written `left * right`."""

    operation: ClassVar[str] = "product"


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
    def parts(self) -> tuple[Kernel, ...]:
        return (self.kernel,)

    def core_spec(self, dimension: int) -> CoreSpec:
        return ("scaled", None, (self.factor,), (self.kernel.core_spec(dimension),))
