"""Compiled code that checks every index: it finds wrong ones, and there are none in a bank."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def debug_run(folder, *arguments):
    """What `support.debug_build` finds."""
    done = subprocess.run(
        [sys.executable, "-m", "support.debug_build", *arguments],
        cwd=TESTS,
        env={
            **os.environ,
            "KERNELBANK_NATIVE": "jit",
            "KERNELBANK_DEBUG": "1",
            "NUMBA_CACHE_DIR": str(folder),
            "NUMBA_OPT": "0",  # indices are the same; compiling takes a quarter less time
            "PYTHONPATH": os.pathsep.join(filter(None, [*sys.path, str(TESTS)])),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_index_outside_its_array_is_counted(tmp_path):
    found = debug_run(tmp_path)
    wrong = {name: count for name, count in found.items() if count}
    assert wrong == {
        "element 3 0": 1,
        "element 0 5": 1,
        "element -1 0": 1,
        "element 3 5": 2,
        "row 3 0": 1,
        "row 0 5": 1,
        "row -1 0": 1,
        "row 3 5": 2,
        "part -1 0": 1,  # an empty part may begin at the end
        "four 2 4": 1,  # its last number
        "four 3 0": 1,
        "four 0 5": 2,
        "four -1 0": 1,
        "four 3 5": 3,
        "column 0 5": 1,
        "column 3 5": 1,
        "written 3 0": 1,
        "written -1 0": 1,
        "written 3 5": 1,
    }


@pytest.mark.slow
def test_every_bank_in_blocks_and_single_samples_has_no_index_outside_its_array(tmp_path):
    found = debug_run(tmp_path, "all")
    assert len(found) > 80
    assert {name: count for name, count in found.items() if count} == {}
