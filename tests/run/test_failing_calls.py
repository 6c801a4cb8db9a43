"""Calls of the system that fail: one line names the file, and nothing is lost.

The faults are below Python: what the interpreter, pyarrow and the client of Redis do fails as well."""

import errno
import os
import random
from pathlib import Path

import pytest

from support.crash_scenarios import SCENARIOS, check_one_line
from support.failing_calls import ERRORS, CallFault
from support.marks import slow

HOW_MANY = 5
"""Faults at random for each scenario."""


def need_server(scenarios, name):
    if name == "redis" and scenarios.redis is None:
        pytest.skip("there is no redis-server")


FULL, BROKEN, ROOM = errno.ENOSPC, errno.EIO, errno.EDQUOT

NEW = [
    ("messy", CallFault("mkdir", "/state$", 1, "fail", FULL)),
    ("messy", CallFault("open", "/lock$", 1, "fail", errno.EMFILE)),
    ("messy", CallFault("flock", "/lock$", 1, "fail", errno.ENOLCK)),
    ("messy", CallFault("close", "/lock$", 1, "fail", BROKEN)),
    ("messy", CallFault("open", "/.state.kb.", 2, "fail", errno.EROFS)),
    ("messy", CallFault("write", "/.state.kb.", 200, "fail", FULL)),
    ("messy", CallFault("write", "/.state.kb.", 200, "short")),
    ("messy", CallFault("close", "/.state.kb.", 3, "fail", ROOM)),
    ("messy", CallFault("fsync", "/state$", 4, "fail", BROKEN)),
    ("messy", CallFault("rename", "/state.kb$", 3, "fail", errno.EROFS)),
    ("messy", CallFault("flock", "/predictions.csv$", 1, "fail", errno.ENOLCK)),
    ("messy", CallFault("write", "/predictions.csv$", 3, "short")),
    ("messy", CallFault("write", "/predictions.csv$", 3, "fail", errno.EINTR)),
    ("messy", CallFault("fsync", "/predictions.csv$", 3, "fail", ROOM)),
    ("messy", CallFault("close", "/predictions.csv$", 2, "fail", BROKEN)),
    ("messy", CallFault("write", "/bad-rows.jsonl$", 2, "fail", FULL, True)),
    ("messy", CallFault("read", "/messy.csv$", 5, "fail", BROKEN)),
    ("messy", CallFault("read", "/messy.csv$", 5, "short")),
    ("messy", CallFault("close", "/messy.csv$", 2, "fail", BROKEN, True)),
    ("messy", CallFault("open", "/messy.csv$", 2, "fail", errno.EMFILE)),
    ("parts", CallFault("mkdir", "/predictions.parquet$", 1, "fail", FULL)),
    ("parts", CallFault("write", "/.part-", 2, "fail", FULL)),
    ("parts", CallFault("write", "/.part-", 2, "short")),
    ("parts", CallFault("rename", "/part-", 2, "fail", BROKEN)),
    ("parts", CallFault("fsync", "/predictions.parquet$", 3, "fail", BROKEN)),
    ("redis", CallFault("connect", "socket:", 2, "fail", errno.ECONNREFUSED)),
    ("redis", CallFault("send", "socket:", 9, "fail", errno.EPIPE)),
    ("redis", CallFault("recv", "socket:", 12, "fail", errno.ECONNRESET)),
    ("redis", CallFault("send", "socket:", 9, "after")),
]
"""The calls of a new run; the same with other errors and at other times are drawn below."""

RESUMED = [
    CallFault("read", "/state.kb$", 1, "fail", BROKEN),
    CallFault("read", "/predictions.csv$", 1, "fail", BROKEN),
    CallFault("ftruncate", "/predictions.csv$", 1, "fail", BROKEN),
    CallFault("read", "/bad-rows.jsonl$", 1, "fail", BROKEN),
    CallFault("ftruncate", "/bad-rows.jsonl$", 1, "after"),
]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        pytest.param(*one, marks=[pytest.mark.slow] if number % 12 else [])
        for number, one in enumerate(NEW)
    ],
)
def test_call_that_fails_is_told_by_name_and_loses_nothing(scenarios, name, fault):
    need_server(scenarios, name)
    scenarios.check(name, [fault])


@pytest.mark.slow
@pytest.mark.parametrize("fault", RESUMED)
def test_call_that_fails_in_a_resumed_run_loses_nothing(scenarios, fault):
    scenarios.check("messy", [fault], resumed=True)


