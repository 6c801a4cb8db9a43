"""The competitors of `make accuracy`, all with their default settings.

AutoBank; rivals, which learn row by row or are fitted anew on all past rows; banks of the
literature, which are only shown.
"""

from __future__ import annotations

import hashlib
import os
import platform
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import kernelbank as kb
from kernelbank.research.competitors import (
    BANK,
    PERSISTENCE,
    RIVAL,
    Competitor,
    CompetitorRun,
    numeric_predictions,
    run_model,
)
from kernelbank.research.datasets import CLASSIFICATION, REGRESSION, Stream
from kernelbank.research.results import Result, sample_losses
from kernelbank.research.significance import standard_error

_SEED = 42
_CLIP = 10.0


def competes(result: Result) -> bool:
    """Whether AutoBank is to beat it: the rivals, and the last target in every view."""
    return result.kind == RIVAL or result.name == PERSISTENCE


# --- AutoBank -------------------------------------------------------------------------------------


AUTO = "autobank"
COVERAGE = 0.9
"""Of AutoBank's intervals."""


def auto_bank(skip: int) -> Competitor:
    """AutoBank is given the task and the number of lags, nothing else."""
    return Competitor(
        AUTO, BANK, partial(_run_auto_bank, skip), description="kb.AutoBank(task, lags)"
    )


def _run_auto_bank(skip: int, seed: int, stream: Stream) -> CompetitorRun:
    """The run; with the loss of its best slot and the coverage of its intervals, from `skip` on."""
    fields = ["predictions"]
    if stream.classes <= 2:
        fields.append("slot_predictions")
    if stream.task == REGRESSION:
        fields += ["lower", "upper"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kb.errors.KernelBankWarning)
        bank = kb.AutoBank(stream.task, stream.lags)
        X = stream.X if bank.lags else stream.inputs
        start = time.perf_counter()
        trace = bank.run(X, stream.y, record=fields, coverage=COVERAGE)
        seconds = (time.perf_counter() - start) / len(stream)
    run = CompetitorRun(numeric_predictions(trace.predictions, stream.task), seconds)
    if len(stream) <= skip:  # the first rows, before it is timed
        return run
    figures: dict[str, float] = {}
    if "slot_predictions" in fields:
        swapped = stream.task == CLASSIFICATION and bank.classes[0]  # label 1 was seen first
        slots = -trace.slot_predictions if swapped else trace.slot_predictions
        figures["best_slot_loss"] = _best_slot_loss(slots, stream, skip)
    if "lower" in fields:
        y, lower, upper = (np.nan_to_num(a)[skip:] for a in (stream.y, trace.lower, trace.upper))
        inside = ((lower <= y) & (y <= upper)).astype(np.float64)
        figures["coverage"] = float(inside.mean())
        figures["coverage_error"] = standard_error([inside])
        figures["interval_width"] = float((upper - lower).mean()) / (float(y.std()) or 1.0)
    return replace(run, figures=figures)


def _best_slot_loss(slots: np.ndarray, stream: Stream, skip: int) -> float:
    """The least mean loss of any single slot, chosen afterwards."""
    if stream.task == CLASSIFICATION:
        slots = np.where(np.isfinite(slots), slots > 0, np.nan)
    else:
        slots = np.nan_to_num(slots, nan=0.0)
    return min(float(sample_losses(None, stream, p, skip)[skip:].mean()) for p in slots.T)


# --- rivals that learn row by row -----------------------------------------------------------------


def _river(path: str, scaled: bool = False, **settings: Any) -> Callable[[Stream], Any]:
    """From a stream to a model of River; * in its name stands for Regressor or Classifier."""

    def make(stream: Stream) -> Any:
        from river import preprocessing

        kind = "Classifier" if stream.task == CLASSIFICATION else "Regressor"
        module, name = path.replace("*", kind).split(".")
        model = getattr(import_module(f"river.{module}"), name)(**settings)
        return preprocessing.StandardScaler() | model if scaled else model

    return make


def _logistic(stream: Stream) -> Any:
    from river import linear_model, multiclass, preprocessing

    model = linear_model.LogisticRegression()
    several = multiclass.OneVsRestClassifier(model) if stream.classes > 2 else model
    return preprocessing.StandardScaler() | several


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
    return Competitor(
        name,
        RIVAL,
        partial(_run_rival, make),
        accepts=lambda stream: task in (None, stream.task),
        description=description,
    )


