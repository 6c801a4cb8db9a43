"""Redis Streams on a real server, Kafka on the client library's own test broker; passwords."""

import json
import random
import socket
import threading
import uuid

import pytest

from kernelbank.errors import (
    BrokerConnection,
    FileRefused,
    InvalidArgument,
    KernelBankWarning,
    SourceLost,
)
from kernelbank.io import brokers, redis
from kernelbank.io.brokers import Retries, without_password
from kernelbank.io.sources import open_source
from support.marks import slow
from support.source_fixtures import ROWS, KafkaFixture, RedisFixture, read

# --- addresses and passwords ----------------------------------------------------------------------


def test_address_wins_over_environment(monkeypatch):
    for secret in ("", "environment"):
        monkeypatch.setenv("KERNELBANK_REDIS_PASSWORD", secret)
        assert brokers.redis_address("redis://me@host/s").password == (secret or None)
        assert brokers.redis_address("redis://me:mine@host/s").password == "mine"
    monkeypatch.setenv("KERNELBANK_KAFKA_PASSWORD", "environment")
    for settings, password in (
        ("", None),
        ("?sasl.username=me", "environment"),
        ("?sasl.username=me&sasl.password=own", "own"),
    ):
        address = brokers.kafka_address(f"kafka://host/t{settings}")
        assert address.settings.get("sasl.password") == password


def test_parts_of_addresses_and_no_password_shown():
    address = brokers.redis_address("rediss://me:s%40cret@[::1]:7000/a%2Fb:c?db=3")
    assert (address.user, address.password, address.database) == ("me", "s@cret", 3)
    assert (address.host, address.port, address.stream) == ("::1", 7000, "a/b:c")
    assert address.shown == "rediss://[::1]:7000/a/b:c?db=3"
    kafka = brokers.kafka_address("kafka://one,two:9999/t?sasl.password=s%40cret")
    assert (kafka.servers, kafka.settings) == ("one:9092,two:9999", {"sasl.password": "s@cret"})
    for shown in (address, kafka, address.shown, kafka.shown):
        assert "cret" not in repr(shown)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("redis://me:s3cret@h:6379/s?db=1", "redis://h:6379/s"),
        ("--predictions=redis://me:s3%40cret@h/s", "--predictions=redis://h/s"),
        ("kafka://h/t?sasl.username=a%40b&sasl.password=s3cret", "kafka://h/t"),
        ("redis://me:a/s3cret@h/s", "redis://h/s"),
        ("redis://me:a?s3cret@h/s", "redis://***"),
        ("kafka://h/t?sasl.password=a@s3cret", "kafka://***"),
        ("https://me:s3cret@h/x", "https://h/x"),
        ("sensors.csv", "sensors.csv"),
    ],
)
def test_address_is_shown_without_passwords(address, shown):
    assert without_password(address) == shown


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


# --- attempts -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("error")
def test_pauses_and_times_for_an_answer_grow_until_patience_ends(monkeypatch):
    now, pauses = [100.0], []
    monkeypatch.setattr(brokers.time, "monotonic", lambda: now[0])
    attempts = Retries("redis://host", 30.0)
    attempts.succeeded()  # without a failure it says nothing
    assert attempts.timeout < 2

    def fail(count):
        for _ in range(count):
            attempts.failed("broken")
            pauses.append(attempts.seconds_left)
            now[0] += pauses[-1]

    with pytest.warns(BrokerConnection, match="cannot be reached") as told:
        fail(5)
    assert str(told[0].message) == (
        "redis://host cannot be reached (broken). Next attempt in 0.25 s; giving up in 30 s."
    )
    with pytest.warns(BrokerConnection, match="redis://host is reached again"):
        attempts.succeeded()
    assert (attempts.timeout, attempts.seconds_left) == (10.0, 0)  # a slow one stays slow
    pauses.clear()
    with (
        pytest.warns(BrokerConnection),
        pytest.raises(SourceLost, match=r"^redis://host: no connection for 30 seconds"),
    ):
        fail(100)
    assert pauses == [0.25, 0.5, 1, 2, 4, 8, 8, 6.25]


# --- Redis ----------------------------------------------------------------------------------------


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


