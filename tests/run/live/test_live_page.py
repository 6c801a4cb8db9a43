"""Who may see the live page, the events that follow it, and `kernelbank run --live`."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
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
from support.live_viewers import (
    LiveCommand,
    Viewer,
    connect,
    host_and_port,
    is_alive,
    open_files,
    request,
    wait_until,
)

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc")

SECRET = "the rows of this run"


@pytest.fixture(scope="module")
def page():
    with LivePage(limits=Limits(poll_interval=0.02)) as page:
        page.publish({"run": json.dumps({"title": SECRET}), "status": '{"rows": 1}'})
        wait_until(lambda: SECRET.encode() in request(page.address)[2])
        yield page


@pytest.fixture
def fresh_page():
    with LivePage(limits=Limits(poll_interval=0.02)) as page:
        yield page


def token_of(page):
    return page.address.split("/")[-2]


PROTECTION = {
    "content-type": "text/html; charset=utf-8",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_page_with_token_is_served_with_protective_headers(page, method):
    status, headers, body = request(page.address, method=method)
    assert status == 200
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert policy.endswith("; frame-ancestors 'none'")
    assert PROTECTION.items() <= dict(headers).items()
    assert "server" not in headers
    assert "access-control-allow-origin" not in headers
    assert (SECRET.encode() in body) == (method == "GET")


def test_path_without_the_exact_token_is_refused_and_reveals_nothing(page):
    token = token_of(page)
    assert len(token) == 32
    wrong = ["/", "/events", "//", f"/{token}x", f"/{token}x/", f"/{token[:-1]}/", f"/?{token}"]
    wrong += [f"/{token[:-1]}/events", f"/{token.swapcase()}/", f"/x/{token}/", f"/{token}/docs"]
    wrong += [f"/{token}/events/", f"/{token}/../{token}/", "/openapi.json", "/%FF%00/"]
    for path in wrong:
        status, headers, body = request(page.address, path)
        assert status == 403, path
        assert headers["content-type"].startswith("text/plain"), path
        assert len(body) < 100, path
        assert token.encode() not in body, path
        assert b"rows" not in body, path


def test_address_without_its_last_slash_leads_to_the_page(page):
    status, headers, body = request(page.address, f"/{token_of(page)}")
    assert (status, body) == (308, b"")
    assert headers["location"] == f"{token_of(page)}/"  # relative: also behind a tunnel
    assert headers["referrer-policy"] == "no-referrer"
    with urllib.request.urlopen(page.address.rstrip("/")) as found:
        assert found.url == page.address
        assert SECRET.encode() in found.read()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_method_that_could_write_is_refused(page, method):
    for path in (None, "/", "/events", f"/{token_of(page)}/events"):
        status, headers, body = request(page.address, path, method)
        assert status == 405
        assert headers["allow"] == "GET, HEAD"
        assert SECRET.encode() not in body


def test_request_with_a_body_is_refused_unread(page):
    status, headers, _ = request(page.address, body=b"x" * 100)
    assert (status, headers["connection"]) == (400, "close")
    assert request(page.address, body=iter([b"x"]), Transfer_Encoding="chunked")[0] == 400


def test_host_header_that_does_not_name_this_machine_is_refused(page):
    port = host_and_port(page.address)[1]
    for host in ["127.0.0.1", f"127.0.0.1:{port}", "localhost", "LocalHost:1", "[::1]:80"]:
        assert request(page.address, Host=host)[0] == 200, host
    bad = ["evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "localhost.evil"]
    bad += ["[::1]evil.com", "[::1]:80.evil.com", "127.0.0.1:80evil", "[[::1]]"]
    for host in [*bad, "[::2]", "", "[", "127.0.0.1@evil"]:
        status, _, body = request(page.address, Host=host)
        assert status == 403, host
        assert SECRET.encode() not in body
    with closing(connect(page.address)) as old:  # no Host header at all
        old.sendall(f"GET /{token_of(page)}/ HTTP/1.0\r\n\r\n".encode())
        assert old.makefile("rb").readline().split()[1] == b"403"


def test_server_by_default_listens_on_loopback_only(page):
    port = host_and_port(page.address)[1]
    found = []
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            if state == "0A" and local.endswith(f":{port:04X}"):
                found.append(local.split(":")[0])
    assert found == ["0100007F"]


def test_token_is_neither_in_arguments_nor_environment_nor_folder(page):
    token, process = token_of(page).encode(), page._process.pid
    for name in ("cmdline", "environ"):
        content = Path(f"/proc/{process}/{name}").read_bytes()
        assert content
        assert token not in content
    assert not [file for file in page._folder.iterdir() if token in file.read_bytes()]


def test_server_has_lower_priority_than_the_run(page):
    server = os.getpriority(os.PRIO_PROCESS, page._process.pid)
    assert server > os.getpriority(os.PRIO_PROCESS, 0)


def test_folder_and_files_can_be_read_by_their_owner_only(page):
    assert page._folder.stat().st_mode & 0o777 == 0o700
    files = list(page._folder.iterdir())
    assert files
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


# --- The events of a live page: what changed since the version that a viewer has ---


def test_events_hold_changed_and_removed_parts_only(fresh_page):
    fresh_page.publish({"a": "1", "b": '{"c":\r\n [2]}', "d/7": "7"})
    with closing(Viewer(fresh_page.address)) as viewer:
        assert viewer.response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert viewer.response.headers["cache-control"] == "no-store"
        found = viewer.follow_until(lambda parts: "a" in parts)
        assert found == {"a": 1, "b": {"c": [2]}, "d/7": 7}
        first = viewer.version
        fresh_page.publish({"a": "1", "b": "3"})
        viewer.follow_until(lambda parts: parts["b"] == 3)
        assert viewer.messages[-1] == {"b": 3, "d/7": None}
        second = viewer.version
        fresh_page.publish({"a": "1", "b": "3", "d/7": "7"})
        viewer.follow_until(lambda parts: "d/7" in parts)
        assert viewer.messages[-1] == {"d/7": 7}
        with closing(
            Viewer(fresh_page.address)
        ) as late:  # nothing that was removed, everything else
            assert late.follow_until(bool) == viewer.parts
        for header in ({}, {"Last_Event_ID": str(second)}):
            with closing(Viewer(fresh_page.address, f"after={first}", **header)) as back:
                back.read_event()
                assert set(back.messages[0]) == ({"d/7"} if header else {"b", "d/7"})
        for nonsense in ("after=-1", "after=x", "after=99999", "after=", "", "after=" + "9" * 4000):
            with closing(Viewer(fresh_page.address, nonsense, Last_Event_ID="\u00b2")) as odd:
                assert odd.follow_until(bool) == viewer.parts


def test_texts_with_line_breaks_and_broken_characters_stay_one_event(fresh_page):
    fresh_page.publish({"a": json.dumps("</script>\n\u2028\u00e9"), "b": '"\ud800"', 'c"\n': "3"})
    with closing(Viewer(fresh_page.address)) as viewer:
        found = viewer.follow_until(bool)
        assert found == {"a": "</script>\n\u2028\u00e9", "b": "?", 'c"\n': 3}


# --- `kernelbank run --live`: the page of a running run ---


def test_live_page_shows_the_rows_of_the_run_until_it_ends():
    with LiveCommand("--log-json") as command:
        assert json.loads(command.lines[-1])["event"] == "live"
        assert urlsplit(command.address).hostname == "127.0.0.1"
        command.send(0, 100)
        command.wait_for_rows(100)
        command.send(100, 150)
        command.wait_for_rows(150)
        assert command.finish() == 0
    assert json.loads(command.lines[-1])["rows"] == 150


# --- The live page's server: how it starts, and how it ends with the run or without it. ---


SOURCES = str(Path(kernelbank.__file__).parents[1])


@pytest.fixture
def temporary_folder(tmp_path, monkeypatch):
    """The folder in which pages make theirs."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def pid(fresh_page):
    return fresh_page._process.pid