ONLINE = [
    _rival(
        "linear",
        "River: StandardScaler | LinearRegression",
        _river("linear_model.LinearRegression", scaled=True),
        REGRESSION,
    ),
    _rival(
        "bayesian-linear",
        "River: StandardScaler | BayesianLinearRegression",
        _river("linear_model.BayesianLinearRegression", scaled=True),
        REGRESSION,
    ),
    _rival("logistic", "River: StandardScaler | LogisticRegression", _logistic, CLASSIFICATION),
    _rival(
        "knn",
        "River: StandardScaler | KNNRegressor or KNNClassifier",
        _river("neighbors.KNN*", scaled=True),
    ),
    _rival("arf", "River: ARFRegressor or ARFClassifier", _river("forest.ARF*", seed=_SEED)),
    _rival("amf", "River: AMFRegressor or AMFClassifier", _river("forest.AMF*", seed=_SEED)),
    _rival(
        "hat",
        "River: HoeffdingAdaptiveTreeRegressor or -Classifier",
        _river("tree.HoeffdingAdaptiveTree*", seed=_SEED),
    ),
    _rival(
        "rbf-sgd",
        "scikit-learn: StandardScaler, RBFSampler(300), SGDRegressor or SGDClassifier",
        _RandomFeatures,
    ),
]


# --- rivals that are fitted anew ------------------------------------------------------------------
#
# LightGBM and ExtraTrees are made for data sets, not for streams: they learn by being fitted again
# on all past rows. Between two fits the last model predicts, so a block of rows is predicted in one
# call; a row's inputs contain no target but earlier ones.


@dataclass(frozen=True)
class Schedule:
    """After how many rows a model is fitted: `first`, then every `often` rows up to `until` rows,
    then every `rarely` rows."""

    first: int = 10
    often: int = 25
    until: int = 500
    rarely: int = 100

    def fits(self, length: int) -> list[int]:
        """The numbers of rows after which a model is fitted on a stream of `length` rows."""
        early = range(self.often, self.until + 1, self.often)
        late = range(self.until + self.rarely, length, self.rarely)
        return [rows for rows in (self.first, *early, *late) if rows < length]

    def __str__(self) -> str:
        return (
            f"after {self.first} rows, every {self.often} up to {self.until:,}, then every "
            f"{self.rarely:,}"
        )


USUAL = Schedule()
LONG = Schedule(often=100, until=1000, rarely=1000)
"""On long streams, where a fit takes seconds."""


def run_refitted(
    make: Callable[[Stream], Any], schedule: Schedule, seed: int, stream: Stream
) -> CompetitorRun:
    """Fit a new model of `make` on all past rows, whenever the schedule says so.

    Before the first fit the prediction is the mean of the past targets or their most frequent
    label, 0 on the first row.
    """
    X, y = stream.inputs, stream.y
    predictions = np.zeros(len(y))
    start = time.perf_counter()
    for row in range(1, min(schedule.first, len(y))):
        predictions[row] = _constant(y[:row], stream.task)
    for now, following in pairwise([*schedule.fits(len(y)), len(y)]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that columns have no names, and the like
            model = make(stream).fit(X[:now], y[:now])
            predictions[now:following] = model.predict(X[now:following])
    return CompetitorRun(predictions, (time.perf_counter() - start) / len(y))


def _constant(past: np.ndarray, task: str) -> float:
    if task == CLASSIFICATION:
        labels, counts = np.unique(past, return_counts=True)
        return float(labels[counts.argmax()])
    return float(past.mean())


def _boosted_trees(trees: int, stream: Stream) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMClassifier if stream.task == CLASSIFICATION else LGBMRegressor
    return kind(
        n_estimators=trees,
        random_state=_SEED,
        deterministic=True,
        force_row_wise=True,  # to be deterministic it must not choose by measuring times
        n_jobs=1,
        verbose=-1,
    )


def _extra_trees(stream: Stream) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    kind = ExtraTreesClassifier if stream.task == CLASSIFICATION else ExtraTreesRegressor
    return kind(random_state=_SEED, n_jobs=1)


def refitted_rivals(schedule: Schedule = USUAL) -> list[Competitor]:
    """The rivals with this schedule. What they predict depends on it, so their descriptions, by
    which runs are cached, contain it."""
    models = (
        ("lightgbm-100", "LightGBM", "100 trees", partial(_boosted_trees, 100)),
        ("lightgbm-500", "LightGBM", "500 trees", partial(_boosted_trees, 500)),
        ("extratrees", "scikit-learn", "ExtraTrees, 100 trees", _extra_trees),
    )
    return [
        Competitor(
            name,
            RIVAL,
            partial(run_refitted, make, schedule),
            description=f"{library}: {what}, fitted on all past rows ({schedule})",
        )
        for name, library, what, make in models
    ]


# --- banks of the literature ----------------------------------------------------------------------


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
        (
            "omkr",
            "the same with combiners.OMKR()",
            lambda: kb.KernelBank(combiner=kb.combiners.OMKR()),
        ),
        ("raker", "kb.rivals.raker() on standard units", kb.rivals.raker),
    )
]


