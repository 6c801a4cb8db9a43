"""The bits of the core do not depend on the compiler, its level or the processor.

`plain.cpp`, banks of many kinds without Python, is compiled in several ways; every program must
print the same hashes.
"""

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "src" / "core"
FLAGS = ["-std=c++20", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"]
GCC, ZIG = ["g++"], [sys.executable, "-m", "ziglang", "c++"]
AARCH64 = [*ZIG, "-target", "aarch64-linux-musl"]
X86 = [*ZIG, "-target", "x86_64-linux-musl"]
# The first one is the others' measure. At least one is as the library is compiled, with -O3.
WAYS = {
    "g++ v3": [*GCC, "-O3", "-march=x86-64-v3"],
    "g++ v2": [*GCC, "-O2", "-march=x86-64-v2"],
    "g++ without FMA": [*GCC, "-O1", "-march=x86-64-v3", "-mno-fma"],
    "zig v3": [*X86, "-O3", "-mcpu=x86_64_v3"],
    "zig v2": [*X86, "-O2", "-mcpu=x86_64_v2"],
    "zig aarch64": [*AARCH64, "-O3"],
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="compares with x86-64"),
]


def missing(way):
    """What this machine has not, to compile and run in this way; empty if nothing."""
    if "g++" in way and not shutil.which("g++"):
        return "g++"
    if "zig" in way and not importlib.util.find_spec("ziglang"):
        return "the package ziglang"
    if "aarch64" in way and not shutil.which("qemu-aarch64"):
        return "qemu-aarch64 (the package qemu-user)"
    return ""


def need(way):
    """Skip where something is missing, or fail where nothing may be skipped."""
    if missing(way):
        assert os.environ.get("KERNELBANK_NO_SKIP") != "1", f"{way} needs {missing(way)}"
        pytest.skip(f"needs {missing(way)}")


def hashes(way, folder):
    """The lines of the program, compiled in this way."""
    folder.mkdir()
    sources = [Path(__file__).with_name("plain.cpp"), *CORE.glob("*.cpp")]
    sources += [*CORE.glob("learners/*.cpp"), *CORE.glob("combiners/*.cpp")]
    command = [*WAYS[way], *FLAGS, f"-I{CORE}"]
    objects = [folder / f"{source.parent.name}-{source.stem}.o" for source in sources]

    def compile_one(pair):
        source, made = pair
        subprocess.run([*command, "-c", source, "-o", made], check=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, zip(sources, objects, strict=True)))
    program = folder / "plain"
    subprocess.run([*command, *objects, "-pthread", "-o", program], check=True)
    start = ["qemu-aarch64"] if "aarch64" in way else []
    found = subprocess.run([*start, program], check=True, capture_output=True, text=True)
    return found.stdout.splitlines()


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    way = next(iter(WAYS))
    need(way)
    lines = hashes(way, tmp_path_factory.mktemp("hashes") / "first")
    assert len(lines) > 25
    assert len({line.split(": ")[1] for line in lines}) == len(lines)
    return lines


@pytest.mark.xdist_group("hashes")
@pytest.mark.parametrize("way", list(WAYS)[1:])
def test_every_way_of_compiling_gives_the_same_hashes(way, expected, tmp_path):
    need(way)
    assert hashes(way, tmp_path / "made") == expected
