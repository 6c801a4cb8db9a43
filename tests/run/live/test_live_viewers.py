"""Viewers of the live page, hostile ones and a browser: the run does not notice them."""

import contextlib
import json
import os
import re
import signal
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kernelbank.run.live.page import LivePage
from kernelbank.run.live.server import Limits
from support import browser
from support.live_viewers import (
    LiveCommand,
    Viewer,
    connect,
    is_alive,
    is_dropped,
    memory,
    open_files,
    request,
    stuck_viewer,
    wait_until,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc"),
]

REPORT = 300_000
"""Bytes of a report."""
HELD = 64 * 1024 + 16 * 1024
"""Bytes that wait for one viewer in the server: the high-water mark, and a slice."""


def report(row):
    """Parts that all change with every row."""
    parts = {f"points/{k}": json.dumps([row, "x" * (REPORT // 16)]) for k in range(16)}
    return {**parts, "status": json.dumps({"rows": row})}


def rows(parts):
    return parts.get("status", {"rows": -1})["rows"]


def pid(page):
    return page._process.pid


@contextlib.contextmanager
def open_page(**limits):
    limited = Limits(**{"poll_interval": 0.01, **limits})
    with LivePage(limits=limited) as page, ExitStack() as stack:
        yield page, stack


def test_stuck_viewers_hold_one_message_each_and_others_follow_the_run():
    count, publishes = 50, 200
    with open_page() as (page, stack):
        good = stack.enter_context(closing(Viewer(page.address)))
        for row in range(10):  # the server has its size now
            page.publish(report(row))
            good.follow_until(lambda parts, row=row: rows(parts) == row)
            request(page.address)
        before, threads, handles = memory(pid(page)), threading.active_count(), open_files()
        for row in range(10, 10 + publishes):
            if row % 4 == 0:  # each at another version: they share no text
                stack.enter_context(closing(stuck_viewer(page.address)))
            page.publish(report(row))
            good.follow_until(lambda parts, row=row: rows(parts) == row)
        assert threading.active_count() == threads
        assert open_files() == handles + count
        assert open_files(pid(page)) >= count  # they are still there
        assert set(good.parts) == set(report(0))
        assert {part[0] for name, part in good.parts.items() if name != "status"} == {209}
        # A queue per viewer would hold up to 200 reports each: 3 GB. The rest is for what the
        # allocator keeps.
        bound = count * (REPORT + HELD) + 10_000_000
        assert memory(pid(page), "VmHWM") - before < bound


def test_viewer_that_takes_nothing_is_dropped():
    with open_page(stall_timeout=0.5) as (page, stack):
        good = stack.enter_context(closing(Viewer(page.address)))
        page.publish(report(0))
        good.follow_until(lambda parts: rows(parts) == 0)
        handles = open_files(pid(page))
        what = [""] * 10 + ["events?after=0"] * 10
        bad = [stack.enter_context(closing(stuck_viewer(page.address, one))) for one in what]
        assert wait_until(lambda: open_files(pid(page)) > handles)
        page.publish(report(1))
        good.follow_until(lambda parts: rows(parts) == 1)
        assert wait_until(lambda: open_files(pid(page)) <= handles)
        assert all(is_dropped(one) for one in bad)
        page.publish(report(2))
        good.follow_until(
            lambda parts: rows(parts) == 2
        )  # a viewer that waits for events is not stuck


def test_slow_viewer_skips_old_versions_and_ends_with_the_newest():
    with open_page(stall_timeout=1.0) as (page, stack):
        slow = stack.enter_context(closing(stuck_viewer(page.address)))
        slow.settimeout(0.05)
        taken = bytearray()
        for row in range(
            60
        ):  # lasts longer than the timeout, which is for viewers that take nothing
            page.publish(report(row))
            time.sleep(0.03)
            with contextlib.suppress(TimeoutError):
                taken += slow.recv(30_000)
        slow.settimeout(20.0)
        while not taken.endswith(b"}\n\n") or b'"status":{"rows": 59}' not in taken:
            more = slow.recv(100_000)
            assert more
            taken += more
        assert taken.count(b"\nid: ") < 30  # old versions were skipped


def test_stopped_server_does_not_hold_up_the_run_or_fill_memory_and_disk():
    with open_page() as (page, stack):
        good = stack.enter_context(closing(Viewer(page.address)))
        page.publish({**report(0), "removed": "1"})
        good.follow_until(lambda parts: rows(parts) == 0)
        os.kill(pid(page), signal.SIGSTOP)
        before = memory(os.getpid())
        for row in range(1, 500):
            page.publish({**report(row), f"curves/{row}": '"' + "x" * 10_000 + '"'})
        held = [file.stat().st_size for file in page._folder.iterdir()]
        assert len(held) <= 2 * len(report(0)) + 8
        assert sum(held) < 2.5 * REPORT
        assert memory(os.getpid()) - before < 4 * REPORT + 10_000_000
        os.kill(pid(page), signal.SIGCONT)
        good.follow_until(lambda parts: rows(parts) == 499)
        assert set(good.parts) == {*report(0), "curves/499"}


def test_new_connection_beyond_the_limit_evicts_the_least_recently_active_one():
    with open_page(connections=5, stall_timeout=600.0) as (page, stack):
        page.publish({"status": '{"rows": 0}'})
        for _ in range(12):  # with the token, and stuck
            stack.enter_context(closing(stuck_viewer(page.address)))
        good = stack.enter_context(closing(Viewer(page.address)))
        for row in range(1, 4):
            page.publish({"status": json.dumps({"rows": row})})
            good.follow_until(lambda parts, row=row: rows(parts) == row)
            silent = [stack.enter_context(closing(connect(page.address))) for _ in range(9)]
            assert _responds(page.address)
            assert is_dropped(silent[0])  # without the token: before those with it


def _responds(address):
    try:
        return request(address)[0] == 200
    except OSError:
        return False


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTT",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n",
        b"\r\n",
    ],
)
def test_connection_with_half_a_request_is_dropped(sent):
    with open_page(request_timeout=0.4) as (page, stack):
        half = stack.enter_context(closing(connect(page.address)))
        half.sendall(sent)
        trickle = stack.enter_context(closing(connect(page.address)))
        trickle.sendall(b"GET / HTTP/1.1\r\nX: ")
        with pytest.raises(OSError, match=r".*"):  # noqa: PT012  a byte now and then is not enough
            for _ in range(200):
                trickle.sendall(b"x")
                time.sleep(0.05)
        assert is_dropped(half)
        assert request(page.address)[0] == 200


def test_connection_ends_with_the_response():
    with open_page(request_timeout=600.0, stall_timeout=600.0) as (page, stack):
        asked = stack.enter_context(closing(connect(page.address)))
        path = urlsplit(page.address).path.encode()
        asked.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert is_dropped(asked)


HOST = b"Host: localhost\r\n"
MALFORMED = {
    "a long line": b"GET /" + b"x" * 1_000_000,
    "a long header": b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"x" * 1_000_000,
    "many headers": b"GET / HTTP/1.1\r\n" + HOST + b"X: x\r\n" * 200_000,
    "a long body": b"GET / HTTP/1.1\r\n"
    + HOST
    + b"Content-Length: 9999999\r\n\r\n"
    + b"x" * 5_000_000,
    "no end of chunks": b"POST / HTTP/1.1\r\n"
    + HOST
    + b"Transfer-Encoding: chunked\r\n\r\n"
    + b"4\r\nxxxx\r\n" * 200_000,
    "noise": os.urandom(100_000),
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 1000,
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a web socket": b"GET /{token}/ HTTP/1.1\r\n"
    + HOST
    + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n"
    + b"Sec-WebSocket-Version: 13\r\n\r\n",
    "a request within a response": b"GET /{token}/events HTTP/1.1\r\n"
    + HOST
    + b"\r\n"
    + (b"GET /{token}/ HTTP/1.1\r\n" + HOST + b"\r\n") * 50_000,
    "two hosts": b"GET /{token}/ HTTP/1.1\r\n" + HOST + b"Host: evil\r\n\r\n",
    "another's address": b"GET http://evil.example/{token}/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
}


def test_long_headers_are_refused_before_their_end():
    with open_page(request_timeout=600.0) as (page, _):
        for sent in (b"GET /" + b"x" * 40_000, b"GET / HTTP/1.1\r\nX: " + b"x" * 40_000):
            with closing(connect(page.address)) as hostile:
                hostile.sendall(sent)
                assert is_dropped(hostile)


def test_malformed_requests_are_refused_and_change_nothing():
    with open_page(request_timeout=1.0) as (page, stack):
        page.publish(report(0))
        good = stack.enter_context(closing(Viewer(page.address)))
        good.follow_until(lambda parts: rows(parts) == 0)
        before, token = memory(pid(page)), page.address.split("/")[-2].encode()
        for _ in range(2):
            for name, sent in MALFORMED.items():
                with closing(connect(page.address)) as hostile:
                    with contextlib.suppress(OSError):
                        hostile.sendall(sent.replace(b"{token}", token))
                    if name in ("a request within a response", "a web socket"):
                        assert is_dropped(hostile), name
                        continue
                    response = b""
                    with contextlib.suppress(OSError):
                        response = hostile.recv(65_536)
                    assert not response or response.split()[1] in (b"400", b"403", b"405"), name
                    assert b"points" not in response
        assert memory(pid(page), "VmHWM") - before < 10_000_000
        page.publish(report(1))
        good.follow_until(lambda parts: rows(parts) == 1)
        assert is_alive(pid(page))


def test_flood_of_requests_renders_few_pages():
    with open_page(page_interval=60.0) as (page, stack):
        good = stack.enter_context(closing(Viewer(page.address)))
        page.publish({"status": '{"rows": 0}'})
        good.follow_until(lambda parts: rows(parts) == 0)
        first = request(page.address)[2]
        for row in range(1, 20):
            page.publish({"status": json.dumps({"rows": row})})
            good.follow_until(lambda parts, row=row: rows(parts) == row)
            assert request(page.address)[2] == first


# --- The live page of a real run, in a browser ---


TIMEOUT = 180_000
"""Milliseconds: the very first run compiles its loops."""


chromium = browser.chromium


def wait_for_rows(shown, count):
    shown.page.locator(f'#tile-rows data[value="{count}"]').wait_for(timeout=TIMEOUT)


def wait_for_state(shown, text):
    exactly = re.compile(f"^{re.escape(text)}$")
    shown.page.locator("#state-text").filter(has_text=exactly).wait_for(timeout=TIMEOUT)


@pytest.mark.slow
def test_page_grows_with_the_run_and_survives_a_reload(chromium):
    with LiveCommand("--quiet") as command:
        shown = chromium.open(command.address)
        wait_for_state(shown, "running")
        command.send(0, 70)
        wait_for_rows(shown, 70)
        before = shown.page.locator("#error canvas").first.screenshot()
        command.send(70, 600)
        wait_for_rows(shown, 600)
        assert shown.page.locator("#error canvas").first.screenshot() != before
        snapshots = shown.page.locator("#curves-slider").get_attribute("max")
        shown.page.reload()
        wait_for_rows(shown, 600)
        assert shown.page.locator("#curves-slider").get_attribute("max") == snapshots
        command.send(600, 1100)
        wait_for_rows(shown, 1100)
        assert command.finish() == 0
        wait_for_state(shown, "ended")
    assert shown.errors == []
    assert shown.dialogs == []
    url = urlsplit(command.address)
    assert {urlsplit(asked).netloc for asked in shown.requests} == {url.netloc}


@pytest.mark.slow
def test_page_of_a_killed_run_says_that_the_connection_is_lost(chromium):
    with LiveCommand("--quiet") as command:
        command.send(0, 70)
        shown = chromium.open(command.address)
        wait_for_rows(shown, 70)
        command.process.kill()
        wait_for_state(shown, "connection lost, trying again")
        wait_for_rows(shown, 70)
