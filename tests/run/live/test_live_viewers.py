"""Hostile viewers of the live page: the run does not notice them."""

import contextlib
import json
import os
import signal
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from kernelbank.run.live.page import LivePage
from kernelbank.run.live.server import Limits
from support.live_viewers import (
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
        taken = b""
        for row in range(60):  # longer than the timeout, which is for viewers that take nothing
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


@pytest.mark.parametrize("sent", [b"", b"\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\n"])
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


LONG = b"X" * 1_000_000
GET = b"GET /{token}/ HTTP/1.1\r\nHost: localhost\r\n"
SOCKET = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n"
EVENTS = GET.replace(b"{token}/", b"{token}/events") + b"\r\n"
ENDED = (EVENTS + (GET + b"\r\n") * 50_000, GET + SOCKET + b"Sec-WebSocket-Version: 13\r\n\r\n")
"""More requests within a response, and a web socket: the response to the first is all."""
MALFORMED = [
    b"GET /" + LONG,
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + LONG,
    GET + b"X: x\r\n" * 200_000,
    GET + b"Content-Length: 9999999\r\n\r\n" + LONG,
    GET + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 200_000,
    os.urandom(100_000),
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(1000),  # another protocol
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    GET + b"Host: evil\r\n\r\n",
    b"GET http://evil.example/{token}/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    *ENDED,
]


def test_malformed_requests_are_refused_and_change_nothing():
    with open_page(request_timeout=1.0) as (page, stack):
        page.publish(report(0))
        good = stack.enter_context(closing(Viewer(page.address)))
        good.follow_until(lambda parts: rows(parts) == 0)
        before, token = memory(pid(page)), page.address.split("/")[-2].encode()
        for _ in range(2):
            for sent in MALFORMED:
                with closing(connect(page.address)) as hostile:
                    with contextlib.suppress(OSError):
                        hostile.sendall(sent.replace(b"{token}", token))
                    if sent in ENDED:
                        assert is_dropped(hostile)
                        continue
                    response = b""
                    with contextlib.suppress(OSError):
                        response = hostile.recv(65_536)
                    assert not response or response.split()[1] in (b"400", b"403", b"405"), sent
                    assert b"points" not in response
        assert memory(pid(page), "VmHWM") - before < 10_000_000
        page.publish(report(1))
        good.follow_until(lambda parts: rows(parts) == 1)
        assert is_alive(pid(page))
