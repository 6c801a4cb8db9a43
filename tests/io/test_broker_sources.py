"""Redis Streams on a real server, Kafka on the client library's own test broker."""

import contextlib
import json
import random
import socket
import threading
import time
import uuid
import warnings
from unittest import mock

import pytest

from kernelbank.errors import (
    BrokerConnection,
    FileRefused,
    InvalidArgument,
    KernelBankWarning,
    SourceLost,
)
from kernelbank.io import brokers, redis
from kernelbank.io.sources import open_source
from support import source_fixtures
from support.source_fixtures import EXPECTED, ROWS, KafkaFixture, RedisFixture, read


@pytest.fixture
def own_server(tmp_path):
    source_fixtures.needs_redis_server()
    server = source_fixtures.RedisServer(tmp_path)
    yield server
    server.client.close()
    server.stop()


def test_addresses_never_show_a_password():
    address = brokers.redis_address("rediss://me:s%40cret@[::1]:7000/a%2Fb:c?db=3")
    assert (address.user, address.password) == ("me", "s@cret")
    assert (address.host, address.port, address.stream, address.database) == (
        "::1",
        7000,
        "a/b:c",
        3,
    )
    assert address.shown == "rediss://[::1]:7000/a/b:c?db=3"
    kafka = brokers.kafka_address("kafka://one,two:9999/t?sasl.password=s%40cret")
    assert (kafka.servers, kafka.settings) == ("one:9092,two:9999", {"sasl.password": "s@cret"})
    for shown in (address, kafka, address.shown, kafka.shown):
        assert "cret" not in repr(shown)


@pytest.mark.parametrize(
    "address",
    [
        "redis://me:secret@host", "redis://me:secret@host:x/s", "redis:///s", "redis://h/s?db=x",
        "redis://me:secret@h/s?database=1", "redis://me:secret@h/s#1", "kafka://host",
        "kafka:///t", "kafka://me:secret@host/t", "kafka://host/a/b", "kafka://h/t?secret",
        "kafka://h/t?enable.auto.commit=true", "redis://me:se/secret@h/s?x=y",
    ],
)  # fmt: skip
def test_malformed_address_is_refused_without_its_password(address):
    with pytest.raises(InvalidArgument, match="'address'") as caught:
        open_source(address)
    assert "secret" not in str(caught.value)


def test_redis_names_rejected_rows_by_id(redis_server):
    fixture = RedisFixture(redis_server, [])
    for number, fields in enumerate(({"a": "1"}, {"a": b"\xff"}, {"b": "2"}, {"a": "x"}, {"a": 5})):
        redis_server.client.xadd(fixture.name, fields, id=f"{1700 + number}-0")
    rows, bad, positions = read(fixture.open(), numeric="a", text=())
    assert rows == [(1,), (5,)]
    assert bad == [
        f"stream {fixture.name}, id 1701-0, column 'a': '\\\\udcff' is not a number.",
        f"stream {fixture.name}, id 1702-0, column 'a': 'None' is missing.",
        f"stream {fixture.name}, id 1703-0, column 'a': 'x' is not a number.",
    ]
    assert positions[-1] == {"rows": 5, "id": "1704-0", "added": 5, "missing": 0}


@pytest.mark.slow
def test_redis_without_new_rows_yields_empty_blocks(redis_server):
    fixture = RedisFixture(redis_server, [])
    sender = threading.Timer(0.7, lambda: redis_server.client.xadd(fixture.name, {"a": 1}))
    sender.start()
    begun = time.monotonic()
    times = []
    with open_source(fixture.address, idle=1.0) as source:
        for block in source.blocks():
            times.append((len(block), time.monotonic() - begun))
    sender.join()
    assert [size for size, _ in times if size] == [1]
    assert 0.6 < next(at for size, at in times if size) < 1.0
    assert 1.6 < time.monotonic() - begun < 2.4
    assert 5 <= len(times) <= 14  # neither silent nor busy
    assert source.columns == ("a",)


