"""Machine code on disk: the fingerprint of a function, and what changes it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kernelbank as kb
from kernelbank.native.library import processor_level
from kernelbank.native.llvm.fingerprint import _file_digest, fingerprint

SOURCE = """
from kernelbank.native.jit import inline

FACTOR = 2.0


@inline
def called(x):
    return FACTOR * x


def make(offset):
    def function(x):
        \"\"\"Documentation.\"\"\"
        return called(x) + offset

    return function


function = make(1.0)
"""


def fingerprint_of(source, file):
    """The fingerprint of `function` in this source."""
    file.write_text(source)
    names = {"__name__": "edited", "__file__": str(file)}
    exec(compile(source, str(file), "exec"), names)
    return fingerprint(names["function"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FACTOR = 2.0", "FACTOR = 3.0"),
        ("return FACTOR * x", "return FACTOR + x"),
        ("called(x) + offset", "called(x) - offset"),
        ("make(1.0)", "make(2.0)"),
    ],
    ids=["reached constant", "reached function", "own code", "closure"],
)
def test_fingerprint_after_an_edit_of_code_changes(old, new, tmp_path):
    assert old in SOURCE
    before = fingerprint_of(SOURCE, tmp_path / "before.py")
    after = fingerprint_of(SOURCE.replace(old, new), tmp_path / "after.py")
    assert before != after


@pytest.mark.parametrize(
    ("old", "new"),
    [("Documentation.", "Better documentation."), ("FACTOR = 2.0", "FACTOR = 2.0  # twice")],
    ids=["docstring", "comment"],
)
def test_fingerprint_after_an_edit_of_text_stays(old, new, tmp_path):
    assert old in SOURCE
    before = fingerprint_of(SOURCE, tmp_path / "before.py")
    after = fingerprint_of(SOURCE.replace(old, new), tmp_path / "after.py")
    assert before == after


def test_file_digest_depends_on_code_only(tmp_path):
    def digest(source):
        file = tmp_path / f"{len(list(tmp_path.iterdir()))}.py"
        file.write_text(source)
        return _file_digest(str(file))

    source = '"""A module."""\n\n\ndef f(x):\n    """Doubles."""\n    return 2 * x in {"a", "b"}\n'
    assert digest(source) == digest(source.replace("Doubles", "Twice").replace("A mod", "The mod"))
    assert digest(source) != digest(source.replace("2 * x", "3 * x"))
    assert digest(source) != digest(source.replace('"b"', '"c"'))


def test_compiled_formulas_have_cache_files_of_their_own():
    """Formulas that shared one would overwrite each other's, and be compiled in every process."""
    losses = [kb.losses.Squared, kb.losses.Absolute, kb.losses.Huber]
    compiled = [f.compile() for loss in losses for f in (loss._value, loss._derivative)]
    names = [function._cache._cache_file._index_name for function in compiled]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("mode", ["library", "jit"])
def test_compiled_loops_after_an_edit_of_a_formula_use_the_new_one(mode, tmp_path):
    """Object files, and the files of Numba, would go on with the old formula."""
    if mode == "library" and processor_level() is None:
        pytest.skip("there is no library for this processor")
    source = Path(kb.__file__).parent
    shutil.copytree(source, tmp_path / "kernelbank", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "KERNELBANK_NATIVE": mode,
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }
    code = (
        "import kernelbank as kb; "
        "print(kb.__file__, float(kb.kernels.Linear(0.0)([[3.0]], [[2.0]])[0, 0]))"
    )

    def value():
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        file, number = done.stdout.split()
        assert file.startswith(str(tmp_path))
        return float(number)

    assert value() == 6.0
    formulas = tmp_path / "kernelbank" / "kernels" / "elementary.py"
    text = formulas.read_text()
    assert "return total + x * t" in text
    formulas.write_text(text.replace("return total + x * t", "return total + x * t + 1"))
    assert value() == 7.0
