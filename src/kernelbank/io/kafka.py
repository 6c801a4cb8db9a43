"""Kafka topics: all partitions from stored offsets on, and new messages as they come.

A message's value is a JSON object. The consumer group's offsets are neither read nor written.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..errors import FileRefused, KernelBankWarning, SourceLost
from ..utils import validation as check
from .brokers import PATIENCE, KafkaAddress, Retries
from .lines import first_object_keys, parse_object
from .source import (
    GO_ON_WITH_GAPS,
    POLL_SECONDS,
    Broken,
    DictRows,
    Position,
    RowBlock,
    RowLocations,
    Source,
    empty_block,
    foreign_position,
    position_count,
)

try:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "Kafka topics need confluent-kafka, which is not installed. Install both: "
        "pip install 'kernelbank[kafka]'"
    ) from error

PARTITION_PERIOD = 30.0
"""Seconds between two queries for partitions that were added to the topic."""

SLOW_START_SECONDS = 10.0
"""Seconds to wait for messages that are known to be there."""


class KafkaTopic(Source):
    """A topic. Rows of one partition come in order; between partitions there is no order."""

    kind = "kafka"

    def __init__(
        self,
        address: KafkaAddress,
        idle: float | None = None,
        patience: float = PATIENCE,
        *,
        allow_gaps: bool = False,
    ) -> None:
        self.name = f"topic {address.topic}"
        self.address = address.shown
        self._address = address
        self._idle = idle
        self._allow_gaps = allow_gaps
        self._deleted: set[int] = set()
        """Partitions whose next message was deleted, as the brokers have said."""
        self._retries = Retries(address.shown, patience)
        self._is_down = False
        """Whether the client has lost all brokers."""
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
            text = address.hidden(_error_text(error))
            raise FileRefused(f"{address.shown}: {text}. Check the settings.") from None

    def _blocks(
        self, position: Position | None, size: int, columns: Sequence[str] | None
    ) -> Iterator[RowBlock]:
        del columns
        count, missing, offsets = 0, 0, {}
        if position is not None:
            count = position_count(position, "rows", self.name)
            stored = position.get("offsets")
            if not isinstance(stored, dict) or not all(str(key).isdecimal() for key in stored):
                raise foreign_position(position, self.name)
            offsets = {int(key): position_count(stored, key, self.name) for key in stored}
            missing = position_count({"missing": 0, **position}, "missing", self.name)
        self.missing_rows = missing
        return self._blocks_from(count, offsets, size)

    def _blocks_from(self, count: int, offsets: dict[int, int], size: int) -> Iterator[RowBlock]:
        assigned: set[int] = set()
        partitions_at = -PARTITION_PERIOD
        last_read = time.monotonic()
        while True:
            if time.monotonic() - partitions_at > PARTITION_PERIOD:
                if not self._assign_partitions(offsets, assigned):
                    yield empty_block(count)
                    continue
                partitions_at = time.monotonic()
            if self._deleted and not self._pass_deleted(offsets):
                yield empty_block(count)
                continue
            messages = self._poll(size)
            if messages:
                places = [(int(m.partition() or 0), int(m.offset() or 0)) for m in messages]
                locations = OffsetLocations(
                    self.name, count, places, dict(offsets), self.missing_rows
                )
                rows, broken = parse_messages(messages)
                self.columns = self.columns or first_object_keys(rows)
                if not count:
                    before = {str(key): value for key, value in sorted(offsets.items())}
                    self.start = {"rows": 0, "offsets": before, "missing": self.missing_rows}
                yield RowBlock(DictRows(rows, broken), locations)
                count += len(messages)
                offsets.update(locations.reached(len(messages) - 1))
                last_read = time.monotonic()  # the time in which the rows were used is not idle
            else:
                quiet = time.monotonic() - last_read
                if self._idle is not None and self._has_ended(quiet - self._idle, offsets):
                    return
                yield empty_block(count)

    def _assign_partitions(self, offsets: dict[int, int], assigned: set[int]) -> bool:
        """Read all partitions of the topic, each at its offset; False if out of reach now."""
        topic, timeout = self._address.topic, self._retries.timeout
        if self._retries.seconds_left:
            time.sleep(min(self._retries.seconds_left, POLL_SECONDS))
            return False
        try:
            metadata = self._consumer.list_topics(topic, timeout=timeout).topics[topic]
            if metadata.error is not None:
                raise FileRefused(
                    f"{self._address.shown}: {metadata.error.str()}. Make the topic, or give "
                    "another."
                )
            new = sorted(set(metadata.partitions) - assigned)
            ranges = {}
            for partition in new:
                ranges[partition] = self._consumer.get_watermark_offsets(
                    TopicPartition(topic, partition), timeout=timeout
                )
        except KafkaException as error:
            self._retries.failed(_error_text(error))
            return False
        self._reached()
        for partition, (low, high) in ranges.items():
            self._check_offset(partition, low, high, offsets)
        gone = sorted(set(offsets) - set(metadata.partitions))
        if gone:
            raise FileRefused(
                f"{self._address.shown}: partition {gone[0]}, which had been read, is no longer "
                "there. The topic was made again: start a new run."
            )
        if new:
            added = [TopicPartition(topic, number, offsets[number]) for number in new]
            self._consumer.incremental_assign(added)
            assigned.update(new)
        return True

    def _check_offset(self, partition: int, low: int, high: int, offsets: dict[int, int]) -> None:
        """Refuse an offset beyond `low` to `high`; with `allow_gaps`, raise it to `low`."""
        offset = offsets.setdefault(partition, low)
        holds = (
            f"{self._address.shown}: partition {partition} holds offsets {low} to {high - 1}, but "
            f"the next to read is {offset}."
        )
        if offset > high:
            raise FileRefused(f"{holds} The topic was made again: start a new run.")
        if offset < low:
            holds = f"{holds} {low - offset:,} messages were deleted before they were read."
            if not self._allow_gaps:
                raise FileRefused(f"{holds} {GO_ON_WITH_GAPS}")
            warnings.warn(holds, KernelBankWarning, stacklevel=2)
            self.missing_rows += low - offset
            offsets[partition] = low

    def _pass_deleted(self, offsets: dict[int, int]) -> bool:
        """Go on after messages that were deleted, or refuse to; False if out of reach now."""
        if self._retries.seconds_left:
            time.sleep(min(self._retries.seconds_left, POLL_SECONDS))
            return False
        for number in sorted(self._deleted):
            partition = TopicPartition(self._address.topic, number)
            try:
                low, high = self._consumer.get_watermark_offsets(
                    partition, timeout=self._retries.timeout
                )
            except KafkaException as error:
                self._retries.failed(_error_text(error))
                return False
            self._check_offset(number, low, high, offsets)
            partition.offset = offsets[number]
            self._consumer.incremental_unassign([partition])
            self._consumer.incremental_assign([partition])
            self._deleted.discard(number)
        self._reached()
        return True

    def _poll(self, size: int) -> list[Message]:
        """Messages that have come; an empty list if none came for a while."""
        if self._is_down and not self._retries.seconds_left:
            try:
                self._consumer.list_topics(self._address.topic, timeout=1.0)
                self._reached()
            except KafkaException as error:
                self._retries.failed(_error_text(error))
        good = []
        for message in self._consumer.consume(size, timeout=POLL_SECONDS):
            wrong = message.error()
            if wrong is None:
                good.append(message)
            elif wrong.name() == "_AUTO_OFFSET_RESET":
                self._deleted.add(int(message.partition() or 0))
            elif not wrong.retriable() and wrong.name() != "_PARTITION_EOF":
                raise SourceLost(
                    f"{self._address.shown}, partition {message.partition()}: {wrong.str()}. "
                    "The run can be resumed when this is repaired."
                )
        return good

    def _has_ended(self, late: float, offsets: dict[int, int]) -> bool:
        """Whether the stream has ended: it is idle for `late` seconds more than allowed.

        After a slow start, messages that the brokers hold may not have come yet: wait for them. But
        the last offsets may belong to aborted transactions, which never come: so not for long.
        """
        if not 0 < late < SLOW_START_SECONDS:
            return late > 0
        try:
            for partition, offset in offsets.items():
                topic_partition = TopicPartition(self._address.topic, partition)
                if offset < self._consumer.get_watermark_offsets(topic_partition, timeout=1.0)[1]:
                    return False
        except KafkaException:
            return False
        return True

    def _on_error(self, error: KafkaError) -> None:
        """Called by the client, which reconnects by itself."""
        self._is_down |= error.name() == "_ALL_BROKERS_DOWN"

    def _reached(self) -> None:
        self._is_down = False
        self._retries.succeeded()

    def close(self) -> None:
        self._consumer.close()


def _error_text(error: KafkaException) -> str:
    inner = error.args[0] if error.args else error
    text = inner.str() if isinstance(inner, KafkaError) else str(inner)
    return text.rpartition("Local: ")[2]  # the client's word for an error of its own


EMPTY = "is a message without a value"


@dataclass
class OffsetLocations(RowLocations):
    """Messages by partition and offset.

    Parameters
    ----------
    offsets : partition and offset of each message.
    before : for every partition the next offset before the block.
    missing : how many messages were deleted before they were read.
    """

    offsets: Sequence[tuple[int, int]]
    before: dict[int, int]
    missing: int

    def reached(self, row: int) -> dict[int, int]:
        """For every partition the next offset after a row."""
        after = {partition: offset + 1 for partition, offset in self.offsets[: row + 1]}
        return {**self.before, **after}

    def where(self, row: int) -> str:
        partition, offset = self.offsets[row]
        return f"{self.name}, partition {partition}, offset {offset}"

    def position(self, row: int) -> Position:
        offsets = {str(key): value for key, value in sorted(self.reached(row).items())}
        return {"rows": self.first + row + 1, "offsets": offsets, "missing": self.missing}

    def identifier(self, row: int) -> str:
        """Partition and offset: 0-17."""
        return "{}-{}".format(*self.offsets[row])


def parse_messages(messages: Sequence[Message]) -> tuple[list[dict[str, object] | None], Broken]:
    """The JSON objects of messages, None for other values, and these."""
    rows: list[dict[str, object] | None] = []
    broken: Broken = {}
    for index, message in enumerate(messages):
        raw = message.value()
        text = "" if raw is None else raw.decode("utf-8", "surrogateescape")
        row = EMPTY if raw is None else parse_object(text)
        if isinstance(row, str):
            broken[index] = (text, row)
        rows.append(None if isinstance(row, str) else row)
    return rows, broken
