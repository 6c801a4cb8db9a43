"""Rows to a Redis stream, each exactly once, also if a run breaks off and goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import FileRefused
from ...utils import validation as check
from ..redis_connection import BROKEN, PATIENCE, Link
from ..sources.addresses import redis_address

_NO_BEGINNING = "0-0"


class RedisOutput:
    """Writes rows to a Redis stream under ids made of their numbers: row n has the id n-1.

    Writing a row again changes nothing: Redis refuses ids that are not above the last one, and
    then it is checked that the entry is there and is the same.

    Parameters
    ----------
    address : redis://user:password@host:port/stream-name?db=0.
    batch : rows that are sent together; `flush` sends what is left.
    patience : seconds for which a broken connection is tried again.

    >>> RedisOutput("redis://localhost/predictions").name
    'stream predictions'
    """

    def __init__(self, address: str, batch: int = 256, patience: float = PATIENCE) -> None:
        self._address = redis_address(address)
        self._batch = check.count("batch", batch, "RedisOutput", "Give a number such as 256.")
        self._link = Link(self._address, patience)
        self._waiting: list[tuple[str, dict[str, str]]] = []
        self._last = -1
        self.name = f"stream {self._address.stream}"
        self.place = self._address.shown
        """The address, without a password."""

    @property
    def highest(self) -> tuple[int, int]:
        """The highest id that ever was in the stream: readers may have taken entries away."""

        def ask(client: Any) -> str:
            if not client.exists(self._address.stream):
                return "0-0"
            return str(client.xinfo_stream(self._address.stream)["last-generated-id"].decode())

        number, _, rest = self._link.insist(ask).partition("-")
        return int(number), int(rest)

    @property
    def last(self) -> int | None:
        """The number of the last row in the stream; None if there is none."""

        def top(client: Any) -> bytes:
            newest = client.xrevrange(self._address.stream, count=1)
            return newest[0][0] if newest else _NO_BEGINNING.encode()

        identifier = self._link.insist(top).decode()
        if identifier == _NO_BEGINNING:
            return None
        number, _, rest = identifier.partition("-")
        if rest != "1":
            raise self._stranger(identifier)
        return int(number)

    def add(self, number: int, fields: Mapping[str, Any]) -> None:
        """Write the fields of row `number`; numbers must grow."""
        check.count("number", number, "RedisOutput", "Give the row's number.", least=0)
        if number <= self._last:
            remedy = "Write rows in their order."
            raise check.refuse("number", f"be above {self._last}", number, remedy, "RedisOutput")
        if not fields:
            remedy = "Redis keeps no entry without a field."
            raise check.refuse("fields", "have at least one member", fields, remedy, "RedisOutput")
        self._last = number
        texts = {str(name): str(value) for name, value in fields.items()}
        self._waiting.append((f"{number}-1", texts))
        if len(self._waiting) >= self._batch:
            self.flush()

    def flush(self) -> None:
        """Send all rows that wait, and return when Redis has them."""
        if not self._waiting:
            return
        answers = self._link.insist(self._send)
        doubtful = []
        for (identifier, fields), answer in zip(self._waiting, answers, strict=True):
            if not isinstance(answer, Exception):
                continue
            if "equal or smaller" not in str(answer):
                raise FileRefused(f"{self._address.shown}: Redis refuses: {answer}.")
            doubtful.append((identifier, fields))
        if doubtful:
            self._confirm(doubtful)
        self._waiting.clear()

    def close(self, *, send: bool = True) -> None:
        """Send what waits, unless told otherwise, and end the connection."""
        if send:
            self.flush()
        self._link.close()

    def _send(self, client: Any) -> list[Any]:
        pipeline = client.pipeline(transaction=False)
        for identifier, fields in self._waiting:
            pipeline.xadd(self._address.stream, fields, id=identifier)
        answers = pipeline.execute(raise_on_error=False)
        for answer in answers:
            # A server that is still loading, or a connection that broke: the whole batch again.
            if isinstance(answer, BROKEN):
                raise answer
        return list(answers)

    def _confirm(self, doubtful: list[tuple[str, dict[str, str]]]) -> None:
        def look(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for identifier, _ in doubtful:
                pipeline.xrange(self._address.stream, identifier, identifier)
            return list(pipeline.execute())

        for (identifier, fields), found in zip(doubtful, self._link.insist(look), strict=True):
            wanted = {name.encode(): value.encode() for name, value in fields.items()}
            if not found or dict(found[0][1]) != wanted:
                raise self._stranger(identifier)

    def _stranger(self, identifier: str) -> FileRefused:
        return FileRefused(
            f"{self._address.shown}: the stream holds entries that this run has not written "
            f"(at id {identifier}). Give a stream of its own."
        )