def test_redis_restart_is_survived_and_a_new_stream_is_refused(own_server):
    fixture = RedisFixture(own_server, ROWS)
    source = open_source(fixture.address, patience=10)
    blocks = source.blocks(size=3)
    rows = [row for _ in range(3) for row in next(blocks).parse(numeric=["wind"]).numbers.tolist()]
    assert len(rows) == 7
    kept = own_server.client.xrange(fixture.name)
    own_server.stop()
    assert len(next(blocks)) == 0
    own_server.start()
    for name, fields in [*kept, (b"9999999999999-0", {b"wind": b"42"})]:
        own_server.client.xadd(fixture.name, fields, id=name)
    sizes = [0]
    while not sizes[-1]:
        block = next(blocks)
        sizes.append(len(block))
    assert block.parse(numeric=["wind"]).numbers.tolist() == [[42.0]]
    position = block.position(0)
    own_server.stop()
    own_server.start()
    own_server.client.xadd(fixture.name, {"wind": 1}, id="5-0")
    with pytest.raises(FileRefused, match="was restarted: its last id is 5-0"):
        list(blocks)
    with pytest.raises(FileRefused, match="was restarted"):
        read(fixture.open(), position)
    own_server.client.delete(fixture.name)
    with pytest.raises(FileRefused, match="was restarted: its last id is 0-0"):
        read(fixture.open(), position)


def test_redis_out_of_reach_is_refused_after_patience(own_server):
    fixture = RedisFixture(own_server, ROWS)
    own_server.stop()
    begun = time.monotonic()
    with (
        pytest.warns(BrokerConnection) as told,
        pytest.raises(SourceLost, match=r"no connection for 0\.5 seconds \(Connection refused\)"),
    ):
        list(open_source(fixture.address, patience=0.5).blocks())
    assert 0.4 < time.monotonic() - begun < 2.0
    assert str(told[0].message).endswith(
        " cannot be reached (Connection refused). Next attempt in 0.25 s; giving up in 0.5 s."
    )
    assert len(told) > 1


def test_server_that_is_not_redis_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer_as_http, args=(server,), daemon=True).start()
        with pytest.raises(FileRefused, match="what answers there is not Redis"):
            list(open_source(f"redis://127.0.0.1:{server.getsockname()[1]}/s").blocks())


def answer_as_http(server):
    connection, _ = server.accept()
    with connection:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_redis_refuses_other_keys_and_wrong_passwords(own_server):
    own_server.client.set("word", "x")
    address = f"redis://127.0.0.1:{own_server.port}/word"
    with pytest.raises(FileRefused, match="this key is not a stream"):
        list(open_source(address).blocks())
    wrong = f"redis://me:hidden@127.0.0.1:{own_server.port}/word"
    with pytest.raises(FileRefused, match="refuses") as caught:
        list(open_source(wrong).blocks())
    assert "hidden" not in str(caught.value)
    own_server.client.acl_setuser(
        "reader", enabled=True, passwords=["+s@cret"], keys=["*"], commands=["+@all"]
    )
    good = f"redis://reader:s%40cret@127.0.0.1:{own_server.port}/other?db=2"
    assert read(open_source(good, idle=0.05))[0] == []


