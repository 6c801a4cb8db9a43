"""What can be compared: banks, models that predict and learn one sample at a time, baselines.

Every competitor runs prequentially: it predicts a sample, and only then learns its target.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import math
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeGuard

import numpy as np

from ..auto import AutoBank
from ..bank.bank import KernelBank
from ..errors import KernelBankWarning
from ..losses import Logistic, Loss, Squared
from ..utils import validation as check
from ..utils.validation import Floats
from ..utils.whole_steps import named_warnings, with_owner
from .datasets.tables import CLASSIFICATION, REGRESSION, Stream

BANK, RIVAL, BASELINE = "bank", "rival", "baseline"
PERSISTENCE, RUNNING_MEAN = "persistence", "running mean"
COVERAGE = 0.9
_LEAST = 1e-6
"""Added to a probability before its logarithm is taken."""
_WARM_UP = 200
"""Rows that every competitor runs over before it is timed."""


class OnlineModel(Protocol):
    """What a rival has: it predicts a row, then learns its target."""

    def predict_one(self, x: Any, /) -> Any:
        """The prediction, before the target is known."""

    def learn_one(self, x: Any, y: Any, /) -> object:
        """Learn the target."""


@dataclass(frozen=True)
class CompetitorRun:
    """One pass over a stream of n samples.

    - predictions: (n,), labels in classification; NaN where none was made
    - cumulative_cost: of a `KernelBank`
    - slot_predictions: (n, P), above 0 for label 1; if the competitor recorded them
    - lower, upper: (n,), the interval of each prediction, likewise
    - note: why it stopped before the end
    - jobs: how many runs were timed side by side
    """

    predictions: Floats
    seconds_per_sample: float
    cumulative_cost: float | None = None
    slot_predictions: Floats | None = None
    lower: Floats | None = None
    upper: Floats | None = None
    note: str = ""
    jobs: int = 1


@dataclass(frozen=True)
class Competitor:
    """A name, and how to run over one stream from nothing.

    - run: from a seed and a stream to the run
    - seeded: whether another seed can change the result on the same stream
    - accepts: whether it can run on a stream; None if on all
    - needs_standard_units: whether its settings, such as widths, presume inputs and targets of
      about unit size
    - description: what it is, for readers
    - libraries: those whose versions its predictions depend on. Its runs are cached only if there
      are some: they change with these libraries, the description and the stream alone.
    """

    name: str
    kind: str
    run: Callable[[int, Stream], CompetitorRun]
    seeded: bool = False
    accepts: Callable[[Stream], bool] | None = None
    needs_standard_units: bool = False
    description: str = ""
    libraries: tuple[str, ...] = ()

    def takes(self, stream: Stream) -> bool:
        return self.accepts is None or self.accepts(stream)


def run_warmed(
    name: str, run: Callable[[int, Stream], CompetitorRun], seed: int, stream: Stream
) -> CompetitorRun:
    """Run over the first rows, then from nothing over the whole stream: the second is timed.

    The first run loads and compiles what the second needs, whatever the competitor is. Both must
    predict the first rows alike. Otherwise the competitor draws random numbers without a seed, or
    knows rows that it has not been given yet, because two of its runs share what they learned.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the second run says the same
        first = stream.head(_WARM_UP)
        before = run(seed, first).predictions[: len(first)]
    whole = run(seed, stream)
    # With fewer labels in the first rows, a model may be built in another way.
    comparable = first.classes == stream.classes
    if comparable and not np.array_equal(before, whole.predictions[: len(first)], equal_nan=True):
        warnings.warn(
            f"{name} does not predict the same when it is run again: it draws random numbers "
            "without a seed, or its runs share what they learned. Give it a seed, or let it start "
            "from nothing.",
            KernelBankWarning,
            stacklevel=2,
        )
    return whole


def baselines() -> list[Competitor]:
    """What every model should beat: the last target, and for numbers the mean of all so far."""
    return [
        Competitor(PERSISTENCE, BASELINE, partial(_run_baseline, _last_target)),
        Competitor(
            RUNNING_MEAN, BASELINE, partial(_run_baseline, _running_mean), accepts=_is_regression
        ),
    ]