def test_redis_names_rejected_rows_by_id(stream):
    for number, fields in enumerate(({"a": "1"}, {"a": b"\xff"}, {"b": "2"}, {"a": "x"}, {"a": 5})):
        stream.client.xadd(stream.name, fields, id=f"{1700 + number}-0")
    rows, bad, positions = read(stream.fixture.open(), numeric="a", text=())
    assert rows == [(1,), (5,)]
    assert bad == [
        f"stream {stream.name}, id 1701-0, column 'a': '\\\\udcff' is not a number.",
        f"stream {stream.name}, id 1702-0, column 'a': 'None' is missing.",
        f"stream {stream.name}, id 1703-0, column 'a': 'x' is not a number.",
    ]
    assert positions[-1] == {"rows": 5, "id": "1704-0", "added": 5, "missing": 0}


def test_redis_restart_is_survived_and_a_new_stream_is_refused(lossy_server):
    client = lossy_server.client
    fixture = RedisFixture(lossy_server, ROWS)
    blocks = open_source(fixture.address, patience=10).blocks(size=3)
    rows = [row for _ in range(3) for row in next(blocks).parse(numeric=["wind"]).numbers.tolist()]
    assert len(rows) == 7
    kept = client.xrange(fixture.name)
    lossy_server.stop()
    with pytest.warns(BrokerConnection, match="cannot be reached"):
        assert len(next(blocks)) == 0
    lossy_server.start()
    for name, fields in [*kept, (b"9999999999999-0", {b"wind": b"42"})]:
        client.xadd(fixture.name, fields, id=name)
    with pytest.warns(BrokerConnection, match="reached again"):
        block = next(block for block in blocks if len(block))
    assert block.parse(numeric=["wind"]).numbers.tolist() == [[42.0]]
    position = block.position(0)
    client.delete(fixture.name)
    client.xadd(fixture.name, {"wind": 1}, id="5-0")
    with pytest.raises(FileRefused, match="was restarted: its last id is 5-0"):
        list(blocks)
    client.delete(fixture.name)
    with pytest.raises(FileRefused, match="was restarted: its last id is 0-0"):
        read(fixture.open(), position)
    lossy_server.stop()
    with (
        pytest.warns(BrokerConnection) as told,
        pytest.raises(SourceLost, match=r"no connection for 0\.5 seconds \(Connection refused\)"),
    ):
        list(open_source(fixture.address, patience=0.5).blocks())
    assert len(told) > 1


def test_server_that_is_not_redis_is_refused():
    def answer_as_http():
        connection, _ = server.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer_as_http, daemon=True).start()
        with pytest.raises(FileRefused, match="what answers there is not Redis"):
            list(open_source(f"redis://127.0.0.1:{server.getsockname()[1]}/s").blocks())


def test_redis_refuses_other_keys_and_wrong_passwords(lossy_server, monkeypatch):
    client, address = lossy_server.client, f"127.0.0.1:{lossy_server.port}"
    client.set("word", "x")
    with pytest.raises(FileRefused, match="this key is not a stream"):
        list(open_source(f"redis://{address}/word").blocks())
    client.acl_setuser("reader", True, passwords=["+s@cret"], keys=["*"], commands=["+@all"])
    good = f"redis://reader:s%40cret@{address}/other?db=2"
    assert read(open_source(good, idle=0.05))[0] == []
    client.config_set("requirepass", "s3cret")
    address = f"redis://{address}/s"
    with pytest.raises(FileRefused, match=r"Give the password in KERNELBANK_REDIS_PASSWORD"):
        list(open_source(address).blocks())
    monkeypatch.setenv("KERNELBANK_REDIS_PASSWORD", "s3cret")
    assert read(open_source(address, idle=0.05))[0] == []
    monkeypatch.setenv("KERNELBANK_REDIS_PASSWORD", "wr0ng")
    with pytest.raises(FileRefused, match="refuses the user or password") as caught:
        list(open_source(address).blocks())
    assert "wr0ng" not in str(caught.value)
    client.execute_command("AUTH", "s3cret")


def test_redis_stream_begins_with_the_entry_of_an_earlier_run(stream):
    stream.add(3)
    stream.trim(2)
    with stream.fixture.open() as source:
        assert sum(map(len, source.blocks())) == 2
        start = json.loads(json.dumps(source.start))
    stream.add(2)
    assert stream.read(start)[0] == [2, 3, 4, 5]
    stream.trim(2)
    with pytest.raises(FileRefused, match="missing after id 0-0"):
        stream.read(start)
    with pytest.warns(KernelBankWarning, match="missing after id 0-0"):
        assert stream.read(start, allow_gaps=True)[::2] == ([4, 5], 2)


