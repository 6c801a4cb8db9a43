"""Who may see the live page, the reports that follow it, and `kernelbank run --live`."""

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
from kernelbank.run.live.server import Limits, NewestReport
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
        page.publish(json.dumps({"run": {"title": SECRET}, "status": {"rows": 1}}))
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
    wrong = ["/", "/report", "//", f"/{token}x", f"/{token}x/", f"/{token[:-1]}/", f"/?{token}"]
    wrong += [f"/{token[:-1]}/report", f"/{token.swapcase()}/", f"/x/{token}/", f"/{token}/docs"]
    wrong += [f"/{token}/report/", f"/{token}/../{token}/", "/openapi.json", "/%FF%00/"]
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
    for path in (None, "/", "/report", f"/{token_of(page)}/report"):
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


# --- The reports of a live page: the next one, when it comes ---


def test_report_that_a_viewer_has_is_not_sent_again():
    with LivePage(limits=Limits(poll_interval=0.02, longest_wait=0.1)) as page:
        page.publish('{"a": 1}')
        viewer = Viewer(page.address)
        assert viewer.follow_until(bool) == {"a": 1}
        assert viewer.ask() == 304
        path = f"{urlsplit(page.address).path}report"
        for nonsense in ("", '"99999"', "x" * 4000, "\u00b2"):
            status, headers, body = request(page.address, path, If_None_Match=nonsense)
            assert (status, body) == (200, b'{"a": 1}')
            assert headers["content-type"] == "application/json"
            assert headers["cache-control"] == "no-store"
        assert request(page.address, path, "HEAD", If_None_Match=viewer.tag)[0] == 304


def test_response_comes_when_there_is_a_newer_report(fresh_page):
    fresh_page.publish('{"a": 1}')
    viewer = Viewer(fresh_page.address)
    viewer.follow_until(bool)
    asking = threading.Thread(target=viewer.ask)
    asking.start()
    asking.join(0.3)
    assert asking.is_alive()
    fresh_page.publish('{"a": 2}')
    asking.join(20)
    assert viewer.report == {"a": 2}


def test_broken_characters_of_the_data_reach_the_viewer_as_question_marks(fresh_page):
    fresh_page.publish('{"a": "</script>\\n\u2028\u00e9", "b": "\ud800"}')
    report = Viewer(fresh_page.address).follow_until(bool)
    assert report == {"a": "</script>\n\u2028\u00e9", "b": "?"}


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


def test_end_reaches_viewers_after_the_last_report_and_leaves_nothing(temporary_folder):
    before = open_files(), threading.active_count()
    fresh_page = LivePage()
    viewers = [Viewer(fresh_page.address) for _ in range(2)]
    readers = [
        threading.Thread(target=viewer.follow_until, args=[lambda report: "big" in report])
        for viewer in viewers
    ]
    for reader in readers:
        reader.start()
    fresh_page.publish('{"status": 1}')
    fresh_page.publish(json.dumps({"status": 2, "big": "x" * 2_000_000}))
    fresh_page.end()
    for reader in readers:
        reader.join()
    assert [viewer.report["status"] for viewer in viewers] == [2, 2]
    assert fresh_page._process.returncode == 0
    assert not is_alive(pid(fresh_page))
    fresh_page.publish("{}")
    fresh_page.end()
    fresh_page.close()
    assert (open_files(), threading.active_count()) == before
    assert list(temporary_folder.iterdir()) == []


def test_end_with_a_stopped_server_waits_for_a_limited_time(monkeypatch, temporary_folder):
    monkeypatch.setattr(live_page, "_END_TIMEOUT", 0.5)
    fresh_page = LivePage()
    os.kill(pid(fresh_page), signal.SIGSTOP)
    fresh_page.publish(json.dumps("x" * 300_000))
    fresh_page.end()
    assert not is_alive(pid(fresh_page))
    assert list(temporary_folder.iterdir()) == []


RUN = """
import os, sys, time
{start}
from kernelbank.run.live.page import LivePage
page = LivePage()
page.publish('{{"status": 1}}')
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
    fresh_page.publish('{"status": 1}')
    if "server" in reason:
        os.kill(pid(fresh_page), signal.SIGKILL)
        assert wait_until(lambda: fresh_page._process.poll() is not None)
    else:
        shutil.rmtree(fresh_page._folder)
    with pytest.warns(KernelBankWarning, match=f"live page has gone: {reason}"):
        fresh_page.publish('{"status": 2}')
    assert not is_alive(pid(fresh_page))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for row in range(100):
            fresh_page.publish(json.dumps([row, "x" * 1_000_000]))
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


def test_port_that_is_none_is_refused():
    for port in (-1, 65_536, 1.5, "80", True):
        with pytest.raises(InvalidArgument, match="'port' of LivePage must be a whole number"):
            LivePage(port=port)


def test_server_that_cannot_start_is_refused(monkeypatch, temporary_folder):
    monkeypatch.setattr(live_page, "_SERVER_PROGRAM", "raise SystemExit(3)")
    with pytest.raises(RunRefused, match="cannot start: it ended"):
        LivePage()
    monkeypatch.setattr(live_page, "_SERVER_PROGRAM", "import time; time.sleep(60)")
    monkeypatch.setattr(live_page, "_START_TIMEOUT", 0.3)
    with pytest.raises(RunRefused, match="did not listen within"):
        LivePage()
    assert list(temporary_folder.iterdir()) == []


# --- reports in a folder: a reader sees whole ones, and little is left behind ---


def test_reader_during_fast_writing_sees_whole_reports_only(fresh_page):
    done = threading.Event()

    def write():
        for number in range(400):
            fresh_page.publish(json.dumps([number] * 1000))
            assert len(list(fresh_page._folder.iterdir())) <= 3
        done.set()

    async def read():
        report, seen = NewestReport(fresh_page._folder), set()
        while not done.is_set():
            report.refresh()
            numbers = set(json.loads(report.text))
            assert len(numbers) <= 1
            seen |= numbers
        report.refresh()
        return seen, set(json.loads(report.text))

    thread = threading.Thread(target=write)
    thread.start()
    seen, last = asyncio.run(read())
    thread.join()
    assert last == {399}
    assert seen
