"""A file that grows and is rotated while it is read: no row is lost, none comes twice."""

import gzip
import os
import random
import shutil
import time

import pytest

from kernelbank.errors import FileRefused, KernelBankWarning
from kernelbank.io import followed_file
from kernelbank.io import text as io_text
from kernelbank.io.sources import open_source
from support.marks import slow

HEADER = "n,word\n"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(io_text, "SETTLE_SECONDS", 0.02)
    monkeypatch.setattr(io_text, "POLL_SECONDS", 0.002)
    monkeypatch.setattr(followed_file, "POLL_SECONDS", 0.002)


class Log:
    """A file that is written and rotated, and what was written to it."""

    def __init__(self, path, header=HEADER):
        self.path, self.header = path, header
        self.count = 0
        self._clock = time.time_ns() - 10**12

    def write(self, count, end=True):
        """Append rows, the last one without its end if `end` is False."""
        with self.path.open("a") as file:
            if not file.tell() and self.path.suffix == ".csv":
                file.write(self.header)
            for _ in range(count):
                self.count += 1
                text = f"{self.count},w{self.count}"
                if self.path.suffix == ".jsonl":
                    text = f'{{"n": {self.count}, "word": "w{self.count}"}}'
                file.write(text + "\n")
            if not end:
                file.truncate(file.tell() - 1)
        self._age()

    def end_line(self):
        with self.path.open("a") as file:
            file.write("\n")
        self._age()

    def _age(self):
        """Set a time of change of its own, long ago."""
        self._clock += 10**7
        os.utime(self.path, ns=(self._clock, self._clock))

    def rotate(self, keep=9):
        for number in range(keep, 0, -1):
            older = self.path.with_name(f"{self.path.name}.{number}")
            if older.exists():
                older.rename(f"{self.path}.{number + 1}")
        self.path.rename(f"{self.path}.1")

    def copy_and_truncate(self):
        shutil.copy2(self.path, f"{self.path}.1")
        os.truncate(self.path, 0)


@pytest.fixture
def log(tmp_path):
    return Log(tmp_path / "log.csv")


class Follower:
    """Reads a log on and on, in one process or, with `restart`, in several."""

    def __init__(self, log, **options):
        self.log, self.options = log, {"idle": 0.05, **options}
        self.rows, self.position = [], None
        self.restart()

    def restart(self):
        self.source = open_source(self.log.path, follow=True, **self.options)
        if self.position is not None:
            self.source.verify(self.fingerprint)
        self.blocks = self.source.blocks(self.position, size=3)

    def _take(self, block):
        if not len(block):
            return
        assert not block.provisional
        parsed = block.parse(numeric=["n"], text=["word"])
        assert parsed.rejected == []
        assert block.first == len(self.rows)
        self.rows += parsed.numbers[:, 0].astype(int).tolist()
        self.position = block.position(len(block) - 1)
        self.fingerprint = self.source.fingerprint

    def read_all(self):
        """Everything there is, until the source is idle; then begin again where it stopped."""
        for block in self.blocks:
            self._take(block)
        self.restart()

    def read_to(self, count):
        """Read in the same process until `count` rows have come."""
        deadline = time.monotonic() + 20
        while len(self.rows) < count:
            assert time.monotonic() < deadline
            self._take(next(self.blocks))

    def catch_up(self, unended=False):
        """Read what was written, in this process or, with an idle time, up to the next one.

        unended : whether the last row has no end: it has to wait.
        """
        count = self.log.count - unended
        if self.options["idle"] is None:
            self.read_to(count)
        else:
            self.read_all()
        assert self.rows == list(range(1, count + 1))


def test_rotated_file_goes_on_until_it_is_settled(log, monkeypatch):
    """A writer may write to the old file for a while after it was renamed."""
    monkeypatch.setattr(io_text, "SETTLE_SECONDS", 0.3)
    log.write(3)
    os.utime(log.path)
    follower = Follower(log, idle=None)
    follower.read_to(3)
    old = log.path.open("a")
    log.rotate()
    log.path.touch()
    assert not len(next(follower.blocks))
    log.count += 1
    old.write("4,w4\n")
    old.close()
    follower.read_to(4)
    log.write(2)
    follower.catch_up()


def followed_log(folder):
    """A log of which three rows are read."""
    log = Log(folder / "log.csv")
    log.write(3)
    follower = Follower(log)
    follower.read_all()
    return log, follower


@pytest.mark.parametrize(
    "names",
    [
        ("log.csv.old",),
        ("log.csv-20240131",),
        ("log.csv.2024-01-31",),
        ("log.2.csv", "log.1.csv"),
        ("log-20240101.csv", "log-20240102.csv"),
    ],
)
def test_renamed_files_are_found(tmp_path, names):
    """By the inode of the one that was read, and a number or date in the names of others."""
    log, follower = followed_log(tmp_path)
    for name in names:
        log.write(2)
        log.path.rename(tmp_path / name)
    log.write(2)
    follower.catch_up()


def test_similar_name_is_not_a_rotated_file_and_a_header_may_lack(tmp_path):
    log, follower = followed_log(tmp_path)
    log.rotate()
    log.header = ""
    log.write(2)
    for name in ("log-2.csv", "log.csv.out.csv", "log.csvs", "logs.csv.1"):
        (tmp_path / name).write_text("n,word\n0,other\n")
    follower.catch_up()


@pytest.mark.parametrize("rows", [1, 8])
def test_emptied_file_without_a_copy_is_read_from_its_start(log, rows):
    """It may be shorter than before, or longer, when that is noticed."""
    log.write(5)
    follower = Follower(log, idle=None)
    follower.read_to(5)
    os.truncate(log.path, 0)
    log.write(rows)
    with pytest.warns(KernelBankWarning, match="emptied or rewritten .* rows may be lost"):
        follower.catch_up()