def test_entries_deleted_during_a_run_are_refused(stream):
    stream.add(10)
    with stream.fixture.open() as source:
        blocks = source.blocks(None, 4)
        next(blocks)
        stream.delete(2, 6, 9)  # one of them was read
        assert len(next(blocks)) == 4  # 5, 7, 8, 10: that is the end only where nothing follows
        with pytest.raises(FileRefused, match="2 entries are missing after id 10-0"):
            next(blocks)
    with stream.fixture.open(allow_gaps=True) as source:
        blocks = source.blocks(None, 4)
        assert len(next(blocks)) == 4  # a new run begins with the first entry there is
        stream.add(1)
        stream.trim(1)
        with pytest.warns(KernelBankWarning, match="3 entries are missing after id 5-0"):
            block = next(blocks)
        assert block.position(0) == {"rows": 5, "id": "11-0", "added": 11, "missing": 3}


def test_server_that_does_not_count_entries_is_refused(stream, monkeypatch):
    """As before Redis 7."""
    of_reply = redis.StreamInfo.of_reply.__func__

    def of_old_server(cls, reply, shown):
        return of_reply(cls, {"first-entry": None, "length": 0}, shown)

    monkeypatch.setattr(redis.StreamInfo, "of_reply", classmethod(of_old_server))
    stream.add(1)
    with pytest.raises(FileRefused, match=r"does not count .* Use Redis 7 or newer"):
        stream.read()


def test_stream_that_was_made_again_with_other_entries_is_refused(stream):
    stream.add(3)
    with stream.fixture.open() as source:
        list(source.blocks())
        start = source.start
    _, position, _ = stream.read()
    stream.client.delete(stream.name)
    stream.client.xadd(stream.name, {"a": 1}, id="99-0")
    for place, after in ((position, "3-0"), (start, "0-0")):
        with pytest.raises(FileRefused, match=f"may be missing after id {after}|restarted"):
            stream.read(place)
    with pytest.warns(KernelBankWarning, match="made again, entries may be missing"):
        assert stream.read(position, allow_gaps=True)[::2] == ([1], 0)


@pytest.mark.parametrize(
    "wrong", [{"added": -1}, {"added": "1"}, {"added": None}, {"missing": -1}, {"missing": None}]
)
def test_forged_positions_are_refused(stream, kafka_broker, wrong):
    with stream.fixture.open() as source, pytest.raises(InvalidArgument, match="position"):
        source.blocks({"rows": 1, "id": "1-0", "added": 1, "missing": 0, **wrong})
    if "missing" in wrong:
        topic = KafkaFixture(kafka_broker, [])
        with topic.open() as source, pytest.raises(InvalidArgument, match="position"):
            source.blocks({"rows": 1, "offsets": {}, **wrong})


@pytest.mark.parametrize("seed", [0, *map(slow, range(1, 4))])
@pytest.mark.filterwarnings("ignore")
def test_random_deletions_are_counted_exactly(stream, seed):
    """What was read and what is missing is all that was added since the start."""
    draw = random.Random(seed)
    stream.add(draw.randint(1, 10))
    stream.trim(draw.randint(1, 10))
    seen, position = [], None
    first = int(stream.client.xrange(stream.name, count=1)[0][0].split(b"-")[0])
    for _ in range(12):
        there = {int(name.split(b"-")[0]) for name, _ in stream.client.xrange(stream.name)}
        gone = set(range(first, stream.added + 1)) - set(seen) - there
        # What was read may be deleted: that is no gap.
        is_loss = len(gone) > (position or {"missing": 0})["missing"]
        rows, position, missing = stream.read(position, draw.randint(1, 5), allow_gaps=is_loss)
        seen += rows
        assert missing == len(gone)
        stream.add(draw.randint(0, 8))
        if draw.random() < 0.5:
            stream.trim(draw.randint(0, 12))
        for number in draw.sample(range(1, stream.added + 1), min(stream.added, 3)):
            stream.delete(number)
    assert len(seen) == len(set(seen))


# --- Kafka ----------------------------------------------------------------------------------------

LARGE = "x" * 200_000
"""The test broker keeps about five megabytes of a partition: 25 such messages."""


