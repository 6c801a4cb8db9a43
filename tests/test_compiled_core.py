"""The file that chooses among builds of the core, and the stub of the bindings."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernelbank import _core

PACKAGE = Path(__file__).parents[1] / "src/kernelbank"
BUILT = Path(_core.__file__)


@pytest.fixture
def package(tmp_path):
    """A package with the choosing file alone; `builds` are copies of the compiled core."""

    def make(level=None, builds=()):
        folder = tmp_path / "other"
        folder.mkdir()
        (folder / "__init__.py").touch()
        shutil.copy(PACKAGE / "_core.py", folder)
        if level is not None:
            (folder / "_processor.py").write_text(f"level = {level}\n")
        for build in builds:
            shutil.copy(BUILT, folder / f"_core_{build}{''.join(BUILT.suffixes)}")
        return tmp_path

    return make


def load(folder, asked="", python=sys.executable):
    """Import the core of a package in a new process; what it prints, and its error."""
    code = "from other import _core; print(_core.__file__, _core.Bank.__module__, _core.__name__)"
    environment = {"KERNELBANK_LEVEL": asked, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize(
    ("level", "asked", "chosen"), [(3, "", "v3"), (2, "", "v2"), (3, "v2", "v2")]
)
def test_highest_level_of_the_processor_is_loaded_unless_another_is_asked_for(
    package, level, asked, chosen
):
    told, error = load(package(level, ["v2", "v3"]), asked)
    path, module, name = told.split() if told else pytest.fail(error)
    assert Path(path).name.startswith(f"_core_{chosen}.")
    assert module == name == "other._core"


@pytest.mark.parametrize(
    ("level", "asked", "message"),
    [
        (None, "", "no compiled core for Python 3."),
        (1, "", "needs a processor of level x86-64-v2"),
        (2, "v3", "KERNELBANK_LEVEL must be one of v2 on this processor; got 'v3'"),
        (3, "fast", "KERNELBANK_LEVEL must be one of v2, v3"),
    ],
)
def test_core_that_cannot_be_loaded_is_refused_with_the_reason(package, level, asked, message):
    assert message in load(package(level, ["v2", "v3"]), asked)[1]


def test_level_whose_build_is_missing_is_refused(package):
    assert "has no file _core_v3" in load(package(3, ["v2"]))[1]


def test_stub_of_the_bindings_is_up_to_date(tmp_path):
    pytest.importorskip("nanobind")
    stub = tmp_path / "_core.pyi"
    command = [sys.executable, PACKAGE.parents[1] / "packaging/write_stub.py", stub]
    subprocess.run(
        command, check=True, capture_output=True, env={"PYTHONPATH": str(PACKAGE.parent)}
    )
    assert stub.read_text() == (PACKAGE / "_core.pyi").read_text()
