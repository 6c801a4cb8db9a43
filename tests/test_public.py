"""The public surface: small, sorted, documented; compiled code never out of date."""

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kernelbank as kb

MODULES = [
    kb,
    kb.checks,
    kb.kernels,
    kb.losses,
    kb.learners,
    kb.combiners,
    kb.engines,
    kb.plots,
    kb.presets,
    kb.sources,
    kb.datasets,
]


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_all_is_sorted_and_there(module):
    assert list(module.__all__) == sorted(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None
    if module is kb:
        assert set(module.__all__) <= set(dir(module))
        with pytest.raises(AttributeError):
            module.nothing  # noqa: B018


def test_everything_public_is_documented():
    for module in MODULES:
        for name in module.__all__:
            thing = getattr(module, name)
            assert inspect.getdoc(thing), name
            if inspect.isclass(thing):
                for method, value in inspect.getmembers(thing, inspect.isfunction):
                    if not method.startswith("_") and value.__qualname__.startswith(name):
                        assert inspect.getdoc(getattr(thing, method)), (name, method)


COMPONENTS = [
    *(getattr(kb.kernels, n) for n in kb.kernels.__all__ if n not in ("Product", "Scaled", "Sum")),
    *(getattr(kb.losses, n) for n in kb.losses.__all__ if n != "Loss"),
    *(getattr(kb.learners, n) for n in kb.learners.__all__ if n != "Learner"),
    *(getattr(kb.presets, n) for n in kb.presets.__all__),
    *(getattr(kb.combiners, n) for n in kb.combiners.__all__ if n != "Combiner"),
    kb.KernelBank,
    kb.Dictionary,
    kb.gaussian_grid,
    kb.simplex_qp,
    kb.kkt_residual,
    kb.load,
    kb.Slot,
    kb.compare,
    kb.Comparison,
    *(getattr(kb.sources, n) for n in kb.sources.__all__),
    *(getattr(kb.datasets, n) for n in kb.datasets.__all__),
    *(getattr(kb.checks, n) for n in kb.checks.__all__),
    *(getattr(kb.plots, n) for n in kb.plots.__all__ if n.islower()),
]


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda c: c.__name__)
def test_components_show_an_example(component):
    assert ">>>" in inspect.getdoc(component)


def test_components_are_frozen_and_equal_by_value():
    assert kb.kernels.Gaussian(1.0) == kb.kernels.Gaussian(1)
    assert hash(kb.learners.Norma()) == hash(kb.learners.Norma())
    with pytest.raises(AttributeError):
        kb.kernels.Gaussian(1.0).width = 2.0


def test_traces_say_what_they_did_not_record():
    bank = kb.KernelBank(kb.gaussian_grid(0.1, 1, 3))
    trace = bank.run(np.arange(5.0), np.arange(5.0), record="light")
    assert trace.predictions.shape == (5,)
    assert len(trace) == 5
    assert "predictions" in repr(trace)
    with pytest.raises(AttributeError, match=r"no 'weights'.*record"):
        trace.weights  # noqa: B018
    with pytest.raises(AttributeError):
        trace.wieghts  # noqa: B018
    chosen = bank.run(np.arange(5.0), np.arange(5.0), record=["weights", "cost"])
    assert chosen.fields == ("cost", "weights")
    assert chosen.weights.shape == (5, 3)


@pytest.mark.slow
def test_an_edit_of_a_formula_is_noticed_by_the_compiled_loops(tmp_path):
    """Numba's own cache would go on with the old formula: it looks at one file only."""
    source = Path(kb.__file__).parent
    shutil.copytree(source, tmp_path / "kernelbank", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
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