# --- the run ends ---------------------------------------------------------------------------------


def test_end_reaches_viewers_after_the_last_parts_and_leaves_nothing(temporary_folder):
    before = open_files(), threading.active_count()
    fresh_page = LivePage()
    with closing(Viewer(fresh_page.address)) as viewer, closing(Viewer(fresh_page.address)) as idle:
        fresh_page.publish({"status": "1", "big": json.dumps("x" * 2_000_000)})
        readers = [
            threading.Thread(target=lambda one=one: one.follow_until(lambda _: one.ended))
            for one in (viewer, idle)
        ]
        for reader in readers:
            reader.start()
        fresh_page.end()
        for reader in readers:
            reader.join()
        assert viewer.ended
        assert viewer.parts["status"] == idle.parts["status"] == 1
        assert not viewer.read_event()
    assert fresh_page._process.returncode == 0
    assert not is_alive(pid(fresh_page))
    fresh_page.publish({"status": "2"})
    fresh_page.end()
    fresh_page.close()
    assert (open_files(), threading.active_count()) == before
    assert list(temporary_folder.iterdir()) == []


def test_end_with_a_stopped_server_waits_for_a_limited_time(monkeypatch, temporary_folder):
    monkeypatch.setattr(live_page, "_END_TIMEOUT", 0.5)
    fresh_page = LivePage()
    os.kill(pid(fresh_page), signal.SIGSTOP)
    fresh_page.publish({"big": json.dumps("x" * 300_000)})
    fresh_page.end()
    assert not is_alive(pid(fresh_page))
    assert list(temporary_folder.iterdir()) == []


