"""Connections that cannot be kept for nothing: how many, how long, and how much may wait."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from .protocol import Limits

HIGH_WATER = 65_536
"""Bytes that may wait in this process for one viewer before it must take some."""
_AT_ONCE = struct.pack("ii", 1, 0)


class Connection(H11Protocol):
    """uvicorn's connection, with a bound on everything that a viewer can do to it.

    uvicorn itself bounds the headers, and what waits of a request. It has neither a limit of
    connections before they ask for something, nor of the time in which they must, nor of the time
    for which an answer may wait to be taken.
    """

    limits = Limits()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.since = self.moved = time.monotonic()
        self.waiting = 0
        crowded = len(self.connections) >= self.limits.connections
        idle = [one for one in self.connections if isinstance(one, Connection) and one.idle]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=HIGH_WATER)
        if crowded:
            min(idle, key=lambda one: one.since, default=self).cut()

    @property
    def idle(self) -> bool:
        """Whether it has asked for nothing, or got all that it asked for."""
        answered = self.cycle is None or self.cycle.response_complete
        return answered and not self.transport.get_write_buffer_size()

    def data_received(self, data: bytes) -> None:
        if self.cycle is not None and not (self.cycle.response_complete or self.cycle.more_body):
            self.cut()  # no browser asks again before it has its answer; it would have to be kept
        else:
            super().data_received(data)

    def look(self, now: float) -> None:
        """Cut it off if its time is over. Called now and then."""
        waiting = self.transport.get_write_buffer_size()
        if waiting == 0 or waiting != self.waiting:
            self.waiting, self.moved = waiting, now
        if not self.idle:
            self.since = now
        if now - self.moved > self.limits.patience or now - self.since > self.limits.request:
            self.cut()

    def cut(self) -> None:
        """Drop it and what waits for it, here and in the system."""
        with contextlib.suppress(OSError):
            self.transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE
            )
        self.connections.discard(self)
        self.transport.abort()


def connection_class(limits: Limits) -> type[Connection]:
    """Connections with other limits."""
    own: dict[str, Any] = {"limits": limits}
    return type("LimitedConnection", (Connection,), own)


def listener(host: str, port: int, limits: Limits) -> socket.socket:
    """A socket that listens; OSError if it cannot. Its connections keep little in the system."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, *_, place = found[0]
    opened = socket.create_server(place[:2], family=family, backlog=128)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, HIGH_WATER)
    with contextlib.suppress(OSError, AttributeError):  # not all systems have it
        patience = int(1000 * limits.patience)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience)
    opened.setblocking(False)
    return opened