@pytest.mark.parametrize("how", ["removed", "compressed", "emptied", "rewritten"])
def test_lost_file_is_refused_or_passed_over(tmp_path, how):
    log, follower = followed_log(tmp_path)
    log.write(2)
    missed = log.path.read_bytes()
    rotated = log.path.with_name(f"{log.path.name}.1")
    if how == "emptied":
        os.truncate(log.path, 0)
    elif how == "rewritten":
        log.path.write_bytes(b"#" + missed[1:])
    else:
        log.path.unlink()
    if how == "compressed":
        rotated.with_name(rotated.name + ".gz").write_bytes(gzip.compress(missed))
    if how != "rewritten":
        log.write(2)
    follower.restart()
    with pytest.raises(FileRefused, match=r"Restore them.* --allow-gaps"):
        follower.read_all()
    if how == "compressed":  # as the message says
        rotated.write_bytes(missed)
        os.utime(rotated, ns=(1, 1))
        follower.restart()
        follower.catch_up()
    elif how != "rewritten":
        follower.options["allow_gaps"] = True
        follower.restart()
        with pytest.warns(KernelBankWarning, match="Going on without them"):
            follower.read_all()
        assert follower.rows == [1, 2, 3, 6, 7]


def test_copy_beside_the_file_is_not_taken_for_it(tmp_path):
    log, follower = followed_log(tmp_path)
    shutil.copy2(log.path, tmp_path / "log.csv.old")
    log.write(2)
    follower.catch_up()


def test_file_that_is_removed_while_it_is_read_is_followed_by_those_changed_after_it(log):
    follower = Follower(log, idle=None)
    log.write(3)
    follower.catch_up()
    log.write(2)
    log.path.unlink()
    log.write(2)
    log.rotate()
    log.write(2)
    follower.catch_up()


def test_file_that_was_compressed_between_two_others_is_a_gap(tmp_path):
    log, follower = followed_log(tmp_path)
    log.rotate()
    (tmp_path / "log.csv.1").rename(tmp_path / "log.csv.2")
    log.write(3)
    packed = tmp_path / "log.csv.1.gz"
    packed.write_bytes(gzip.compress(log.path.read_bytes()))
    os.utime(packed, ns=(log.path.stat().st_mtime_ns,) * 2)
    log.path.unlink()
    log.write(3)
    with pytest.raises(FileRefused, match=r"log\.csv\.1\.gz was compressed before it was read"):
        follower.read_all()


def test_file_that_is_cut_and_written_anew_after_it_was_verified_is_not_read_on(log):
    log.write(1)
    follower = Follower(log)
    follower.read_all()  # and begins again: the position is verified
    log.write(2)
    log.copy_and_truncate()
    log.write(1)  # as many bytes as were read before
    follower.catch_up()


def test_plain_and_followed_runs_continue_each_other(log):
    log.write(4)
    with open_source(log.path) as plain:
        [block] = plain.blocks()
        fingerprint, position = plain.fingerprint, block.position(1)
    follower = Follower(log)
    follower.rows, follower.position, follower.fingerprint = [1, 2], position, fingerprint
    follower.restart()
    follower.catch_up()
    with open_source(log.path) as plain:
        plain.verify(follower.fingerprint)
        assert [len(block) for block in plain.blocks(follower.position)] == []


def test_what_cannot_be_followed_is_refused(tmp_path):
    for name in ("rows.csv.gz", "rows.parquet", "-", "redis://h/s", "kafka://h/t"):
        with pytest.raises(
            FileRefused, match=r"only a plain \.csv or \.jsonl file can be followed"
        ):
            open_source(name, follow=True)
    path = tmp_path / "log.csv"
    with pytest.raises(FileRefused, match="there is no folder"):
        open_source(tmp_path / "none/log.csv", follow=True)
    path.write_bytes(gzip.compress(b"a\n1\n"))
    with pytest.raises(FileRefused, match="a compressed file cannot be followed"):
        open_source(path, follow=True)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(FileRefused, match="not a regular file"):
        open_source(path, follow=True)


@pytest.mark.parametrize("same_process", [True, False])
@pytest.mark.parametrize("seed", [0, *map(slow, range(1, 6))])
def test_random_writing_rotating_and_restarting_loses_nothing(tmp_path, seed, same_process):
    draw = random.Random(seed)
    log = Log(tmp_path / f"log.{draw.choice(['csv', 'jsonl'])}")
    follower = Follower(log, idle=None if same_process else 0.05)
    if same_process:
        assert not len(next(follower.blocks))  # a file that does not exist yet is waited for
    log.write(1)
    follower.catch_up()
    is_open = False
    for _ in range(40):
        step = draw.choice(["write", "write", "part", "rotate", "copy", "read", "read"])
        if is_open and step in ("write", "part", "copy"):
            log.end_line()
            is_open = False
        if step in ("write", "part"):
            is_open = step == "part"
            log.write(draw.randint(1, 5), end=not is_open)
        elif step == "rotate" and log.path.exists():
            log.rotate()
            if is_open:  # its last row has come when another file follows
                log.write(1)
                is_open = False
        elif step == "copy" and log.path.exists() and not list(tmp_path.glob("log.*.1")):
            # A copy is found by the bytes that were read of it; an unread one cannot be told apart.
            follower.catch_up()
            log.write(2)  # not read when the file is cut
            log.copy_and_truncate()
            log.write(1)
        elif step == "read":
            follower.catch_up(unended=is_open)
    if is_open:
        log.end_line()
    log.write(1)
    follower.catch_up()
