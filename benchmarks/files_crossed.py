"""The source files that one sample crosses: how much there is to read to follow it.

    python benchmarks/files_crossed.py

For a warm `learn_one`, a warm `AutoBank.run` of one row and a row of `kernelbank run` it lists the
files with a function that runs. Functions in Python are seen by a profiler; compiled ones are those
that the phases of the bank can reach.
"""

import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np

import kernelbank as kb
from kernelbank.native import phases
from kernelbank.native.functions import CompiledFunction
from kernelbank.native.library import compiled_only

PACKAGE = Path(kb.__file__).parent


class PythonFiles:
    """The files whose Python functions are called between `start` and `stop`."""

    def __init__(self):
        self.found = set()

    def start(self):
        sys.setprofile(self._profile)
        threading.setprofile(self._profile)

    def stop(self):
        sys.setprofile(None)
        threading.setprofile(None)

    def _profile(self, frame, event, _):
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(PACKAGE)):
            self.found.add(file)

    def __enter__(self):
        self.start()
        return self.found

    def __exit__(self, *_):
        self.stop()


def files_of_compiled(functions):
    """The files of compiled functions, and of all that they call."""
    found, waiting = set(), list(functions)
    seen = {id(compiled_only.__code__)}  # stands for what is not written in Python
    while waiting:
        function = waiting.pop()
        if isinstance(function, CompiledFunction):
            function = function.function
        function = getattr(function, "py_func", function)  # where Numba has compiled it
        code = getattr(function, "__code__", None)
        if code is None or id(code) in seen or not code.co_filename.startswith(str(PACKAGE)):
            continue
        seen.add(id(code))
        found.add(code.co_filename)
        names = function.__globals__
        waiting += [names[name] for name in code.co_names if name in names]
        waiting += [cell.cell_contents for cell in function.__closure__ or ()]
    return found


def compiled_phases(bank):
    """The compiled functions behind `learn_one` of a bank."""
    learning, *_ = bank._runtime.executor.single_sample_phases()
    members = []
    for member in learning._members:
        parts = member.phases if isinstance(member, phases.ParallelPhases) else [member]
        members += [part._function for part in parts]
    return members


def show(title, python, compiled):
    both = sorted({str(Path(file).relative_to(PACKAGE)) for file in python | compiled})
    print(f"{title}: {len(both)} files ({len(python)} with Python that runs)")
    for file in both:
        print(f"    {file}")


def paper_bank():
    bank = kb.KernelBank()
    for n in range(400):
        bank.learn_one(float(n), float(n % 7))
    with PythonFiles() as found:
        bank.learn_one(400.0, 1.0)
    show("KernelBank.learn_one, warm", found, files_of_compiled(compiled_phases(bank)))


def auto_bank():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(400, 3))
    y = X.sum(axis=1)
    bank = kb.AutoBank()
    bank.run(X, y)
    with PythonFiles() as found:
        bank.run(X[:1], y[:1])
    show("AutoBank.run, warm", found, files_of_compiled(compiled_phases(bank.bank)))
    return bank


def command(bank):
    """Rows between two checkpoints, the second one included."""
    from kernelbank.app.cli import main
    from kernelbank.app.runner.runner import Runner

    files = PythonFiles()
    commits = 0
    original = Runner.commit

    def commit(self):
        nonlocal commits
        original(self)
        commits += 1
        if commits == 3:
            files.start()
        elif commits == 4:
            files.stop()

    Runner.commit = commit
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [f"{n % 7},{n % 5},{n % 7 - n % 5}" for n in range(2000)]
        (folder / "rows.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
        sys.argv = ["kernelbank", "run", str(folder / "rows.csv"), "--target", "y", "--quiet"]
        sys.argv += ["--checkpoint-every", "300", "--state", str(folder / "state")]
        sys.argv += ["--predictions", str(folder / "out.csv")]
        with suppress(SystemExit):
            main()
    compiled = files_of_compiled(compiled_phases(bank.bank))
    show("kernelbank run, from one checkpoint to the next", files.found, compiled)


if __name__ == "__main__":
    paper_bank()
    command(auto_bank())