@pytest.mark.slow
def test_every_fault_of_these_tests_strikes(scenarios):
    """A part of a path that fits nothing would test nothing."""
    for name, fault in [*NEW, *(("messy", fault) for fault in RESUMED)]:
        if name == "redis" and scenarios.redis is None:
            continue
        found = scenarios.calls(name, resumed=fault in RESUMED)
        assert found[fault.call, fault.path] >= fault.nth, (fault, found)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_calls_that_fail_at_random_lose_nothing(scenarios, name):
    need_server(scenarios, name)
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

SAVING = [
    CallFault("open", "/.model.kb.", 1, "fail", errno.EMFILE),
    CallFault("write", "/.model.kb.", 1, "fail", FULL, True),
    CallFault("write", "/.model.kb.", 2, "fail", ROOM),
    CallFault("write", "/.model.kb.", 1, "short"),
    CallFault("fsync", "/.model.kb.", 1, "fail", BROKEN),
    CallFault("close", "/.model.kb.", 1, "fail", FULL),
    CallFault("rename", "/model.kb$", 1, "fail", errno.EROFS),
    CallFault("rename", "/model.kb$", 1, "before"),
    CallFault("rename", "/model.kb$", 1, "after"),
    CallFault("write", "/.model.kb.", 1, "after"),
]


@pytest.mark.slow
@pytest.mark.parametrize("fault", SAVING)
def test_save_that_fails_leaves_the_old_file_or_the_new_one(scenarios, fault):
    folder, forks = scenarios.folder(), scenarios.forks
    path = folder / "model.kb"
    assert forks.run(["-c", SAVE.format(count=3)], folder).code == 0
    old = path.read_bytes()
    ended = forks.run(["-c", SAVE.format(count=9)], folder, fault)
    if ended.killed:
        assert (path.read_bytes() == old) == (
            fault != CallFault("rename", "/model.kb$", 1, "after")
        )
    elif ended.code:
        check_one_line(ended, "model.kb", os.strerror(fault.number))
        assert path.read_bytes() == old
        assert [file.name for file in folder.iterdir()] == ["model.kb"]
    else:
        assert fault.how == "short"
    assert forks.run(["-c", SAVE.format(count=9)], folder).code == 0
    assert forks.run(["-c", LOAD], folder).stderr == "9\n"


LOADING = [
    CallFault("open", "/model.kb$", 1, "fail", errno.EMFILE),
    CallFault("read", "/model.kb$", 1, "fail", BROKEN),
    CallFault("read", "/model.kb$", 2, "fail", BROKEN),
    CallFault("read", "/model.kb$", 1, "short"),
    CallFault("close", "/model.kb$", 1, "fail", BROKEN),
]


@pytest.mark.parametrize("fault", LOADING)
def test_load_that_fails_names_the_file(scenarios, fault):
    folder, forks = scenarios.folder(), scenarios.forks
    assert forks.run(["-c", SAVE.format(count=3)], folder).code == 0
    ended = forks.run(["-c", LOAD], folder, fault)
    if ended.code:
        check_one_line(ended, "model.kb", os.strerror(fault.number))
    else:
        assert ended.stderr == "3\n"


REPORT = [
    CallFault("read", "/state.kb$", 1, "fail", BROKEN),
    CallFault("open", "page.html", 1, "fail", errno.EROFS),
    CallFault("write", "page.html", 1, "fail", FULL, True),
    CallFault("rename", "page.html", 1, "fail", BROKEN),
]


@pytest.mark.parametrize("fault", [REPORT[0], REPORT[2], *(slow(REPORT[k]) for k in (1, 3))])
def test_report_that_fails_names_the_file(scenarios, fault):
    folder, forks = scenarios.folder(), scenarios.forks
    assert scenarios.run("messy", folder).code == 0
    command = ["report", "state", "--out", "page.html"]
    assert forks.run(command, folder).code == 0
    page = (folder / "page.html").read_bytes()
    name = "page.html" if "page" in fault.path else "state.kb"
    check_one_line(forks.run(command, folder, fault), name, os.strerror(fault.number))
    assert (folder / "page.html").read_bytes() == page
    assert not list(Path(folder).glob(".page*"))


def test_every_call_has_errors_to_fail_with(scenarios):
    for name in ("messy", "parts"):
        assert {call for call, _ in scenarios.calls(name, resumed=True)} <= set(ERRORS)
