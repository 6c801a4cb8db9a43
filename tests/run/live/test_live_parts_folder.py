"""Report parts in a folder: a reader sees whole versions, and little is left behind."""

from __future__ import annotations

import asyncio
import threading

from kernelbank.run.live.parts import PartsWriter, VersionedParts


def read_with(folder, use):
    """What `use` returns for a reader of the folder."""

    async def read():
        return use(VersionedParts(folder))

    return asyncio.run(read())


def refreshed(parts):
    parts.refresh()
    return parts


def test_folder_holds_at_most_two_versions_of_each_part(tmp_path):
    writer = PartsWriter(tmp_path)
    for number in range(100):
        writer.write({f"{k}": f"{number}" for k in range(5)} | {f"snapshot/{number}": "1"})
        assert len(list(tmp_path.iterdir())) <= 2 * (6 + 1)
    texts = read_with(tmp_path, lambda parts: refreshed(parts).texts())
    assert texts == {**{f"{k}": "99" for k in range(5)}, "snapshot/99": "1"}


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
