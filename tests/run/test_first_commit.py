"""`kernelbank run`, killed before it commits its first row: nothing is lost without a word."""

from __future__ import annotations

import gzip
import shutil

import numpy as np
import pytest

from kernelbank.run.checkpoint import CheckpointDir
from support.run_command import make_rows, read_csv, read_state, refusal, run, succeed, write_csv
from support.source_fixtures import RedisFixture

ROWS = 120


class Killed(BaseException):
    """The process ends at once."""


@pytest.fixture
def killed(monkeypatch):
    """Run a command that is killed when it has predicted a block and would commit it."""
    write = CheckpointDir.write

    def killed(*words, **more):
        writes = []

        def counted(folder, header, arrays):
            writes.append(header)
            if len(writes) > 1:
                raise Killed
            write(folder, header, arrays)

        with monkeypatch.context() as patch:
            patch.setattr(CheckpointDir, "write", counted)
            with pytest.raises(Killed):
                run(*words, **more)

    return killed


def late_refusal(*words, **more):
    """What a command prints that is refused when it reads its source."""
    done = run(*words, **more)
    assert done.code == 2
    resuming, text = done.err.splitlines()
    assert resuming == "Resuming after 0 rows."
    return text


def rows_file(path, seed=0):
    X, y = make_rows(ROWS, seed)
    return write_csv(path, ["a", "b", "y"], np.column_stack([X, y]))


def words(folder, source, *more):
    outputs = ("--predictions", folder / "p.csv", "--state", folder / "run")
    return (source, "--target", "y", *outputs, *more)


def followed(folder):
    return words(folder, folder / "log.csv", "--follow", "--stop-when-idle", "0.5")


@pytest.fixture
def expected(tmp_path):
    """The predictions of a run over two files that nobody killed."""
    folder = tmp_path / "expected"
    folder.mkdir()
    rows_file(folder / "log.csv.1")
    rows_file(folder / "log.csv", seed=1)
    lines = [(folder / name).read_text().splitlines() for name in ("log.csv.1", "log.csv")]
    (folder / "all.csv").write_text("\n".join(lines[0] + lines[1][1:]) + "\n")
    succeed(*words(folder, folder / "all.csv"))
    return (folder / "p.csv").read_bytes()


def renamed(log):
    log.rename(f"{log}.1")
    rows_file(log, seed=1)


def copied_and_cut(log):
    shutil.copy(log, f"{log}.1")
    other = rows_file(log.with_name("other"), seed=1)
    log.write_bytes(other.read_bytes())  # in place: the same inode


@pytest.mark.parametrize("rotate", [renamed, copied_and_cut])
def test_run_killed_before_its_first_rows_are_committed_reads_the_rotated_file(
    killed, expected, tmp_path, rotate
):
    log = rows_file(tmp_path / "log.csv")
    killed(*followed(tmp_path))
    assert len(read_csv(tmp_path / "p.csv")[1]) == ROWS
    assert read_state(tmp_path / "run")[0]["rows"] == 0
    rotate(log)
    succeed(*followed(tmp_path))
    assert (tmp_path / "p.csv").read_bytes() == expected


def compressed(log):
    log.with_name("log.csv.1.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    rows_file(log, seed=1)


def cut(log):
    log.write_bytes(rows_file(log.with_name("other"), seed=1).read_bytes())


def emptied(log):
    log.write_text("a,b,y\n")


@pytest.mark.parametrize("change", [compressed, cut, emptied])
def test_rows_that_are_gone_before_their_first_commit_are_refused(killed, tmp_path, change):
    log = rows_file(tmp_path / "log.csv")
    killed(*followed(tmp_path))
    before = (tmp_path / "p.csv").read_bytes()
    change(log)
    assert "It was removed, compressed or rewritten" in refusal(*followed(tmp_path))
    assert (tmp_path / "p.csv").read_bytes() == before


def test_another_file_of_the_same_name_is_refused(killed, tmp_path):
    path = rows_file(tmp_path / "rows.csv")
    killed(*words(tmp_path, path))
    path.rename(tmp_path / "earlier.csv")
    rows_file(path, seed=1)
    assert "the first rows are not those that were read before" in refusal(*words(tmp_path, path))
    (tmp_path / "earlier.csv").rename(path)
    succeed(*words(tmp_path, path))
    assert len(read_csv(tmp_path / "p.csv")[1]) == ROWS


def test_other_rows_on_standard_input_are_refused(killed, tmp_path):
    first, second = rows_file(tmp_path / "1.csv"), rows_file(tmp_path / "2.csv", seed=1)
    killed(*words(tmp_path, "-"), stdin=first)
    before = (tmp_path / "p.csv").read_bytes()
    assert "are not those that were read before" in late_refusal(
        *words(tmp_path, "-"), stdin=second
    )
    assert (tmp_path / "p.csv").read_bytes() == before
    succeed(*words(tmp_path, "-"), stdin=first)
    assert (tmp_path / "p.csv").read_bytes() == before


def test_options_may_change_and_a_bad_first_row_may_be_corrected(killed, tmp_path):
    path = rows_file(tmp_path / "rows.csv")
    killed(*words(tmp_path, path))
    succeed(*words(tmp_path, path, "--lags", 1))  # another run: nothing was committed
    folder = tmp_path / "bad"
    folder.mkdir()
    bad = folder / "bad.csv"
    bad.write_text("a,b,y\n1,x,2\n1,2,3\n")
    assert "is not a number" in refusal(*words(folder, bad))
    bad.write_text("a,b,y\n1,5,2\n1,2,3\n")
    succeed(*words(folder, bad))


def test_first_block_is_committed_at_once(tmp_path, monkeypatch):
    path = rows_file(tmp_path / "rows.csv")
    headers = []
    write = CheckpointDir.write

    def counted(folder, header, arrays):
        headers.append((header["rows"], header["before_rows"]))
        write(folder, header, arrays)

    monkeypatch.setattr(CheckpointDir, "write", counted)
    monkeypatch.setattr("kernelbank.run.runner.BLOCK_ROWS", 50)
    succeed(*words(tmp_path, path))
    assert headers == [(0, True), (50, False), (120, False)]


@pytest.mark.parametrize("how", ["trimmed", "made again"])
def test_stream_that_lost_its_first_rows_before_their_commit_is_refused(
    killed, redis_server, tmp_path, how
):
    X, y = make_rows(ROWS)
    rows = [dict(zip("aby", (*x, target), strict=True)) for x, target in zip(X, y, strict=True)]
    fixture = RedisFixture(redis_server, rows)
    client, name = redis_server.client, fixture.name
    command = words(tmp_path, fixture.address, "--stop-when-idle", "0.5")
    killed(*command)
    if how == "trimmed":
        client.xtrim(name, maxlen=20, approximate=False)
        loss, count = "100 entries are missing", 20
    else:
        client.delete(name)
        for row in rows:
            client.xadd(name, {key: str(value) for key, value in row.items()})
        loss, count = "entries may be missing", ROWS
    before = (tmp_path / "p.csv").read_bytes()
    assert loss in late_refusal(*command)
    assert (tmp_path / "p.csv").read_bytes() == before
    assert loss in succeed(*command, "--allow-gaps").err
    assert len(read_csv(tmp_path / "p.csv")[1]) == count
