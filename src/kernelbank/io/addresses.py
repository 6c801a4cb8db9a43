"""Addresses of brokers. Passwords are never shown."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from ..utils import validation as check

REDIS_FORM = "redis://user@host:6379/stream-name?db=0"
KAFKA_FORM = "kafka://host:9092/topic"

REDIS_PASSWORD = "KERNELBANK_REDIS_PASSWORD"
"""The environment variable with the password of Redis, for addresses without one."""

KAFKA_PASSWORD = "KERNELBANK_KAFKA_PASSWORD"
"""The environment variable with `sasl.password`, for addresses with a `sasl.username` only."""

PLAIN_SETTINGS = frozenset(
    (
        "client.id", "group.id", "sasl.mechanism", "sasl.mechanisms", "sasl.username",
        "security.protocol", "ssl.ca.location", "ssl.certificate.location", "ssl.key.location",
    )
)  # fmt: skip
"""Settings of Kafka that may be shown; any other may be a secret."""


@dataclass(frozen=True)
class RedisAddress:
    """The address of a Redis stream."""

    host: str
    port: int
    stream: str
    database: int = 0
    encrypted: bool = False
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @property
    def shown(self) -> str:
        """The address without user and password."""
        scheme = "rediss" if self.encrypted else "redis"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}/{self.stream}?db={self.database}"


@dataclass(frozen=True)
class KafkaAddress:
    """The address of a Kafka topic, and settings of the client library."""

    servers: str
    topic: str
    settings: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def shown(self) -> str:
        """The address without settings, which may hold a password."""
        return f"kafka://{self.servers}/{self.topic}"

    def hidden(self, text: str) -> str:
        """A text of the client library without the values of settings that may be secrets."""
        for name, value in self.settings.items():
            if value and name not in PLAIN_SETTINGS:
                text = text.replace(value, "***")
        return text


def redis_address(address: str, password: str | None = None) -> RedisAddress:
    """The parts of redis://user:password@host:port/stream-name?db=0.

    If the address has no password, it is `password`, or that of the environment.
    """
    try:
        parts = urlsplit(address)
        port = parts.port or 6379
        options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError:
        raise _malformed(address, REDIS_FORM) from None
    stream = unquote(parts.path.removeprefix("/"))
    database = options.pop("db", "0")
    if not (parts.hostname and stream and database.isdecimal()) or options or parts.fragment:
        raise _malformed(address, REDIS_FORM)
    return RedisAddress(
        parts.hostname,
        port,
        stream,
        int(database),
        parts.scheme == "rediss",
        unquote(parts.username) if parts.username else None,
        unquote(parts.password or "") or password or os.environ.get(REDIS_PASSWORD) or None,
    )


def kafka_address(address: str) -> KafkaAddress:
    """The parts of kafka://host:port,host:port/topic?setting=value.

    If there is a `sasl.username` and no `sasl.password`, this is that of the environment.
    """
    try:
        parts = urlsplit(address)
        settings = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError:
        raise _malformed(address, KAFKA_FORM) from None
    topic = unquote(parts.path.removeprefix("/"))
    if not (parts.netloc and topic) or "@" in parts.netloc or "/" in topic or parts.fragment:
        raise _malformed(address, KAFKA_FORM)
    servers = ",".join(
        server if ":" in server else f"{server}:9092" for server in parts.netloc.split(",")
    )
    secret = os.environ.get(KAFKA_PASSWORD)
    if secret and "sasl.username" in settings:
        settings.setdefault("sasl.password", secret)
    return KafkaAddress(servers, topic, settings)


def without_password(address: str) -> str:
    """The address without its user, password and settings; a file's name stays as it is."""
    scheme, mark, rest = address.partition("://")
    if not mark:
        return address
    before, _, place = rest.rpartition("@")
    if "?" in before:  # does a password hold the ?, or a setting the @? Show neither.
        return f"{scheme}://***"
    return f"{scheme}://{place.partition('?')[0]}"


def _malformed(address: str, form: str) -> Exception:
    remedy = "Write characters such as / @ ? # in a name or password as % and two digits."
    return check.refuse("address", f"be like {form}", without_password(address), remedy)
