"""The live page's server: how it starts, and how it ends with the run or without it."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import warnings
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import kernelbank
from kernelbank.errors import InvalidArgument, KernelBankWarning, RunRefused
from kernelbank.run.live import page as live_page
from kernelbank.run.live.page import LivePage
from kernelbank.run.live.server import Limits, VersionedParts
from support.live_viewers import Viewer, host_and_port, is_alive, open_files, request, wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc")

SOURCES = str(Path(kernelbank.__file__).parents[1])


@pytest.fixture
def page():
    with LivePage(limits=Limits(poll_interval=0.02)) as page:
        yield page


@pytest.fixture
def temporary_folder(tmp_path, monkeypatch):
    """The folder in which pages make theirs."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def pid(page):
    return page._process.pid


# --- the run ends ---------------------------------------------------------------------------------


def test_end_reaches_viewers_after_the_last_parts_and_leaves_nothing(temporary_folder):
    before = open_files(), threading.active_count()
    page = LivePage()
    with closing(Viewer(page.address)) as viewer, closing(Viewer(page.address)) as idle:
        page.publish({"status": "1", "big": json.dumps("x" * 2_000_000)})
        readers = [
            threading.Thread(target=lambda one=one: one.follow_until(lambda _: one.ended))
            for one in (viewer, idle)
        ]
        for reader in readers:
            reader.start()
        page.end()
        for reader in readers:
            reader.join()
        assert viewer.ended
        assert viewer.parts["status"] == idle.parts["status"] == 1
        assert not viewer.read_event()
    assert page._process.returncode == 0
    assert not is_alive(pid(page))
    page.publish({"status": "2"})
    page.end()
    page.close()
    assert (open_files(), threading.active_count()) == before
    assert list(temporary_folder.iterdir()) == []


def test_end_with_a_stopped_server_waits_for_a_limited_time(monkeypatch, temporary_folder):
    monkeypatch.setattr(live_page, "_END_TIMEOUT", 0.5)
    page = LivePage()
    os.kill(pid(page), signal.SIGSTOP)
    page.publish({"big": json.dumps("x" * 300_000)})
    page.end()
    assert not is_alive(pid(page))
    assert list(temporary_folder.iterdir()) == []


RUN = """
import os, sys, time
{start}
from kernelbank.run.live.page import LivePage
page = LivePage()
page.publish({{"status": "1"}})
{then}
print(page._process.pid, page.address, flush=True)
{end}
"""
ENDS = {
    "killed": ("", "time.sleep(60)"),
    "killed, with a child that holds its files": (
        "if os.fork() == 0:\n    os.close(1)\n    time.sleep(15)\n    os._exit(0)",
        "time.sleep(60)",
    ),
    "an error": ("", "raise RuntimeError"),
    "without closing": ("", ""),
    "os._exit": ("", "os._exit(0)"),
}


def start_run(folder, start, then, end, **environment):
    script = folder / "run.py"
    script.write_text(RUN.format(start=start, then=then, end=end))
    return subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env={**os.environ, **environment},
        text=True,
    )


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.slow
def test_server_of_a_run_that_ends_without_end_ends_and_removes_the_folder(tmp_path, how):
    (tmp_path / "temporary").mkdir()
    places = {"PYTHONPATH": SOURCES, "TMPDIR": str(tmp_path / "temporary")}
    with start_run(tmp_path, "", *ENDS[how], **places) as run:
        assert run.stdout is not None
        number, address = run.stdout.readline().split()
        if how.startswith("killed"):
            assert request(address)[0] == 200
            run.kill()
    assert wait_until(lambda: not is_alive(int(number)), 5.0)
    assert list((tmp_path / "temporary").iterdir()) == []


# --- the server ends ------------------------------------------------------------------------------


