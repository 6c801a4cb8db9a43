"""Report parts in a folder: a reader sees whole versions, and little is left behind."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kernelbank.app.live import parts_folder
from kernelbank.app.live.parts_folder import PartsWriter, VersionedParts


def read_with(folder, use):
    """What `use` returns for a reader of the folder."""

    async def read():
        return use(VersionedParts(folder))

    return asyncio.run(read())


def refreshed(parts):
    parts.refresh()
    return parts


def test_unchanged_parts_are_not_written_again(tmp_path):
    writer = PartsWriter(tmp_path)
    writer.write({"a": "1", "b": "2"})
    before = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    writer.write({"a": "1", "b": "2"})
    assert {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == before
    writer.write({"a": "1", "b": "3"})
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {"1", "2", "3", "index-1", "index-2"}


def test_folder_holds_at_most_two_versions_of_each_part(tmp_path):
    writer = PartsWriter(tmp_path)
    for number in range(100):
        writer.write({f"{k}": f"{number}" for k in range(5)} | {f"snapshot/{number}": "1"})
        assert len(list(tmp_path.iterdir())) <= 2 * (6 + 1)
    texts = read_with(tmp_path, lambda parts: refreshed(parts).texts())
    assert texts == {**{f"{k}": "99" for k in range(5)}, "snapshot/99": "1"}


def test_reader_of_an_empty_folder_has_no_parts(tmp_path):
    assert read_with(tmp_path, lambda parts: refreshed(parts).texts()) == {}


def test_reader_that_missed_versions_tells_what_changed_and_what_was_removed(tmp_path):
    writer = PartsWriter(tmp_path)
    writer.write({"a": "1", "b": "1", "c": "1"})

    def skip_versions(parts):
        parts.refresh()
        first = parts.version
        writer.write({"a": "2", "c": "1"})  # b removed
        writer.write({"a": "2", "c": "1", "d": "1"})
        writer.write({"a": "2", "c": "1", "b": "2"})  # b again, d removed
        parts.refresh()
        return b"".join(parts.since(first)), b"".join(parts.since(parts.version))

    assert read_with(tmp_path, skip_versions) == (b'{"a":2,"b":2}', b"{}")


def test_end_is_seen_without_new_parts(tmp_path):
    writer = PartsWriter(tmp_path)
    writer.write({"a": "1"})

    def end(parts):
        parts.refresh()
        before = parts.ended, parts.version
        writer.end()
        parts.refresh()
        return before, (parts.ended, parts.version)

    assert read_with(tmp_path, end) == ((False, 1), (True, 1))


def test_reader_during_fast_writing_sees_whole_versions_only(tmp_path):
    """All parts of a version have the same text; the reader never sees two."""
    writer, done = PartsWriter(tmp_path), threading.Event()

    def write():
        for number in range(400):
            writer.write({f"part/{k}": str(number) for k in range(8)})
        done.set()

    def read(parts):
        seen = set()
        while not done.is_set():
            parts.refresh()
            found = set(parts.texts().values())
            assert len(found) <= 1
            seen |= found
        parts.refresh()
        return seen, set(parts.texts().values())

    thread = threading.Thread(target=write)
    thread.start()
    seen, last = read_with(tmp_path, read)
    thread.join()
    assert last == {"399"}
    assert seen


def test_reader_forgets_the_oldest_removed_parts(tmp_path):
    writer = PartsWriter(tmp_path)

    def remove_many(parts):
        for number in range(0, 300, 50):
            writer.write({"stays": "1"} | {f"snapshot/{number + k}": "1" for k in range(50)})
            parts.refresh()
        writer.write({"stays": "1"})
        parts.refresh()
        return len(parts._parts), b"".join(parts.since(1)), b"".join(parts.since(0))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts_folder, "_MAX_REMOVED", 200)
        count, late, new = read_with(tmp_path, remove_many)
    assert count == 201
    assert b'"snapshot/99":' not in late
    assert b'"snapshot/100":null' in late
    assert new == b'{"stays":1}'
