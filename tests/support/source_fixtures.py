"""The same few rows in every kind of source, for the tests of sources."""

import contextlib
import gzip
import json
import os
import shutil
import socket
import subprocess
import time
import uuid

import pytest

from kernelbank.io.sources import open_source
from kernelbank.io.text import StandardInput

COLUMNS = ("wind", "station", "load")
ROWS = [
    {"wind": 0.1 * number, "station": f's{number % 3} é, "q"', "load": number - 3.0}
    for number in range(7)
]

REDIS_SERVER = shutil.which("redis-server")


def as_csv(rows, end="\n", delimiter=","):
    lines = [delimiter.join(COLUMNS)]
    for row in rows:
        station = '"' + row["station"].replace('"', '""') + '"'
        lines.append(delimiter.join((repr(row["wind"]), station, repr(row["load"]))))
    return "".join(line + end for line in lines).encode()


def as_json_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def read(source, position=None, size=3, numeric=("wind", "load"), text=("station",), **options):
    """All valid rows as tuples, the messages of the rejected ones, and the position after each."""
    rows, bad, positions = [], [], []
    for block in source.blocks(position, size):
        assert block.first == (position or {"rows": 0})["rows"] + len(positions)
        table = block.parse(numeric, text, **options)
        assert sorted([*table.rows.tolist(), *(one.row for one in table.rejected)]) == list(
            range(len(block))
        )
        texts = (
            zip(*(table.texts[name] for name in text), strict=True) if text else [()] * len(table)
        )
        rows += [
            (*numbers, *words) for numbers, words in zip(table.numbers.tolist(), texts, strict=True)
        ]
        bad += [str(one) for one in table.rejected]
        positions += [json.loads(json.dumps(block.position(row))) for row in range(len(block))]
    return rows, bad, positions


EXPECTED = [(row["wind"], row["load"], row["station"]) for row in ROWS]


class FileFixture:
    def __init__(self, path, data=None, **options):
        if data is not None:
            path.write_bytes(data)
        self.path, self.options = path, options

    def open(self):
        return open_source(self.path, **self.options)


class Piped(StandardInput):
    """The reading end of a pipe, which is closed with it."""

    def __del__(self):
        os.close(self._descriptor)


class PipeFixture:
    """Standard input; every `open` sends all rows again."""

    def __init__(self, data):
        self.data = data

    def open(self, **options):
        reading, writing = os.pipe()
        os.write(writing, self.data)
        os.close(writing)
        return Piped(descriptor=reading, **options)


class RedisFixture:
    def __init__(self, server, rows):
        self.name, self.client = uuid.uuid4().hex, server.client
        self.address = f"redis://127.0.0.1:{server.port}/{self.name}"
        self.add(rows)

    def add(self, rows):
        for row in rows:
            self.client.xadd(self.name, {k: str(v) for k, v in row.items()})

    def open(self, **options):
        return open_source(self.address, idle=0.05, **options)


class KafkaFixture:
    def __init__(self, broker, rows):
        self.topic, self.broker = uuid.uuid4().hex, broker
        self.address = f"kafka://{broker.servers}/{self.topic}"
        self.add(rows)

    def add(self, rows):
        for row in rows:
            self.broker.produce(self.topic, json.dumps(row).encode(), partition=0)
        self.broker.flush()

    def open(self, **options):
        return open_source(self.address, idle=0.1, **options)


def parquet_fixture(path):
    import pyarrow.parquet

    table = pyarrow.table({name: [row[name] for row in ROWS] for name in COLUMNS})
    pyarrow.parquet.write_table(table, path, row_group_size=3)
    return FileFixture(path)


MAKERS = {
    "csv": lambda folder, _: FileFixture(folder / "rows.csv", as_csv(ROWS)),
    "semicolons, CRLF and a byte order mark": lambda folder, _: FileFixture(
        folder / "rows.csv", b"\xef\xbb\xbf" + as_csv(ROWS, "\r\n", ";"), delimiter=";"
    ),
    "csv.gz of two members": lambda folder, _: FileFixture(
        folder / "rows.csv.gz", gzip.compress(as_csv(ROWS)[:50]) + gzip.compress(as_csv(ROWS)[50:])
    ),
    "jsonl without a last line end": lambda folder, _: FileFixture(
        folder / "rows.jsonl", as_json_lines(ROWS)[:-1]
    ),
    "parquet": lambda folder, _: parquet_fixture(folder / "rows.parquet"),
    "csv on standard input": lambda *_: PipeFixture(as_csv(ROWS)),
    "json on standard input": lambda *_: PipeFixture(b"\xef\xbb\xbf\n " + as_json_lines(ROWS)),
    "redis": lambda _, fixture: RedisFixture(fixture("redis_server"), ROWS),
    "kafka": lambda _, fixture: KafkaFixture(fixture("kafka_broker"), ROWS),
}
"""By kind: `ROWS` in a source of that kind, from a folder and a function that returns fixtures."""


class RedisServer:
    """A server of its own on a free port. It keeps nothing but what `client.save()` saves.

    `options` are more of its options, such as "--appendonly", "yes".
    """

    def __init__(self, folder, *options):
        import redis

        self.options = options
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder = folder
        self.client = redis.Redis("127.0.0.1", self.port)
        self.start()

    def start(self):
        import redis

        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        options += ["--appendonly", "no", "--dir", str(self.folder), *self.options]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([REDIS_SERVER, *options], **quiet)
        for _ in range(250):
            with contextlib.suppress(redis.ConnectionError):
                self.client.ping()
                return
            time.sleep(0.02)
        raise RuntimeError("redis-server does not answer")

    def stop(self):
        self.process.kill()
        self.process.wait()

    def lose(self):
        """Kill and start it: what was not saved is lost."""
        self.stop()
        self.start()


class KafkaBroker:
    """The client library's own broker for tests, inside this process."""

    def __init__(self):
        from confluent_kafka import Producer

        self.producer = Producer(
            {"bootstrap.servers": "unused", "test.mock.num.brokers": 1, "log_level": 0}
        )
        brokers = self.producer.list_topics(timeout=10).brokers.values()
        self.servers = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)

    def produce(self, topic, value, partition):
        self.producer.produce(topic, value=value, partition=partition)

    def flush(self):
        assert self.producer.flush(10) == 0


def needs_redis_server():
    if REDIS_SERVER is None:
        if os.environ.get("KERNELBANK_NO_SKIP"):
            pytest.fail("redis-server is not installed")
        pytest.skip("redis-server is not installed")
