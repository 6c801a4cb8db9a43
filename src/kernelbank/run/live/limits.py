"""Limits of the live page's server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What the server allows its viewers. All times are in seconds."""

    connections: int = 100
    """Most open connections. A new one beyond evicts the idle connection that is idle longest."""
    stall_timeout: float = 30.0
    """Drop a viewer that takes no byte for this long while bytes wait for it."""
    request_timeout: float = 10.0
    """Drop a connection that has not sent a complete request within this time."""
    heartbeat: float = 15.0
    """Send a comment after this time without events, so that dead connections are noticed."""
    page_interval: float = 0.2
    """Render the page at most once in this time, however many viewers ask for it."""
    poll_interval: float = 0.2
    """Look for new report parts, and so send events, once in this time."""
    header_bytes: int = 32_768
    """Most bytes of a request's headers. Browsers send the cookies of all ports of a host."""