RUN = """
import os, sys, time
{start}
from kernelbank.run.live.page import LivePage
page = LivePage()
page.publish({{"status": "1"}})
print(page._process.pid, page.address, flush=True)
{end}
"""
CHILD = "if os.fork() == 0:\n    os.close(1)\n    time.sleep(15)\n    os._exit(0)"
ENDS = {
    "killed": ("", "time.sleep(60)"),
    "killed, with a child that holds its files": (CHILD, "time.sleep(60)"),
    "an error": ("", "raise RuntimeError"),
    "os._exit": ("", "os._exit(0)"),
}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.slow
def test_server_of_a_run_that_ends_without_end_ends_and_removes_the_folder(tmp_path, how):
    (tmp_path / "temporary").mkdir()
    places = {"PYTHONPATH": SOURCES, "TMPDIR": str(tmp_path / "temporary")}
    start, end = ENDS[how]
    with subprocess.Popen(
        [sys.executable, "-c", RUN.format(start=start, end=end)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **places},
        text=True,
    ) as run:
        assert run.stdout is not None
        number, address = run.stdout.readline().split()
        if how.startswith("killed"):
            assert request(address)[0] == 200
            run.kill()
    assert wait_until(lambda: not is_alive(int(number)), 5.0)
    assert list((tmp_path / "temporary").iterdir()) == []


# --- the server ends ------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["its server ended", "its folder .* cannot be"])
def test_page_that_has_gone_gives_one_warning_and_the_run_goes_on(fresh_page, reason):
    fresh_page.publish({"status": "1"})
    if "server" in reason:
        os.kill(pid(fresh_page), signal.SIGKILL)
        assert wait_until(lambda: fresh_page._process.poll() is not None)
    else:
        shutil.rmtree(fresh_page._folder)
    with pytest.warns(KernelBankWarning, match=f"live page has gone: {reason}"):
        fresh_page.publish({"status": "2"})
    assert not is_alive(pid(fresh_page))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for row in range(100):
            fresh_page.publish({"status": str(row), "big": "x" * 1_000_000})
        fresh_page.end()


# --- the start ------------------------------------------------------------------------------------


def test_taken_port_is_refused(temporary_folder):
    before = open_files()
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        with pytest.raises(RunRefused, match=f"port {port} of 127.0.0.1 is taken.*another port"):
            LivePage(port=port)
    with LivePage(port=port) as fresh_page:
        assert host_and_port(fresh_page.address) == ("127.0.0.1", port)
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
    with LivePage("0.0.0.0") as fresh_page:
        assert "0.0.0.0" not in fresh_page.address
        here = f"http://127.0.0.1:{fresh_page.port}{urlsplit(fresh_page.address).path}"
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


def test_reader_during_fast_writing_sees_whole_versions_only(fresh_page):
    """All parts of a version have the same text; the reader never sees two."""
    done = threading.Event()

    def write():
        for number in range(400):
            fresh_page.publish({f"part/{k}": str(number) for k in range(8)})
            assert len(list(fresh_page._folder.iterdir())) <= 3
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
    seen, last = read_with(fresh_page._folder, read)
    thread.join()
    assert last == {"399"}
    assert seen
