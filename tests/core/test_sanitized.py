"""Whether `make sanitize` watches the core: else a green run shows nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import kernelbank as kb

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif("KERNELBANK_SANITIZED" not in os.environ, reason="run by make sanitize")
def test_sanitized_build_is_the_one_that_is_tested():
    file = Path(kb._core.__file__)
    assert file.is_relative_to(ROOT / "build" / "sanitize")
    assert b"__asan_init" in file.read_bytes()


def test_package_beside_the_editable_one_is_imported(tmp_path):
    (tmp_path / "kernelbank").mkdir()
    (tmp_path / "kernelbank" / "__init__.py").write_text("")
    hook = ROOT / "packaging" / "without_editable.py"
    (tmp_path / "sitecustomize.py").write_text(hook.read_text())
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", "import kernelbank; print(kernelbank.__file__)"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert Path(done.stdout.strip()).is_relative_to(tmp_path)