@pytest.mark.slow
def test_kafka_partitions_are_read_in_order_from_any_position(kafka_broker):
    fixture = KafkaFixture(kafka_broker, [])
    values = [json.dumps({"a": number}).encode() for number in range(12)]
    values[3], values[5], values[8], values[9] = b"{", None, b"[]", b'{"a": "\xff"}'
    for number, value in enumerate(values):
        kafka_broker.produce(fixture.topic, value, partition=number % 3)
    kafka_broker.flush()

    def places(position=None, size=5):
        with fixture.open() as source:
            found, after = [], []
            for block in source.blocks(position, size):
                found += [block.where(row) for row in range(len(block))]
                after += [block.position(row) for row in range(len(block))]
            return found, after

    found, after = places()
    assert sorted(found) == sorted(
        f"topic {fixture.topic}, partition {number % 3}, offset {number // 3}"
        for number in range(12)
    )
    for partition in range(3):
        mine = [where for where in found if f"partition {partition}" in where]
        assert mine == sorted(mine)
    for done in (1, 4, 7, 12):
        later, _ = places(after[done - 1], size=100)
        assert sorted(later) == sorted(found[done:])
    with fixture.open() as source:
        rows, bad, _ = read(source, numeric="a", text=())
    assert sorted(rows) == [(float(number),) for number in (0, 1, 2, 4, 6, 7, 10, 11)]
    messages = {
        text.partition(": ")[0].removeprefix(f"topic {fixture.topic}, "): text for text in bad
    }
    assert messages["partition 0, offset 1"].endswith("'{' is broken JSON.")
    assert messages["partition 2, offset 1"].endswith("'' is a message without a value.")
    assert messages["partition 2, offset 2"].endswith("'[]' is not a JSON object.")
    assert messages["partition 0, offset 3, column 'a'"].endswith("is not a number.")


@pytest.mark.slow
def test_kafka_waits_for_messages_and_keeps_group_offsets(kafka_broker):
    fixture = KafkaFixture(kafka_broker, ROWS[:2])

    def send():
        kafka_broker.produce(fixture.topic, json.dumps(ROWS[2]).encode(), partition=0)
        kafka_broker.flush()

    sender = threading.Timer(0.8, send)
    sender.start()
    sizes = []
    with open_source(fixture.address, idle=1.2) as source:
        for block in source.blocks():
            sizes.append(len(block))
        from confluent_kafka import TopicPartition

        [stored] = source._consumer.committed([TopicPartition(fixture.topic, 0)], timeout=5)
        assert stored.offset < 0
    sender.join()
    assert sum(sizes) == 3
    assert 4 <= sizes.count(0) <= 14
    with fixture.open() as again:
        assert read(again)[0] == EXPECTED[:3]


@pytest.mark.slow
def test_kafka_with_a_slow_start_does_not_end(kafka_broker):
    fixture = KafkaFixture(kafka_broker, ROWS)
    with fixture.open() as source:
        polls = [0, 0, 0]

        def slow(at, size):
            if polls:
                polls.pop()
                time.sleep(0.2)
                return []
            return source.__class__._poll(source, at, size)

        with mock.patch.object(source, "_poll", slow):
            assert read(source)[0] == EXPECTED


def test_kafka_refuses_deleted_messages_and_unknown_topics(kafka_broker):
    fixture = KafkaFixture(kafka_broker, ROWS)
    with (
        fixture.open() as source,
        pytest.raises(FileRefused, match=r"partition 0 holds offsets 0 to 6, but the next .* is 9"),
    ):
        list(source.blocks({"rows": 9, "offsets": {"0": 9}}))
    with fixture.open() as source, pytest.raises(FileRefused, match=r"partition 77, .* no longer"):
        list(source.blocks({"rows": 9, "offsets": {"77": 9}}))
    for offsets in (None, {"x": 1}, {"0": -1}, {"0": "1"}):
        with fixture.open() as source, pytest.raises(InvalidArgument, match="position"):
            source.blocks({"rows": 9, "offsets": offsets})
    unknown = f"kafka://{kafka_broker.servers}/{uuid.uuid4().hex}"
    with open_source(unknown) as source, pytest.raises(FileRefused, match="Unknown topic"):
        list(source.blocks())
    odd = f"kafka://{kafka_broker.servers}/t?no.such.setting=1"
    with pytest.raises(FileRefused, match=r"no\.such\.setting"):
        open_source(odd)


@pytest.mark.slow
def test_kafka_out_of_reach_is_refused_after_patience():
    begun = time.monotonic()
    with (
        mock.patch.object(brokers, "FIRST_TIMEOUT", 0.3),
        pytest.warns(BrokerConnection, match="kafka://127.0.0.1:1/t cannot be reached"),
        open_source("kafka://127.0.0.1:1/t", patience=0.8) as source,
        pytest.raises(SourceLost, match=r"no connection for 0\.8 seconds"),
    ):
        list(source.blocks())
    assert 0.7 < time.monotonic() - begun < 4


