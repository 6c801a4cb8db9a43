"""The process that serves a live page. It ends with the run that started it.

Memory, with at most C connections (100): the report once, a page once, and per connection at most
64 kB and a slice of 16 kB that wait to be sent, 32 kB of headers, 256 kB that were read at once,
and the texts of one event or page that are not sent yet. Viewers at the same version share these
texts; if each is stuck at another version, C reports are held. Nothing grows with the length of the
run or with the time for which a viewer is slow.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import logging
import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .limits import Limits
from .parts_folder import START_RESULT, VersionedParts, write_private

if TYPE_CHECKING:
    from .connections import Connection

END_TIMEOUT = 2.0
"""Seconds within which viewers may take the last events of a run."""


def main(folder: Path, settings: dict[str, Any]) -> None:
    """Serve the report parts in `folder` until the run ends. Does not return."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)  # the run comes first
    limits = Limits(**settings["limits"])
    try:
        import starlette.routing  # noqa: F401  if it cannot be imported, say so now
        import uvicorn  # noqa: F401

        from .connections import open_listener

        listener = open_listener(settings["host"], settings["port"], limits)
    except Exception as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = getattr(error, "strerror", None) or str(error)
        _write_result(folder, {"errno": number, "reason": reason})
        os._exit(1)
    _write_result(folder, {"port": listener.getsockname()[1]})
    try:
        asyncio.run(_serve(folder, settings, limits, listener))
    finally:
        os._exit(1)


def _write_result(folder: Path, result: dict[str, Any]) -> None:
    write_private(folder / START_RESULT, json.dumps(result).encode())


async def _serve(
    folder: Path, settings: dict[str, Any], limits: Limits, listener: socket.socket
) -> None:
    import uvicorn

    from .asgi_app import AccessControl
    from .connections import connection_class

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # the run decides when to end

    for name in ("uvicorn", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    parts = VersionedParts(folder)
    host = _known_host(settings["host"], listener)
    server = Server(
        uvicorn.Config(
            AccessControl(parts, settings["token"], host, limits),
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
            h11_max_incomplete_event_size=limits.header_bytes,
        )
    )
    connections: set[Any] = server.server_state.connections
    await asyncio.gather(
        server.serve(sockets=[listener]),
        _follow_run(folder, parts, connections, limits, settings["parent"]),
    )


def _known_host(host: str, listener: socket.socket) -> str | None:
    """The host if only this machine can reach the listener; else None."""
    bound = listener.getsockname()[0].partition("%")[0]
    return host if ipaddress.ip_address(bound).is_loopback else None


async def _follow_run(
    folder: Path, parts: VersionedParts, connections: set[Connection], limits: Limits, parent: int
) -> None:
    """Read what the run writes and drop stalled viewers until the run is over; then exit."""
    while os.getppid() == parent:
        with contextlib.suppress(OSError):  # out of file handles, perhaps: try again
            parts.refresh()
        if parts.ended:
            await _wait_until_sent(connections)
            os._exit(0)
        now = time.monotonic()
        for connection in list(connections):
            connection.check_timeouts(now)
        await asyncio.sleep(limits.poll_interval)
    shutil.rmtree(folder, ignore_errors=True)  # the run was killed and cannot do it
    os._exit(0)


async def _wait_until_sent(connections: set[Connection]) -> None:
    deadline = time.monotonic() + END_TIMEOUT
    while time.monotonic() < deadline:
        await asyncio.sleep(0.05)
        if all(connection.idle for connection in connections):
            return
