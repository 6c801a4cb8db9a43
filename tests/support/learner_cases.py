"""The kernels, losses and naive definition that a learner is tested with."""

from dataclasses import fields

import kernelbank as kb

from . import naive
from .naive import learners as naive_learners
from .naive.estimate import logistic_curvature, squared_curvature

K, L = kb.kernels, kb.learners

RANDOM_FEATURES = 0.5 * K.Matern(1.2, nu=1.5) + K.Additive(K.Gaussian(0.6), 1)
LOSS_PAIRS = {
    "squared": (naive.squared(), squared_curvature),
    "absolute": (naive.absolute(), None),
    "logistic": (naive.logistic(), logistic_curvature),
    "hinge": (naive.hinge(), None),
}


def losses_of(learner):
    """The losses that a learner takes."""
    taken = []
    for loss in LOSS_PAIRS:
        try:
            kb.KernelBank([kernel_of(learner)], learner, loss=loss, window=3)
        except ValueError:
            continue
        taken.append(loss)
    return taken


def kernel_of(learner):
    if isinstance(learner, (L.FourierSGD, L.FourierRLS)):
        return RANDOM_FEATURES
    if isinstance(learner, L.LinearRLS):
        return K.Linear(0.5)
    if isinstance(learner, L.PartitionTree):
        return K.TreeKernel()
    if isinstance(learner, L.LastValue):
        return K.NoKernel()
    return K.Gaussian(0.6)


def oracle_of(learner, kernel, loss, ridge):
    """The naive definition of a learner, with the same settings."""
    kind = getattr(naive_learners, type(learner).__name__)
    values, curvature = LOSS_PAIRS[loss]
    given = {field.name: getattr(learner, field.name) for field in fields(learner)}
    if getattr(learner, "second_order", False):
        given["curvature"] = curvature
    for name in ("seed", "features"):  # of the features, not the method
        given.pop(name, None)
    return kind(kernel, values, ridge, **given)
