"""How compiled code reads typed arguments (see `native.arguments`): Numba types, LLVM code.

A view is an array inside compiled code: a pointer and the lengths of its axes, in registers. So
`a.values[leaf, t, i]` costs what hand-written arithmetic with the strides costs.
"""

import hashlib
import operator

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin, lower_getattr_generic
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import intrinsic, models, register_model

from ..arguments import DEBUG, OUT_OF_BOUNDS, Arguments, ArrayKind
from .simd import LANES as LANES_TYPE
from .simd import WIDTH, emit_load, emit_store

_I64 = ir.IntType(64)
_ELEMENTS = {"float64": types.float64, "float32": types.float32, "int64": types.int64}
_LLVM = {"float64": ir.DoubleType(), "float32": ir.FloatType(), "int64": _I64}


class ArgumentsType(types.Type):
    """The Numba type of the address of a table of arguments."""

    def __init__(self, arguments: Arguments) -> None:
        self.arguments = arguments
        # A hash of the kinds is part of the name, and so of the key of machine code on disk.
        kinds = hashlib.sha256(repr(arguments.fields).encode()).hexdigest()[:8]
        super().__init__(name=f"Arguments({arguments.name}, {kinds})")


@register_model(ArgumentsType)
class _ArgumentsModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _I64.as_pointer())


class ViewType(types.Type):
    """The Numba type of an array inside compiled code."""

    def __init__(self, dtype: str, ndim: int, lanes: bool) -> None:
        self.dtype = dtype
        self.ndim = ndim
        self.lanes = lanes
        super().__init__(name=f"View({dtype}, {ndim}, {'lanes' if lanes else 'numbers'})")

    @property
    def element(self):
        """What one element is in compiled code."""
        if self.lanes:
            return LANES_TYPE
        return types.int64 if self.dtype == "int64" else types.float64


@register_model(ViewType)
class _ViewModel(models.StructModel):
    def __init__(self, dmm, fe_type):
        lengths = [(f"n{k}", types.int64) for k in range(fe_type.ndim)]
        data = [("data", types.CPointer(_ELEMENTS[fe_type.dtype]))]
        super().__init__(dmm, fe_type, data + lengths)


# --- a.name ---------------------------------------------------------------------------------------


def _type_of(kind):
    if kind is int:
        return types.int64
    if kind is float:
        return types.float64
    return ViewType(kind.dtype, len(kind.axes), kind.lanes)


@infer_getattr
class _ArgumentsAttribute(AttributeTemplate):
    key = ArgumentsType

    def generic_resolve(self, kind, name):
        found = kind.arguments.fields.get(name)
        return None if found is None else _type_of(found)


@lower_getattr_generic(ArgumentsType)
def _read_argument(context, builder, kind, table, name):
    arguments = kind.arguments
    position = arguments.positions[name]

    def entry(offset):
        value = builder.load(builder.gep(table, [_I64(position + offset)]))
        # No phase writes to its table: reading it may move out of loops.
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return value

    field = arguments.fields[name]
    if field is int:
        return entry(0)
    if field is float:
        return builder.bitcast(entry(0), ir.DoubleType())
    assert isinstance(field, ArrayKind)
    view = cgutils.create_struct_proxy(_type_of(field))(context, builder)
    view.data = builder.inttoptr(entry(0), _LLVM[field.dtype].as_pointer())
    for k in range(len(field.axes)):
        setattr(view, f"n{k}", entry(1 + k))
    return view._getvalue()


# --- view[i, j], view[i], view[i:] ----------------------------------------------------------------


def _is_index(kind) -> bool:
    return isinstance(kind, types.Integer)


def _index_types(kind):
    return tuple(kind) if isinstance(kind, types.BaseTuple) else (kind,)


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, args, kws):
        view, index = args
        if not isinstance(view, ViewType):
            return None
        if isinstance(index, types.SliceType):
            return signature(view, view, index)
        indices = _index_types(index)
        if not all(map(_is_index, indices)) or len(indices) > view.ndim:
            return None
        if len(indices) == view.ndim:
            return signature(view.element, view, index)
        return signature(ViewType(view.dtype, view.ndim - len(indices), view.lanes), view, index)


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, args, kws):
        view, index, _ = args
        if not isinstance(view, ViewType):
            return None
        indices = _index_types(index)
        if not all(map(_is_index, indices)) or len(indices) != view.ndim:
            return None
        return signature(types.none, view, index, view.element)


@infer_global(len)
class _Len(AbstractTemplate):
    def generic(self, args, kws):
        if len(args) == 1 and isinstance(args[0], ViewType):
            return signature(types.int64, args[0])
        return None


def _unpack(context, builder, kind, value):
    """The indices as int64."""
    values = [value]
    if isinstance(kind, types.BaseTuple):
        values = cgutils.unpack_tuple(builder, value)
    pairs = zip(values, _index_types(kind), strict=True)
    return [context.cast(builder, v, t, types.int64) for v, t in pairs]


def _checked(builder, index, length, inclusive=False):
    """The index; in a debug build 0, with a note, if it is outside 0 .. length - 1."""
    if not DEBUG:
        return index
    comparison = "<=" if inclusive else "<"
    inside = builder.icmp_unsigned(comparison, index, length)
    counter = builder.inttoptr(_I64(OUT_OF_BOUNDS.ctypes.data), _I64.as_pointer())
    wrong = builder.zext(builder.not_(inside), _I64)
    builder.store(builder.add(builder.load(counter), wrong), counter)
    return builder.select(inside, index, _I64(0))