# --- runs of rivals that are kept on disk: some take minutes, and change with their library alone -

_VERSION = 3
"""To be raised when rivals are run in another way."""


def library(rival: Competitor) -> str:
    """The library with which its description begins."""
    return rival.description.partition(":")[0].lower()


def installed_version(name: str) -> str | None:
    """The version of an installed library; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def read_arrays(path: Path) -> dict[str, np.ndarray] | None:
    """The arrays of a file; None if there is none, or only a damaged one."""
    try:
        with path.open("rb") as data, np.load(data, allow_pickle=False) as file:
            return dict(file)
    except Exception:  # of a damaged file zipfile, zlib and NumPy raise errors of many kinds
        return None


def write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    """Write a file; where that fails there is a warning, and the run is not lost."""
    unfinished = path.with_suffix(f".{os.getpid()}.part")  # nobody must find half a file
    try:
        with unfinished.open("wb") as file:
            np.savez_compressed(file, **arrays)
        unfinished.replace(path)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink()
        text = f"{path} cannot be written ({error.strerror}): this run is not kept."
        warnings.warn(text, kb.errors.KernelBankWarning, stacklevel=2)


class RunCache:
    """A folder with a file for every run of a rival.

    The name of a file contains a hash of everything that the predictions depend on. `refresh`
    ignores what is there, and writes it anew.
    """

    def __init__(self, folder: Path, refresh: bool = False) -> None:
        self.folder = folder
        self.refresh = refresh
        self.folder.mkdir(parents=True, exist_ok=True)

    def cached(self, rival: Competitor) -> Competitor:
        """The rival, which runs only where its run is not kept."""

        def run(seed: int, stream: Stream) -> CompetitorRun:
            path = self.path(rival, stream)
            arrays = None if self.refresh else read_arrays(path)
            if arrays is not None:
                seconds, note = float(arrays["seconds_per_sample"]), str(arrays["note"])
                return CompetitorRun(arrays["predictions"], seconds, note=note)
            new = rival.run(seed, stream)
            facts = {"seconds_per_sample": new.seconds_per_sample, "note": np.array(new.note)}
            write_arrays(path, {"predictions": new.predictions, **facts})
            return new

        return replace(rival, run=run)

    def path(self, rival: Competitor, stream: Stream) -> Path:
        content = hashlib.sha256(f"{stream.task} {stream.lags} {stream.X.shape}".encode())
        content.update(np.ascontiguousarray(stream.X).tobytes())
        content.update(np.ascontiguousarray(stream.y).tobytes())
        libraries = (f"{name} {installed_version(name)}" for name in (library(rival), "numpy"))
        python = platform.python_version()
        facts = [str(_VERSION), rival.name, rival.description, python, *libraries]
        content.update("\n".join(facts).encode())
        return self.folder / f"{rival.name}-{content.hexdigest()[:24]}.npz"


def rival_groups(schedule: Schedule) -> dict[str, list[Competitor]]:
    """All rivals by group; `schedule` says when the refitted ones are fitted."""
    return {"online": ONLINE, "refitted": refitted_rivals(schedule)}
