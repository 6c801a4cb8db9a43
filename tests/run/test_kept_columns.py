"""`--keep`: columns of the source beside the predictions."""

import json

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from kernelbank.run import session
from support.run_command import make_rows, one_slot_model, read_csv, refusal, succeed, write_csv
from support.source_fixtures import KafkaFixture, RedisFixture

COUNT = 40
X, Y = make_rows(COUNT)
WHEN = [f"2024-01-{1 + n % 28:02d}" for n in range(COUNT)]
SITE = [["north", "", 'a, "b"', "été"][n % 4] for n in range(COUNT)]
OWN = ["row", "prediction", "lower", "upper", "target"]


@pytest.fixture(autouse=True)
def light(monkeypatch):
    monkeypatch.setattr(session, "make_model", one_slot_model)


@pytest.fixture
def source(tmp_path):
    rows = list(zip(WHEN, X[:, 0], SITE, Y, strict=True))
    rows[7] = ("2024-01-08", "x", "bad", 1.0)
    return write_csv(tmp_path / "s.csv", ["when", "a", "site, 1", "y"], rows)


OPTIONS = ("--target", "y", "--features", "a", "--on-bad-row", "skip", "--keep", 'when,"site, 1",a')


def test_kept_columns_are_copied_beside_the_predictions_and_survive_resuming(source, tmp_path):
    out = tmp_path / "out.csv"
    succeed(source, *OPTIONS, "--predictions", out)
    header, rows = read_csv(out)
    assert header == [*OWN, "when", "site, 1", "a"]
    kept = [n for n in range(COUNT) if n != 7]
    assert [row[5:] for row in rows] == [[WHEN[n], SITE[n], repr(X[n, 0].item())] for n in kept]
    state = ("--state", tmp_path / "state", "--predictions", tmp_path / "two.csv")
    succeed(source, *OPTIONS, *state, "--max-rows", 11)
    succeed(source, *OPTIONS, *state)
    assert (tmp_path / "two.csv").read_bytes() == out.read_bytes()
    assert "--keep was when,site, 1,a, now none" in refusal(source, *OPTIONS[:-2], *state)


def test_kept_columns_are_text_in_parquet(source, tmp_path):
    succeed(source, *OPTIONS, "--predictions", tmp_path / "out.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "out.parquet")
    assert table.schema.field("when").type == pyarrow.string()
    assert table["site, 1"].to_pylist()[:3] == ["north", None, 'a, "b"']


def test_kept_values_of_every_kind_are_copied_and_reject_no_row(tmp_path):
    values = [1, 0.5, True, None, [1, "é"], {"b": 2}, "\ud800", "text"]
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps({"a": 1, "k": v, "y": 2}) + "\n" for v in values))
    out = tmp_path / "out.csv"
    succeed(path, "--target", "y", "--features", "a", "--keep", "k", "--predictions", out)
    assert [row[5] for row in read_csv(out)[1]] == [
        "1", "0.5", "true", "", '[1, "\\u00e9"]', '{"b": 2}', "\\ud800", "text",
    ]  # fmt: skip


def test_kept_columns_of_a_redis_stream_have_its_ids(redis_server, tmp_path):
    rows = [{"a": a, "y": y, "when": w} for a, y, w in zip(X[:, 0], Y, WHEN, strict=True)]
    fixture = RedisFixture(redis_server, rows)
    target = f"{fixture.address}-out"
    more = ("--target", "y", "--features", "a", "--stop-when-idle", "0.1")
    succeed(fixture.address, *more, "--keep", "when", "--predictions", target)
    succeed(fixture.address, *more, "--keep", "id", "--predictions", tmp_path / "out.csv")
    entries = redis_server.client.xrange(f"{fixture.name}-out")
    sent = [identifier for identifier, _ in redis_server.client.xrange(fixture.name)]
    assert [fields[b"id"] for _, fields in entries] == sent
    assert [fields[b"when"].decode() for _, fields in entries] == WHEN
    header, found = read_csv(tmp_path / "out.csv")
    assert header == [*OWN, "id"]
    assert [row[5].encode() for row in found] == sent


def test_kept_columns_of_a_kafka_topic_have_partition_and_offset(kafka_broker, tmp_path):
    rows = [{"a": a, "y": y, "id": 7} for a, y in zip(X[:3, 0], Y, strict=False)]
    fixture = KafkaFixture(kafka_broker, rows)
    out = tmp_path / "out.csv"
    more = ("--target", "y", "--features", "a", "--stop-when-idle", "0.1", "--keep", "a")
    succeed(fixture.address, *more, "--predictions", out)
    header, found = read_csv(out)
    assert header == [*OWN, "id", "a"]
    assert [row[5:] for row in found] == [[f"0-{n}", repr(X[n, 0].item())] for n in range(3)]


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ("nothing", "--keep: there is no column 'nothing'. There are: row, a, y."),
        ("row", "--keep: the predictions have a column 'row' already."),
        ("a,a", "--keep: the predictions have a column 'a' already."),
    ],
)
def test_columns_that_cannot_be_kept_are_refused(keep, message, tmp_path):
    path = write_csv(tmp_path / "s.csv", ["row", "a", "y"], np.ones((3, 3)))
    out = tmp_path / "out.csv"
    assert message in refusal(path, "--target", "y", "--keep", keep, "--predictions", out)
    assert not out.exists()
