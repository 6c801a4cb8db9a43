"""A bank of every kind: each kernel, loss, learner and combiner, and AutoBank of each task."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import kernelbank as kb

from . import instances
from .learner_cases import kernel_of, losses_of
from .python_learner import Gradient

K, L = kb.kernels, kb.learners

SAMPLES = 300  # more than the 256 after which the arrays of a bank slide
X, NUMBERS = instances.stream(3, SAMPLES, 2)
LABELS = instances.stream(3, SAMPLES, 2, labels=True)[1]
MISSING = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
SEVERAL = np.where(
    np.random.default_rng(2).random((SAMPLES, 2)) < 0.2, np.nan, np.column_stack([NUMBERS, X[:, 0]])
)
THREE = np.digitize(NUMBERS, np.quantile(NUMBERS, [0.3, 0.7]))
OWN = {
    "cauchy": K.Custom(instances.cauchy),
    "fourth": instances.FOURTH,
    "Gradient": Gradient,
    "AdaRaker": kb.rivals.AdaRaker,
}
"""Components that are not built in, which `kb.load` must be given."""


LOG = kb.transforms.ShiftedLog(1.5)

NORMAS = [
    L.Norma(0.05, 30),
    L.Norma(0.2, 30, step_size="inverse_sqrt"),
    L.Norma(0.3, 30, step_size="adagrad"),
]


class Case(NamedTuple):
    """A bank to make, given its engine and perhaps more arguments, and the stream for it."""

    make: Callable[..., Any]
    X: np.ndarray
    y: np.ndarray


def bank_case(labels=False, y=NUMBERS, **options):
    loss = options.get("loss")
    if isinstance(loss, kb.losses.Loss) and not labels:
        y = instances.targets_for(loss, y)
    return Case(
        lambda engine, **more: kb.KernelBank(window=5, engine=engine, **options, **more),
        X,
        LABELS if labels else y,
    )


def auto_case(rows, y, **options):
    return Case(lambda engine: kb.AutoBank(size="small", engine=engine, **options), rows, y)


def mixed_slots():
    """Slots of several methods: two on residuals, one by its own loss, two with a transform."""
    return [
        kb.Slot(K.Linear(0.5), L.LinearRLS()),
        *(kb.Slot(K.Gaussian(width), L.Norma(0.05, 30)) for width in (0.2, 0.4, 0.8, 1.6, 3.2)),
        kb.Slot(K.TreeKernel(0.7, 6), L.PartitionTree(nodes=15, split_after=5)),
        kb.Slot(K.Gaussian(0.6), L.KRLS(budget=15), residual_of=0),
        kb.Slot(K.Gaussian(0.6), L.Norma(0.05, 30), residual_of=7),
        kb.Slot(K.Gaussian(0.6), L.Norma(0.05, 30), loss="absolute"),
        kb.Slot(K.Gaussian(0.6), Gradient()),
        kb.Slot(K.Gaussian(0.6), L.Norma(0.05, 30), transform=LOG),
        kb.Slot(K.Gaussian(0.6), L.FourierRLS(features=12), residual_of=11, transform=LOG),
    ]


def all_cases():
    """A bank for each instance of a component."""
    cases = {}
    for kernel, _ in instances.KERNELS:
        cases[f"kernel {instances.name_of(kernel)}"] = bank_case(dictionary=kernel)
    for learner, loss in learners_and_losses():
        # Two kernels of one structure: a leaf that is not full.
        kernels = [kernel_of(learner), kernel_of(learner)]
        case = bank_case(loss in LABELLED, dictionary=kernels, learner=learner, loss=loss)
        cases[f"learner {learner!r} with {loss}"] = case
    return cases | shared_cases()


def few_cases():
    """The same instances in fewer banks: all kernels in one, all learners of a loss in one."""
    cases = {"kernels": bank_case(dictionary=[kernel for kernel, _ in instances.KERNELS])}
    slots = {}
    for learner, loss in learners_and_losses():
        slots.setdefault(loss, []).extend([kb.Slot(kernel_of(learner), learner)] * 2)
    for loss, some in slots.items():
        cases[f"learners with {loss}"] = bank_case(loss in LABELLED, slots=some, loss=loss)
    return cases | shared_cases()


LABELLED = ("logistic", "hinge")


def learners_and_losses():
    learners = [*instances.LEARNERS, *NORMAS]
    return [(learner, loss) for learner in learners for loss in losses_of(learner)]


def shared_cases():
    """A bank for each loss and combiner, of which a bank has one, and each kind of AutoBank."""
    cases = {}
    for loss, _ in instances.LOSSES:
        name = f"loss {instances.name_of(loss)}"
        cases[name] = bank_case(loss.labels, dictionary=kb.gaussian_grid(0.2, 2, 6), loss=loss)
    for combiner, _ in instances.COMBINERS:
        cases[f"combiner {combiner!r}"] = bank_case(slots=mixed_slots(), combiner=combiner)
    points = (X[:7] + 0.1, np.cos(np.arange(42.0)).reshape(7, 6))
    grid = kb.gaussian_grid(0.2, 2, 6)
    for learner in (L.Norma(0.05, 30), L.KNLMS(0.2, budget=20), L.FourierSGD(features=12)):
        case = bank_case(dictionary=grid, learner=learner, initial=points)
        cases[f"initial function with {learner!r}"] = case
    cases["counts with second-order methods"] = bank_case(
        y=np.floor(5 * np.abs(NUMBERS)),
        slots=[
            kb.Slot(K.Gaussian(0.5), L.KRLS(budget=15)),
            kb.Slot(K.TreeKernel(0.7, 6), L.PartitionTree(nodes=15, split_after=5)),
            kb.Slot(K.Gaussian(0.5), L.KRLSTracker(15, 0.99, forget_when="before", jitter=1e-6)),
        ],
        loss="poisson",
    )
    cases["adaptive dictionary"] = bank_case(
        dictionary=kb.AdaptiveDictionary(
            kb.gaussian_grid(0.05, 5, 30), size=6, every=140, threshold=0.5
        ),
        learner=L.Norma(0.05, 30),
    )
    cases["AutoBank"] = auto_case(X, NUMBERS)
    cases["AutoBank with lags and missing inputs"] = auto_case(MISSING, NUMBERS, lags=2)
    cases["AutoBank with seasons"] = auto_case(X, NUMBERS, seasons=(5, 12))
    cases["AutoBank that looks for seasons"] = auto_case(X, NUMBERS, seasons="auto", lags=1)
    cases["AutoBank with forecasts"] = auto_case(
        MISSING, NUMBERS, lags=2, horizons=(1, 4), seasons=(5, 12)
    )
    cases["AutoBank with quantiles and bounds of a skewed target"] = auto_case(
        X, np.exp(2 * NUMBERS), quantiles=(0.1, 0.5, 0.9), lower=0.0, upper=20.0
    )
    cases["AutoBank for several targets"] = auto_case(
        MISSING, SEVERAL, lags=2, quantiles=(0.1, 0.9)
    )
    cases["AutoBank for another loss"] = auto_case(X, NUMBERS, loss="absolute")
    cases["AutoBank for two classes"] = auto_case(
        MISSING, LABELS, task="classification", classes=[-1.0, 1.0], lags=1
    )
    cases["AutoBank for three classes"] = auto_case(
        X, THREE, task="classification", classes=[0, 1, 2]
    )
    return cases
