"""LLVM code of functions on one number: fma, bits, integers, tables. See `native.scalar_math`."""

from llvmlite import ir
from numba.core import cgutils, types

from .intrinsics import make_intrinsic

_DOUBLE = ir.DoubleType()
_INTEGER = ir.IntType(64)


def _function(kind, result, count, emit):
    """An intrinsic of `count` numbers, cast to `kind`; `emit(builder, ...)` writes its LLVM."""
    return make_intrinsic(count, (types.Number, types.Boolean), kind, result, emit)


def _llvm(name):
    """The writer of a call to the LLVM intrinsic `name`, which is correctly rounded."""

    def emit(builder, *arguments):
        kind = ir.FunctionType(_DOUBLE, [_DOUBLE] * len(arguments))
        function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.f64")
        return builder.call(function, arguments)

    return emit


def _high(builder, x, y):
    wide = ir.IntType(128)
    product = builder.mul(builder.zext(x, wide), builder.zext(y, wide))
    return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), _INTEGER)


def table_reader(kind, result, values):
    """An intrinsic that reads number `i` of a table. `values()` is called when it is compiled."""

    def emit(builder, i):
        items = [ir.Constant(kind, value) for value in values()]
        whole = ir.Constant(ir.ArrayType(kind, len(items)), items)
        name = builder.module.get_unique_name(f"table.{values.__name__}")
        table = cgutils.global_constant(builder.module, name, whole)
        return builder.load(builder.gep(table, [ir.Constant(_INTEGER, 0), i], inbounds=True))

    return _function(types.int64, result, 1, emit)


as_float64 = _function(types.float64, types.float64, 1, lambda builder, x: x)

fma = _function(types.float64, types.float64, 3, _llvm("fma"))
"""x * y + z, rounded once."""

sqrt = _function(types.float64, types.float64, 1, _llvm("sqrt"))

absolute = _function(types.float64, types.float64, 1, _llvm("fabs"))

with_sign = _function(types.float64, types.float64, 2, _llvm("copysign"))
"""`with_sign(x, y)`: the size of x with the sign of y."""

bits_of = _function(types.float64, types.int64, 1, lambda builder, x: builder.bitcast(x, _INTEGER))

float_of = _function(types.int64, types.float64, 1, lambda builder, x: builder.bitcast(x, _DOUBLE))

high_product = _function(types.uint64, types.uint64, 2, _high)
"""The upper 64 of the 128 bits of a product of unsigned integers."""


def float_table(values):
    """A function that reads number `i` of a table of floats."""
    return table_reader(_DOUBLE, types.float64, values)


def bit_table(values):
    """A function that reads number `i` of a table of 64-bit words."""
    return table_reader(_INTEGER, types.uint64, values)
