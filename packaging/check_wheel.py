"""`make wheel`: build a wheel, look inside, and try it where there is no compiler.

The wheel must hold the package's files and the compiled modules, nothing else. These may need the C
library alone; the oldest version of it that serves is in the wheel's name. A new environment with
numpy alone then learns and predicts, at each level of processors.

`--machine aarch64` compiles with zig for Linux on aarch64. That wheel is inspected, but not tried.
"""

import argparse
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src/kernelbank"
ELF_MACHINES = {"x86_64": 62, "aarch64": 183}
LEVELS = {"x86_64": ("v2", "v3"), "aarch64": ()}
C_LIBRARY = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"}
C_LIBRARY |= {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}

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
from kernelbank import _core
assert sys.modules["kernelbank._core"] is _core and _core.Bank.__module__ == "kernelbank._core"
print(f"300 rows learned, one predicted {seconds:.2f} s after the start: {_core.__file__}")
"""


def pip(python, *words, **variables):
    """Run pip in the environment of a Python; the user's own settings of paths do not count."""
    command = [python, "-m", "pip", "--disable-pip-version-check", "-q", *words]
    subprocess.run(command, check=True, env={**without_python_paths(), **variables})


def without_python_paths():
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}


def build_wheel(source, folder, machine):
    """Build the wheel of a source tree or archive for a machine; returns its path."""
    variables = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    if machine != platform.machine() or not any(map(shutil.which, ("c++", "g++", "clang++"))):
        variables |= {"KERNELBANK_ZIG": "1", "ZIG_TARGET": f"{machine}-linux-gnu.2.17"}
    if machine != platform.machine():
        suffix = f".cpython-{sys.version_info[0]}{sys.version_info[1]}-{machine}-linux-gnu.so"
        variables |= {"_PYTHON_HOST_PLATFORM": f"linux-{machine}", "SETUPTOOLS_EXT_SUFFIX": suffix}
    with tempfile.TemporaryDirectory() as built:
        options = ["--no-deps", "--no-build-isolation", "-w", built]
        if source == ROOT:  # kept, so that the next wheel compiles only what has changed
            tag = f"{machine}-{sys.version_info[0]}{sys.version_info[1]}"
            options.append(f"--config-settings=build-dir={ROOT}/build/wheel-{tag}")
        pip(sys.executable, "wheel", *options, source, **variables)
        (wheel,) = Path(built).glob("*.whl")
        tag = f"manylinux_2_{oldest_c_library(compiled(wheel).values())}_{machine}"
        command = [sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", tag, wheel]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (wheel,) = Path(built).glob("*.whl")
        Path(folder).mkdir(exist_ok=True)
        return Path(shutil.copy(wheel, folder))


def compiled(wheel):
    """The compiled modules of a wheel, by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {Path(n).name: archive.read(n) for n in archive.namelist() if n.endswith(".so")}


def oldest_c_library(modules):
    """The n of the oldest glibc 2.n with all functions that the modules need; at least 17."""
    return max(17, *(int(n) for data in modules for n in re.findall(rb"GLIBC_2\.(\d+)", data)))


def needed_libraries(data):
    """The shared libraries that an ELF file of 64 bits names as needed."""
    (start,) = struct.unpack_from("<Q", data, 40)  # of the section headers
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + k * size) for k in range(count)]
    found = set()
    for _, kind, _, _, offset, length, link, _, _, _ in sections:
        if kind != 6:  # SHT_DYNAMIC
            continue
        names = sections[link][4]
        for place in range(offset, offset + length, 16):
            tag, value = struct.unpack_from("<QQ", data, place)
            if tag == 1:  # DT_NEEDED
                found.add(data[names + value : data.index(b"\0", names + value)].decode())
    return found


def inspect_wheel(wheel, machine):
    """The wheel holds the modules of the machine, the package's files, and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        names = [n for n in archive.namelist() if ".dist-info/" not in n]
        size = sum(item.file_size for item in archive.infolist())
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, installed {size / 1e6:.1f} MB")
    modules = compiled(wheel)
    stems = {name.partition(".")[0] for name in modules}
    levels = LEVELS[machine]
    wanted = {"_processor", *(f"_core_{level}" for level in levels)} if levels else {"_core"}
    if stems != wanted:
        raise SystemExit(
            f"the wheel must hold the modules {sorted(wanted)}; it has {sorted(stems)}"
        )
    for name, data in modules.items():
        (number,) = struct.unpack_from("<H", data, 18)
        if data[:4] != b"\x7fELF" or number != ELF_MACHINES[machine]:
            raise SystemExit(f"{name} is not for {machine}")
        if b"PyInit_" not in data:
            raise SystemExit(f"{name} is not a module of Python")
        needed = needed_libraries(data)
        print(f"  {name}: {len(data) / 1e6:.2f} MB, needs {', '.join(sorted(needed))}")
        if needed - C_LIBRARY:
            raise SystemExit(f"{name} needs more than the C library: {sorted(needed - C_LIBRARY)}")
    files = {name.removeprefix("kernelbank/") for name in names if not name.endswith(".so")}
    sources = (p for p in PACKAGE.rglob("*") if p.is_file() and p.suffix not in (".so", ".pyc"))
    expected = {str(path.relative_to(PACKAGE)) for path in sources}
    if files != expected:
        raise SystemExit(f"missing or foreign files in the wheel: {sorted(files ^ expected)[:8]}")


def install(what, folder, *options, **variables):
    """Install into a new environment in `folder`; returns its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin/python"
    pip(python, "install", *options, what, **variables)
    return python


def try_out(python, levels):
    """Learn and predict, without a compiler, at each level."""
    bare = {**without_python_paths(), "PATH": str(python.parent)}
    for level in levels:
        environment = {**bare, "KERNELBANK_LEVEL": level}
        subprocess.run([python, "-c", TRIAL], check=True, env=environment, cwd=python.parent)


def own_levels():
    """The levels to try here: the default, and the lowest where there are several."""
    return ("", *LEVELS.get(platform.machine(), ())[:1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machine", choices=LEVELS, default=platform.machine())
    machine = parser.parse_args().machine
    wheel = build_wheel(ROOT, ROOT / "dist", machine)
    inspect_wheel(wheel, machine)
    if machine != platform.machine():
        print(f"not tried: there is no Python for {machine} here")
        return
    with tempfile.TemporaryDirectory() as folder:
        try_out(install(wheel, Path(folder) / "env"), own_levels())


if __name__ == "__main__":
    main()
