"""What is remembered of the groups of a pool, and which slots go on."""

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelbank as kb
from kernelbank.bank.slot_history import Selection, continued_slots
from kernelbank.errors import FileRefused

POOL = 6
GROUPS = st.sets(st.integers(0, POOL - 1), min_size=1)


@given(st.lists(st.tuples(GROUPS, GROUPS), min_size=1, max_size=8), st.integers(0, 2))
def test_tries_retirements_and_idle_revisions_are_counted(revisions, grace):
    selection = Selection.first([0, 1], POOL)
    runs, ends, idle = [1, 1, 0, 0, 0, 0], [0] * POOL, [0] * POOL
    for number, (running, light) in enumerate(revisions, 1):
        before = set(selection.running)
        judged = selection.judge(10 * number, light)
        after = judged.change(sorted(running), grace)
        for group in range(POOL):
            if group in before:
                idle[group] = idle[group] + 1 if group in light else 0
                assert judged.idle[group] == idle[group]
            if group in running - before:
                runs[group] += 1
                idle[group] = -grace
            if group in before - running:
                ends[group], idle[group] = 10 * number, 0
        kinds = [("retired", g) for g in sorted(before - running)]
        assert selection.changes(after) == kinds + [("added", g) for g in sorted(running - before)]
        assert (list(after.tries), list(after.retired), list(after.idle)) == (runs, ends, idle)
        assert (set(after.running), after.revised) == (running, 10 * number)
        if grace < 2:
            assert Selection.parse(json.loads(json.dumps(asdict(after))), POOL) == after
        selection = after


def test_groups_that_join_are_too_new_to_be_judged():
    joined = Selection.first([1, 4], POOL).with_new([0, 4])
    assert joined.running == (0, 1, 4)
    assert joined.idle == (-1, 0, 0, 0, -1, 0)
    assert joined.judge(9, [0, 1, 4]).idle == (0, 1, 0, 0, 0, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"running": []},
        {"running": [0, 0]},
        {"running": [0, POOL]},
        {"running": [-1, 0]},
        {"running": [0.0]},
        {"running": 5},
        {"tries": [0]},
        {"tries": [0.5] * POOL},
        {"tries": [2**53] * POOL},
        {"retired": [0] * (POOL + 1)},
        {"retired": [-1] * POOL},
        {"idle": [-2] * POOL},
        {"revised": True},
        {"revised": None},
        {"other": 1},
    ],
    ids=str,
)
def test_forged_selection_is_refused(change):
    spec = asdict(Selection.first([0, 1], POOL))
    assert Selection.parse(spec, POOL)
    with pytest.raises(FileRefused, match="its selection of slots is impossible"):
        Selection.parse(spec | change, POOL)
    for wrong in (None, [1], "running"):
        with pytest.raises(FileRefused):
            Selection.parse(wrong, POOL)


def test_slots_go_on_if_they_are_the_same_whatever_the_index_of_their_base():
    def slot(width, residual_of=None):
        return kb.Slot(kb.kernels.Gaussian(width), kb.learners.Norma(), residual_of=residual_of)

    before = {3: slot(1.0), 5: slot(2.0), 8: slot(3.0, residual_of=1)}
    after = {2: slot(4.0), 5: slot(2.0), 8: slot(3.0, residual_of=1), 9: slot(3.0)}
    assert continued_slots(before, after) == [None, 1, 2, None]
    moved = {5: slot(2.0), 8: slot(3.0, residual_of=0)}
    assert continued_slots(before, moved) == [1, 2]
    assert continued_slots(before, moved, anew=[5, 9]) == [None, 2]
    assert continued_slots(before, {3: slot(1.5)}) == [None]
