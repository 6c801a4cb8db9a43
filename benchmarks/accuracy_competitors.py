"""The competitors of `make accuracy`, all with their default settings.

AutoBank; rivals in groups, of which those that learn row by row are here; banks of the literature,
which are only shown.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from refitted_rivals import Schedule, refitted_rivals

import kernelbank as kb
from kernelbank.research.competitors import (
    BANK,
    PERSISTENCE,
    RIVAL,
    Competitor,
    CompetitorRun,
    run_auto_bank,
    run_model,
)
from kernelbank.research.datasets.stream import CLASSIFICATION, REGRESSION, Stream
from kernelbank.research.results import Result

_SEED = 42
_CLIP = 10.0


def competes(result: Result) -> bool:
    """Whether AutoBank is to beat it: the rivals, and the last target in every view."""
    return result.kind == RIVAL or result.name == PERSISTENCE


# --- AutoBank -------------------------------------------------------------------------------------


def _run_auto(seed: int, stream: Stream) -> CompetitorRun:
    """AutoBank is given the task and the number of lags, nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
        return run_auto_bank(kb.AutoBank(stream.task, stream.lags), stream, slots=True)


AUTO = Competitor("autobank", BANK, _run_auto, description="kb.AutoBank(task, lags)")


# --- rivals that learn row by row -----------------------------------------------------------------


def _scaled(model: Any) -> Any:
    from river import preprocessing

    return preprocessing.StandardScaler() | model


def _linear(stream: Stream) -> Any:
    from river import linear_model

    return _scaled(linear_model.LinearRegression())


def _bayesian_linear(stream: Stream) -> Any:
    from river import linear_model

    return _scaled(linear_model.BayesianLinearRegression())


def _logistic(stream: Stream) -> Any:
    from river import linear_model, multiclass

    model = linear_model.LogisticRegression()
    return _scaled(multiclass.OneVsRestClassifier(model) if stream.classes > 2 else model)


def _nearest_neighbours(stream: Stream) -> Any:
    from river import neighbors

    classifies = stream.task == CLASSIFICATION
    return _scaled(neighbors.KNNClassifier() if classifies else neighbors.KNNRegressor())


def _adaptive_forest(stream: Stream, trees: int = 10) -> Any:
    from river import forest

    kind = forest.ARFClassifier if stream.task == CLASSIFICATION else forest.ARFRegressor
    return kind(trees, seed=_SEED)


def _mondrian_forest(stream: Stream, trees: int = 10) -> Any:
    from river import forest

    kind = forest.AMFClassifier if stream.task == CLASSIFICATION else forest.AMFRegressor
    return kind(trees, seed=_SEED)


def _random_patches(stream: Stream) -> Any:
    from river import ensemble

    classifies = stream.task == CLASSIFICATION
    return (ensemble.SRPClassifier if classifies else ensemble.SRPRegressor)(seed=_SEED)


def _extra_online_trees(stream: Stream) -> Any:
    from river import forest

    return forest.OXTRegressor(seed=_SEED)


def _adaptive_tree(stream: Stream) -> Any:
    from river import tree

    if stream.task == CLASSIFICATION:
        return tree.HoeffdingAdaptiveTreeClassifier(seed=_SEED)
    return tree.HoeffdingAdaptiveTreeRegressor(seed=_SEED)


class _RandomFeatures:
    """Random Fourier features of inputs that are scaled as they come, and gradient descent.

    The inputs of a row are known when it is predicted, so the scaler has seen them by then.
    """

    def __init__(self, stream: Stream) -> None:
        from sklearn.kernel_approximation import RBFSampler
        from sklearn.linear_model import SGDClassifier, SGDRegressor
        from sklearn.preprocessing import StandardScaler

        labels = stream.task == CLASSIFICATION
        self._scaler = StandardScaler()
        self._sampler = RBFSampler(n_components=300, random_state=0)
        self._sampler.fit(np.zeros((1, stream.inputs.shape[1])))  # needs the number of columns
        self._model = SGDClassifier(random_state=0) if labels else SGDRegressor(random_state=0)
        self._known = {"classes": np.arange(float(stream.classes))} if labels else {}

    def predict_one(self, x: np.ndarray) -> float:
        scaled = self._scaler.partial_fit(x[None]).transform(x[None])
        self._features = self._sampler.transform(scaled)
        fitted = hasattr(self._model, "coef_")
        return float(self._model.predict(self._features)[0]) if fitted else 0.0

    def learn_one(self, x: np.ndarray, y: float) -> None:
        self._model.partial_fit(self._features, [y], **self._known)


