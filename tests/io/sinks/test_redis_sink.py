"""The Redis sink: every row once, whatever breaks in between."""

import uuid

import pytest

from kernelbank.errors import FileRefused, RunRefused, SourceLost
from kernelbank.io import redis as redis_sink
from kernelbank.io.redis import RedisSink
from support.source_fixtures import RedisServer, needs_redis_server


@pytest.fixture
def server(tmp_path):
    needs_redis_server()
    server = RedisServer(tmp_path)
    server.sinks = []
    yield server
    for sink in server.sinks:
        sink.close(complete=True)
    server.client.close()
    server.stop()


def sink_at(server, name, **options):
    address = f"redis://127.0.0.1:{server.port}/{name}"
    server.sinks.append(RedisSink(address, ["row", "p"], **options))
    return server.sinks[-1]


def rows(begin, end):
    return [(number, number / 7) for number in range(begin, end)]


def test_redis_sink_after_a_kill_holds_every_row_once(server, monkeypatch):
    monkeypatch.setattr(redis_sink, "BATCH_ROWS", 4)
    name = uuid.uuid4().hex
    first = sink_at(server, name)
    first.check_vacant()
    first.start()
    first.write(rows(0, 10))
    assert server.client.xlen(name) == 8  # two full batches; then the process is killed
    second = sink_at(server, name)
    second.check({"last": 4})
    second.rewind({"last": 4})
    second.write(rows(5, 20))
    assert second.commit() == {"last": 19}
    entries = server.client.xrange(name)
    assert [(key.decode(), float(fields[b"p"])) for key, fields in entries] == [
        (f"{number}-1", number / 7) for number in range(20)
    ]
    with pytest.raises(RunRefused, match="exists, and belongs to no run"):
        second.check_vacant()
    with pytest.raises(RunRefused, match="has lost rows 20 to 20, which were written"):
        second.check({"last": 20})


def test_redis_sink_with_entries_of_others_is_refused(server):
    name = uuid.uuid4().hex
    first = sink_at(server, name)
    first.write(rows(0, 5))
    first.commit()
    other = sink_at(server, name)
    other.write([(3, "something else")])
    with pytest.raises(FileRefused, match=r"not written \(at id 3-1\)"):
        other.commit()
    skipped = sink_at(server, name)
    skipped.write([(6, 0.5), (7, 0.5)])
    skipped.commit()
    between = sink_at(server, name)
    between.write([(5, 0.5)])
    with pytest.raises(FileRefused, match="at id 5-1"):
        between.commit()
    server.client.xadd(name, {"p": 1})  # with an id of Redis, which is a time
    other = sink_at(server, name)
    other.write([(1, 0.5)])
    with pytest.raises(FileRefused, match="not written"):  # not taken for rows that were trimmed
        other.commit()
    for resumed in (sink_at(server, name), skipped):
        with pytest.raises(FileRefused, match=r"not written \(at id \d{13}-\d\)"):
            resumed.check({"last": 7}) if resumed is not skipped else resumed.commit()


def test_redis_sink_without_a_server_keeps_unsent_rows(server):
    name = uuid.uuid4().hex
    sink = sink_at(server, name, patience=0.2)
    server.stop()
    sink.write(rows(1, 2))
    with pytest.raises(SourceLost):
        sink.commit()
    server.start()
    sink.commit()
    assert len(server.client.xrange(name)) == 1
