"""Arrays inside compiled functions: elements, parts, lengths, lanes, float32."""

import numpy as np
import pytest

from kernelbank.native.arguments import Arguments, floats, ints, lanes
from kernelbank.native.functions import native
from kernelbank.native.jit import inline
from kernelbank.native.simd import fma, lane
from kernelbank.native.views import (
    columns_from,
    load_four,
    row_length,
    store_four,
)

NUMBERS = Arguments(
    "numbers",
    index=int,
    factor=float,
    cube=floats(None, None, None),
    row=floats(None),
    places=ints(None, None),
    out=floats(None),
)


def numbers(**instead):
    given = {
        "index": 1,
        "factor": 0.5,
        "cube": np.arange(24.0).reshape(2, 3, 4),
        "row": np.arange(10.0),
        "places": np.array([[5, 6, 7], [8, 9, 2**40]]),
        "out": np.zeros(8),
    }
    return {**given, **instead}


def results(function, first=0, count=0, **instead):
    """What a function of NUMBERS writes to `out`."""
    given = numbers(**instead)
    function.at(first, count, **given)
    return given["out"].tolist()


@native(NUMBERS)
def read_elements(a, first, count):
    a.out[0] = a.cube[1, 2, 3]
    a.out[1] = a.cube[a.index][2][0]
    a.out[2] = a.cube[0, a.index][3]
    a.out[3] = a.row[a.index] * a.factor
    a.out[4] = a.places[1, 2]
    a.out[5] = first
    a.out[6] = count


def test_elements_by_all_or_some_indices_are_those_of_numpy():
    cube = numbers()["cube"]
    wanted = [cube[1, 2, 3], cube[1, 2, 0], cube[0, 1, 3], 0.5, 2.0**40, 7.0, 3.0, 0.0]
    assert results(read_elements, 7, 3) == wanted


@native(NUMBERS)
def write_elements(a, first, count):
    a.cube[1, 2, 3] = 100
    a.cube[a.index][0][1] = 200.5
    a.places[0, 1] = 7
    row = a.places[1]
    row[0] += row[1]


def test_elements_written_through_parts_reach_the_array():
    given = numbers()
    wanted, places = given["cube"].copy(), given["places"].copy()
    write_elements(**given)
    wanted[1, 2, 3], wanted[1, 0, 1] = 100, 200.5
    places[0, 1], places[1, 0] = 7, 17
    assert (given["cube"] == wanted).all()
    assert (given["places"] == places).all()


@native(NUMBERS)
def read_slices(a, first, count):
    tail = a.row[3:]
    middle = a.row[2 : a.index + 4]
    a.out[0] = tail[0]
    a.out[1] = len(tail)
    a.out[2] = middle[2]
    a.out[3] = len(middle)
    a.out[4] = len(a.row[4:99])
    planes = a.cube[1:]
    a.out[5] = planes[0, 0, 1]
    a.out[6] = len(planes)
    a.out[7] = a.cube[0][1:][1, 2]


def test_slices_begin_at_their_start_and_end_with_the_array():
    assert results(read_slices) == [3.0, 7.0, 4.0, 3.0, 6.0, 13.0, 1.0, 10.0]


@native(NUMBERS)
def lengths(a, first, count):
    a.out[0] = len(a.cube)
    a.out[1] = len(a.cube[0])
    a.out[2] = len(a.cube[0, 0])
    a.out[3] = len(a.places)
    a.out[4] = row_length(a.places)
    a.out[5] = row_length(a.cube[0])
    a.out[6] = len(a.row)


def test_lengths_are_those_of_the_arrays_given():
    assert results(lengths) == [2.0, 3.0, 4.0, 2.0, 3.0, 4.0, 10.0, 0.0]
    other = {"cube": np.zeros((5, 1, 2)), "row": np.zeros(0)}
    assert results(lengths, **other) == [5.0, 1.0, 2.0, 2.0, 3.0, 2.0, 0.0, 0.0]


@inline
def _total(row):
    total = 0.0
    for i in range(len(row)):
        total += row[i]
    return total


@native(NUMBERS)
def totals(a, first, count):
    for i in range(len(a.cube[0])):
        a.out[i] = _total(a.cube[a.index, i])


def test_rows_may_be_given_to_inline_functions():
    assert results(totals)[:3] == numbers()["cube"][1].sum(axis=1).tolist()


@native(NUMBERS)
def columns(a, first, count):
    part = columns_from(a.cube[0], 2)
    a.out[0] = part[0, 0]
    a.out[1] = part[1, 1]
    a.out[2] = row_length(part)
    part[2, 0] = -1.0


def test_columns_from_a_place_have_the_same_rows():
    given = numbers()
    columns(**given)
    assert given["out"][:3].tolist() == [2.0, 7.0, 4.0]
    assert given["cube"][0, 2].tolist() == [8.0, 9.0, -1.0, 11.0]


# --- lanes ---------------------------------------------------------------------------------------

LANES = Arguments(
    "lanes", factor=float, values=lanes(None, None), row=floats(None), out=lanes(None)
)


def four_lanes():
    return {
        "factor": 2.0,
        "values": np.arange(24.0).reshape(2, 3, 4),
        "row": np.arange(10.0),
        "out": np.zeros((4, 4)),
    }


@native(LANES)
def use_lanes(a, first, count):
    a.out[0] = a.values[1, 2] * a.factor + 1
    a.out[1] = fma(a.values[0][1:][0], 2.0, lane(a.values[0, 0], 3))
    a.out[2] = load_four(a.row, 5)
    a.out[3] = a.factor
    store_four(a.row, 1, -a.values[0, 2])
    part = columns_from(a.values, 1)
    part[0, 0] = part[0, 0] + 100.0


def test_elements_of_lanes_are_four_numbers():
    given = four_lanes()
    values = given["values"].copy()
    use_lanes(**given)
    wanted = [
        values[1, 2] * 2 + 1,
        values[0, 1] * 2 + values[0, 0, 3],
        np.arange(5.0, 9.0),
        [2.0] * 4,
    ]
    assert (given["out"] == np.array(wanted)).all()
    assert given["row"].tolist() == [0.0, -8.0, -9.0, -10.0, -11.0, *range(5, 10)]
    assert (given["values"][0, 1] == values[0, 1] + 100).all()
    assert (given["values"][[0, 1], [0, 2]] == values[[0, 1], [0, 2]]).all()


# --- float32 -------------------------------------------------------------------------------------

WIDE = Arguments("wide", rows=floats(None, None), out=floats(None))
NARROW = Arguments("narrow", rows=floats(None, None, dtype="float32"), out=floats(None))


@native(WIDE)
def mix(a, first, count):
    row = a.rows[1]
    a.out[4] = row[0] + 1e-12
    row[1] = 1.0 / 3.0
    store_four(a.out, 0, load_four(row, 0) * 2.0)


narrow_mix = mix.with_arguments(NARROW)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays_of_either_precision_are_read_as_float64_and_rounded_when_written(dtype):
    function = mix if dtype is np.float64 else narrow_mix
    rows = np.arange(8, dtype=dtype).reshape(2, 4) / 10
    out = np.zeros(5)
    function(rows=rows, out=out)
    assert rows[1, 1] == dtype(1 / 3)
    assert out[:4].tolist() == (rows[1].astype(float) * 2).tolist()
    assert out[4] == float(rows[1, 0]) + 1e-12


def test_function_for_other_arguments_has_a_symbol_of_its_own():
    assert narrow_mix.symbol == f"{mix.symbol}_narrow"