def _run_rival(make: Callable[[Stream], Any], seed: int, stream: Stream) -> CompetitorRun:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overflows; the table says what has diverged
        return run_model(make(stream), stream)


def _rival(
    name: str, description: str, make: Callable[[Stream], Any], task: str | None = None
) -> Competitor:
    library = description.partition(":")[0].lower()
    return Competitor(
        name,
        RIVAL,
        partial(_run_rival, make),
        accepts=lambda stream: task in (None, stream.task),
        description=description,
        libraries=(library, "numpy"),
    )


ONLINE = [
    _rival("linear", "River: StandardScaler | LinearRegression", _linear, REGRESSION),
    _rival(
        "bayesian-linear",
        "River: StandardScaler | BayesianLinearRegression",
        _bayesian_linear,
        REGRESSION,
    ),
    _rival("logistic", "River: StandardScaler | LogisticRegression", _logistic, CLASSIFICATION),
    _rival("knn", "River: StandardScaler | KNNRegressor or KNNClassifier", _nearest_neighbours),
    _rival("arf", "River: ARFRegressor or ARFClassifier", _adaptive_forest),
    _rival("amf", "River: AMFRegressor or AMFClassifier", _mondrian_forest),
    _rival("hat", "River: HoeffdingAdaptiveTreeRegressor or -Classifier", _adaptive_tree),
    _rival(
        "rbf-sgd",
        "scikit-learn: StandardScaler, RBFSampler(300), SGDRegressor or SGDClassifier",
        _RandomFeatures,
    ),
]

LARGE = [
    _rival(
        "arf-100",
        "River: ARFRegressor or ARFClassifier, 100 trees",
        partial(_adaptive_forest, trees=100),
    ),
    _rival(
        "amf-100",
        "River: AMFRegressor or AMFClassifier, 100 trees",
        partial(_mondrian_forest, trees=100),
    ),
    _rival("srp", "River: SRPRegressor or SRPClassifier", _random_patches),
    _rival("oxt", "River: OXTRegressor", _extra_online_trees, REGRESSION),
]


# --- banks of the literature ----------------------------------------------------------------------


def _omkr() -> kb.KernelBank:
    return kb.KernelBank(combiner=kb.combiners.OMKR())


def _raker() -> kb.KernelBank:
    return kb.rivals.raker()


def _run_scaled(make: Callable[[], kb.KernelBank], seed: int, stream: Stream) -> CompetitorRun:
    """A bank on standard units. Labels are learned as -1 and 1, and read from the sign."""
    y = stream.y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
        bank = make()
        start = time.perf_counter()
        X, _ = kb.datasets.standardised(stream.inputs, y)
        if stream.task == CLASSIFICATION:
            predictions = bank.run(X, 2 * y - 1, record=["predictions"]).predictions
            predictions = np.where(np.isnan(predictions), np.nan, predictions > 0)
        else:
            mean, deviation = running_scale(y)
            targets = np.clip((y - mean) / deviation, -_CLIP, _CLIP)
            predictions = bank.run(X, targets, record=["predictions"]).predictions
            predictions = predictions * deviation + mean
        return CompetitorRun(predictions, (time.perf_counter() - start) / len(y))


def running_scale(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the targets before each row; 0 and 1 where there is none."""
    shifted = y - y[0]  # so that the squares below do not cancel far from zero
    count = np.arange(1.0, len(y))
    mean = np.cumsum(shifted[:-1]) / count
    variance = np.cumsum(shifted[:-1] ** 2) / count - mean**2
    floor = 1e-12 * np.maximum.accumulate(np.abs(shifted[:-1])) ** 2
    deviation = np.where(variance > floor, np.sqrt(np.maximum(variance, 0.0)), 1.0)
    return np.concatenate([[0.0], mean + y[0]]), np.concatenate([[1.0], deviation])


BANKS = [
    Competitor(
        name,
        BANK,
        partial(_run_scaled, make),
        accepts=lambda stream: stream.classes <= 2,
        description=description,
    )
    for name, description, make in (
        ("paper", "kb.KernelBank() on standard units: the paper's bank", kb.KernelBank),
        ("omkr", "the same with combiners.OMKR()", _omkr),
        ("raker", "kb.rivals.raker() on standard units", _raker),
    )
]


# --- groups ---------------------------------------------------------------------------------------

USUAL_GROUPS = ("online", "refitted")


def rival_groups(schedule: Schedule) -> dict[str, list[Competitor]]:
    """All rivals by group; `schedule` says when the refitted ones are fitted."""
    return {"online": ONLINE, "refitted": refitted_rivals(schedule), "large": LARGE}
