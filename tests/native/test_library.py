"""The compiled library: what happens if it is missing, damaged or out of date, and its bits."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import kernelbank as kb
from kernelbank.native import library
from support.failing_calls import CallFault, need_failing_calls
from support.marks import slow_unless

PACKAGE = Path(kb.__file__).parent
ROOT = Path(__file__).parents[2]
WITHOUT_NUMBA = "import sys; sys.modules['numba'] = None; sys.modules['llvmlite'] = None; "
LEARN = "import kernelbank as kb; kb.KernelBank().learn_one(0.0, 1.0); print('learned')"

pytestmark = pytest.mark.skipif(library.LIBRARY is None, reason="compiled just in time")


def python(code, *, folder=PACKAGE.parent, **environment):
    """What a new process says that runs this code with the package in `folder`."""
    given = {"KERNELBANK_NATIVE": "", "KERNELBANK_LEVEL": "", **environment}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(folder), **given},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copied(tmp_path):
    """A copy of the package with the library of this processor, and its library."""
    names = shutil.ignore_patterns("__pycache__", "objects")
    shutil.copytree(PACKAGE, tmp_path / "kernelbank", ignore=names)
    path = library.library_path(library.LIBRARY.level)
    return tmp_path, tmp_path / path.relative_to(PACKAGE.parent)


def test_library_without_numba_is_enough(copied):
    folder, _ = copied
    done = python(WITHOUT_NUMBA + LEARN, folder=folder)
    assert (done.stdout, done.stderr) == ("learned\n", "")


def test_normal_process_never_imports_numba():
    done = python(LEARN + "; import sys; assert not {'numba', 'llvmlite'} & set(sys.modules)")
    assert done.returncode == 0, done.stderr


def rewritten(path, change):
    """The library after `change`, with a description that fits."""
    data = change(path.read_bytes())
    path.write_bytes(data)
    sources = json.loads(path.with_suffix(".json").read_text())["sources"]
    path.with_suffix(".json").write_text(json.dumps(library.describe(data, sources)))


def in_its_place(path, put):
    path.unlink()
    put(path)


DAMAGE = {
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "cut by a page": lambda path: os.truncate(path, path.stat().st_size - 4096),
    "empty": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "one bit": lambda path: path.write_bytes(flipped(path.read_bytes())),
    "longer": lambda path: os.truncate(path, 1 << 40),
    "a folder": lambda path: in_its_place(path, Path.mkdir),
    "a pipe": lambda path: in_its_place(path, os.mkfifo),
    "missing": Path.unlink,
    "another machine": lambda path: rewritten(path, lambda d: d[:18] + b"\xb7\0" + d[20:]),
    "no ELF file": lambda path: rewritten(path, lambda _: b"MZ" * 100),
    "cannot be loaded": lambda path: rewritten(path, lambda d: d[:64] + bytes(3000)),
    "description truncated": lambda path: os.truncate(path.with_suffix(".json"), 40),
    "description empty": lambda path: path.with_suffix(".json").write_text(""),
    "description nested": lambda path: path.with_suffix(".json").write_text("[" * 9_000),
    "description a list": lambda path: path.with_suffix(".json").write_text("[1]"),
    "description with text for a number": lambda path: path.with_suffix(".json").write_text(
        '{"bytes": "many", "library": "", "sources": ""}'
    ),
    "description a folder": lambda path: in_its_place(path.with_suffix(".json"), Path.mkdir),
    "description a pipe": lambda path: in_its_place(path.with_suffix(".json"), os.mkfifo),
    "description missing": lambda path: path.with_suffix(".json").unlink(),
}
QUICK = ("truncated", "one bit", "a pipe", "missing", "cannot be loaded", "description nested")


def flipped(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize("kind", slow_unless(QUICK.__contains__, DAMAGE))
def test_damaged_library_without_numba_is_refused_with_file_and_remedy(copied, kind):
    folder, path = copied
    DAMAGE[kind](path)
    done = python(WITHOUT_NUMBA + LEARN, folder=folder)
    assert done.returncode == 1  # and not a signal
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("kernelbank.errors.NativeCodeMissing: ")
    assert str(path.with_suffix("")) in message
    assert "Install kernelbank again from a wheel" in message


BUILT_AGAIN = (
    "truncated",
    "longer",
    "a folder",
    "a pipe",
    "missing",
    "another machine",
    "description nested",
    "description a folder",
    "description a pipe",
    "description missing",
)
"""One kind of each sort: what is found in the library or in its description, by its length, its
hash, its content or its kind, and what is there to be replaced. The test above has all kinds."""


@pytest.fixture(scope="module")
def with_objects(tmp_path_factory):
    """A copy of the package and all that is beside its library, and its library."""
    folder = tmp_path_factory.mktemp("objects")
    names = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, folder / "kernelbank", ignore=names)
    path = folder / library.library_path(library.LIBRARY.level).relative_to(PACKAGE.parent)
    return folder, path


@pytest.mark.slow
@pytest.mark.parametrize("kind", BUILT_AGAIN)
def test_damaged_library_is_built_again(with_objects, kind):
    folder, path = with_objects
    before = path.read_bytes()
    DAMAGE[kind](path)
    done = python(LEARN, folder=folder)
    assert done.stdout == "learned\n", done.stderr
    assert "building compiled code" in done.stderr
    assert path.read_bytes() == before
    assert python(LEARN, folder=folder).stderr == ""


OBJECT = "kb_loss_losses_regression_Squared__value-"
"""The beginning of the name of an object file."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["truncated", "one bit", "a folder"])
def test_damaged_object_file_is_compiled_again(with_objects, kind):
    folder, path = with_objects
    before = path.read_bytes()
    (damaged,) = (path.parent / "objects").glob(f"{OBJECT}{library.LIBRARY.level}*")
    whole = damaged.read_bytes()
    DAMAGE[kind](damaged)
    path.unlink()
    done = python(LEARN, folder=folder)
    assert done.stdout == "learned\n", done.stderr
    assert path.read_bytes() == before
    assert damaged.read_bytes() == whole


