"""Calls by address from compiled code: formulas, and phases."""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from .views import ViewType

_FLOATS = types.CPointer(types.float64)
_INTS = types.CPointer(types.int64)
# x (d,), inputs (d, stride), stride, count, coordinates (width,), width, parameters, out (count,)
STATISTIC = types.void(
    _FLOATS, _FLOATS, types.int64, types.int64, _INTS, types.int64, _FLOATS, _FLOATS
)
# statistic (count,), count, constants (3, 4), out (count, 4)
KERNEL = types.void(_FLOATS, types.int64, _FLOATS, _FLOATS)
# predictions (rows, 4), targets (rows, 4), rows, parameters (1,), out (rows, 4)
LOSS = types.void(_FLOATS, _FLOATS, types.int64, _FLOATS, _FLOATS)


def _emit_call(signature, context, builder, sig, args):
    values = [
        _as_argument(context, builder, value, given, wanted)
        for value, given, wanted in zip(args[1:], sig.args[1:], signature.args, strict=True)
    ]
    kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
    builder.call(builder.inttoptr(args[0], kind.as_pointer()), values)
    return context.get_dummy_value()


def _as_argument(context, builder, value, given, wanted):
    """An int, or the pointer of a view."""
    if isinstance(given, ViewType):
        return cgutils.create_struct_proxy(given)(context, builder, value).data
    return context.cast(builder, value, given, wanted)


@intrinsic
def call_statistic(
    typingctx, address, x, inputs, stride, count, coordinates, width, parameters, out
):
    """out[m] = the statistic of x and inputs[:, m] on `width` coordinates, for m < count."""
    sig = types.void(address, x, inputs, stride, count, coordinates, width, parameters, out)
    return sig, lambda *emit: _emit_call(STATISTIC, *emit)


@intrinsic
def call_kernel(typingctx, address, statistic, count, constants, out):
    """out[m, :] = the kernel values of four slots at statistic[m], for m < count."""
    sig = types.void(address, statistic, count, constants, out)
    return sig, lambda *emit: _emit_call(KERNEL, *emit)


@intrinsic
def call_loss(typingctx, address, predictions, targets, rows, parameters, out):
    """out[i, :] = the loss, or its derivative, of row i of four, for i < rows."""
    sig = types.void(address, predictions, targets, rows, parameters, out)
    return sig, lambda *emit: _emit_call(LOSS, *emit)


@intrinsic
def call_phase(typingctx, address, table, first, count):
    """Call the function at `address` with the arguments in the table at an address."""

    def codegen(context, builder, sig, values):
        integer = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [integer.as_pointer(), integer, integer])
        function = builder.inttoptr(values[0], kind.as_pointer())
        numbers = [
            context.cast(builder, value, given, types.int64)
            for value, given in zip(values[1:], sig.args[1:], strict=True)
        ]
        pointer = builder.inttoptr(numbers[0], integer.as_pointer())
        builder.call(function, [pointer, *numbers[1:]])
        return context.get_dummy_value()

    return types.void(address, table, first, count), codegen


@intrinsic
def address_of(typingctx, arguments):
    """The address of the table of arguments, to pass them on."""

    def codegen(context, builder, sig, values):
        return builder.ptrtoint(values[0], ir.IntType(64))

    return types.int64(arguments), codegen
