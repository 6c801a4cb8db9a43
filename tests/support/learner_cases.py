"""Which kernels and losses a learner is tested with."""

import kernelbank as kb

from . import naive
from .naive.estimate import logistic_curvature, squared_curvature

K, L = kb.kernels, kb.learners

WAVES = 0.5 * K.Matern(1.2, nu=1.5) + K.Additive(K.Gaussian(0.6), 1)
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
    if isinstance(learner, L.fourier.FourierBase):
        return WAVES
    if isinstance(learner, L.LinearRLS):
        return K.Linear(0.5)
    if isinstance(learner, L.PartitionTree):
        return K.TreeKernel()
    return K.Gaussian(0.6)
