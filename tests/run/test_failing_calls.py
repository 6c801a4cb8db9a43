"""Calls of the system that fail: one line names the file, and nothing is lost.

The faults are below Python: what the interpreter, pyarrow and the client of Redis do fails as well."""

import errno
import os
import random

import pytest

from support.crash_scenarios import SCENARIOS, check_one_line, read_files
from support.failing_calls import ERRORS, CallFault

HOW_MANY = 5
"""Faults at random for each scenario."""


FULL, BROKEN, ROOM = errno.ENOSPC, errno.EIO, errno.EDQUOT

NEW = [
    ("messy", CallFault("read", "/messy.csv$", 5, "fail", BROKEN)),
    ("messy", CallFault("write", "/predictions.csv$", 3, "fail", FULL, True)),
    ("messy", CallFault("write", "/predictions.csv$", 3, "short")),
    ("messy", CallFault("close", "/predictions.csv$", 2, "fail", BROKEN)),
    ("messy", CallFault("mkdir", "/state$", 1, "fail", FULL)),
    ("messy", CallFault("flock", "/lock$", 1, "fail", errno.ENOLCK)),
    ("messy", CallFault("write", "/.state.kb.", 200, "fail", FULL)),
    ("messy", CallFault("fsync", "/state$", 4, "fail", BROKEN)),
    ("messy", CallFault("rename", "/state.kb$", 3, "fail", errno.EROFS)),
    ("messy", CallFault("write", "/bad-rows.jsonl$", 2, "fail", FULL, True)),
    ("parts", CallFault("write", "/.part-", 2, "fail", FULL)),
    ("parts", CallFault("rename", "/part-", 2, "fail", BROKEN)),
    ("redis", CallFault("connect", "socket:", 2, "fail", errno.ECONNREFUSED)),
    ("redis", CallFault("send", "socket:", 9, "after")),
]
"""The calls of a new run; the same with other errors and at other times are drawn below."""


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        pytest.param(*one, marks=[pytest.mark.slow] if number % 4 else [])
        for number, one in enumerate(NEW)
    ],
)
def test_call_that_fails_is_told_by_name_and_loses_nothing(scenarios, name, fault):
    scenarios.needs_servers(name)
    scenarios.check(name, [fault])


@pytest.mark.slow
def test_every_fault_of_these_tests_strikes(scenarios):
    """A part of a path that fits nothing would test nothing."""
    for name, fault in NEW:
        if name != "redis" or scenarios.redis is not None:
            assert scenarios.calls(name, resumed=False)[fault.call, fault.path] >= fault.nth


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_calls_that_fail_at_random_lose_nothing(scenarios, name):
    scenarios.needs_servers(name)
    draw = random.Random(name)
    for _ in range(HOW_MANY):
        resumed = draw.random() < 0.5
        drawn = [scenarios.draw(name, resumed, draw) for _ in range(draw.randint(1, 3))]
        scenarios.check(name, drawn, resumed=resumed)


# --- files of banks -------------------------------------------------------------------------------

SAVE = """
import kernelbank as kb
bank = kb.KernelBank(window=5)
for n in range({count}):
    bank.learn_one(float(n), float(n % 3))
bank.save("model.kb")
"""
LOAD = "import kernelbank as kb; print(kb.load('model.kb').samples)"
WRITTEN, RENAMED = "/.model.kb.", CallFault("rename", "/model.kb$", 1, "after")
SAVING = [
    CallFault("open", WRITTEN, 1, "fail", errno.EMFILE),
    CallFault("write", WRITTEN, 1, "fail", FULL, True),
    CallFault("write", WRITTEN, 2, "fail", ROOM),
    CallFault("write", WRITTEN, 1, "short"),
    CallFault("fsync", WRITTEN, 1, "fail", BROKEN),
    CallFault("close", WRITTEN, 1, "fail", FULL),
    CallFault("rename", "/model.kb$", 1, "fail", errno.EROFS),
    CallFault("rename", "/model.kb$", 1, "before"),
    CallFault("write", WRITTEN, 1, "after"),
    RENAMED,
]


@pytest.mark.slow
@pytest.mark.parametrize("fault", SAVING)
def test_save_that_fails_leaves_the_old_file_or_the_new_one(scenarios, fault):
    folder, forks = scenarios.folder(), scenarios.forks
    path = folder / "model.kb"
    assert forks.run(["-c", SAVE.format(count=3)], folder).code == 0
    old = path.read_bytes()
    ended = forks.run(["-c", SAVE.format(count=9)], folder, fault)
    assert (path.read_bytes() == old) == (fault != RENAMED and fault.how != "short")
    if fault.how == "fail":
        check_one_line(ended, "model.kb", os.strerror(fault.number))
        assert [file.name for file in folder.iterdir()] == ["model.kb"]
    assert forks.run(["-c", SAVE.format(count=9)], folder).code == 0
    assert forks.run(["-c", LOAD], folder).stderr == "9\n"


READING = [
    (["-c", LOAD], CallFault("open", "/model.kb$", 1, "fail", errno.EMFILE)),
    (["-c", LOAD], CallFault("read", "/model.kb$", 2, "fail", BROKEN)),
    (["report", "state", "--out", "page.html"], CallFault("read", "/state.kb$", 1, "fail", BROKEN)),
    (["report", "state", "--out", "page.html"], CallFault("write", "page", 1, "fail", FULL, True)),
    (["report", "state", "--out", "page.html"], CallFault("rename", "page", 1, "fail", BROKEN)),
]


@pytest.mark.parametrize(("command", "fault"), READING)
def test_load_or_report_that_fails_names_the_file_and_changes_nothing(scenarios, command, fault):
    folder, forks = scenarios.folder(), scenarios.forks
    assert forks.run(["-c", SAVE.format(count=3)], folder).code == 0
    assert scenarios.run("messy", folder).code == 0
    assert forks.run(command, folder).code == 0
    before = read_files(folder)
    check_one_line(
        forks.run(command, folder, fault), fault.path.strip("/$"), os.strerror(fault.number)
    )
    assert read_files(folder) == before


def test_every_call_has_errors_to_fail_with(scenarios):
    for name in ("messy", "parts"):
        assert {call for call, _ in scenarios.calls(name, resumed=True)} <= set(ERRORS)
