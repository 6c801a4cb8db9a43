"""The Redis sink: every row once, whatever breaks in between."""

import random
import uuid

import pytest

from kernelbank.errors import FileRefused, KernelBankWarning, RunRefused
from kernelbank.io import redis as redis_sink
from kernelbank.io.redis import RedisSink
from support.marks import slow


@pytest.fixture
def server(lossy_server):
    return lossy_server


@pytest.fixture
def open_sink(server):
    """A function that opens the stream of this test."""
    address, sinks = f"redis://127.0.0.1:{server.port}/{uuid.uuid4().hex}", []

    def open_sink():
        sinks.append(RedisSink(address, ["row", "p"], patience=5))
        return sinks[-1]

    yield open_sink
    for sink in sinks:
        sink.close(complete=True)


@pytest.fixture
def sink(open_sink):
    return open_sink()


def rows(begin, end):
    return [(number, number / 7) for number in range(begin, end)]


def test_redis_sink_with_entries_of_others_is_refused(server, open_sink):
    first = open_sink()
    first.write([*rows(0, 5), *rows(6, 8)])
    first.commit()

    def refused(row, match):
        other = open_sink()
        other.write([row])
        with pytest.raises(FileRefused, match=match):
            other.commit()

    with pytest.raises(RunRefused, match="exists, and belongs to no run"):
        open_sink().check_vacant()
    refused((3, "something else"), r"not written \(at id 3-1\)")
    refused((5, 0.5), "at id 5-1")
    server.client.xadd(first._stream, {"p": 1})  # with an id of Redis, which is a time
    refused((1, 0.5), "not written")  # not taken for rows that were trimmed
    foreign = r"not written \(at id \d{13}-\d\)"
    with pytest.raises(FileRefused, match=foreign):
        open_sink().check({"last": 7})
    with pytest.raises(FileRefused, match=foreign):
        first.commit()


def numbers(server, sink):
    return [int(fields[b"row"]) for _, fields in server.client.xrange(sink._stream)]


def write(sink, begin, end):
    """Rows that Redis acknowledges at once."""
    for row in rows(begin, end):
        sink.write([row])
        sink.flush()


def test_rows_that_the_server_has_lost_stop_the_run_without_a_hole(server, sink, open_sink):
    write(sink, 1, 4)
    sink.commit()
    write(sink, 4, 6)
    server.client.save()
    write(sink, 6, 11)
    server.lose()
    sink.write(rows(11, 12))
    lost = r"lost rows up to row 10, .*: it ends at row 5. With --state, the same command .* again"
    for use in (sink.flush, sink.commit):
        with pytest.raises(FileRefused, match=lost):
            use()
    assert numbers(server, sink) == [1, 2, 3, 4, 5]
    resumed = open_sink()  # as the same command does
    resumed.check({"last": 3})
    resumed.rewind({"last": 3})
    write(resumed, 4, 13)
    assert resumed.commit() == {"last": 12}
    assert numbers(server, sink) == list(range(1, 13))


def test_committed_rows_that_the_server_has_lost_are_to_be_restored(server, sink, open_sink):
    write(sink, 1, 6)
    server.client.save()
    write(sink, 6, 11)
    sink.commit()
    server.lose()
    with pytest.raises(FileRefused, match=r"ends at row 5. Restore .* `appendonly yes`"):
        sink.commit()
    with pytest.raises(RunRefused, match="has lost rows 6 to 10"):
        open_sink().check({"last": 10})


def test_stream_that_is_removed_while_rows_are_sent_is_noticed(server, sink, monkeypatch):
    """Between the look at the stream and the rows: afterwards no id shows it."""
    write(sink, 1, 11)
    sink.commit()
    check_whole = sink._check_whole

    def remove_after(pipeline):
        check_whole(pipeline)
        return server.client.delete(sink._stream)

    with monkeypatch.context() as patch:
        patch.setattr(sink, "_check_whole", remove_after)
        write(sink, 11, 12)
    with pytest.raises(FileRefused, match=r"lost rows up to row 11, .*acknowledged\. Restore"):
        sink.commit()


@pytest.mark.filterwarnings("error", "ignore:.*append-only")
def test_readers_may_remove_entries(server, sink, open_sink):
    client, name = server.client, sink._stream
    for begin in range(1, 101, 10):
        write(sink, begin, begin + 10)
        client.xdel(name, f"{begin + 3}-1", f"{begin + 9}-1")
        client.xtrim(name, maxlen=4, approximate=False)
        sink.commit()
    client.xtrim(name, maxlen=0, approximate=False)
    sink.commit()
    # Rows after the last commit of a killed run: read, and removed, before it is resumed.
    write(sink, 101, 111)
    client.xtrim(name, minid="104-1", approximate=False)
    client.xdel(name, "106-1")
    resumed = open_sink()
    resumed.check({"last": 100})
    resumed.rewind({"last": 100})
    resumed.write(rows(101, 121))
    assert resumed.commit() == {"last": 120}
    assert numbers(server, sink) == [104, 105, *range(107, 121)]


@pytest.mark.filterwarnings("error")
def test_server_without_an_append_only_file_is_told_at_the_start(server, sink):
    with pytest.warns(KernelBankWarning, match=r"\(appendonly no\).* Set `appendonly yes`"):
        sink.start()
    with pytest.warns(KernelBankWarning, match="appendonly no"):
        sink.rewind({"last": 0})
    server.client.acl_setuser("default", commands=["-info"])  # who may not ask is not told
    sink.start()
    server.client.acl_setuser("default", commands=["+info"])
    server.client.config_set("appendonly", "yes")
    sink.start()


@pytest.mark.parametrize("seed", [0, 1, *map(slow, range(2, 6))])
@pytest.mark.filterwarnings("ignore")
def test_random_losses_leave_every_row_once_or_an_error(server, open_sink, monkeypatch, seed):
    """The run is resumed after each error, as long as no committed row is lost."""
    draw = random.Random(seed)
    monkeypatch.setattr(redis_sink, "BATCH_ROWS", 4)
    sink, done, committed = open_sink(), 0, 0
    seen = set()
    for step in range(61):
        what = draw.random() if step < 60 else 0.7  # a commit at the end
        try:
            if what < 0.6:
                count = draw.randint(1, 6)
                done += count
                sink.write(rows(done - count + 1, done + 1))
            elif what < 0.75:
                committed = sink.commit()["last"]
            elif what < 0.85:
                server.client.save()
            elif what < 0.93:
                seen |= set(numbers(server, sink))
                server.client.xtrim(sink._stream, draw.randint(0, 5), approximate=False)
            else:
                server.lose()
        except FileRefused:
            sink = open_sink()
            try:
                sink.check({"last": committed})
            except RunRefused:
                return  # what was committed is lost, and that is told
            sink.rewind({"last": committed})
            sink.write(rows(committed + 1, done + 1))
            committed = sink.commit()["last"]
    seen |= set(numbers(server, sink))
    assert seen == set(range(1, done + 1))