FAULTS = [
    CallFault("write", "/native/lib/kernelbank-", 1, "fail", errno.ENOSPC, True),
    CallFault("fsync", "/native/lib/kernelbank-", 1, "fail", errno.EIO),
    CallFault("rename", "/native/lib/kernelbank-", 1, "fail", errno.EDQUOT),
    CallFault("open", "/native/lib/lock$", 1, "fail", errno.EROFS),
    CallFault("rename", "/native/lib/kernelbank-", 1, "before"),
    CallFault("rename", "/native/lib/kernelbank-", 1, "after"),
    CallFault("write", "/native/lib/kernelbank-", 1, "after"),
]


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_build_that_fails_is_told_and_the_next_one_succeeds(with_objects, tmp_path, fault):
    folder, path = with_objects
    before = path.read_bytes()
    path.unlink()
    environment = {
        "KERNELBANK_NATIVE": "library",
        "LD_PRELOAD": str(need_failing_calls(tmp_path)),
        "FAILING_CALLS": fault.environment,
    }
    done = python(LEARN, folder=folder, **environment)
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("kernelbank.errors.NativeCodeMissing: ")
    assert "cannot be built here" in message
    if fault.how == "fail":
        assert os.strerror(fault.number) in message
        assert fault.path.rstrip("$") in message
    assert python(LEARN, folder=folder).stdout == "learned\n"
    assert path.read_bytes() == before
    assert not list(path.parent.glob(f"{path.stem}.*.*"))


@pytest.mark.slow
def test_full_disk_while_compiling_names_the_object_file(with_objects, tmp_path):
    folder, path = with_objects
    (removed,) = (path.parent / "objects").glob(f"{OBJECT}{library.LIBRARY.level}*")
    whole, before = removed.read_bytes(), path.read_bytes()
    removed.unlink()
    path.unlink()
    fault = CallFault("write", f"/native/lib/objects/{OBJECT}", 1, "fail", errno.ENOSPC, True)
    environment = {
        "LD_PRELOAD": str(need_failing_calls(tmp_path)),
        "FAILING_CALLS": fault.environment,
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }
    code = "import kernelbank as kb; print(kb.losses.Squared().value(2.0, 0.0))"
    done = python(code, folder=folder, **environment)
    assert done.stdout == "4.0\n", done.stderr  # compiled just in time
    assert f"{removed} cannot be written: No space left on device" in done.stderr
    assert python(LEARN, folder=folder).stdout == "learned\n"
    assert (removed.read_bytes(), path.read_bytes()) == (whole, before)


