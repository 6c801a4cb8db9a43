"""The public surface: small, sorted, documented."""

import inspect

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
    kb.reference,
    kb.rivals,
    kb.regret,
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


WITHOUT_EXAMPLE = {"Product", "Scaled", "Sum", "Loss", "Learner", "Combiner"}
WITHOUT_EXAMPLE |= {"KLMS", "QKLMS", "KNLMS", "FourierSGD"}  # used as Norma is
WITHOUT_EXAMPLE |= {"SlidingWindowKRLS", "FixedBudgetKRLS", "KRLSTracker"}  # and as KRLS
COMPONENTS = [
    getattr(module, name)
    for module in MODULES
    if module not in (kb, kb.engines, kb.reference)
    for name in module.__all__
    if name not in WITHOUT_EXAMPLE and (module is not kb.plots or name.islower())
]
COMPONENTS += [getattr(kb, name) for name in ("KernelBank", "Slot", "Comparison")]
COMPONENTS += [
    getattr(kb, name) for name in kb.__all__ if name.islower() and callable(getattr(kb, name))
]


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda c: c.__name__)
def test_components_show_an_example(component):
    assert ">>>" in inspect.getdoc(component)


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
