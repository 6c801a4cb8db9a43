"""`make wheel`: build a wheel, look inside, and try it where there is neither Numba nor a compiler.

Checks that the wheel holds both libraries, how large it is, which symbols its libraries need, and
that a new environment with numpy alone learns and predicts.
"""

import os
import struct
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALLOWED = {"memcpy", "memmove", "memset", "fma"}
"""Functions of the C library; fma, rounded once by definition, where the processor has none."""

TRIAL = """
import sys, time
start = time.perf_counter()
import numpy as np
import kernelbank as kb
X = np.random.default_rng(0).normal(size=(300, 4))
bank = kb.AutoBank()
bank.run(X, X.sum(axis=1))
bank.predict_one(X[0])
seconds = time.perf_counter() - start
for name in ("numba", "llvmlite", "scipy"):
    assert name not in sys.modules, name
    try:
        __import__(name)
    except ImportError:
        continue
    raise SystemExit(f"{name} is installed: the trial shows nothing")
print(f"300 rows learned and one predicted {seconds:.2f} s after the start of Python")
kb.KernelBank().learn_one(0.0, 1.0)
from kernelbank.native.library import LIBRARY
print("library:", LIBRARY.level)
"""


def needed_symbols(data):
    """The undefined dynamic symbols of an ELF file of 64 bits, but for weak ones."""
    (start,) = struct.unpack_from("<Q", data, 40)  # of the section headers
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + k * size) for k in range(count)]
    found = set()
    for _, kind, _, _, offset, length, link, _, _, entry in sections:
        if kind != 11:  # SHT_DYNSYM
            continue
        names = sections[link][4]
        for place in range(offset + entry, offset + length, entry):
            name, info, _, section = struct.unpack_from("<IBBH", data, place)
            if section == 0 and info >> 4 != 2:  # undefined, not weak
                end = data.index(b"\0", names + name)
                found.add(data[names + name : end].decode())
    return found


def pip(python, *words):
    """Run pip in the environment of a Python; the user's own settings of paths do not count."""
    command = [python, "-m", "pip", "--disable-pip-version-check", "-q", *words]
    subprocess.run(command, check=True, env=without_python_paths())


def without_python_paths():
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}


def build_wheel(source, folder):
    """Build the wheel of a source tree or archive; returns its path."""
    pip(sys.executable, "wheel", "--no-deps", "-w", folder, source)
    return max(Path(folder).glob("*.whl"), key=lambda path: path.stat().st_mtime)


def inspect_libraries(wheel):
    """Both libraries are there, and need nothing but a few functions of the C library."""
    with zipfile.ZipFile(wheel) as archive:
        libraries = {n: archive.read(n) for n in archive.namelist() if n.endswith(".so")}
        size = sum(item.file_size for item in archive.infolist())
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, installed {size / 1e6:.1f} MB")
    if len(libraries) != 2:
        raise SystemExit(f"the wheel must hold two libraries; it has {sorted(libraries)}")
    for path, data in libraries.items():
        symbols = needed_symbols(data)
        print(f"  {Path(path).name}: {len(data) / 1e6:.2f} MB, needs {sorted(symbols)}")
        if symbols - ALLOWED:
            raise SystemExit(f"symbols beyond the C library: {sorted(symbols - ALLOWED)}")


def install(what, folder, *options):
    """Install into a new environment in `folder`; returns its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin/python"
    pip(python, "install", *options, what)
    return python


def try_out(python, levels=("", "x86-64-v2")):
    """Learn and predict, without a compiler, with the library of each level."""
    bare = {**without_python_paths(), "PATH": str(python.parent)}
    for level in levels:
        environment = {**bare, "KERNELBANK_LEVEL": level}
        subprocess.run([python, "-c", TRIAL], check=True, env=environment, cwd=python.parent)


def main():
    wheel = build_wheel(ROOT, ROOT / "dist")
    inspect_libraries(wheel)
    with tempfile.TemporaryDirectory() as folder:
        try_out(install(wheel, Path(folder) / "env"))


if __name__ == "__main__":
    main()
