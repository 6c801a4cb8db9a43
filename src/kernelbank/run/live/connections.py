"""Connections of viewers, with limits: how many, for how long, and how many bytes may wait."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from .limits import Limits

HIGH_WATER = 65_536
"""Bytes that may wait in this process for one viewer before sending pauses."""
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER of zero seconds."""


class Connection(H11Protocol):
    """uvicorn's connection, with a limit on everything that a viewer can do to it.

    uvicorn itself limits the headers, and what it keeps of a request. It limits neither the number
    of connections without a request, nor the time until a request, nor the time for which a
    response may wait to be taken.
    """

    limits = Limits()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.idle_since = self.last_progress = time.monotonic()
        self.unsent = 0
        crowded = len(self.connections) >= self.limits.connections
        idle = [one for one in self.connections if isinstance(one, Connection) and one.idle]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=HIGH_WATER)
        if crowded:
            min(idle, key=lambda one: one.idle_since, default=self).drop()

    @property
    def idle(self) -> bool:
        """Whether it has requested nothing, or has the whole response."""
        complete = self.cycle is None or self.cycle.response_complete
        return complete and not self.transport.get_write_buffer_size()

    def data_received(self, data: bytes) -> None:
        if self.cycle is not None and not (self.cycle.response_complete or self.cycle.more_body):
            self.drop()  # no browser sends a request before it has its response; it would be kept
        else:
            super().data_received(data)

    def check_timeouts(self, now: float) -> None:
        """Drop the connection if its time is over. Called at every poll."""
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent != self.unsent:
            self.unsent, self.last_progress = unsent, now
        if not self.idle:
            self.idle_since = now
        stalled = now - self.last_progress > self.limits.stall_timeout
        if stalled or now - self.idle_since > self.limits.request_timeout:
            self.drop()

    def drop(self) -> None:
        """Close the connection and discard unsent bytes, here and in the system."""
        with contextlib.suppress(OSError):
            self.transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE
            )
        self.connections.discard(self)
        self.transport.abort()


def connection_class(limits: Limits) -> type[Connection]:
    """A class of connections with these limits."""
    fields: dict[str, Any] = {"limits": limits}
    return type("LimitedConnection", (Connection,), fields)


def open_listener(host: str, port: int, limits: Limits) -> socket.socket:
    """A socket that listens, with small send buffers in the system. OSError if it cannot."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, *_, address = found[0]
    listener = socket.create_server(address[:2], family=family, backlog=128)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, HIGH_WATER)
    with contextlib.suppress(OSError, AttributeError):  # not all systems have it
        milliseconds = int(1000 * limits.stall_timeout)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
    listener.setblocking(False)
    return listener
