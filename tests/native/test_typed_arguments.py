"""Typed arguments: what a table holds, and what is refused when it is filled."""

import numpy as np
import pytest

from kernelbank.bank.slot_metrics import combine_rows
from kernelbank.native.arguments import Arguments, floats, ints, lanes
from kernelbank.native.functions import native
from kernelbank.native.library import LIBRARY, compiled_only
from kernelbank.native.scalar_math import elementwise
from kernelbank.native.table import Table

EXAMPLE = Arguments(
    "example",
    samples=int,
    factor=float,
    values=floats("samples", 3),
    places=ints(None),
    out=lanes("2 * samples - 1"),
)


def example(**instead):
    """Arguments that fit, but for those given."""
    fitting = {
        "samples": 2,
        "factor": 0.5,
        "values": np.zeros((2, 3)),
        "places": np.zeros(7, dtype=np.int64),
        "out": np.zeros((3, 4)),
    }
    return {**fitting, **instead}


# --- what a table holds --------------------------------------------------------------------------


def test_table_holds_numbers_bits_addresses_and_lengths_in_order():
    given = example()
    table = Table(EXAMPLE, given)
    assert table.entries.tolist() == [
        2,
        np.float64(0.5).view(np.int64),
        *(given["values"].ctypes.data, 2, 3),
        *(given["places"].ctypes.data, 7),
        *(given["out"].ctypes.data, 3),
    ]
    assert table.address == table.entries.ctypes.data
    assert EXAMPLE.positions == {"samples": 0, "factor": 1, "values": 2, "places": 5, "out": 7}


def test_table_takes_bools_as_ints_and_ints_as_floats():
    table = Table(Arguments("numbers", flag=int, factor=float), {"flag": True, "factor": 3})
    assert table.entries[0] == 1
    assert table.entries[1:].view(np.float64)[0] == 3.0


def test_table_without_arguments_has_an_entry_to_point_to():
    assert Table(Arguments("nothing"), {}).entries.tolist() == [0]


def test_array_that_is_none_is_an_empty_entry_and_may_stay_unused():
    assert Table(EXAMPLE, example(values=None)).entries[2:5].tolist() == [0, 0, 0]
    out = np.zeros(2)
    elementwise["exp"](x=np.array([0.0, -np.inf]), y=None, out=out)
    assert out.tolist() == [1.0, 0.0]


# --- what is refused -----------------------------------------------------------------------------


def test_missing_and_unknown_arguments_are_named():
    given = example(extra=1)
    del given["values"], given["factor"]
    with pytest.raises(TypeError) as refused:
        Table(EXAMPLE, given)
    wanted = "arguments of example: ['factor', 'values'] are missing, ['extra'] are unknown"
    assert str(refused.value) == wanted


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("values", np.zeros((2, 3), np.float32), "must be an array of float64; got float32"),
        ("values", [[0.0] * 3] * 2, "must be an array of float64; got list"),
        ("places", np.zeros(7, np.int32), "must be an array of int64; got int32"),
        ("out", np.zeros((3, 4), np.int64), "must be an array of float64; got int64"),
        ("values", np.zeros((3, 2)).T, "must be C-contiguous; got strides (8, 16)"),
        ("values", np.zeros((2, 6))[:, ::2], "must be C-contiguous; got strides (48, 16)"),
        ("values", np.zeros((3, 3)), "must have shape ('samples', 3) = (2, 3); got (3, 3)"),
        ("values", np.zeros((2, 4)), "must have shape ('samples', 3) = (2, 3); got (2, 4)"),
        ("values", np.zeros(6), "must have shape ('samples', 3) = (2, 3); got (6,)"),
        ("places", np.zeros((7, 1), int), "must have shape (None,) = (None,); got (7, 1)"),
        ("out", np.zeros((2, 4)), "must have shape ('2 * samples - 1', 4) = (3, 4); got (2, 4)"),
        ("out", np.zeros((3, 3)), "must have shape ('2 * samples - 1', 4) = (3, 4); got (3, 3)"),
        ("out", np.zeros(3), "must have shape ('2 * samples - 1', 4) = (3, 4); got (3,)"),
    ],
)
def test_array_of_another_kind_or_shape_is_refused_by_name(name, value, message):
    with pytest.raises(TypeError) as refused:
        Table(EXAMPLE, example(**{name: value}))
    assert str(refused.value) == f"{name} of example {message}"


def test_compiled_function_with_arguments_that_do_not_fit_is_not_called():
    out = np.zeros(1)
    with pytest.raises(TypeError, match="columns of combine_rows must have shape"):
        combine_rows(
            1,
            weights=np.ones((1, 1)),
            values=np.ones((1, 1)),
            columns=np.zeros((1, 3), dtype=np.int64),
            out=out,
        )
    assert out[0] == 0.0


# --- other arguments from these ------------------------------------------------------------------


def test_extended_arguments_begin_with_the_own_ones():
    longer = EXAMPLE.extended("longer", more=floats(2))
    assert list(longer.fields) == [*EXAMPLE.fields, "more"]
    assert EXAMPLE.positions.items() <= longer.positions.items()
    assert longer.positions["more"] > max(EXAMPLE.positions.values())
    with pytest.raises(TypeError, match="more of longer must have shape"):
        Table(longer, example(more=np.zeros(3)))


def test_array_in_single_precision_is_taken_only_where_it_is_declared():
    narrow = Arguments("narrow", values=floats(2, dtype="float32"))
    Table(narrow, {"values": np.zeros(2, np.float32)})
    with pytest.raises(TypeError, match="values of narrow must be an array of float32"):
        Table(narrow, {"values": np.zeros(2)})


# --- functions -----------------------------------------------------------------------------------


def test_compiled_function_works_on_as_many_rows_as_it_is_told():
    out = np.zeros(3)
    columns = np.array([[1, 0, -1, -1]])
    weights, values = np.array([[1.0, 10.0]] * 3), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    combine_rows(2, weights=weights, values=values, columns=columns, out=out)
    assert out.tolist() == [21.0, 43.0, 0.0]
    combine_rows.at(5, 3, weights=weights, values=values, columns=columns, out=out)
    assert out.tolist() == [21.0, 43.0, 65.0]


@pytest.mark.skipif(LIBRARY is None, reason="there is no library in this process")
def test_function_that_is_not_in_the_library_is_refused_with_a_remedy():
    @native(EXAMPLE)
    def of_a_user(a, first, count):
        a.values[0, 0] = a.factor

    with pytest.raises(TypeError, match=r"of_a_user is not in the compiled library.*=jit"):
        of_a_user(**example())


def test_tool_of_compiled_code_called_from_python_is_refused():
    with pytest.raises(TypeError, match="from compiled code only"):
        compiled_only(1.0, 2.0)


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (int, 2.7, "number of demo must be an int; got 2.7"),
        (int, None, "number of demo must be an int; got None"),
        (float, None, "number of demo must be a float; got None"),
        (float, "a", "number of demo must be a float; got 'a'"),
    ],
)
def test_table_with_a_number_of_another_type_names_it(kind, value, words):
    with pytest.raises(TypeError, match=words):
        Table(Arguments("demo", number=kind), {"number": value})
