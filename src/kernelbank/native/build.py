"""Build the compiled library: machine code of all compiled functions in one shared library.

    python -m kernelbank.native.build                  # for the level of this processor
    python -m kernelbank.native.build --level all      # for all levels, as in a wheel

Numba translates each function, in as many processes as there are processors, for a fixed level of
processors and not for this one. Each function becomes an object file of its own, which is kept and
used again until the code behind it changes. It ends with its hash: a damaged or half-written one is
thrown away and compiled again. What is linked needs neither Numba nor Python: no
symbol is exported but those of the functions, and none is needed but those of the C library. The
linker is `cc`, or that of the package `ziglang` where there is no C compiler.

One process builds at a time. Files are put in place when they are complete, so that others find the
old one or the new one, at any moment.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .library import (
    FOLDER,
    LEVELS,
    PACKAGE,
    build_command,
    describe,
    library_path,
    problem,
    processor_level,
    source_digest,
    source_files,
)
from .progress import progress

OBJECTS = FOLDER / "objects"
"""Object files, by function, level and fingerprint."""

_DIGEST = 32
"""The bytes of a SHA-256, at the end of each of them."""


def _functions() -> dict[str, Any]:
    """All compiled functions by symbol: every module that may define some is imported first."""
    from .functions import REGISTRY

    for file in source_files():
        module = ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)
        if module != __spec__.name:
            import_module(module.removesuffix(".__init__"))
    return REGISTRY


def _read_object(path: Path) -> bytes | None:
    """The object file of a function; None if there is none, or a damaged one."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    own, digest = data[:-_DIGEST], data[-_DIGEST:]
    return own if hashlib.sha256(own).digest() == digest else None


def _write_object(path: Path, data: bytes) -> None:
    """Write an object file and its hash, which tells later whether all of it reached the disk."""
    _put(path, data + hashlib.sha256(data).digest(), durable=False)


def _put(path: Path, data: bytes, *, durable: bool) -> None:
    """Put a file in place when it is complete, whatever is there now."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if path.is_dir():
            _remove(path)
        temporary.replace(path)
    except OSError as error:
        _remove(temporary)
        raise SystemExit(f"{path} cannot be written: {error.strerror}") from None


def _remove(path: Path) -> None:
    """Remove what has this name in a folder of ours, if it can be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink()


def _work(level: str, claims: Path) -> None:
    """Compile functions that no other process has claimed, those with most code first."""
    from .llvm.object_code import emit, object_name

    progress.quiet = True  # `_wait` counts the functions of all processes
    functions = _functions()
    order = sorted(functions, key=lambda s: -len(functions[s].function.__code__.co_code))
    for symbol in order:
        path = OBJECTS / object_name(functions[symbol], level)
        if _read_object(path) is not None:
            continue
        try:
            os.close(os.open(claims / symbol, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        _write_object(path, emit(functions[symbol], level))


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


@contextmanager
def _locked() -> Iterator[int]:
    """The lock against a second builder, as a descriptor. Who inherits it holds it too."""
    import fcntl  # not on every system

    OBJECTS.mkdir(parents=True, exist_ok=True)
    lock = os.open(FOLDER / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)


def build(level: str, *, if_needed: bool = False) -> Path:
    """Build the library of a level, or, `if_needed`, only one that cannot be used; its path."""
    with _locked() as lock:
        if not (if_needed and problem(level) is None):
            with tempfile.TemporaryDirectory() as folder:
                _build(level, Path(folder), lock)
    return library_path(level)


def _build(level: str, folder: Path, lock: int) -> None:
    """The same, with a temporary folder; whoever has the lock inherits it from here."""
    sources = source_digest()
    paths = _compile(level, folder, lock)
    library = library_path(level)
    data = _link(folder, paths)
    _put(library, data, durable=True)
    # Whoever looks between these two finds a library that does not fit, and waits for the lock.
    text = json.dumps(describe(data, sources))
    _put(library.with_suffix(".json"), text.encode(), durable=True)
    names = os.open(FOLDER, os.O_RDONLY)
    os.fsync(names)
    os.close(names)
    # What is out of date, and what processes that were killed have left.
    for old in [*OBJECTS.glob(f"*-{level}-*"), *FOLDER.glob(f"{library.stem}.*.*")]:
        if old not in paths:
            _remove(old)


def _compile(level: str, folder: Path, lock: int) -> list[Path]:
    """Compile what is not compiled yet; the object files of all functions."""
    from .llvm.object_code import object_name

    environment = {
        **os.environ,
        "KERNELBANK_NATIVE": "jit",
        "KERNELBANK_DEBUG": "",
        "NUMBA_CPU_NAME": level,
        "NUMBA_CPU_FEATURES": LEVELS[level],
        # `emit` optimises the whole module once; Numba would have done it before, and again for
        # code that runs in the worker. Without that a quarter of the time is saved.
        "NUMBA_OPT": "0",
        "PYTHONWARNINGS": "ignore:Cannot cache compiled function",
        # Nothing of Numba's own cache is used: it knows nothing of levels.
        "NUMBA_CACHE_DIR": str(folder / "numba"),
    }
    claims = folder / "claims"
    claims.mkdir()
    command = build_command("--level", level, "--work", str(claims))
    errors = os.memfd_create("errors")  # not a pipe, which may be full, nor a disk
    # Workers whose parent is killed go on, and keep the lock until they have ended.
    workers = [
        subprocess.Popen(command, env=environment, stderr=errors, pass_fds=[lock])
        for _ in range(os.cpu_count() or 1)
    ]
    paths = [OBJECTS / object_name(function, level) for function in _functions().values()]
    _wait(workers, paths)
    text = os.pread(errors, 1 << 20, 0).decode(errors="replace").strip()
    os.close(errors)
    if any(worker.returncode for worker in workers):
        print(text, file=sys.stderr)
        raise SystemExit(f"compiling for {level} failed: {text.rpartition(chr(10))[2]}")
    return paths


def _link(folder: Path, paths: list[Path]) -> bytes:
    """The library of these object files."""
    copies = folder / "objects"
    copies.mkdir()
    objects = []
    for path in sorted(set(paths)):
        data = _read_object(path)
        if data is None:
            raise SystemExit(f"{path} is damaged. Remove it, and build again")
        objects.append(copies / path.name)
        _put(objects[-1], data, durable=False)
    library = folder / "library.so"
    command = [*_linker(), "-shared", "-s", "-o", library, *objects, "-lm"]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        why = done.stderr.strip().partition("\n")[0]  # what follows is only that it failed
        raise SystemExit(f"{library} cannot be linked: {why or done.returncode}")
    return library.read_bytes()


def main() -> None:
    """The command: see above."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--level", default="", help=f"{', '.join(LEVELS)} or all")
    parser.add_argument(
        "--if-needed", action="store_true", help="only if there is none that can be used"
    )
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
        try:
            path = build(level, if_needed=options.if_needed)
        except OSError as error:  # its text has the name of the file
            raise SystemExit(f"building for {level} failed: {error}") from None
        print(
            f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, {time.perf_counter() - start:.0f} s"
        )


if __name__ == "__main__":
    main()