@pytest.mark.slow
def test_processes_that_need_the_library_at_once_wait_for_one_builder(with_objects):
    folder, path = with_objects
    before = path.read_bytes()
    path.unlink()
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: python(LEARN, folder=folder), range(4)))
    assert [one.stdout for one in done] == ["learned\n"] * 4, [one.stderr for one in done]
    assert path.read_bytes() == before
    assert not list(path.parent.glob(f"{path.stem}.*.*"))


def test_library_that_the_system_refuses_is_told_by_name(copied):
    """As where files may not be executed: building again would not help."""
    folder, path = copied
    DAMAGE["cannot be loaded"](path)
    done = python(LEARN, folder=folder, KERNELBANK_NATIVE="library")
    message = done.stderr.strip().splitlines()[-1]
    assert re.search(r"NativeCodeMissing: .*\.so cannot be loaded \(", message)


def test_missing_library_is_refused_with_a_remedy(copied):
    folder, path = copied
    path.unlink()
    done = python(WITHOUT_NUMBA + LEARN, folder=folder)
    assert f"there is no {path}. Install kernelbank again from a wheel" in done.stderr


def test_library_of_other_sources_is_refused(copied):
    folder, path = copied
    with open(folder / "kernelbank/learners/norma.py", "a") as file:
        file.write("\nMORE = 1\n")
    done = python(WITHOUT_NUMBA + LEARN, folder=folder)
    assert f"{path} was built from other sources" in done.stderr


def test_unreadable_description_is_refused(copied):
    folder, path = copied
    path.with_suffix(".json").write_text("{}")
    done = python(WITHOUT_NUMBA + LEARN, folder=folder)
    assert f"{path} cannot be read" in done.stderr


def test_function_that_is_not_in_the_library_is_refused():
    from kernelbank.native.arguments import Arguments
    from kernelbank.native.functions import native

    @native(Arguments("own"))
    def own(a, first, count):
        pass

    with pytest.raises(TypeError, match="KERNELBANK_NATIVE=jit"):
        own(1)


@pytest.mark.slow
def test_changed_formula_is_rebuilt_alone_and_used(copied):
    folder, path = copied
    shutil.copytree(library.FOLDER / "objects", path.parent / "objects")
    before = {file.name for file in (path.parent / "objects").iterdir()}
    source = folder / "kernelbank/losses/regression.py"
    text = source.read_text()
    old = "return (f - y) * (f - y)"
    assert old in text
    source.write_text(text.replace(old, "return 3.0 * (f - y) * (f - y)"))
    code = "import kernelbank as kb; print(kb.losses.Squared().value(2.0, 0.0))"
    done = python(code, folder=folder)
    assert done.stdout == "12.0\n", done.stderr
    assert "building compiled code" in done.stderr
    after = {file.name for file in (path.parent / "objects").iterdir()}
    assert [name.rpartition("-x86")[0] for name in after - before] == [
        "kb_loss_losses_regression_Squared__value"
    ]


@pytest.mark.slow
def test_library_that_cannot_be_built_is_replaced_by_code_compiled_just_in_time(copied, tmp_path):
    folder, path = copied
    shutil.rmtree(path.parent)
    path.parent.write_text("in the way of the folder")
    done = python(LEARN, folder=folder, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert done.stdout == "learned\n", done.stderr
    assert "compiling just in time with Numba, because there is no " in done.stderr
    assert "cannot be built here" in done.stderr


RUNS = ("paper Simplex", "kernel R", "loss logistic", "learner K", "combiner H", "auto small")
"""Parts of the names of the runs that are compared: they reach every elementary function."""


def fingerprints(**environment):
    """The lines of benchmarks/fixed_runs.py for some runs."""
    command = [sys.executable, str(ROOT / "benchmarks/fixed_runs.py")]
    command += [f"--only={name}" for name in RUNS]
    given = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), **environment}
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.slow
def test_bits_ahead_of_time_and_just_in_time_and_of_both_levels_are_the_same():
    expected = fingerprints(KERNELBANK_LEVEL=library.LIBRARY.level)
    assert len(expected) > len(RUNS)
    assert fingerprints(KERNELBANK_NATIVE="jit") == expected
    for level in library.LEVELS:
        if level != library.LIBRARY.level:
            assert fingerprints(KERNELBANK_LEVEL=level) == expected
