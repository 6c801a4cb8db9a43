"""Phases: order, parallel stages, Python functions among them, arrays that are exchanged."""

import numpy as np
import pytest

from kernelbank.bank.slot_metrics import combine_rows, scatter_leaves
from kernelbank.native.arguments import floats
from kernelbank.native.callbacks import inside_callback
from kernelbank.native.phases import ParallelPhases, Phase, Phases, run_phases
from kernelbank.native.scalar_math import elementwise

COLUMNS = np.array([[1, 0, -1, -1]])  # of two slots in one leaf


def arrays(rows=3):
    """Values of the leaf (1, n, 4), values of the slots (n, 2), and the combination (n,)."""
    leaf = np.arange(4.0 * rows).reshape(1, rows, 4)
    return leaf, np.full((rows, 2), np.nan), np.full(rows, np.nan)


def scatter(leaf, slots):
    return Phase(scatter_leaves, values=leaf, columns=COLUMNS, out=slots)


def combine(slots, out):
    weights = np.array([[1.0, 100.0]] * len(slots))
    return Phase(combine_rows, weights=weights, values=slots, columns=COLUMNS, out=out)


def test_phases_run_in_order_on_the_samples_of_the_block():
    leaf, slots, out = arrays()
    Phases([scatter(leaf, slots), combine(slots, out)]).run(7, 2)
    assert slots[:2].tolist() == [[1.0, 0.0], [5.0, 4.0]]
    assert out[:2].tolist() == [1.0, 405.0]
    assert np.isnan(slots[2]).all()
    assert np.isnan(out[2])


def test_phases_in_the_other_order_use_what_was_there_before():
    leaf, slots, out = arrays()
    slots[:] = 2.0
    Phases([combine(slots, out), scatter(leaf, slots)]).run(0, 1)
    assert out[0] == 202.0
    assert slots[0].tolist() == [1.0, 0.0]


def test_phases_added_run_those_of_both():
    leaf, slots, out = arrays()
    both = Phases([scatter(leaf, slots)]) + Phases([combine(slots, out)])
    assert both.names == ("scatter_leaves", "combine_rows")
    both.run(0, 3)
    assert out.tolist() == [1.0, 405.0, 809.0]


def test_phases_without_members_do_nothing():
    empty = Phases([])
    empty.run(0, 5)
    assert (empty.names, empty.callbacks, empty.stages()) == ((), (), [])


def test_phases_as_a_phase_run_inside_other_phases():
    leaf, slots, out = arrays()
    members = [scatter(leaf, slots), combine(slots, out)]
    entries = np.array([member.entry for member in members])
    Phases([Phase(run_phases, entries=entries)]).run(0, 1)
    assert out[0] == 1.0


# --- one phase -----------------------------------------------------------------------------------


def test_phase_alone_runs_on_the_samples_given():
    leaf, slots, _ = arrays()
    phase = scatter(leaf, slots)
    assert phase.name == "scatter_leaves"
    assert phase.callback is None
    phase.run(0, 1)
    assert slots[0].tolist() == [1.0, 0.0]
    assert np.isnan(slots[1:]).all()


def test_bound_phase_reads_its_arrays_at_each_call():
    x, out = np.array([0.0]), np.zeros(1)
    phase = Phase(elementwise["exp"], x=x, y=None, out=out)
    call = phase.bound()
    call()
    assert out[0] == 1.0
    x[0] = -np.inf
    call()
    assert out[0] == 0.0


def test_phase_with_more_arguments_than_its_function_reads_its_own():
    x, out = np.array([0.0]), np.zeros(1)
    function = elementwise["exp"]
    longer = function.arguments.extended("longer", more=floats(2))
    Phases([Phase(function, longer, x=x, y=None, out=out, more=np.zeros(2))]).run(0, 1)
    assert out[0] == 1.0


def test_phase_with_an_argument_that_does_not_fit_is_refused_by_name():
    leaf, slots, _ = arrays()
    with pytest.raises(TypeError, match=r"values of scatter_leaves must have shape"):
        scatter(leaf[:, :, :3].copy(), slots)
    with pytest.raises(TypeError, match=r"\['out'\] are missing"):
        Phase(scatter_leaves, values=leaf, columns=COLUMNS)


# --- stages --------------------------------------------------------------------------------------


def recording(calls, name):
    return Phase.from_python(lambda first, count: calls.append((name, first, count)))


def test_stages_of_parallel_phases_keep_the_order_and_stand_alone():
    calls = []
    a, b, c, d, e, f = (recording(calls, name) for name in "abcdef")
    phases = Phases([a, b, ParallelPhases([c, d]), ParallelPhases([e]), f])
    phases.run(5, 2)
    assert calls == [(name, 5, 2) for name in "abcdef"]
    stages = phases.stages()
    assert [len(stage) for stage in stages] == [1, 2, 1, 1]
    for stage, names in zip(stages, [["ab"], ["c", "d"], ["e"], ["f"]], strict=True):
        for member, own in zip(stage, names, strict=True):
            calls.clear()
            member.run(0, 1)
            assert "".join(name for name, *_ in calls) == own


# --- Python functions ----------------------------------------------------------------------------


def test_phase_from_python_runs_between_compiled_ones():
    leaf, slots, out = arrays()
    seen = []

    def double(first, count):
        seen.append((first, count, inside_callback()))
        slots[:count] *= 2

    middle = Phase.from_python(double)
    phases = Phases([scatter(leaf, slots), middle, combine(slots, out)])
    phases.run(4, 3)
    assert seen == [(4, 3, True)]
    assert not inside_callback()
    assert out.tolist() == [2.0, 810.0, 1618.0]
    assert phases.names == ("scatter_leaves", "callback", "combine_rows")
    assert phases.callbacks == (middle.callback,)


def test_phase_from_python_that_raises_is_noted_and_raised_once_by_check():
    calls = []

    def fails(first, count):
        raise ValueError(f"at {first}")

    phases = Phases([Phase.from_python(fails), recording(calls, "after")])
    (callback, other) = phases.callbacks
    phases.run(3, 1)
    phases.run(4, 1)
    assert [name for name, *_ in calls] == ["after", "after"]
    with pytest.raises(ValueError, match="at 3"):  # the first of the two
        callback.check()
    callback.check()
    other.check()
    phases.run(5, 1)
    assert str(callback.take_error()) == "at 5"
    assert callback.take_error() is None


def test_phase_from_python_that_is_interrupted_keeps_the_interrupt():
    def interrupted(first, count):
        raise KeyboardInterrupt

    phases = Phases([Phase.from_python(interrupted)])
    phases.run(0, 1)
    with pytest.raises(KeyboardInterrupt):
        phases.callbacks[0].check()


def test_phase_from_python_with_an_overflow_does_not_warn():
    result = []
    phase = Phase.from_python(lambda *_: result.append(np.float64(1e300) * 1e300))
    Phases([phase]).run(0, 1)
    phase.callback.check()
    assert result == [np.inf]
