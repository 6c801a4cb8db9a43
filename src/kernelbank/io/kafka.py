"""Kafka topics: all partitions from stored offsets on, and new messages as they come.

A message's value is a JSON object. The consumer group's offsets are neither read nor written.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..errors import FileRefused, SourceLost
from ..utils import validation as check
from .brokers import BrokerSource, KafkaAddress, Result
from .lines import first_object_keys, parse_object
from .source import (
    POLL_SECONDS,
    BrokenRow,
    Position,
    RowBlock,
    empty_block,
    foreign_position,
    position_count,
)

with check.optional("Kafka topics need", "confluent-kafka", "kafka"):
    from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

PARTITION_PERIOD = 30.0  # seconds between two queries for partitions that were added to the topic
SLOW_START_SECONDS = 10.0  # seconds to wait for messages that are known to be there


@dataclass
class TopicProgress:
    """How far a topic is read: how many messages, and in every partition the next offset."""

    rows: int = 0
    offsets: dict[int, int] = field(default_factory=dict)
    assigned: set[int] = field(default_factory=set)
    """The partitions that the client reads."""
    queried: float = -math.inf
    """When the topic was asked for its partitions."""


class KafkaTopic(BrokerSource):
    """A topic. Rows of one partition come in order; between partitions there is no order."""

    kind = "kafka"

    def __init__(self, address: KafkaAddress, **options: Any) -> None:
        super().__init__(address, f"topic {address.topic}", **options)
        self._topic = address.topic
        self._is_down = False  # whether the client has lost all brokers
        ours = {
            "bootstrap.servers": address.servers,
            "enable.auto.commit": "false",
            "enable.auto.offset.store": "false",
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",  # messages that are gone must not be skipped
            "allow.auto.create.topics": "false",
        }
        for key in address.settings:
            if key in ours:
                remedy = "Leave it out: rows are read once, by the offsets in the checkpoint."
                raise check.refuse("address", "not set what is fixed", key, remedy, self.name)
        # Other requests to a broker queue behind a fetch, so a fetch must not wait for long.
        usual = {"group.id": "kernelbank", "log_level": "2", "fetch.wait.max.ms": "100"}
        settings = {**usual, **address.settings, **ours}
        try:
            self._consumer = Consumer({**settings, "error_cb": self._on_error})
        except KafkaException as error:
            text = _error_text(error)
            if any(value in text for value in address.settings.values()):  # it may be a secret
                text = "a setting has a wrong value"
            raise FileRefused(f"{address.shown}: {text}. Check the settings.") from None

    def _parsed(self, position: Position | None) -> TopicProgress:
        at = TopicProgress()
        if position is not None:
            at.rows = position_count(position, "rows", self.name)
            stored = position.get("offsets")
            if not isinstance(stored, dict) or not all(str(key).isdecimal() for key in stored):
                raise foreign_position(position, self.name)
            at.offsets = {int(key): position_count(stored, key, self.name) for key in stored}
            self.missing_rows = position_count({"missing": 0, **position}, "missing", self.name)
        return at

    def _next_block(self, at: TopicProgress, size: int) -> RowBlock | None:
        if time.monotonic() - at.queried > PARTITION_PERIOD:
            if self._attempt(lambda timeout: self._assign_partitions(at, timeout)) is None:
                return empty_block(at.rows)
            at.queried = time.monotonic()
        messages = self._poll(at, size)
        if not messages:
            return None
        rows = [message_row(message) for message in messages]
        self.columns = self.columns or first_object_keys(rows)
        places = [(int(m.partition() or 0), int(m.offset() or 0)) for m in messages]
        before = dict(at.offsets)

        def reached(row: int) -> Position:
            after = {partition: offset + 1 for partition, offset in places[: row + 1]}
            offsets = sorted({**before, **after}.items())
            return {"offsets": {str(partition): offset for partition, offset in offsets}}

        ids = ["{}-{}".format(*place) for place in places]
        block = self._block(rows, at.rows, ids, "partition {}, offset {}", reached)
        if not at.rows:
            self.start = block.position(-1)  # before its first row
        at.rows += len(places)
        at.offsets.update((partition, offset + 1) for partition, offset in places)
        return block

    def _attempt(self, action: Callable[[float], Result]) -> Result | None:
        """The result of an action with a timeout; None if brokers are out of reach now."""
        result = self._retries.attempt(
            lambda: action(self._retries.timeout), (KafkaException,), _error_text
        )
        self._is_down &= result is None
        return result

    def _assign_partitions(self, at: TopicProgress, timeout: float) -> bool:
        """Read all partitions of the topic, each at its offset."""
        metadata = self._consumer.list_topics(self._topic, timeout=timeout).topics[self._topic]
        if metadata.error is not None:
            raise FileRefused(
                f"{self.address}: {metadata.error.str()}. Make the topic, or give another."
            )
        gone = sorted(set(at.offsets) - set(metadata.partitions))
        if gone:
            raise FileRefused(
                f"{self.address}: partition {gone[0]}, which had been read, is no longer there. "
                "The topic was made again: start a new run."
            )
        new = [
            TopicPartition(self._topic, n) for n in sorted(set(metadata.partitions) - at.assigned)
        ]
        ranges = [
            self._consumer.get_watermark_offsets(partition, timeout=timeout) for partition in new
        ]
        for partition, (low, high) in zip(new, ranges, strict=True):
            partition.offset = self._checked_offset(at, partition.partition, low, high)
        if new:
            self._consumer.incremental_assign(new)
            at.assigned |= set(metadata.partitions)
        return True

    def _checked_offset(self, at: TopicProgress, partition: int, low: int, high: int) -> int:
        """The next offset of a partition that holds offsets from `low` to below `high`."""
        offset = at.offsets.setdefault(partition, low)
        holds = (
            f"{self.address}: partition {partition} holds offsets {low} to {high - 1}, but the "
            f"next to read is {offset}."
        )
        if offset > high:
            raise FileRefused(f"{holds} The topic was made again: start a new run.")
        if offset < low:
            missing = low - offset
            deleted = f"{missing:,} messages were deleted before they were read."
            self.report_gap(f"{holds} {deleted}", missing)
            at.offsets[partition] = low
        return at.offsets[partition]

    def _poll(self, at: TopicProgress, size: int) -> list[Message]:
        """Messages that have come; an empty list if none came for a while."""
        if self._is_down and not self._retries.seconds_left:
            self._attempt(lambda _: self._consumer.list_topics(self._topic, timeout=1.0))
        good = []
        for message in self._consumer.consume(size, timeout=POLL_SECONDS):
            wrong = message.error()
            if wrong is None:
                good.append(message)
            elif wrong.name() == "_AUTO_OFFSET_RESET":  # the next one was deleted: begin anew
                partition = TopicPartition(self._topic, int(message.partition() or 0))
                self._consumer.incremental_unassign([partition])
                at.assigned.discard(partition.partition)
                at.queried = -math.inf
            elif not wrong.retriable() and wrong.name() != "_PARTITION_EOF":
                raise SourceLost(
                    f"{self.address}, partition {message.partition()}: {wrong.str()}. The run can "
                    "be resumed when this is repaired."
                )
        return good

    def _has_ended(self, at: TopicProgress, late: float) -> bool:
        """After a slow start, messages that the brokers hold may not have come: wait for them.

        But the last offsets may belong to aborted transactions, which never come: so not for long.
        """
        if late >= SLOW_START_SECONDS:
            return True
        try:
            return all(
                offset >= self._consumer.get_watermark_offsets(partition, timeout=1.0)[1]
                for partition, offset in (
                    (TopicPartition(self._topic, n), offset) for n, offset in at.offsets.items()
                )
            )
        except KafkaException:
            return False

    def _on_error(self, error: KafkaError) -> None:
        """Called by the client, which reconnects by itself."""
        self._is_down |= error.name() == "_ALL_BROKERS_DOWN"

    def close(self) -> None:
        self._consumer.close()


def _error_text(error: KafkaException) -> str:
    inner = error.args[0] if error.args else error
    text = inner.str() if isinstance(inner, KafkaError) else str(inner)
    return text.rpartition("Local: ")[2]  # the client's word for an error of its own


def message_row(message: Message) -> dict[str, object] | BrokenRow:
    """The JSON object in a message; any other value is a broken row."""
    raw = message.value()
    if raw is None:
        return "", "is a message without a value"
    text = raw.decode("utf-8", "surrogateescape")
    row = parse_object(text)
    return (text, row) if isinstance(row, str) else row