def _offset(context, builder, kind, view, indices):
    """The offset, in elements of the array's dtype, of what the indices mean."""
    at = _I64(0)
    for k, index in enumerate(indices):
        length = getattr(view, f"n{k}")
        at = builder.add(builder.mul(at, length), _checked(builder, index, length))
    for k in range(len(indices), kind.ndim):
        at = builder.mul(at, getattr(view, f"n{k}"))
    return builder.mul(at, _I64(WIDTH)) if kind.lanes else at


@lower_builtin(operator.getitem, ViewType, types.Any)
def _get(context, builder, sig, args):
    kind, index_kind = sig.args
    view = cgutils.create_struct_proxy(kind)(context, builder, args[0])
    if isinstance(index_kind, types.SliceType):
        return _part(context, builder, kind, view, index_kind, args[1])
    indices = _unpack(context, builder, index_kind, args[1])
    place = builder.gep(view.data, [_offset(context, builder, kind, view, indices)])
    if isinstance(sig.return_type, ViewType):
        part = cgutils.create_struct_proxy(sig.return_type)(context, builder)
        part.data = place
        for k in range(sig.return_type.ndim):
            setattr(part, f"n{k}", getattr(view, f"n{k + len(indices)}"))
        return part._getvalue()
    if kind.lanes:
        return emit_load(builder, place, kind.dtype)
    value = builder.load(place)
    return builder.fpext(value, ir.DoubleType()) if kind.dtype == "float32" else value


def _part(context, builder, kind, view, index_kind, value):
    """view[start:] or view[start:end], without a step."""
    given = context.make_helper(builder, index_kind, value)
    start = _checked(builder, given.start, view.n0, inclusive=True)
    end = builder.select(builder.icmp_signed("<", given.stop, view.n0), given.stop, view.n0)
    at = start
    for k in range(1, kind.ndim):
        at = builder.mul(at, getattr(view, f"n{k}"))
    if kind.lanes:
        at = builder.mul(at, _I64(WIDTH))
    part = cgutils.create_struct_proxy(kind)(context, builder)
    part.data = builder.gep(view.data, [at])
    part.n0 = builder.sub(end, start)
    for k in range(1, kind.ndim):
        setattr(part, f"n{k}", getattr(view, f"n{k}"))
    return part._getvalue()


@lower_builtin(operator.setitem, ViewType, types.Any, types.Any)
def _set(context, builder, sig, args):
    kind, index_kind, value_kind = sig.args
    view = cgutils.create_struct_proxy(kind)(context, builder, args[0])
    indices = _unpack(context, builder, index_kind, args[1])
    place = builder.gep(view.data, [_offset(context, builder, kind, view, indices)])
    value = context.cast(builder, args[2], value_kind, kind.element)
    if kind.lanes:
        emit_store(builder, place, value)
    elif kind.dtype == "float32":
        builder.store(builder.fptrunc(value, ir.FloatType()), place)
    else:
        builder.store(value, place)
    return context.get_dummy_value()


@lower_builtin(len, ViewType)
def _len(context, builder, sig, args):
    return cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0]).n0


# --- columns of a matrix --------------------------------------------------------------------------


@intrinsic
def columns_from(typingctx, matrix, start):
    """The columns of a matrix from `start` on: the same rows, which begin later."""
    if not (isinstance(matrix, ViewType) and matrix.ndim == 2):
        return None

    def codegen(context, builder, sig, args):
        kind = sig.args[0]
        view = cgutils.create_struct_proxy(kind)(context, builder, args[0])
        offset = context.cast(builder, args[1], sig.args[1], types.int64)
        offset = _checked(builder, offset, view.n1)
        if kind.lanes:
            offset = builder.mul(offset, _I64(WIDTH))
        view.data = builder.gep(view.data, [offset])
        return view._getvalue()

    return matrix(matrix, start), codegen


@intrinsic
def row_length(typingctx, matrix):
    """The length of the rows of a matrix, which is the distance between them in memory."""
    if not (isinstance(matrix, ViewType) and matrix.ndim == 2):
        return None

    def codegen(context, builder, sig, args):
        return cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0]).n1

    return types.int64(matrix), codegen


# --- four consecutive numbers ---------------------------------------------------------------------


def _is_row(kind) -> bool:
    return isinstance(kind, ViewType) and (kind.ndim, kind.element) == (1, types.float64)


def _four_at(context, builder, kind, value, index_kind, index):
    view = cgutils.create_struct_proxy(kind)(context, builder, value)
    start = context.cast(builder, index, index_kind, types.int64)
    _checked(builder, builder.add(start, _I64(WIDTH - 1)), view.n0)
    return builder.gep(view.data, [_checked(builder, start, view.n0)])


@intrinsic
def load_four(typingctx, row, start):
    """The numbers row[start] .. row[start + 3] as lanes."""
    if not _is_row(row):
        return None

    def codegen(context, builder, sig, args):
        place = _four_at(context, builder, sig.args[0], args[0], sig.args[1], args[1])
        return emit_load(builder, place, sig.args[0].dtype)

    return LANES_TYPE(row, start), codegen


@intrinsic
def store_four(typingctx, row, start, value):
    """Write lanes to row[start] .. row[start + 3], of float64."""
    if not (_is_row(row) and row.dtype == "float64"):
        return None

    def codegen(context, builder, sig, args):
        place = _four_at(context, builder, sig.args[0], args[0], sig.args[1], args[1])
        lanes = context.cast(builder, args[2], sig.args[2], LANES_TYPE)
        emit_store(builder, place, lanes)
        return context.get_dummy_value()

    return types.void(row, start, value), codegen
