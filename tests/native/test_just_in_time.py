"""The tests of functions that are compiled in the process, in a process that may do so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelbank.native.library import LIBRARY

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(LIBRARY is None, reason="they are collected in this process")


def check_passing(*options):
    command = [sys.executable, "-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider", "tests/jit"]
    done = subprocess.run(
        [*command, *options],
        cwd=ROOT,
        env={**os.environ, "KERNELBANK_NATIVE": "jit"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_tests_that_compile_in_the_process_pass():
    check_passing("-m", "not slow")


@pytest.mark.slow
def test_slow_tests_that_compile_in_the_process_pass():
    check_passing("-m", "slow")
