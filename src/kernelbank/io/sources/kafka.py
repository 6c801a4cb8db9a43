"""Kafka topics: all partitions at offsets of our own, and new messages as they come.

A message's value is a JSON object. The consumer group's offsets are neither read nor written.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import FileRefused, SourceLost
from ...utils import validation as check
from .addresses import KafkaAddress
from .base import POLL, SIZE, Source, foreign, rows_per_block, whole
from .jsonl import JsonRows, first_keys, object_of
from .rows import Position, RowBlock, RowLocations, nothing

try:
    from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "Kafka topics need confluent-kafka, which is not installed. Install both: "
        "pip install 'kernelbank[kafka]'"
    ) from error

PATIENCE = 30.0
"""Seconds for which the brokers may be out of reach."""

LOOK_AGAIN = 30.0
"""Seconds after which partitions that were added to the topic are noticed."""

SLOW_START = 10.0
"""Seconds for which messages that are known to be there may take to come."""

EMPTY = "is a message without a value"
_LONGEST_CALL = 5.0


class KafkaTopic(Source):
    """A topic. Rows of one partition come in order; between partitions there is no order."""

    kind = "kafka"

    def __init__(
        self, address: KafkaAddress, idle: float | None = None, patience: float = PATIENCE
    ) -> None:
        self.name = f"topic {address.topic}"
        self._address = address
        self._idle = idle
        self._patience = patience
        self._down_since: float | None = None
        ours = {
            "bootstrap.servers": address.servers,
            "enable.auto.commit": "false",
            "enable.auto.offset.store": "false",
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",  # messages that are gone must not be passed over
            "allow.auto.create.topics": "false",
        }
        for key in address.settings:
            if key in ours:
                remedy = "Leave it out: each row is read once by our own offsets."
                raise check.refuse("address", "not set what is fixed", key, remedy, self.name)
        # Other questions to a broker wait behind a fetch, so a fetch must not wait for long.
        usual = {"group.id": "kernelbank", "log_level": "2", "fetch.wait.max.ms": "100"}
        settings = {**usual, **address.settings, **ours}
        try:
            self._consumer = Consumer({**settings, "error_cb": self._on_error})
        except KafkaException as error:
            raise FileRefused(f"{address.shown}: {_words(error)}. Check the settings.") from None

    @property
    def fingerprint(self) -> dict[str, Any]:
        # The servers may change their names: the topic is the same.
        columns = None if self.columns is None else list(self.columns)
        return {"kind": self.kind, "address": self._address.shown, "columns": columns}

    def blocks(
        self,
        position: Position | None = None,
        size: int = SIZE,
        columns: Sequence[str] | None = None,
    ) -> Iterator[RowBlock]:
        del columns
        count, offsets = 0, {}
        if position is not None:
            count = whole(position, "rows", self.name)
            stored = position.get("offsets")
            if not isinstance(stored, dict) or not all(str(key).isdecimal() for key in stored):
                raise foreign(position, self.name)
            offsets = {int(key): whole(stored, key, self.name) for key in stored}
        return self._blocks(count, offsets, rows_per_block(size))

    def _blocks(self, count: int, offsets: dict[int, int], size: int) -> Iterator[RowBlock]:
        assigned: set[int] = set()
        looked = -LOOK_AGAIN
        heard = time.monotonic()
        while True:
            if time.monotonic() - looked > LOOK_AGAIN:
                if not self._take_partitions(offsets, assigned):
                    yield nothing(count)
                    continue
                looked = time.monotonic()
            messages = self._poll(size)
            if messages:
                places = OffsetLocations(self.name, count, messages, dict(offsets))
                content = _content(messages)
                self.columns = self.columns or first_keys(content.rows)
                yield RowBlock(content, places)
                count += len(messages)
                offsets.update(places.reached(len(messages) - 1))
                heard = time.monotonic()  # the time in which the rows were used is not idle
            else:
                quiet = time.monotonic() - heard
                if self._idle is not None and self._over(quiet - self._idle, offsets):
                    return
                yield nothing(count)

    def _take_partitions(self, offsets: dict[int, int], assigned: set[int]) -> bool:
        """Read all partitions of the topic, each at its offset; False if out of reach now."""
        topic = self._address.topic
        try:
            found = self._consumer.list_topics(topic, timeout=_LONGEST_CALL).topics[topic]
            if found.error is not None:
                raise FileRefused(
                    f"{self._address.shown}: {found.error.str()}. Make the topic, or give another."
                )
            new = sorted(set(found.partitions) - assigned)
            ranges = {}
            for partition in new:
                ranges[partition] = self._consumer.get_watermark_offsets(
                    TopicPartition(topic, partition), timeout=_LONGEST_CALL
                )
        except KafkaException as error:
            self._wait(error)
            return False
        self._down_since = None
        for partition, (low, high) in ranges.items():
            offset = offsets.setdefault(partition, low)
            if not low <= offset <= high:
                raise FileRefused(
                    f"{self._address.shown}: partition {partition} holds offsets {low} to "
                    f"{high - 1}, but the next to read is {offset}. Messages have been deleted, or "
                    "the topic was made anew: begin a new run."
                )
        gone = sorted(set(offsets) - set(found.partitions))
        if gone:
            raise FileRefused(
                f"{self._address.shown}: partition {gone[0]}, which had been read, is no longer "
                "there. The topic was made anew: begin a new run."
            )
        if new:
            added = [TopicPartition(topic, number, offsets[number]) for number in new]
            self._consumer.incremental_assign(added)
            assigned.update(new)
        return True

    def _poll(self, size: int) -> list[Any]:
        """Messages that have come; an empty list if none came for a while."""
        if self._down_since is not None:
            try:
                self._consumer.list_topics(self._address.topic, timeout=1.0)
                self._down_since = None
            except KafkaException as error:
                self._wait(error)
        good = []
        for message in self._consumer.consume(size, timeout=POLL):
            wrong = message.error()
            if wrong is None:
                good.append(message)
            elif not wrong.retriable() and wrong.code() != KafkaError._PARTITION_EOF:
                raise SourceLost(
                    f"{self._address.shown}, partition {message.partition()}: {wrong.str()}. "
                    "The run can go on when this is repaired."
                )
        return good

    def _over(self, late: float, offsets: dict[int, int]) -> bool:
        """Whether to end, `late` seconds after nothing has come for the time that was given.

        A slow start is no end: all messages that the brokers have must have come. But the last
        offsets may be those of aborted transactions, which never do: so there is a limit.
        """
        if not 0 < late < SLOW_START:
            return late > 0
        try:
            for partition, offset in offsets.items():
                place = TopicPartition(self._address.topic, partition)
                if offset < self._consumer.get_watermark_offsets(place, timeout=1.0)[1]:
                    return False
        except KafkaException:
            return False
        return True

    def _on_error(self, error: KafkaError) -> None:
        """Called back by the client, which goes on connecting by itself."""
        if error.code() == KafkaError._ALL_BROKERS_DOWN and self._down_since is None:
            self._down_since = time.monotonic()

    def _wait(self, error: KafkaException) -> None:
        now = time.monotonic()
        if self._down_since is None:
            self._down_since = now
        if now - self._down_since >= self._patience:
            raise SourceLost(
                f"{self._address.shown}: no broker for {self._patience:g} seconds "
                f"({_words(error)}). Start it or check the address; the run can go on afterwards."
            ) from None
        time.sleep(POLL)

    def close(self) -> None:
        self._consumer.close()


class OffsetLocations(RowLocations):
    """Messages by partition and offset."""

    def __init__(
        self, name: str, first: int, messages: Sequence[Any], before: dict[int, int]
    ) -> None:
        self.first = first
        self._name = name
        self._places = [(message.partition(), message.offset()) for message in messages]
        self._before = before

    def reached(self, row: int) -> dict[int, int]:
        """For every partition the next offset after a row."""
        offsets = dict(self._before)
        for partition, offset in self._places[: row + 1]:
            offsets[partition] = offset + 1
        return offsets

    def where(self, row: int) -> str:
        partition, offset = self._places[row]
        return f"{self._name}, partition {partition}, offset {offset}"

    def position(self, row: int) -> Position:
        offsets = {str(key): value for key, value in sorted(self.reached(row).items())}
        return {"rows": self.first + row + 1, "offsets": offsets}


def _content(messages: Sequence[Any]) -> JsonRows:
    rows: list[dict[str, Any] | None] = []
    broken: dict[int, tuple[Any, str]] = {}
    for index, message in enumerate(messages):
        raw = message.value()
        text = "" if raw is None else raw.decode("utf-8", "surrogateescape")
        row = EMPTY if raw is None else object_of(text)
        if isinstance(row, str):
            broken[index] = (text, row)
            rows.append(None)
        else:
            rows.append(row)
    return JsonRows(rows, broken)


def _words(error: KafkaException) -> str:
    inner = error.args[0] if error.args else error
    return inner.str() if isinstance(inner, KafkaError) else str(inner)
