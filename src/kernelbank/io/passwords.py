"""Passwords of brokers: read from a file, and left out of commands that are shown."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from ..errors import RunRefused
from .addresses import PLAIN_SETTINGS, REDIS_PASSWORD, without_password

_LONGEST = 4096
"""Bytes of a password."""


def read_password(path: Path, option: str) -> str:
    """The password in a file, without the end of its line.

    Parameters
    ----------
    path : a regular file of one line that others than its owner and group may not read.
    option : the option that names the file, for messages.
    """
    try:
        # A pipe must not be waited for.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise RunRefused(f"{option}: {path} cannot be read: {error.strerror}.") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise RunRefused(f"{option} must name a regular file; {path} is none.")
        # Its group may read it: so systemd and Kubernetes give secrets to a service.
        if stat.S_IMODE(status.st_mode) & 0o037:
            raise RunRefused(
                f"{option} must name a file that others may not read; {path} has mode "
                f"{stat.S_IMODE(status.st_mode):03o}. Use chmod 600 {path}; where that cannot be "
                f"done, set {REDIS_PASSWORD}."
            )
        content = os.read(descriptor, _LONGEST + 1)
    finally:
        os.close(descriptor)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = ""
    password = text.removesuffix("\n").removesuffix("\r")
    if not password or not password.isprintable() or len(content) > _LONGEST:
        raise RunRefused(
            f"{option} must name a file with a password in one line of UTF-8; {path} has none."
        )
    return password


def typed_without_password(word: str) -> str:
    """A word of a command without the password of an address, so that it can be typed again."""
    start, mark, address = "", "", word
    if word.startswith("-"):
        start, mark, address = word.partition("=")
    if "://" not in address:
        return word
    try:
        parts = urlsplit(address)
        settings = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        if "@" in f"{parts.path}{parts.fragment}":
            raise ValueError  # the characters of a password were not escaped
    except ValueError:
        return f"{start}{mark}{without_password(address)}"
    before, at, place = parts.netloc.rpartition("@")
    user, colon, _ = before.partition(":")
    shown = f"{user}{at}{place}" if user else place
    query = parts.query
    if parts.scheme == "kafka":
        kept = [(name, value) for name, value in settings if name != "sasl.password"]
        kept = [(name, value if name in PLAIN_SETTINGS else "***") for name, value in kept]
        if kept != settings:
            query = urlencode(kept, safe="*", quote_via=quote)
    if not colon and query == parts.query:
        return word
    return f"{start}{mark}{urlunsplit(parts._replace(netloc=shown, query=query))}"
