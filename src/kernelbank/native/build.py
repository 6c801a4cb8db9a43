"""Build the compiled library: machine code of all compiled functions in one shared library.

    python -m kernelbank.native.build                  # for the level of this processor
    python -m kernelbank.native.build --level all      # for all levels, as in a wheel

Numba translates each function, in as many processes as there are processors, for a fixed level of
processors and not for this one. Each function becomes an object file of its own, which is kept and
used again until the code behind it changes. What is linked needs neither Numba nor Python: no
symbol is exported but those of the functions, and none is needed but those of the C library. The
linker is `cc`, or that of the package `ziglang` where there is no C compiler.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .library import (
    FOLDER,
    LEVELS,
    PACKAGE,
    build_command,
    library_path,
    processor_level,
    source_digest,
    source_files,
    write_description,
)
from .progress import progress

OBJECTS = FOLDER / "objects"
"""Object files, by function, level and fingerprint."""


def _functions() -> dict[str, Any]:
    """All compiled functions by symbol: every module that may define some is imported first."""
    from .functions import REGISTRY

    for file in source_files():
        module = ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)
        if module != __spec__.name:
            import_module(module.removesuffix(".__init__"))
    return REGISTRY


def _object_path(function: Any, level: str) -> Path:
    """Where the object file of a function is, once it is compiled."""
    import hashlib

    import llvmlite
    import numba

    from .llvm.fingerprint import fingerprint

    arguments = getattr(function, "arguments", None)
    fields = "" if arguments is None else repr((arguments.name, arguments.fields))
    parts = [fingerprint(function.function), fields, repr(getattr(function, "start", ""))]
    parts += [type(function).__name__, numba.__version__, llvmlite.__version__]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]
    return OBJECTS / f"{function.symbol}-{level}-{digest}.o"


def _emit(function: Any, level: str) -> bytes:
    """The object file of a function, with one symbol."""
    import llvmlite.binding as llvm

    compiled = function.compile()
    library = compiled._library
    native = library.get_function(compiled.native_name.removeprefix("cfunc.")).name
    module = llvm.parse_assembly(library.get_llvm_str())
    # The parameters of the native function are: result, exception, then the C function's own.
    count = len(list(module.get_function(native).arguments)) - 2
    kinds = [str(a.type) for a in module.get_function(native).arguments][2:]
    declared = ", ".join(["ptr", "ptr", *kinds])
    own = ", ".join(f"{kind} %a{k}" for k, kind in enumerate(kinds))
    wrapper = llvm.parse_assembly(f"""
        declare i32 @"{native}"({declared})
        define void @"{function.symbol}"({own}) {{
          %result = alloca ptr
          %error = alloca ptr
          %status = call i32 @"{native}"(ptr %result, ptr %error{", " if count else ""}{own})
          ret void
        }}""")
    module.link_in(wrapper)
    for item in [*module.functions, *module.global_variables]:
        if not item.is_declaration and item.name != function.symbol:
            item.linkage = "internal"
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(cpu=level, features=LEVELS[level], opt=3, reloc="pic")
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    return bytes(machine.emit_object(module))


def _work(level: str, claims: Path) -> None:
    """Compile functions that no other process has claimed, those with most code first."""
    progress.quiet = True  # `_wait` counts the functions of all processes
    functions = _functions()
    order = sorted(functions, key=lambda s: -len(functions[s].function.__code__.co_code))
    for symbol in order:
        path = _object_path(functions[symbol], level)
        if path.exists():
            continue
        try:
            os.close(os.open(claims / symbol, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        data = _emit(functions[symbol], level)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_bytes(data)
        temporary.replace(path)


def _linker() -> list[str]:
    """The command of a linker."""
    if shutil.which("cc"):
        return ["cc"]
    if find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    raise SystemExit(
        "no linker: install a C compiler, or the package ziglang (pip install ziglang)"
    )


def _wait(workers: list[subprocess.Popen[bytes]], paths: list[Path]) -> None:
    """Wait for the workers; on a terminal, a line counts the functions that are compiled."""
    shown = sys.stdout.isatty()
    while any(worker.poll() is None for worker in workers):
        if shown:
            done = sum(path.exists() for path in paths)
            print(f"\r  {done} of {len(paths)} functions", end="", flush=True)
        time.sleep(0.1)
    if shown:
        print("\r\x1b[K", end="", flush=True)


def build(level: str) -> Path:
    """Build the library of a level; returns its path."""
    OBJECTS.mkdir(parents=True, exist_ok=True)
    sources = source_digest()
    environment = {
        **os.environ,
        "KERNELBANK_NATIVE": "jit",
        "KERNELBANK_DEBUG": "",
        "NUMBA_CPU_NAME": level,
        "NUMBA_CPU_FEATURES": LEVELS[level],
        # `_emit` optimises the whole module once; Numba would have done it before, and again for
        # code that runs in the worker. Without that a quarter of the time is saved.
        "NUMBA_OPT": "0",
        "PYTHONWARNINGS": "ignore:Cannot cache compiled function",
    }
    with tempfile.TemporaryDirectory() as claims:
        # Nothing of Numba's own cache is used: it knows nothing of levels.
        environment["NUMBA_CACHE_DIR"] = claims
        command = build_command("--level", level, "--work", claims)
        count = os.cpu_count() or 1
        workers = [subprocess.Popen(command, env=environment) for _ in range(count)]
        paths = [_object_path(function, level) for function in _functions().values()]
        _wait(workers, paths)
        if any(worker.returncode for worker in workers):
            raise SystemExit(f"compiling for {level} failed")
    library = library_path(level)
    temporary = library.with_suffix(f".{os.getpid()}")
    subprocess.run(
        [*_linker(), "-shared", "-s", "-o", temporary, *sorted(set(paths)), "-lm"], check=True
    )
    temporary.replace(library)
    write_description(level, sources)
    for old in OBJECTS.glob(f"*-{level}-*"):
        if old not in paths:
            old.unlink()
    return library


def main() -> None:
    """The command: see above."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--level", default="", help=f"{', '.join(LEVELS)} or all")
    parser.add_argument("--work", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        _work(options.level, Path(options.work))
        return
    own = processor_level()
    if not options.level and own is None:
        print(
            f"There is no library for {platform.machine()} on {sys.platform}. kernelbank compiles "
            "just in time: the first run takes longer."
        )
        return
    levels = list(LEVELS) if options.level == "all" else [options.level or own or ""]
    for level in levels:
        if level not in LEVELS:
            raise SystemExit(f"--level must be {', '.join(LEVELS)} or all; got {level}")
        print(
            f"Compiling kernelbank for {level} processors in {os.cpu_count() or 1} processes "
            "(once; about a minute in two) ...",
            flush=True,
        )
        start = time.perf_counter()
        path = build(level)
        print(
            f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, {time.perf_counter() - start:.0f} s"
        )


if __name__ == "__main__":
    main()
