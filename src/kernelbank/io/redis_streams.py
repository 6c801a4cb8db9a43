"""What a Redis server says about a stream: how far it is, and what was removed from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import FileRefused
from .redis_connection import ResponseError

Id = tuple[int, int]
"""The two numbers of an id such as 1700000000000-0."""

FIRST_ID: Id = (0, 0)
"""Below the id of every entry."""


@dataclass(frozen=True)
class StreamInfo:
    """A stream at one moment. One that does not exist is empty.

    Parameters
    ----------
    last : the highest id that ever was in it; removing entries does not change it.
    first : the lowest id that is in it; None if it is empty.
    length : how many entries are in it.
    added : how many entries were ever added; None from a server before Redis 7.
    deleted : the highest id that was deleted by name (XDEL); None from a server before Redis 7.
    """

    last: Id = FIRST_ID
    first: Id | None = None
    length: int = 0
    added: int | None = 0
    deleted: Id | None = None

    @classmethod
    def of_reply(cls, reply: Any, shown: str) -> StreamInfo:
        """From the reply to XINFO STREAM; `shown` is the address of the stream."""
        if isinstance(reply, ResponseError):
            if "no such key" in str(reply):
                return cls()
            if "WRONGTYPE" in str(reply):
                raise FileRefused(
                    f"{shown}: this key is not a stream. Give the name of a stream."
                ) from None
        if isinstance(reply, Exception):
            raise reply
        first, deleted = reply["first-entry"], reply.get("max-deleted-entry-id")
        return cls(
            parsed_id(reply["last-generated-id"]),
            None if first is None else parsed_id(first[0]),
            reply["length"],
            reply.get("entries-added"),
            None if deleted is None else parsed_id(deleted),
        )


def parsed_id(identifier: str | bytes) -> Id:
    """The two numbers of an id."""
    text = identifier.decode() if isinstance(identifier, bytes) else identifier
    number, _, sequence = text.partition("-")
    return int(number), int(sequence)


def shown_id(identifier: Id) -> str:
    """An id as Redis writes it."""
    return "{}-{}".format(*identifier)