class Stream:
    """A Redis stream of entries 1-0, 2-0, ... with field a = 1, 2, ..."""

    def __init__(self, server):
        self.client = server.client
        self.fixture = RedisFixture(server, [])
        self.name = self.fixture.name
        self.added = 0

    def add(self, count):
        for _ in range(count):
            self.added += 1
            self.client.xadd(self.name, {"a": self.added}, id=f"{self.added}-0")

    def delete(self, *numbers):
        self.client.xdel(self.name, *(f"{number}-0" for number in numbers))

    def trim(self, left):
        self.client.xtrim(self.name, left, approximate=False)

    def read(self, position=None, size=4, **options):
        """The rows, the position after the last one, and how many are missing."""
        rows = []
        with self.fixture.open(**options) as source:
            for block in source.blocks(position, size):
                rows += [int(a) for (a,) in block.parse(numeric=["a"]).numbers]
                if len(block):
                    position = json.loads(json.dumps(block.position(len(block) - 1)))
            return rows, position, source.missing_rows


@pytest.fixture
def stream(redis_server):
    return Stream(redis_server)


def answer_as_old_server(monkeypatch):
    """Before Redis 7, servers do not count."""
    of_reply = redis.StreamInfo.of_reply.__func__

    def of_old_server(cls, reply, shown):
        counted = ("entries-added", "max-deleted-entry-id")
        if isinstance(reply, dict):
            reply = {name: value for name, value in reply.items() if name not in counted}
        return of_reply(cls, reply, shown)

    monkeypatch.setattr(redis.StreamInfo, "of_reply", classmethod(of_old_server))


@pytest.mark.parametrize("counts", [True, False])
def test_redis_stream_begins_with_the_entry_of_an_earlier_run(stream, monkeypatch, counts):
    if not counts:
        answer_as_old_server(monkeypatch)
    stream.add(3)
    stream.trim(2)
    with stream.fixture.open() as source:
        assert sum(map(len, source.blocks())) == 2
        start = json.loads(json.dumps(source.start))
    assert stream.read(start)[0] == [2, 3]
    stream.add(2)
    assert stream.read(start)[0] == [2, 3, 4, 5]
    stream.trim(2)
    with pytest.raises(FileRefused, match="missing after id 0-0"):
        stream.read(start)
    with pytest.warns(KernelBankWarning, match="missing after id 0-0"):
        assert stream.read(start, allow_gaps=True)[::2] == ([4, 5], 2 if counts else 0)