def test_killed_server_gives_one_warning_and_the_run_goes_on(page):
    page.publish({"status": "1"})
    os.kill(pid(page), signal.SIGKILL)
    assert wait_until(lambda: page._process.poll() is not None)
    with pytest.warns(KernelBankWarning, match="live page has gone: its server ended"):
        page.publish({"status": "2"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for row in range(100):
            page.publish({"status": str(row), "big": "x" * 1_000_000})
        page.end()


def test_folder_that_cannot_be_written_gives_one_warning_and_the_run_goes_on(page):
    shutil.rmtree(page._folder)
    with pytest.warns(KernelBankWarning, match="live page has gone: its folder .* cannot be"):
        page.publish({"status": "1"})
    assert not is_alive(pid(page))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        page.publish({"status": "2"})
        page.end()


# --- the start ------------------------------------------------------------------------------------


def test_taken_port_is_refused(temporary_folder):
    before = open_files()
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        with pytest.raises(RunRefused, match=f"port {port} of 127.0.0.1 is taken.*another port"):
            LivePage(port=port)
    with LivePage(port=port) as page:
        assert host_and_port(page.address) == ("127.0.0.1", port)
    assert open_files() == before
    assert list(temporary_folder.iterdir()) == []


def test_host_or_port_that_is_not_of_this_machine_is_refused():
    with pytest.raises(RunRefused, match=r"cannot listen on port 0 of 192\.0\.2\.1: .* Give an"):
        LivePage("192.0.2.1")
    with pytest.raises(RunRefused, match="cannot listen on port 0 of nowhere"):
        LivePage("nowhere.invalid")
    for port in (-1, 65_536, 1.5, "80", True):
        with pytest.raises(InvalidArgument, match="'port' of LivePage must be a whole number"):
            LivePage(port=port)
    with pytest.raises(InvalidArgument, match="'host' of LivePage"):
        LivePage("")


def test_page_on_all_addresses_accepts_any_host_name_with_the_token():
    with LivePage("0.0.0.0") as page:
        assert "0.0.0.0" not in page.address
        here = f"http://127.0.0.1:{page.port}{urlsplit(page.address).path}"
        assert request(here)[0] == request(here, Host="some.name")[0] == 200
        assert request(here, "/")[0] == 403


def test_server_that_cannot_start_is_refused(monkeypatch, temporary_folder):
    monkeypatch.setattr(live_page, "_SERVER_PROGRAM", "raise SystemExit(3)")
    with pytest.raises(RunRefused, match="cannot start: it ended"):
        LivePage()
    monkeypatch.setattr(live_page, "_SERVER_PROGRAM", "import time; time.sleep(60)")
    monkeypatch.setattr(live_page, "_START_TIMEOUT", 0.3)
    with pytest.raises(RunRefused, match="did not listen within"):
        LivePage()
    assert list(temporary_folder.iterdir()) == []


# --- reports in a folder: a reader sees whole versions, and little is left behind ---


def read_with(folder, use):
    """What `use` returns for a reader of the folder."""

    async def read():
        return use(VersionedParts(folder))

    return asyncio.run(read())


def test_reader_that_missed_versions_tells_what_changed_and_what_was_removed(page):
    page.publish({"a": "1", "b": "1", "c": "1"})

    def skip_versions(parts):
        parts.refresh()
        first = parts.version
        page.publish({"a": "2", "c": "1"})  # b removed
        page.publish({"a": "2", "c": "1", "d": "1"})
        page.publish({"a": "2", "c": "1", "b": "2"})  # b again, d removed
        parts.refresh()
        return b"".join(parts.since(first)), b"".join(parts.since(parts.version))

    assert read_with(page._folder, skip_versions) == (b'{"a":2,"b":2}', b"{}")


def test_reader_during_fast_writing_sees_whole_versions_only(page):
    """All parts of a version have the same text; the reader never sees two."""
    done = threading.Event()

    def write():
        for number in range(400):
            page.publish({f"part/{k}": str(number) for k in range(8)})
            assert len(list(page._folder.iterdir())) <= 3
        done.set()

    def read(parts):
        seen = set()
        while not done.is_set():
            parts.refresh()
            texts = set(parts.texts().values())
            assert len(texts) <= 1
            seen |= texts
        parts.refresh()
        return seen, set(parts.texts().values())

    thread = threading.Thread(target=write)
    thread.start()
    seen, last = read_with(page._folder, read)
    thread.join()
    assert last == {"399"}
    assert seen