def _run_named(
    name: str, run: Callable[[int, Stream], CompetitorRun], seed: int, stream: Stream
) -> CompetitorRun:
    with named_warnings(name):
        return run(seed, stream)


def as_competitor(name: str, bank: object) -> Competitor:
    """A competitor from a bank, a model with predict_one and learn_one, or a maker of either.

    Its warnings begin with its name: in a comparison many may warn.
    """
    competitor = _competitor(name, bank)
    return replace(competitor, run=partial(_run_named, name, competitor.run))


def _competitor(name: str, bank: object) -> Competitor:
    owner = f"banks[{name!r}]"
    if name in (PERSISTENCE, RUNNING_MEAN):
        remedy = "Choose another name: this baseline stands in every table."
        raise check.refuse("banks", "not use a baseline's name", name, remedy, "compare")
    if isinstance(bank, Competitor):
        return replace(bank, name=name)
    if isinstance(bank, (KernelBank, AutoBank)):
        _check_unused(owner, bank, "have learned nothing", "Give a new bank, or bank.fresh().")
        fixed = isinstance(bank, KernelBank)
        return Competitor(name, BANK, partial(_run_copy, bank), needs_standard_units=fixed)
    if not isinstance(bank, type) and _is_model(bank):
        return Competitor(name, RIVAL, partial(_run_copy, bank))
    if callable(bank):
        example = _first_model(owner, bank)
        kind = BANK if isinstance(example, (KernelBank, AutoBank)) else RIVAL
        run, fixed = partial(_run_maker, owner, bank), isinstance(example, KernelBank)
        return Competitor(name, kind, run, seeded=True, needs_standard_units=fixed)
    raise _refuse(owner, bank)


# --- from what the user gave ----------------------------------------------------------------------


def _run_copy(model: OnlineModel, seed: int, stream: Stream) -> CompetitorRun:  # noqa: ARG001
    return run_model(_fresh(model), stream)


def _run_maker(
    owner: str, maker: Callable[[int], object], seed: int, stream: Stream
) -> CompetitorRun:
    model = maker(seed)
    if isinstance(model, (KernelBank, AutoBank)):
        remedy = "Let it return a new bank each time, or bank.fresh()."
        _check_unused(owner, model, "make banks that have learned nothing", remedy)
    elif not _is_model(model):
        raise _refuse(owner, model)
    return run_model(model, stream)


def _first_model(owner: str, maker: Callable[[int], object]) -> object:
    """What a maker makes for seed 0; a wrong one is refused before anything runs."""
    try:
        inspect.signature(maker).bind(0)
    except (TypeError, ValueError):
        raise _refuse(owner, maker) from None
    model = maker(0)
    if isinstance(model, type) or not _is_model(model):
        raise _refuse(owner, model)
    return model


def _check_unused(owner: str, bank: KernelBank | AutoBank, rule: str, remedy: str) -> None:
    if bank.samples:
        rule = f"{rule} (it has seen {bank.samples} samples)"
        raise check.refuse(owner, rule, bank, remedy, "compare")


def _refuse(owner: str, bank: object) -> Exception:
    return check.refuse(
        owner,
        "be a bank, a model with predict_one and learn_one, or a function from a seed to one",
        bank,
        "Give for example kb.KernelBank(), or lambda seed: kb.KernelBank().",
        "compare",
    )


def _is_model(bank: object) -> TypeGuard[OnlineModel]:
    methods = (getattr(bank, name, None) for name in ("predict_one", "learn_one"))
    return all(callable(method) for method in methods)


def _fresh(model: OnlineModel) -> OnlineModel:
    """A new model with the same settings; without a method for that, a deep copy."""
    for name in ("fresh", "clone"):  # a KernelBank; a model of River
        make = getattr(model, name, None)
        if callable(make):
            copied: OnlineModel = make()
            return copied
    return copy.deepcopy(model)


# --- running --------------------------------------------------------------------------------------


