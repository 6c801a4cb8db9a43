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

REPORT = 600_000
"""Bytes of a report."""
HELD = 64 * 1024 + 16 * 1024
"""Bytes that wait for one viewer in the server: the high-water mark, and a slice."""


def report(row):
    """A report that is another one with every row."""
    return json.dumps({"points": [row, "x" * REPORT], "status": {"rows": row}})


def rows(report):
    return report.get("status", {"rows": -1})["rows"]


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
        good = Viewer(page.address)
        for row in range(10):  # the server has its size now
            page.publish(report(row))
            good.follow_until(lambda report, row=row: rows(report) == row)
            request(page.address)
        before, threads, handles = memory(pid(page)), threading.active_count(), open_files()
        for row in range(10, 10 + publishes):
            if row % 4 == 0:  # each at another report
                stack.enter_context(closing(stuck_viewer(page.address)))
            page.publish(report(row))
            good.follow_until(lambda report, row=row: rows(report) == row)
        assert threading.active_count() == threads
        assert open_files() == handles + count
        assert open_files(pid(page)) >= count  # they are still there
        assert good.report["points"][0] == 209
        # A queue per viewer would hold up to 200 reports each: 3 GB. The rest is for what the
        # allocator keeps.
        bound = count * (REPORT + HELD) + 10_000_000
        assert memory(pid(page), "VmHWM") - before < bound


def test_viewer_that_takes_nothing_is_dropped():
    with open_page(stall_timeout=0.5) as (page, stack):
        good = Viewer(page.address)
        page.publish(report(0))
        good.follow_until(lambda report: rows(report) == 0)
        handles = open_files(pid(page))
        what = [""] * 10 + ["report"] * 10
        bad = [stack.enter_context(closing(stuck_viewer(page.address, one))) for one in what]
        assert wait_until(lambda: open_files(pid(page)) > handles)
        page.publish(report(1))
        good.follow_until(lambda report: rows(report) == 1)
        assert wait_until(lambda: open_files(pid(page)) <= handles)
        assert all(is_dropped(one) for one in bad)
        page.publish(report(2))
        good.follow_until(lambda report: rows(report) == 2)


def test_slow_viewer_is_not_dropped_and_skips_old_reports():
    with open_page(stall_timeout=1.0) as (page, stack):
        page.publish(report(0))
        slow = stack.enter_context(closing(stuck_viewer(page.address)))
        taken = b""
        for row in range(1, 60):  # longer than the timeout, which is for viewers that take nothing
            page.publish(report(row))
            time.sleep(0.03)
            taken += slow.recv(3_000)
        while more := slow.recv(100_000):
            taken += more
        assert rows(json.loads(taken.partition(b"\r\n\r\n")[2])) < 59
        viewer = Viewer(page.address)
        assert viewer.ask() == 200
        assert rows(viewer.report) == 59


def test_stopped_server_does_not_hold_up_the_run_or_fill_memory_and_disk():
    with open_page() as (page, _stack):
        good = Viewer(page.address)
        page.publish(report(0))
        good.follow_until(lambda report: rows(report) == 0)
        os.kill(pid(page), signal.SIGSTOP)
        before = memory(os.getpid())
        for row in range(1, 500):
            page.publish(report(row))
        held = [file.stat().st_size for file in page._folder.iterdir()]
        assert len(held) <= 3
        assert sum(held) < 2.5 * REPORT
        assert memory(os.getpid()) - before < 4 * REPORT + 10_000_000
        os.kill(pid(page), signal.SIGCONT)
        good.follow_until(lambda report: rows(report) == 499)


def test_new_connection_beyond_the_limit_evicts_the_least_recently_active_one():
    with open_page(connections=5, stall_timeout=600.0) as (page, stack):
        page.publish(report(0))
        for _ in range(12):  # with the token, and stuck
            stack.enter_context(closing(stuck_viewer(page.address)))
        good = Viewer(page.address)
        for row in range(1, 4):
            page.publish(report(row))
            good.follow_until(lambda report, row=row: rows(report) == row)
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
NEXT = GET.replace(b"{token}/", b"{token}/report") + b"\r\n"
ENDED = (NEXT + (GET + b"\r\n") * 50_000, GET + SOCKET + b"Sec-WebSocket-Version: 13\r\n\r\n")
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
    with open_page(request_timeout=1.0) as (page, _stack):
        page.publish(report(0))
        good = Viewer(page.address)
        good.follow_until(lambda report: rows(report) == 0)
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
        good.follow_until(lambda report: rows(report) == 1)
        assert is_alive(pid(page))
