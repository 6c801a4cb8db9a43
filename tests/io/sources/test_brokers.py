"""Redis Streams on a real server, Kafka on the client library's own test broker."""

import json
import socket
import threading
import time
import uuid
from unittest import mock

import pytest

from kernelbank.errors import BrokerConnection, FileRefused, InvalidArgument, SourceLost
from kernelbank.io import brokers
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


@pytest.mark.slow
def test_redis_that_is_not_encrypted_says_so(own_server):
    address = f"rediss://127.0.0.1:{own_server.port}/s"
    plain = f"redis://127.0.0.1:{own_server.port}/s?db=0, or"
    with pytest.raises(FileRefused, match="without encryption") as caught:
        list(open_source(address).blocks())
    assert plain in str(caught.value)
    own_server.client.config_set("requirepass", "s3cret")  # and it asks for a password
    with pytest.raises(FileRefused, match="without encryption"):
        list(open_source(address).blocks())


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

        def slow(size):
            if polls:
                polls.pop()
                time.sleep(0.2)
                return []
            return source.__class__._poll(source, size)

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