def run_model(model: OnlineModel, stream: Stream) -> CompetitorRun:
    """Run a bank or a model that has learned nothing over a stream."""
    if isinstance(model, KernelBank):
        return _run_bank(model, stream)
    if isinstance(model, AutoBank):
        return run_auto_bank(model, stream)
    return _run_one_by_one(model, stream)


def _run_bank(bank: KernelBank, stream: Stream) -> CompetitorRun:
    X, y = stream.inputs, stream.y
    start = time.perf_counter()
    trace = bank.run(X, y, record=["predictions"])
    seconds = (time.perf_counter() - start) / len(y)
    return CompetitorRun(trace.predictions, seconds, bank.ledger.cumulative_cost)


def run_auto_bank(
    bank: AutoBank, stream: Stream, *, slots: bool = False, intervals: bool = True
) -> CompetitorRun:
    """Run an AutoBank. It scales and, if it has lags, makes the lagged inputs by itself.

    `slots` also records the prediction of every slot, if there are at most two classes.
    """
    fields = ["predictions"]
    if slots and stream.classes <= 2:
        fields.append("slot_predictions")
    if intervals and stream.task == REGRESSION:
        fields += ["lower", "upper"]
    X, y = stream.X if bank.lags else stream.inputs, stream.y
    start = time.perf_counter()
    trace = bank.run(X, y, record=fields, coverage=COVERAGE)
    seconds = (time.perf_counter() - start) / len(y)
    extras: dict[str, Floats] = {name: np.asarray(getattr(trace, name)) for name in fields[1:]}
    predictions = trace.predictions
    if stream.task == CLASSIFICATION:  # no label is known before the first row: it counts as wrong
        predictions = np.array([-1 if label is None else label for label in predictions])
    else:  # no target is known before the first row: 0, as for the other models
        predictions = np.nan_to_num(predictions, nan=0.0)
        extras = {name: np.nan_to_num(array, nan=0.0) for name, array in extras.items()}
    if stream.task == CLASSIFICATION and "slot_predictions" in extras and bank.classes[0]:
        extras["slot_predictions"] = -extras["slot_predictions"]  # label 1 was seen first
    run = CompetitorRun(np.asarray(predictions, dtype=np.float64), seconds)
    return replace(run, **extras)  # type: ignore[arg-type]


def auto_bank(loss: Loss) -> AutoBank | Competitor:
    """AutoBank as a competitor that is scored by a loss.

    For labels -1 and 1, its prediction is the logarithm of the odds of label 1 where the loss is
    logistic, which expects just that, and the label otherwise.
    """
    if loss.labels:
        return Competitor("AutoBank", BANK, partial(_run_auto_labels, isinstance(loss, Logistic)))
    return AutoBank() if loss == Squared() else AutoBank(loss=loss)


def _run_auto_labels(odds: bool, seed: int, stream: Stream) -> CompetitorRun:  # noqa: ARG001
    fields = ["predictions", "probabilities"]
    X, y = stream.inputs, stream.y
    start = time.perf_counter()
    trace = AutoBank("classification").run(X, y, record=fields)
    seconds = (time.perf_counter() - start) / len(y)
    # A label that has not come yet has probability 0; before the first label, both have.
    positive = np.array([float(label) > 0 for label in trace.classes])
    probabilities = np.nan_to_num(trace.probabilities)
    right, wrong = (probabilities[:, labels].sum(axis=1) for labels in (positive, ~positive))
    scores = np.log((right + _LEAST) / (wrong + _LEAST))
    return CompetitorRun(scores if odds else np.sign(scores), seconds)


