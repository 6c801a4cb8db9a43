"""The public checks: everything built in passes, and every fault is found and named."""

import numpy as np
import pytest

import kernelbank as kb
from support import broken, instances
from support.instances import name_of
from support.marks import first_of_each, refuses
from support.python_learner import Gradient

C, K, M = kb.checks, kb.kernels, kb.learners


class Last:
    """A foreign model: the last target."""

    value = 0.0

    def __repr__(self):
        return "Last()"

    def predict_one(self, x):
        return self.value

    def learn_one(self, x, y):
        self.value = y


BUILT_IN = [
    *((C.check_kernel, kernel) for kernel, _ in instances.KERNELS),
    *((C.check_loss, loss) for loss, _ in instances.LOSSES),
    *((C.check_learner, learner) for learner in instances.LEARNERS),
    (C.check_learner, M.Norma(0.05, 20)),
    (C.check_learner, M.Adapter(Last())),
    (C.check_learner, Gradient()),
    *((C.check_combiner, combiner) for combiner, _ in instances.COMBINERS),
]
FAULTS = [
    (check, component, failed)
    for check, listed in (
        (C.check_kernel, broken.KERNELS),
        (C.check_loss, broken.LOSSES),
        (C.check_learner, broken.LEARNERS),
        (C.check_combiner, broken.COMBINERS),
    )
    for component, failed in listed
]


@pytest.mark.parametrize(
    ("check", "component"),
    first_of_each(lambda pair: type(pair[1]), BUILT_IN),
    ids=[f"{c.__name__}-{name_of(p)}" for c, p in BUILT_IN],
)
def test_built_in_component_passes_its_check(check, component):
    assert check(component) is None


@pytest.mark.parametrize(
    ("check", "component", "failed"),
    first_of_each(lambda fault: (fault[0], fault[2]), FAULTS),
    ids=[f"{c.__name__}-{name_of(p)}-{f}" for c, p, f in FAULTS],
)
def test_broken_component_fails_with_property_reason_and_repair(check, component, failed):
    if failed is None:  # the correct one, from which the others are derived
        assert check(component) is None
        return
    with pytest.raises(kb.errors.CheckFailed) as caught:
        check(component)
    assert caught.value.failed == failed
    lines = str(caught.value).splitlines()
    assert lines[0] == f"{check.__name__}({component!r}): not {failed}."
    starts = ("  Found:  ", "  Why:    ", "  Repair: ")
    assert tuple(line[:10] for line in lines[1:4]) == starts
    assert all(len(line) > 30 for line in lines[1:4])


@pytest.mark.slow
def test_learner_is_checked_with_given_kernel_and_loss():
    wide = K.ActiveDims(K.Custom(instances.cauchy), [0, 17])
    C.check_learner(M.KLMS(0.1, 9), kernel=wide, loss=instances.FOURTH)
    C.check_learner(M.KLMS(0.1, 9), loss="hinge")
    with pytest.raises(kb.errors.CheckFailed, match="be NoKernel"):
        C.check_learner(M.Adapter(Last()), kernel=K.Linear(1.0))


def test_kernel_of_unusual_width_is_checked_at_that_width():
    C.check_kernel(K.ActiveDims(K.Gaussian(1.0), [40]))
    C.check_kernel(K.Gaussian(1.0), dimension=30)

    def planar(X, Z):  # of two coordinates and no others
        (a, b), (c, d) = X.T, Z.T
        return np.exp(-((a[:, None] - c) ** 2) - (b[:, None] - d) ** 2)

    C.check_kernel(K.Custom(planar))
    with pytest.raises(kb.errors.CheckFailed, match="not enough values to unpack"):
        C.check_kernel(K.Custom(planar), dimension=1)


def test_example_of_an_indefinite_kernel_is_small_and_true():
    with pytest.raises(kb.errors.CheckFailed) as caught:
        C.check_kernel(K.Custom(broken.kernels.truncated_parabola))
    inputs = eval(str(caught.value).split("for the inputs ")[1].split(" the Gram")[0])
    assert len(inputs) <= 5
    X = np.array(inputs)
    assert np.linalg.eigvalsh(broken.kernels.truncated_parabola(X, X))[0] < -1e-6


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: C.check_kernel(instances.cauchy), "'kernel' of check_kernel"),
        (lambda: C.check_kernel(K.TreeKernel()), "'kernel' of check_kernel"),
        (lambda: C.check_kernel(K.Gaussian(1.0), dimension=0), "'dimension' of check_kernel"),
        (lambda: C.check_loss("squarred"), "'loss'"),
        (lambda: C.check_learner(M.KLMS), "'learner' of check_learner"),
        (lambda: C.check_combiner("simplex"), "'combiner' of check_combiner"),
    ],
)
def test_argument_that_is_not_a_component_is_refused(call, name):
    refuses(name, call)