class Topic(KafkaFixture):
    def add_large(self, numbers):
        for number in numbers:
            value = json.dumps({"a": number, "text": LARGE}).encode()
            self.broker.produce(self.topic, value, partition=0)
            self.broker.flush()  # one by one, so that single messages are deleted


@pytest.fixture
def topic(kafka_broker):
    return Topic(kafka_broker, [])


def numbers_in(block):
    return [int(a) for (a,) in block.parse(numeric=["a"]).numbers]


@pytest.mark.slow
def test_kafka_partitions_are_read_in_order_from_any_position(topic):
    values = [json.dumps({"a": number}).encode() for number in range(12)]
    values[3], values[5], values[8], values[9] = b"{", None, b"[]", b'{"a": "\xff"}'
    for number, value in enumerate(values):
        topic.broker.produce(topic.topic, value, partition=number % 3)
    topic.broker.flush()

    def places(position=None, size=5):
        with topic.open() as source:
            found, after = [], []
            for block in source.blocks(position, size):
                found += [block.where(row) for row in range(len(block))]
                after += [block.position(row) for row in range(len(block))]
            return found, after

    found, after = places()
    name = f"topic {topic.topic}, "
    assert sorted(found) == sorted(f"{name}partition {n % 3}, offset {n // 3}" for n in range(12))
    for done in (1, 7, 12):
        assert sorted(places(after[done - 1], size=100)[0]) == sorted(found[done:])
    with topic.open() as source:
        rows, bad, _ = read(source, numeric="a", text=())
    assert sorted(rows) == [(float(number),) for number in (0, 1, 2, 4, 6, 7, 10, 11)]
    assert sorted(text.removeprefix(name) for text in bad) == [
        "partition 0, offset 1: '{' is broken JSON.",
        "partition 0, offset 3, column 'a': '\\\\udcff' is not a number.",
        "partition 2, offset 1: '' is a message without a value.",
        "partition 2, offset 2: '[]' is not a JSON object.",
    ]


def test_kafka_refuses_unknown_offsets_and_topics(kafka_broker):
    fixture = KafkaFixture(kafka_broker, ROWS)
    for offsets, message in (
        ({"0": 9}, "partition 0 holds offsets 0 to 6, but the next .* is 9"),
        ({"77": 9}, "partition 77, .* no longer"),
    ):
        with fixture.open() as source, pytest.raises(FileRefused, match=message):
            list(source.blocks({"rows": 9, "offsets": offsets}))
    with fixture.open() as source:
        for offsets in (None, {"x": 1}, {"0": -1}, {"0": "1"}):
            with pytest.raises(InvalidArgument, match="position"):
                source.blocks({"rows": 9, "offsets": offsets})
    unknown = f"kafka://{kafka_broker.servers}/{uuid.uuid4().hex}"
    with open_source(unknown) as source, pytest.raises(FileRefused, match="Unknown topic"):
        list(source.blocks())
    odd = f"kafka://{kafka_broker.servers}/t?no.such.setting=1"
    with pytest.raises(FileRefused, match=r"no\.such\.setting"):
        open_source(odd)


def test_kafka_messages_deleted_before_a_resumed_run(topic):
    topic.add_large(range(3))
    with topic.open() as source:
        rows = sum(map(len, source.blocks()))
        start = json.loads(json.dumps(source.start))
    assert (rows, start["rows"], start["offsets"]["0"]) == (3, 0, 0)
    topic.add_large(range(3, 40))
    for position, offset in ((start, 0), ({"rows": 3, "offsets": {"0": 3}}, 3)):
        refused = f"the next to read is {offset}.* with --allow-gaps.$"
        with topic.open() as source, pytest.raises(FileRefused, match=refused):
            next(source.blocks(position))
    with topic.open(allow_gaps=True) as source:
        with pytest.warns(KernelBankWarning, match="messages were deleted before they were read"):
            blocks = list(source.blocks({"rows": 3, "offsets": {"0": 3}, "missing": 2}))
        found = [number for block in blocks for number in numbers_in(block)]
        last = [block for block in blocks if len(block)][-1]
        assert found == list(range(found[0], 40))
        assert source.missing_rows == 2 + found[0] - 3 > 2
        position = last.position(len(last) - 1)
        assert (position["rows"], position["offsets"]["0"]) == (3 + len(found), 40)
        assert position["missing"] == source.missing_rows