def _run_one_by_one(model: OnlineModel, stream: Stream) -> CompetitorRun:
    """One sample after the other. A model that fails predicts nothing from there on.

    River's models take dictionaries and labels as truth values or whole numbers; all others take
    (d,) arrays and floats. A prediction of None counts as 0.
    """
    rows: Sequence[object] = list(stream.inputs)
    targets: list[float] = stream.y.tolist()
    if _of_river(model):
        names = [f"x{index}" for index in range(stream.inputs.shape[1])]
        rows = [dict(zip(names, row, strict=True)) for row in stream.inputs.tolist()]
        if stream.task == CLASSIFICATION:
            kind = bool if stream.classes <= 2 else int
            targets = [kind(target) for target in targets]
    predictions = np.full(len(stream), math.nan)
    note, n = "", 0
    start = time.perf_counter()
    try:
        for n, (row, target) in enumerate(zip(rows, targets, strict=True)):
            predicted = model.predict_one(row)
            predictions[n] = 0.0 if predicted is None else predicted
            model.learn_one(row, target)
    except Exception as error:
        note = f"failed at sample {n}: {error!r}"[:200]
        if not isinstance(error, ArithmeticError):  # it broke rather than diverged: say so
            warnings.warn(with_owner(f"{type(model).__name__} {note}"), stacklevel=2)
    seconds = (time.perf_counter() - start) / len(stream)
    return CompetitorRun(predictions, seconds, note=note)


def _of_river(model: object) -> bool:
    river = sys.modules.get("river.base")  # a model of River cannot come from anywhere else
    return river is not None and isinstance(model, river.Base)


def _run_baseline(
    predict: Callable[[Floats], Floats],
    seed: int,  # noqa: ARG001
    stream: Stream,
) -> CompetitorRun:
    start = time.perf_counter()
    predictions = predict(stream.y)
    return CompetitorRun(predictions, (time.perf_counter() - start) / len(stream))


def _is_regression(stream: Stream) -> bool:
    return stream.task == REGRESSION


def _last_target(y: Floats) -> Floats:
    return np.concatenate([[0.0], y[:-1]])


def _running_mean(y: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(y[:-1]) / np.arange(1, len(y))])


# --- runs that are kept on disk: some take minutes, and change with their library alone ----------

_VERSION = 2
"""To be raised when competitors are run in another way."""


class RunCache:
    """A folder with a file for every run of a competitor that names its libraries.

    The name of a file contains a hash of everything that the predictions depend on. `refresh`
    ignores what is there, and writes it anew.
    """

    def __init__(self, folder: str | os.PathLike[str], refresh: bool = False) -> None:
        self.folder = Path(folder)
        self.refresh = refresh
        self.folder.mkdir(parents=True, exist_ok=True)

    def path(self, competitor: Competitor, seed: int, stream: Stream) -> Path:
        from importlib.metadata import version  # slow to import

        facts = [
            str(_VERSION),
            stream.fingerprint,
            str(seed) if competitor.seeded else "",
            competitor.name,
            competitor.description,
            platform.python_version(),
            *(f"{name} {version(name)}" for name in competitor.libraries),
        ]
        key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:24]
        return self.folder / f"{competitor.name}-{key}.npz"

    def get(self, competitor: Competitor, seed: int, stream: Stream) -> CompetitorRun | None:
        """The kept run; None if there is none, or only a damaged file."""
        if self.refresh or not competitor.libraries:
            return None
        try:
            with (
                self.path(competitor, seed, stream).open("rb") as data,
                np.load(data, allow_pickle=False) as file,
            ):
                return CompetitorRun(
                    file["predictions"],
                    float(file["seconds_per_sample"]),
                    note=str(file["note"]),
                    jobs=int(file["jobs"]),
                )
        except Exception:  # of a damaged file zipfile, zlib and NumPy raise errors of many kinds
            return None

    def put(self, competitor: Competitor, seed: int, stream: Stream, run: CompetitorRun) -> None:
        """Keep a run; where that fails there is a warning, and the run is not lost."""
        if not competitor.libraries:
            return
        path = self.path(competitor, seed, stream)
        unfinished = path.with_suffix(f".{os.getpid()}.part")  # nobody must find half a file
        try:
            with unfinished.open("wb") as file:
                np.savez_compressed(
                    file,
                    predictions=run.predictions,
                    seconds_per_sample=run.seconds_per_sample,
                    note=np.array(run.note),
                    jobs=run.jobs,
                )
            unfinished.replace(path)
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink()
            text = f"{path} cannot be written ({error.strerror}): this run is not kept."
            warnings.warn(text, KernelBankWarning, stacklevel=2)
