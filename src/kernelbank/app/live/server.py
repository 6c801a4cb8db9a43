"""The process that serves a live page. It lives as long as the run that started it.

What it may take, by design, with C connections at most (100): the story, once; a page, once; and
for each connection at most 64 kB and a slice of 16 kB that wait to be sent, 32 kB of headers and
256 kB that were read at once, and the texts of one message or one page that have not been sent
yet. Viewers at the same version share those texts; if each is stuck at another, C stories are held.
Nothing grows with the length of the run or with the time for which a viewer is slow.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from .protocol import Limits, Message, read

if TYPE_CHECKING:
    from .connections import Connection
    from .versioned_parts import Watched

LINGER = 2.0
"""Seconds for which viewers may take the end of a run."""


def main(hello: dict[str, Any]) -> None:
    """Serve as the run's first line says, until there is no run. Does not return."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)  # the run comes first
    limits = Limits(**hello["limits"])
    try:
        import starlette.routing  # noqa: F401  a server that cannot serve should say so now
        import uvicorn  # noqa: F401

        from .connections import listener

        opened = listener(hello["host"], hello["port"], limits)
    except Exception as error:
        number = error.errno if isinstance(error, OSError) else None
        _answer({"errno": number, "reason": getattr(error, "strerror", None) or str(error)})
        os._exit(1)
    _answer({"port": opened.getsockname()[1]})
    try:
        asyncio.run(_serve(hello, limits, opened))
    finally:
        os._exit(1)  # a thread waits for the run's next message: it cannot be joined


def _answer(words: dict[str, Any]) -> None:
    """The only thing that the run is told; what else might be printed goes nowhere."""
    sys.stdout.buffer.write(json.dumps(words).encode() + b"\n")
    sys.stdout.buffer.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


async def _serve(hello: dict[str, Any], limits: Limits, opened: socket.socket) -> None:
    import uvicorn

    from .access_control import Door
    from .connections import connection_class
    from .versioned_parts import Watched

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # the run decides when to end

    for name in ("uvicorn", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    story = Watched(limits.page_age)
    bound = opened.getsockname()[0]
    only_here = ipaddress.ip_address(bound.partition("%")[0]).is_loopback
    host = hello["host"] if only_here else None
    server = Server(
        uvicorn.Config(
            Door(story, hello["token"], host, limits.heartbeat),
            http=connection_class(limits),
            ws="none",
            loop="asyncio",
            interface="asgi3",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=128,
            h11_max_incomplete_event_size=limits.header,
        )
    )
    connections: set[Any] = server.server_state.connections
    reader = threading.Thread(
        target=_listen,
        args=(sys.stdin.buffer, story, connections, asyncio.get_running_loop()),
        daemon=True,
    )
    reader.start()
    looking = asyncio.ensure_future(_look(connections, limits, hello["parent"]))
    await asyncio.gather(server.serve(sockets=[opened]), looking)


async def _look(connections: set[Connection], limits: Limits, parent: int) -> None:
    """Cut off who takes too long; end if the run has ended while others hold its pipe."""
    pause = min(1.0, limits.patience / 4, limits.request / 4)
    while os.getppid() == parent:
        await asyncio.sleep(pause)
        for one in list(connections):
            one.look(time.monotonic())
    os._exit(0)


def _listen(
    stdin: BinaryIO,
    story: Watched,
    connections: set[Connection],
    loop: asyncio.AbstractEventLoop,
) -> None:
    """The thread that hears the run: one message after the other, each taken before the next."""

    async def take(message: Message) -> None:
        story.take(message)

    while (message := read(stdin)) is not None:
        asyncio.run_coroutine_threadsafe(take(message), loop).result()
        if message.end:
            _wait(connections)
            break
    os._exit(0)


def _wait(connections: set[Connection]) -> None:
    """Give viewers the time to take the last message, but not for ever."""
    until = time.monotonic() + LINGER
    while time.monotonic() < until:
        time.sleep(0.05)
        if all(one.idle for one in connections.copy()):
            return
