"""Slow, stuck and hostile viewers of a live page harm neither the run nor each other."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from uvicorn.server import ServerState

from kernelbank.app.live.connections import connection_class
from kernelbank.app.live.live import Live
from kernelbank.app.live.protocol import Limits, Message
from kernelbank.app.live.versioned_parts import Watched
from support.live_rig import Viewer, alive, ask, cut_off, files, memory, place, raw, stuck, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads /proc"),
]

STORY = 300_000
"""Bytes of a story."""
HELD = 64 * 1024 + 16 * 1024
"""Bytes that wait for one viewer in the server: the high-water mark, and a slice."""


def story(row: int) -> dict[str, str]:
    """Parts that all change with every row."""
    parts = {f"points/{k}": json.dumps([row, "x" * (STORY // 16)]) for k in range(16)}
    return {**parts, "now": json.dumps({"rows": row})}


def rows(parts: dict) -> int:
    return parts.get("now", {"rows": -1})["rows"]


def pid(live: Live) -> int:
    return live._process.pid


@contextlib.contextmanager
def opened(**limits) -> Iterator[tuple[Live, ExitStack]]:
    with Live(limits=Limits(**{"pace": 0.0, **limits})) as live, ExitStack() as stack:
        yield live, stack


def test_stuck_viewers_cost_a_message_each_and_nobody_else_anything():
    count, publishes = 50, 200
    with opened() as (live, stack):
        good = stack.enter_context(closing(Viewer(live.address)))
        for row in range(10):  # the server has its size now
            live.publish(story(row))
            good.follow(lambda parts, row=row: rows(parts) == row)
            ask(live.address)
        before, threads, handles = memory(pid(live)), threading.active_count(), files()
        for row in range(10, 10 + publishes):
            if row % 4 == 0:  # each at another version: they share nothing
                stack.enter_context(closing(stuck(live.address)))
            live.publish(story(row))
            good.follow(lambda parts, row=row: rows(parts) == row)
        assert threading.active_count() == threads
        assert files() == handles + count
        assert files(pid(live)) >= count  # they are still there
        assert set(good.parts) == set(story(0))
        assert {part[0] for name, part in good.parts.items() if name != "now"} == {209}
        # A queue for each would hold up to 200 stories each: 3 GB. The rest is for what the
        # allocator keeps.
        bound = count * (STORY + HELD) + 10_000_000
        assert memory(pid(live), "VmHWM") - before < bound


@pytest.mark.parametrize("what", ["", "events?after=0"])
def test_viewers_stuck_at_the_same_place_share_it(what):
    count, size = 50, 3_000_000
    with opened() as (live, stack):
        good = stack.enter_context(closing(Viewer(live.address)))
        live.publish({"now": '{"rows": 0}', "big": json.dumps("x" * size)})
        good.follow(lambda parts: rows(parts) == 0)
        ask(live.address)
        before = memory(pid(live))
        held = [stack.enter_context(closing(stuck(live.address, what))) for _ in range(count)]
        assert all(one.recv(1) for one in held)  # all are being answered
        assert ask(live.address)[0] == 200
        assert memory(pid(live), "VmHWM") - before < count * HELD + 4 * size + 10_000_000


def test_stuck_viewers_are_cut_off():
    with opened(patience=0.5) as (live, stack):
        good = stack.enter_context(closing(Viewer(live.address)))
        live.publish(story(0))
        good.follow(lambda parts: rows(parts) == 0)
        handles = files(pid(live))
        what = [""] * 10 + ["events?after=0"] * 10
        bad = [stack.enter_context(closing(stuck(live.address, one))) for one in what]
        assert until(lambda: files(pid(live)) > handles)
        live.publish(story(1))
        good.follow(lambda parts: rows(parts) == 1)
        assert until(lambda: files(pid(live)) <= handles)
        assert all(cut_off(one) for one in bad)
        live.publish(story(2))
        good.follow(lambda parts: rows(parts) == 2)  # who waits for news is not stuck


class Pipe:
    """What a connection sees of the system: bytes that wait, and whether it was dropped."""

    def __init__(self, below: socket.socket) -> None:
        self.below = below
        self.waiting = 0
        self.dropped = False

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def get_extra_info(self, name: str) -> Any:
        return self.below if name == "socket" else None

    def set_write_buffer_limits(self, high: int) -> None:
        assert high == 64 * 1024

    def abort(self) -> None:
        self.dropped = True


def test_patience_is_with_who_takes_something():
    """Without the help of the system, which cuts off the stuck on Linux."""
    limits = Limits(patience=30.0, request=10.0)
    config = uvicorn.Config(lambda: None, ws="none", interface="asgi3", log_config=None)
    with closing(asyncio.new_event_loop()) as loop, socket.socket() as below:
        one = connection_class(limits)(config, ServerState(), {}, loop)
        pipe = Pipe(below)
        one.connection_made(pipe)
        start = one.since
        one.look(start + 9.9)
        for second in range(20, 200):  # takes a byte every ten seconds
            pipe.waiting = 10_000 - second // 10
            one.look(start + second)
        assert not pipe.dropped
        one.look(start + 219.9)
        assert not pipe.dropped
        one.look(start + 220.1)
        assert pipe.dropped
        assert not one.connections


def test_a_slow_viewer_ends_with_the_newest_of_everything():
    with opened(patience=1.0) as (live, stack):
        slow = stack.enter_context(closing(stuck(live.address)))
        slow.settimeout(0.05)
        taken = bytearray()
        for row in range(60):  # lasts longer than the patience, which is with who takes nothing
            live.publish(story(row))
            time.sleep(0.03)
            with contextlib.suppress(TimeoutError):
                taken += slow.recv(30_000)
        slow.settimeout(20.0)
        while not taken.endswith(b"}\n\n\r\n") or b'"now":{"rows": 59}' not in taken:
            more = slow.recv(100_000)
            assert more
            taken += more
        assert taken.count(b"\nid: ") < 30  # it was spared what was old when it was ready


def test_a_stopped_server_does_not_stop_the_run():
    with opened() as (live, stack):
        good = stack.enter_context(closing(Viewer(live.address)))
        live.publish({**story(0), "gone": "1"})
        good.follow(lambda parts: rows(parts) == 0)
        os.kill(pid(live), signal.SIGSTOP)
        before = memory(os.getpid())
        for row in range(1, 500):
            live.publish({**story(row), f"snapshot/{row}": '"' + "x" * 10_000 + '"'})
        # What waits is one story; the last, the one being written, and its bytes besides.
        assert len(live._waiting) <= 2 * len(story(0)) + 3
        assert memory(os.getpid()) - before < 4 * STORY + 10_000_000
        os.kill(pid(live), signal.SIGCONT)
        good.follow(lambda parts: rows(parts) == 499)
        assert set(good.parts) == {*story(0), "snapshot/499"}


def test_a_flood_of_silent_connections_keeps_nobody_out():
    with opened(connections=20, request=1.0) as (live, stack):
        live.publish(story(0))
        good = stack.enter_context(closing(Viewer(live.address)))
        handles = files(pid(live))
        silent = [stack.enter_context(closing(raw(live.address))) for _ in range(300)]
        assert ask(live.address)[0] == 200  # at once: the silent make room
        assert files(pid(live)) <= handles + 20
        good.follow(lambda parts: rows(parts) == 0)
        assert all(cut_off(one) for one in silent)  # the last of them when their time is over
        assert ask(live.address)[0] == 200


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # refused clients
def test_no_more_viewers_than_allowed():
    with opened(connections=5) as (live, stack):
        live.publish({"now": '{"rows": 0}'})
        good = [stack.enter_context(closing(Viewer(live.address))) for _ in range(5)]
        for _ in range(3):
            with suppress(ConnectionError):  # cut off before it has asked
                assert cut_off(stack.enter_context(closing(stuck(live.address))))
        for viewer in good:
            viewer.follow(lambda parts: rows(parts) == 0)
        good[0].close()
        assert until(lambda: _answers(live.address))


def _answers(address: str) -> bool:
    try:
        return ask(address)[0] == 200
    except OSError:
        return False


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET / HTT",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n",
        b"\r\n",
    ],
)
def test_half_a_request_does_not_stay(said):
    with opened(request=0.4) as (live, stack):
        half = stack.enter_context(closing(raw(live.address)))
        half.sendall(said)
        trickle = stack.enter_context(closing(raw(live.address)))
        trickle.sendall(b"GET / HTTP/1.1\r\nX: ")
        with pytest.raises(OSError, match=r".*"):  # noqa: PT012  a byte now and then is not enough
            for _ in range(200):
                trickle.sendall(b"x")
                time.sleep(0.05)
        assert cut_off(half)
        assert ask(live.address)[0] == 200


def test_an_answered_connection_does_not_stay():
    with opened(request=0.4) as (live, stack):
        kept = http.client.HTTPConnection(*place(live.address), timeout=20.0)
        stack.callback(kept.close)
        for _ in range(2):  # may ask again, though
            kept.request("GET", urlsplit(live.address).path)
            answer = kept.getresponse()
            assert (answer.status, bool(answer.read())) == (200, True)
        assert cut_off(kept.sock)


HOST = b"Host: localhost\r\n"
RUDE = {
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
    "no words": os.urandom(100_000),
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 1000,
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a socket": b"GET /{token}/ HTTP/1.1\r\n"
    + HOST
    + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n"
    + b"Sec-WebSocket-Version: 13\r\n\r\n",
    "asking while being told": b"GET /{token}/events HTTP/1.1\r\n"
    + HOST
    + b"\r\n"
    + (b"GET /{token}/ HTTP/1.1\r\n" + HOST + b"\r\n") * 50_000,
    "two hosts": b"GET /{token}/ HTTP/1.1\r\n" + HOST + b"Host: evil\r\n\r\n",
    "another's address": b"GET http://evil.example/{token}/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
}


def test_long_headers_are_refused_before_their_end():
    with opened(request=600.0) as (live, _):
        for said in (b"GET /" + b"x" * 40_000, b"GET / HTTP/1.1\r\nX: " + b"x" * 40_000):
            with closing(raw(live.address)) as rude:
                rude.sendall(said)
                assert cut_off(rude)


def test_rude_requests_are_cut_short():
    with opened(request=1.0) as (live, stack):
        live.publish(story(0))
        good = stack.enter_context(closing(Viewer(live.address)))
        good.follow(lambda parts: rows(parts) == 0)
        before, token = memory(pid(live)), live.address.split("/")[-2].encode()
        for _ in range(2):
            for name, said in RUDE.items():
                with closing(raw(live.address)) as rude:
                    with contextlib.suppress(OSError):
                        rude.sendall(said.replace(b"{token}", token))
                    if name in ("asking while being told", "a socket"):
                        assert cut_off(rude), name
                        continue
                    answer = b""
                    with contextlib.suppress(OSError):
                        answer = rude.recv(65_536)
                    assert not answer or answer.split()[1] in (b"400", b"403", b"405"), name
                    assert b"points" not in answer
        assert memory(pid(live), "VmHWM") - before < 10_000_000
        live.publish(story(1))
        good.follow(lambda parts: rows(parts) == 1)
        assert alive(pid(live))


def test_parts_that_have_gone_are_not_remembered_for_ever():
    async def remembered() -> tuple[int, bytes, bytes]:
        watched = Watched(0.0)
        watched.take(Message({"stays": b"1"}))
        for number in range(0, 10_050, 50):
            watched.take(Message({f"snapshot/{number + k}": None for k in range(50)}))
        late, new = b"".join(watched.since(1)), b"".join(watched.since(0))
        return len(watched._parts), late, new

    count, late, new = asyncio.run(remembered())
    assert count == 10_001
    assert b'"snapshot/49":' not in late
    assert b'"snapshot/50":null' in late
    assert new == b'{"stays":1}'


def test_a_viewer_who_leaves_is_forgotten():
    with opened() as (live, _):
        live.publish(story(0))
        assert until(lambda: b'"rows": 0' in ask(live.address)[2])
        handles = files(pid(live))
        for _ in range(30):
            viewer = Viewer(live.address)
            viewer.follow(lambda parts: rows(parts) == 0)
            viewer.close()
        assert until(lambda: files(pid(live)) <= handles)


def test_a_flood_of_requests_builds_few_pages():
    """Asked over and over while the story changes, it answers from one page for a while."""
    with opened(page_age=60.0) as (live, stack):
        good = stack.enter_context(closing(Viewer(live.address)))
        live.publish({"now": '{"rows": 0}'})
        good.follow(lambda parts: rows(parts) == 0)
        first = ask(live.address)[2]
        for row in range(1, 20):
            live.publish({"now": json.dumps({"rows": row})})
            good.follow(lambda parts, row=row: rows(parts) == row)
            assert ask(live.address)[2] == first


def test_a_connection_reset_in_the_middle():
    with opened() as (live, stack):
        good = stack.enter_context(closing(Viewer(live.address)))
        for row in range(30):
            rude = stuck(live.address)
            live.publish(story(row))
            rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            rude.close()
            good.follow(lambda parts, row=row: rows(parts) == row)
        assert alive(pid(live))
