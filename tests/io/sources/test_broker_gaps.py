"""Rows that a broker has deleted before they were read: refused, or counted with `allow_gaps`."""

import contextlib
import json
import random
import warnings

import pytest

from kernelbank.errors import FileRefused, InvalidArgument, KernelBankWarning
from kernelbank.io import redis
from kernelbank.io.sources import open_source
from support.source_fixtures import KafkaFixture, RedisFixture


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
    of_reply = redis.StreamInfo.of_reply.__func__

    def of_old_server(cls, reply, shown):
        counted = ("entries-added", "max-deleted-entry-id")
        if isinstance(reply, dict):
            reply = {name: value for name, value in reply.items() if name not in counted}
        return of_reply(cls, reply, shown)

    monkeypatch.setattr(redis.StreamInfo, "of_reply", classmethod(of_old_server))
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
