"""A million rows through the whole loop, in memory that does not grow."""

import contextlib
import io
import resource
from pathlib import Path

import numpy as np
import pytest

from kernelbank.run import session
from kernelbank.run.runner import Runner
from support.run_command import one_slot_model, run

ROWS = 1_000_000
ALLOWANCE = 8 * 2**20
"""Bytes. What is bounded but not yet full after a tenth of the rows: snapshots (32 of some kB), and
what the allocator and pyarrow keep. A leak of 16 bytes a row would be 14 MB."""


def resident():
    """The bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@pytest.mark.slow
def test_a_million_rows_take_constant_memory(tmp_path, monkeypatch):
    path = tmp_path / "long.csv"
    draw = np.random.default_rng(0)
    with path.open("w") as file:
        file.write("a,b,k,y\n")
        for _ in range(ROWS // 10_000):
            rows = draw.normal(size=(10_000, 2))
            y = rows @ [1.0, -2.0] + 0.1 * draw.normal(size=10_000)
            file.writelines(
                f"{a:.6f},{b:.6f},k{n % 3},{t:.6f}\n" if n % 9_999 else "1,?,k0,2\n"
                for n, ((a, b), t) in enumerate(zip(rows.tolist(), y.tolist(), strict=True))
            )
    monkeypatch.setattr(session, "make_model", one_slot_model)
    seen = {}
    commit = Runner.commit

    def watched(own):
        commit(own)
        for share in (0.1, 1.0):
            if own.rows + own.rejected.count >= share * ROWS:
                seen.setdefault(share, resident())

    monkeypatch.setattr(Runner, "commit", watched)
    with contextlib.redirect_stdout(io.StringIO()):
        done = run(
            path, "--target", "y", "--categorical", "k", "--on-bad-row", "skip",
            "--predictions", tmp_path / "out.csv", "--state", tmp_path / "state",
        )  # fmt: skip
    assert done.code == 0, done.err
    with (tmp_path / "out.csv").open("rb") as file:
        predictions = sum(1 for _ in file) - 1
    with (tmp_path / "state" / "bad-rows.jsonl").open("rb") as file:
        skipped = sum(1 for _ in file)
    assert skipped == 2 * (ROWS // 10_000)
    assert predictions + skipped == ROWS
    assert seen.keys() == {0.1, 1.0}
    assert seen[1.0] - seen[0.1] < ALLOWANCE
    # The folder is small too: it does not know how long the run was.
    assert (tmp_path / "state" / "state.kb").stat().st_size < 2**20