@pytest.fixture
def strict():
    """No warning is given."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.slow
def test_redis_stream_trimmed_beyond_the_position_is_refused(stream):
    stream.add(10)
    rows, position, _ = stream.read()
    assert rows == list(range(1, 11))
    stream.add(10)
    stream.trim(4)
    with pytest.raises(
        FileRefused, match=r"6 entries are missing after id 10-0: deleted .* with --allow-gaps\."
    ):
        stream.read(position)
    with pytest.warns(KernelBankWarning, match="6 entries are missing after id 10-0"):
        rows, position, missing = stream.read(position, allow_gaps=True)
    assert (rows, missing) == ([17, 18, 19, 20], 6)
    stream.add(2)
    assert stream.read(position) == (
        [21, 22],
        {**position, "rows": 16, "id": "22-0", "added": 22},
        6,
    )
    stream.add(3)
    stream.trim(0)
    with pytest.raises(FileRefused, match="5 entries are missing after id 20-0"):
        stream.read(position)
    with pytest.warns(KernelBankWarning, match="5 entries are missing"):
        assert stream.read(position, allow_gaps=True) == ([], position, 11)


def test_redis_stream_trimmed_during_a_run_is_refused(stream):
    stream.add(10)
    with stream.fixture.open() as source:
        blocks = source.blocks(None, 4)
        assert len(next(blocks)) == 4
        stream.add(1)
        stream.trim(6)
        with pytest.raises(FileRefused, match="1 entry is missing after id 4-0"):
            next(blocks)
    with stream.fixture.open(allow_gaps=True) as source:
        blocks = source.blocks(None, 4)
        assert len(next(blocks)) == 4  # a new run begins with the first entry there is
        stream.trim(1)
        with pytest.warns(KernelBankWarning, match="1 entry is missing after id 9-0"):
            block = next(blocks)
        assert block.position(0) == {"rows": 5, "id": "11-0", "added": 11, "missing": 1}


def test_single_entries_deleted_before_they_were_read_are_refused(stream):
    stream.add(10)
    with stream.fixture.open() as source:
        blocks = source.blocks(None, 4)
        next(blocks)
        stream.delete(2, 6, 9)  # one of them was read
        assert len(next(blocks)) == 4  # 5, 7, 8, 10: that is the end only where nothing follows
        with pytest.raises(FileRefused, match="2 entries are missing after id 10-0"):
            next(blocks)


@pytest.mark.slow
@pytest.mark.usefixtures("strict")
def test_entries_that_were_read_may_be_deleted(stream):
    stream.add(10)
    stream.trim(7)  # before the run: not ours
    stream.delete(5)
    rows, position, _ = stream.read()
    assert rows == [4, 6, 7, 8, 9, 10]
    stream.delete(4, 7, 10)
    stream.add(3)
    rows, position, _ = stream.read(position)
    assert rows == [11, 12, 13]
    stream.trim(0)
    assert stream.read(position) == ([], position, 0)
    stream.add(9)
    rows, position, _ = stream.read(position)
    assert rows == list(range(14, 23))
    stream.add(5)
    stream.client.xtrim(stream.name, minid="23-0", approximate=False)  # up to what was read
    rows, position, missing = stream.read(position, size=2)
    assert (rows, missing) == ([23, 24, 25, 26, 27], 0)


@pytest.mark.slow
def test_position_of_an_earlier_version_and_of_an_old_server(stream, monkeypatch):
    """Without a count of the entries it is refused only where entries may be missing."""
    stream.add(10)
    old = {"rows": 8, "id": "8-0"}
    assert stream.read(old)[0] == [9, 10]
    answer_as_old_server(monkeypatch)
    rows, position, _ = stream.read()
    assert (rows, position["added"]) == (list(range(1, 11)), None)
    stream.delete(4)
    assert stream.read(old)[0] == [9, 10]
    stream.add(3)
    stream.trim(2)
    for earlier in (old, position):
        with pytest.raises(FileRefused, match=r"entries may be missing .* How many is not known"):
            stream.read(earlier)
        with pytest.warns(KernelBankWarning, match="entries may be missing"):
            assert stream.read(earlier, allow_gaps=True)[0] == [12, 13]
    stream.trim(0)
    assert stream.read({"rows": 13, "id": "13-0"})[0] == []


def test_stream_that_was_made_again_with_other_entries_is_refused(stream):
    stream.add(10)
    _, position, _ = stream.read()
    stream.client.delete(stream.name)
    stream.client.xadd(stream.name, {"a": 1}, id="99-0")
    with pytest.raises(FileRefused, match="entries may be missing after id 10-0"):
        stream.read(position)


@pytest.mark.parametrize(
    "wrong", [{"added": -1}, {"added": "1"}, {"missing": -1}, {"missing": None}]
)
def test_forged_positions_are_refused(stream, kafka_broker, wrong):
    with stream.fixture.open() as source, pytest.raises(InvalidArgument, match="position"):
        source.blocks({"rows": 1, "id": "1-0", "added": 1, "missing": 0, **wrong})
    if "missing" in wrong:
        topic = KafkaFixture(kafka_broker, [])
        with topic.open() as source, pytest.raises(InvalidArgument, match="position"):
            source.blocks({"rows": 1, "offsets": {}, **wrong})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_deletions_are_counted_exactly(stream, seed):
    """What was read and what is missing is all that was added since the start."""
    draw = random.Random(seed)
    stream.add(draw.randint(1, 10))
    stream.trim(draw.randint(1, 10))
    seen, position, missing = [], None, 0
    first = int(stream.client.xrange(stream.name, count=1)[0][0].split(b"-")[0])
    for _ in range(12):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KernelBankWarning)
            rows, position, missing = stream.read(position, draw.randint(1, 5), allow_gaps=True)
        seen += rows
        assert len(seen) + missing == stream.added - first + 1
        assert missing == len(set(range(first, stream.added + 1)) - set(seen))
        stream.add(draw.randint(0, 8))
        if draw.random() < 0.5:
            stream.trim(draw.randint(0, 12))
        for number in draw.sample(range(1, stream.added + 1), min(stream.added, 3)):
            stream.delete(number)
    assert len(seen) == len(set(seen))


# --- Kafka ----------------------------------------------------------------------------------------

LARGE = "x" * 200_000
"""The test broker keeps about five megabytes of a partition: 25 such messages."""


class Topic:
    def __init__(self, broker):
        self.broker, self.fixture = broker, KafkaFixture(broker, [])

    def add(self, numbers):
        for number in numbers:
            value = json.dumps({"a": number, "text": LARGE}).encode()
            self.broker.produce(self.fixture.topic, value, partition=0)
            self.broker.flush()  # one by one, so that single messages are deleted


@pytest.fixture
def topic(kafka_broker):
    return Topic(kafka_broker)


def test_kafka_messages_deleted_before_they_were_read(topic):
    """At the start of a resumed run."""
    topic.add(range(60))
    with topic.fixture.open() as source, pytest.raises(FileRefused) as caught:
        next(source.blocks({"rows": 3, "offsets": {"0": 3}}))
    assert "but the next to read is 3" in str(caught.value)
    assert str(caught.value).endswith("with --allow-gaps.")
    with topic.fixture.open(allow_gaps=True) as source:
        found = []
        with pytest.warns(KernelBankWarning, match="messages were deleted before they were read"):
            blocks = list(source.blocks({"rows": 3, "offsets": {"0": 3}, "missing": 2}))
        for block in blocks:
            found += [int(a) for (a,) in block.parse(numeric=["a"]).numbers]
            if len(block):
                position = block.position(len(block) - 1)
        assert found == list(range(found[0], 60))
        assert found[0] > 3
        assert source.missing_rows == 2 + found[0] - 3
        assert (position["rows"], position["offsets"]["0"]) == (3 + len(found), 60)
        assert position["missing"] == source.missing_rows


def test_kafka_messages_deleted_after_a_run_began_with_them(topic):
    topic.add(range(3))
    with topic.fixture.open() as source:
        rows = sum(map(len, source.blocks()))
        start = json.loads(json.dumps(source.start))
    assert (rows, start["rows"], start["offsets"]["0"]) == (3, 0, 0)
    topic.add(range(3, 60))
    with topic.fixture.open() as source, pytest.raises(FileRefused, match="the next to read is 0"):
        next(source.blocks(start))


@pytest.mark.slow
@pytest.mark.parametrize("allow_gaps", [False, True])
def test_kafka_messages_deleted_during_a_run(topic, allow_gaps):
    topic.add(range(2))
    # One message is fetched ahead, not all.
    options = "fetch.message.max.bytes=300000&queued.max.messages.kbytes=100"
    options += "&fetch.queue.backoff.ms=5"
    address = f"{topic.fixture.address}?{options}"
    refused = pytest.raises(FileRefused, match="messages were deleted before they were read")
    with open_source(address, idle=1, allow_gaps=allow_gaps) as source:
        blocks = source.blocks(None, 1)
        found = []
        while not found:
            found += [int(a) for (a,) in next(blocks).parse(numeric=["a"]).numbers]
        topic.add(range(2, 90))
        with (
            pytest.warns(KernelBankWarning) if allow_gaps else refused,
            contextlib.closing(blocks),
        ):
            for block in blocks:
                found += [int(a) for (a,) in block.parse(numeric=["a"]).numbers]
        if allow_gaps:
            assert source.missing_rows == 90 - len(found)
            assert found[-1] == 89
            assert sorted(set(found)) == found
