"""The Numba type of a vector of four float64, and the LLVM code of the functions on it.

See `native.simd` for what the functions do.
"""

import operator

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin, lower_cast
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

from .intrinsics import make_intrinsic

WIDTH = 4
_DOUBLE = ir.DoubleType()
_INTEGER = ir.IntType(64)
_VECTOR = ir.VectorType(_DOUBLE, WIDTH)
_SINGLES = ir.VectorType(ir.FloatType(), WIDTH)
_INTEGERS = ir.VectorType(_INTEGER, WIDTH)


class LanesType(types.Type):
    """The Numba type of a vector of four float64; a scalar converts to four equal ones."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")

    def can_convert_from(self, typingctx, other):
        return Conversion.promote if isinstance(other, types.Number) else None


LANES = LanesType()


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _VECTOR)


@lower_cast(types.Number, LanesType)
def _broadcast(context, builder, fromty, toty, value):
    number = context.cast(builder, value, fromty, types.float64)
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(one, one, zeros)


def _constant(value: float) -> ir.Constant:
    return ir.Constant(_VECTOR, [value] * WIDTH)


def _llvm(builder, name: str, *arguments):
    """Call the LLVM vector intrinsic `name`, which is correctly rounded in each lane."""
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_VECTOR, [_VECTOR] * len(arguments)), f"llvm.{name}.v4f64"
    )
    return builder.call(function, arguments)


# --- arithmetic: the operators of Python, lane by lane -----------------------------------------


def _operator(function, count, emit):
    @infer_global(function)
    class _Template(AbstractTemplate):
        def generic(self, args, kws):
            numbers = all(isinstance(a, (LanesType, types.Number)) for a in args)
            if len(args) == count and numbers and LANES in args:
                return signature(LANES, *[LANES] * count)
            return None

    @lower_builtin(function, *[LanesType] * count)
    def _lower(context, builder, sig, args):
        return emit(builder, *args)


_operator(operator.add, 2, lambda builder, x, y: builder.fadd(x, y))
_operator(operator.sub, 2, lambda builder, x, y: builder.fsub(x, y))
_operator(operator.mul, 2, lambda builder, x, y: builder.fmul(x, y))
_operator(operator.truediv, 2, lambda builder, x, y: builder.fdiv(x, y))
_operator(operator.neg, 1, lambda builder, x: builder.fneg(x))


def _function(count, emit):
    """An intrinsic of `count` lanes or numbers; `emit(builder, ...)` writes its LLVM."""
    return make_intrinsic(count, (LanesType, types.Number), LANES, LANES, emit)


def _less_select(builder, x, y, yes, no):
    return builder.select(builder.fcmp_ordered("<", x, y), yes, no)


broadcast = _function(1, lambda builder, x: x)
"""A number in all four lanes (rarely needed: arithmetic converts numbers)."""

fma = _function(3, lambda builder, x, y, z: _llvm(builder, "fma", x, y, z))
"""x * y + z, rounded once."""

sqrt = _function(1, lambda builder, x: _llvm(builder, "sqrt", x))

absolute = _function(1, lambda builder, x: _llvm(builder, "fabs", x))

where_less = _function(4, _less_select)
"""`where_less(x, y, yes, no)`: `yes` in the lanes with x < y, else `no`, also where one is NaN."""


# --- memory -------------------------------------------------------------------------------------


def emit_load(builder, place, dtype):
    """Lanes from four numbers in memory; float32 is widened."""
    if dtype == "float32":
        narrow = builder.bitcast(place, _SINGLES.as_pointer())
        return builder.fpext(builder.load(narrow, align=4), _VECTOR)
    return builder.load(builder.bitcast(place, _VECTOR.as_pointer()), align=8)


def emit_store(builder, place, lanes):
    """Write lanes to memory, as four float64."""
    builder.store(lanes, builder.bitcast(place, _VECTOR.as_pointer()), align=8)


@intrinsic
def lane(typingctx, lanes, index):
    """One of the four numbers."""

    def codegen(context, builder, sig, args):
        index32 = context.cast(builder, args[1], sig.args[1], types.int32)
        return builder.extract_element(args[0], index32)

    return types.float64(LANES, index), codegen


@intrinsic
def four(typingctx, first, second, third, fourth):
    """Lanes from four numbers."""

    def codegen(context, builder, sig, args):
        result = ir.Constant(_VECTOR, ir.Undefined)
        for i, value in enumerate(args):
            number = context.cast(builder, value, sig.args[i], types.float64)
            result = builder.insert_element(result, number, ir.IntType(32)(i))
        return result

    return LANES(first, second, third, fourth), codegen


# --- exponential --------------------------------------------------------------------------------

# 2**r on [-1/2, 1/2]: Chebyshev fit of degree 11, error 3.2e-18.
_EXP2 = (
    1.0,
    0.6931471805599453,
    0.24022650695910158,
    0.055504108664821625,
    0.009618129107587256,
    0.001333355814640647,
    0.00015403530463724353,
    1.5252733841556773e-05,
    1.3215432535912375e-06,
    1.0178057087733941e-07,
    7.074194297288521e-09,
    4.4558179083360645e-10,
)
_ROUND = 1.5 * 2.0**52  # adding this rounds to an integer, in the low bits
_SMALLEST = -1021  # below 2**-1021.5 the result is 0: no denormals in the loops


def _exp2_of_product(builder, x, y):
    """2**(x*y) for x*y <= 0. The product is never rounded: both uses of it are inside an fma."""
    shifted = _llvm(builder, "fma", x, y, _constant(_ROUND))
    exponent_part = builder.fsub(shifted, _constant(_ROUND))
    r = _llvm(builder, "fma", x, y, builder.fneg(exponent_part))
    c = [_constant(value) for value in _EXP2]

    def line(low, high, power):
        return _llvm(builder, "fma", high, power, low)

    # Estrin's order: twelve coefficients in four levels instead of a chain of eleven.
    r2 = builder.fmul(r, r)
    r4 = builder.fmul(r2, r2)
    r8 = builder.fmul(r4, r4)
    pairs = [line(c[2 * i], c[2 * i + 1], r) for i in range(6)]
    quads = [line(pairs[2 * i], pairs[2 * i + 1], r2) for i in range(3)]
    mantissa = line(line(quads[0], quads[1], r4), quads[2], r8)
    exponent = builder.shl(
        builder.bitcast(shifted, _INTEGERS), ir.Constant(_INTEGERS, [52] * WIDTH)
    )
    scaled = builder.bitcast(builder.add(builder.bitcast(mantissa, _INTEGERS), exponent), _VECTOR)
    tiny = builder.fcmp_ordered("<", shifted, _constant(_ROUND + _SMALLEST))
    return builder.select(tiny, _constant(0.0), scaled)


exp2_of_product = _function(2, _exp2_of_product)
"""2 ** (x * y) where x * y <= 0; 1.3 ulp; 0 below 2**-1021.5; NaN stays NaN."""


# log(1+u) = 2 artanh(z) with z = u / (2 + u); z^2 <= 1/9, so 17 terms leave 2e-18.
_ARTANH = tuple(1.0 / (2 * k + 1) for k in range(17))


def _log1p_of_fraction(builder, u):
    z = builder.fdiv(u, builder.fadd(u, _constant(2.0)))
    square = builder.fmul(z, z)
    total = _constant(_ARTANH[-1])
    for coefficient in reversed(_ARTANH[:-1]):
        total = _llvm(builder, "fma", total, square, _constant(coefficient))
    return builder.fmul(builder.fadd(z, z), total)


log1p_of_fraction = _function(1, _log1p_of_fraction)
"""log(1 + u) for 0 <= u <= 1, with a small relative error also near 0."""


# --- for cosine and sine: see `native.sincos` -----------------------------------------------------


def _rotate(builder, shifted, one, other):
    """In the lanes with n = 0, 1, 2, 3 (mod 4) quarter turns: one, -other, -one, other."""

    def constant(value):
        return ir.Constant(_INTEGERS, [value] * WIDTH)

    turns = builder.bitcast(shifted, _INTEGERS)
    odd = builder.icmp_unsigned("!=", builder.and_(turns, constant(1)), constant(0))
    chosen = builder.bitcast(builder.select(odd, other, one), _INTEGERS)
    second_or_third = builder.and_(builder.add(turns, constant(1)), constant(2))
    sign = builder.shl(second_or_third, constant(62))
    return builder.bitcast(builder.xor(chosen, sign), _VECTOR)


rotate = _function(3, _rotate)


@intrinsic
def any_reaches(typingctx, lanes, limit):
    """Whether the size of a lane is at least `limit`, or NaN."""

    def codegen(context, builder, sig, args):
        size = _llvm(builder, "fabs", args[0])
        bound = context.cast(builder, args[1], sig.args[1], LANES)
        bits = builder.bitcast(builder.fcmp_unordered(">=", size, bound), ir.IntType(WIDTH))
        return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    return types.boolean(LANES, limit), codegen
