"""Phases: arguments by name, order, parallel stages, arrays that are exchanged."""

import numpy as np
import pytest

from kernelbank.native.phases import (
    ArrayBindings,
    ParallelPhases,
    Phase,
    PhaseArguments,
    Phases,
    argument_fields,
    compiled,
    float32_array,
    float_array,
    int_array,
    read_float,
    read_int,
)

SUM = argument_fields("count", "factor", "values", "small", "indices", "out")


def weighted_sum(args, first, count):
    """out[0] = factor * (sum of values + small + indices) + first + count."""
    total = 0.0
    for i in range(read_int(args, SUM.count)):
        total += float_array(args, SUM.values)[i]
        total += float32_array(args, SUM.small)[i]
        total += int_array(args, SUM.indices)[i]
    float_array(args, SUM.out)[0] = read_float(args, SUM.factor) * total + first + count


def arguments():
    return {
        "count": 2,
        "factor": 0.5,
        "values": np.array([1.0, 2.0]),
        "small": np.array([0.25, 0.5], dtype=np.float32),
        "indices": np.array([10, 20]),
        "out": np.zeros(1),
    }


def test_phase_reads_ints_floats_and_arrays_by_name():
    given = arguments()
    Phases([Phase(compiled(weighted_sum), SUM, **given)]).run(7, 3)
    assert given["out"][0] == 0.5 * 33.75 + 10


def test_phase_with_rebound_arrays_uses_the_new_ones():
    given = arguments()
    phases = Phases([Phase(compiled(weighted_sum), SUM, **given)])
    bindings = ArrayBindings(phases, [given["values"], given["out"]])
    other = np.array([100.0, 200.0]), np.zeros(1)
    bindings.rebind(other)
    phases.run(0, 1)
    assert given["out"][0] == 0
    assert other[1][0] == 0.5 * (300 + 30.75) + 1


@pytest.mark.parametrize("names", [("a",), ("a", "b", "c")])
def test_phase_arguments_with_missing_or_unknown_names_are_refused(names):
    with pytest.raises(TypeError, match=r"the arguments must be \['a', 'b'\]"):
        PhaseArguments(argument_fields("a", "b"), **dict.fromkeys(names, 1))


@pytest.mark.parametrize("array", [np.zeros(3, dtype=np.int32), np.zeros((4, 4))[:, 0]])
def test_phase_arguments_with_another_dtype_or_strides_are_refused(array):
    with pytest.raises(TypeError, match="an array argument must be C-contiguous"):
        PhaseArguments(argument_fields("a"), a=array)


def test_phases_run_in_order_and_stages_keep_parallel_ones_apart():
    calls = []

    def phase(name):
        return Phase.from_python(lambda first, count: calls.append((name, first, count)))

    phases = Phases([phase("a"), phase("b"), ParallelPhases([phase("c"), phase("d")]), phase("e")])
    phases.run(5, 2)
    assert calls == [(name, 5, 2) for name in "abcde"]
    assert [len(stage) for stage in phases.stages()] == [1, 2, 1]
    assert [stage[0].number for stage in phases.stages()] == [2, 1, 1]
    assert len(phases.callbacks) == 5
