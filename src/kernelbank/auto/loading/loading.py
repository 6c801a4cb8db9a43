"""`kb.load`: a KernelBank or an AutoBank from a file.

A file may come from anywhere: it is checked in every respect before anything is made of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ...bank.bank import KernelBank
from ...bank.engines import Engine, Serial, as_engine
from ...bank.runtime_state import under
from ...bank.serialization import KNOWN, check_memory, memory_limit
from ...errors import FileRefused, KernelBankError
from ...io import checkpoint
from ...io.specs import from_spec
from ...utils import validation as check
from .. import task_model
from ..auto_bank import AutoBank
from ..auto_serialization import AUTO_BANK, Arrays, pending_width
from ..classification import ClassificationModel
from ..encoding.class_labels import MAX_CLASSES, ClassLabels
from ..encoding.column_encoder import ColumnEncoder
from ..forecasts.forecaster import Forecaster
from ..model_parts.replay_buffer import REPLAY
from ..pending_predictions import LARGEST_LIMIT
from ..prediction import Prediction
from ..regression import RegressionModel
from ..scaling.running_stats import CHANGE_AFTER
from .saved_forecasts import check_forecasts, check_scaling, whole_number

RUN = "Run"
"""The `kind` in the header of the state of a run, which contains a bank."""

RestoreBank = Callable[[Mapping[str, Any], Arrays], KernelBank]
RestoreComponent = Callable[[Any], Any]

DAMAGE = (
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""The errors that a forged file may cause; those of ours are `ValueError`s."""

_MAY_MISS = (("lagged", "inputs"), ("lagged", "inputs", "replay_targets"))
"""How the names of arrays end that may hold NaN: with one target, and with several."""

_NO_DAMAGE = ("'components[", "The file needs", "The file holds a bank that needs")
"""How errors begin that another argument of `load` can mend."""


def load(
    path: str | os.PathLike[str],
    components: Mapping[str, Any] | None = None,
    engine: Any = "serial",
    most_memory: int | None = None,
) -> Any:
    """Load the bank that `KernelBank.save` or `AutoBank.save` wrote; it continues bit for bit.

    Also the bank of a `kernelbank run`, from the file state.kb in its folder.

    Parameters
    ----------
    path : the file.
    components : the bank's user-made components by name: instances of `Custom` kernels and losses,
        classes of your own learners and combiners.
    engine : where the slots run from now on.
    most_memory : refuse a file whose bank would need more bytes than this to work, beside its
        state, which is as large as the file; by default 128 MB and 16 times the bytes of its
        arrays.

    A file that is truncated, damaged, foreign or from a newer version is refused with a
    `ValueError` that says which. Every minor version of kernelbank reads the files of the one
    before.

    Whatever a file claims, loading it takes at most 64 times its length and 256 MB of memory
    (unless `most_memory` allows more): no number in it is believed before it was compared with
    the arrays that are there.

    >>> import kernelbank as kb, os, tempfile
    >>> bank = kb.KernelBank()
    >>> bank.learn_one(0.0, 1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     bank.save(os.path.join(folder, "bank.kb"))
    ...     again = kb.load(os.path.join(folder, "bank.kb"))
    >>> again.predict_one(0.5) == bank.predict_one(0.5)
    True
    """
    given = components if components is not None else {}
    if not isinstance(given, Mapping):
        remedy = "Give a dictionary from names to components."
        raise check.refuse("components", "be a dictionary", components, remedy)
    chosen = as_engine(engine)
    header, arrays = checkpoint.read(path)
    try:
        if header.get("kind") == RUN:
            header, arrays = header["bank"], under("bank/", arrays)
        return restore(header, arrays, chosen, given, most_memory)
    except DAMAGE as error:
        if str(error).startswith(_NO_DAMAGE) and isinstance(error, KernelBankError):
            raise
        raise FileRefused(f"{path} is damaged: {checkpoint.damage_text(error)}.") from None


def restore(
    header: Mapping[str, Any],
    arrays: Mapping[str, Any],
    engine: Engine,
    components: Mapping[str, Any],
    most_memory: int | None,
) -> Any:
    """The bank, of either kind, that a header and arrays describe."""
    limit = memory_limit(arrays) if most_memory is None else most_memory
    is_auto = header.get("kind") == AUTO_BANK
    if is_auto:
        limit //= max(len(header["banks"]), 1)  # they are alike
    inner = partial(KernelBank._restored, engine=engine, components=components, most_memory=limit)
    if not is_auto:
        return inner(header, arrays)
    component = partial(from_spec, known=KNOWN, components=components)
    auto = _restore_auto(header, dict(arrays), component, inner, engine)
    model = auto._model
    if model is None or not model.banks:
        scaling = auto._config.make_scaling(1, target=True) if model is None else model.scaling
        bank = auto._config.first_bank(scaling)
        check_memory(bank._settings, bank._runtime, scaling.width, limit, saved=False)
    return auto


# --- AutoBank -----------------------------------------------------------------------------------


def _restore_auto(
    header: Mapping[str, Any],
    arrays: Arrays,
    component: RestoreComponent,
    restore_bank: RestoreBank,
    engine: Engine,
) -> AutoBank:
    """The AutoBank that a header and arrays describe."""
    check_precision({name: array for name, array in arrays.items() if not _of_bank(name)})
    slots = [component(slot) for slot in header["slots"]]
    labels = header["classes"]
    auto = AutoBank(
        header["task"],
        header["lags"],
        header["size"],
        slots=slots or None,
        combiner=None if header["combiner"] is None else component(header["combiner"]),
        loss=component(header["loss"]),
        window=header["window"],
        regularization=header["regularization"],
        scalings=header["scalings"],
        lower=header["lower"],
        upper=header["upper"],
        seasons=header.get("seasons"),
        horizons=header.get("horizons") or None,
        known=header.get("known") or None,
        quantiles=header.get("quantiles") or None,
        engine=engine,
        seed=header["seed"],
    )
    if not all(isinstance(label, (bool, int, float, str)) for label in labels):
        raise FileRefused("its classes are not labels.")
    auto._classes.add(labels)
    if len(auto._classes) < len(labels):  # such as 0 and False
        raise FileRefused("its classes are not different labels.")
    _restore_limit(auto._classes, header)
    if header["columns"] is not None:
        own = under("columns/", arrays)
        labels_given = auto.task == "classification"
        auto._encoder = ColumnEncoder.restore(header["columns"], own, labels=labels_given)
    auto._target_names = _restored_targets(header)
    if header["dimension"] is None:
        if any(not name.startswith("columns/") for name in arrays):
            raise FileRefused("it has arrays but no inputs.")
        return auto
    _restore_model(auto, header, under("model/", arrays))
    model = auto._model
    assert model is not None
    encoder = auto._encoder
    if encoder is not None and (
        encoder.width != model.dimension or (encoder.tentative and model.rows)
    ):
        raise FileRefused("its columns do not fit its inputs.")
    for number, inner in enumerate(header["banks"]):
        bank = restore_bank(inner, under(f"bank{number}/", arrays))
        template = auto._config.make_bank(model.bank_slots(), bank.outputs)
        model.banks.append(_fitting(bank, template))
    if header.get("forecaster") is not None or getattr(model, "forecaster", None) is not None:
        own = under("forecaster/", arrays)
        _restore_forecaster(auto, header["forecaster"], own, component, restore_bank)
    if header.get("quantile_part") is not None:
        own = under("quantiles/", arrays)
        _restore_quantiles(auto, header["quantile_part"], own, restore_bank)
    _restore_pending(auto, under("pending/", arrays))
    pending = auto._pending
    pending.stale = whole_number(header.get("stale", 0), 0, len(pending.items), "old predictions")
    return auto


def _restore_forecaster(
    auto: AutoBank,
    header: Mapping[str, Any],
    arrays: Arrays,
    component: RestoreComponent,
    restore_bank: Any,
) -> None:
    """The forecasts of an AutoBank, into its model."""
    model = auto._model
    if not isinstance(model, RegressionModel) or model.forecaster is None:
        raise FileRefused("it has forecasts but no horizons.")
    periods = () if model.seasons is None else model.seasons.periods
    model.forecaster = model.forecaster.with_periods(periods, 0.05)
    _restore_forecasts(model.forecaster, model.dimension, header, arrays, component, restore_bank)


def _restore_forecasts(
    forecaster: Forecaster,
    dimension: int,
    header: Mapping[str, Any],
    arrays: Arrays,
    component: RestoreComponent,
    restore_bank: Any,
) -> None:
    """Forecasts for inputs of this width, with those without known inputs if there are any."""
    counters, state = header["counters"], under("state/", arrays)
    if list(forecaster.periods) != counters["periods"] or forecaster.dimension != dimension:
        raise FileRefused("its forecasts do not fit its seasons.")
    core = whole_number(counters["core"], 1, dimension, "the first inputs of forecasts")
    if core < dimension:
        forecaster.model.lay_out(core)
    check_forecasts(forecaster, state, counters)
    forecaster.restore(state, counters)
    check_scaling(forecaster)
    inner = forecaster.model
    if (header["bank"] is not None) != inner.started:
        raise FileRefused("its forecasts have the wrong number of banks.")
    if header["bank"] is not None:
        template = inner.config.make_bank(inner.bank_slots(), inner.target_count)
        _check_outputs(header["bank"], inner.target_count)
        own = restore_bank(header["bank"], under("bank/", arrays), engine=inner.config.engine)
        inner.banks = [_fitting(own, template)]
    if forecaster.plain is not None:
        parts = under("plain/", arrays)
        plain = (forecaster.plain, dimension, header["plain"], parts)
        _restore_forecasts(*plain, component, restore_bank)
    restore_bank = partial(restore_bank, engine=Serial())
    _check_outputs(header["line"], 1)
    line = restore_bank(header["line"], under("line/", arrays))
    forecaster.line.bank = _fitting(line, forecaster.line.bank)
    if forecaster.known is not None:
        for name, field in (("known", "bank"), ("late", "late")):
            parts = under(f"{name}/", arrays)
            bank = _restore_auto(header[name], parts, component, restore_bank, Serial())
            fits = bank._dimension in (None, len(forecaster.known.columns))
            if bank._config != forecaster.known.bank._config or not fits:
                raise FileRefused("the model of its known inputs does not fit its settings.")
            setattr(forecaster.known, field, bank)


def _restore_quantiles(
    auto: AutoBank, header: Mapping[str, Any], arrays: Arrays, restore_bank: RestoreBank
) -> None:
    """The quantiles of an AutoBank, into its model."""
    model, state = auto._model, under("state/", arrays)
    part = getattr(model, "quantile_part", None)
    if model is None or part is None:
        raise FileRefused("it has quantiles that its settings do not have.")
    shapes = {n: a.shape for n, a in part.state().items()}
    if {n: a.shape for n, a in state.items()} != shapes:
        raise FileRefused("its quantiles do not fit its settings.")
    whole_number(header["counters"]["scored"], 0, model.rows, "quantiles")
    part.restore(state, header["counters"])
    inner = part.model
    if inner.rows != model.rows or (header["bank"] is not None) != inner.started:
        raise FileRefused("its quantiles do not fit its rows.")
    if header["bank"] is not None:
        template = inner.config.make_bank(inner.bank_slots(), inner.target_count)
        inner.banks = [_fitting(restore_bank(header["bank"], under("bank/", arrays)), template)]


def _check_outputs(header: Mapping[str, Any], outputs: int) -> None:
    """Refuse a bank of another number of outputs, before anything is made for them."""
    if header.get("outputs", 1) != outputs:
        raise FileRefused("an inner bank does not fit its settings.")


def _fitting(bank: KernelBank, template: KernelBank) -> KernelBank:
    """The bank, if its settings are those of the template."""
    if (
        bank.slots != template.slots
        or bank.outputs != template.outputs
        or bank._settings.objective != template._settings.objective
    ):
        raise FileRefused("an inner bank does not fit its settings.")
    return bank


def _restored_targets(header: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The names of several targets; None for one."""
    names = header.get("targets")
    if names is None:
        return None
    if (
        header["task"] != "regression"
        or not isinstance(names, list)
        or len(names) < 2
        or not all(isinstance(name, str) for name in names)
        or len(set(names)) < len(names)
    ):
        raise FileRefused("its targets are not different names.")
    return tuple(names)


def _restore_limit(classes: ClassLabels, header: Mapping[str, Any]) -> None:
    """Which labels may occur. Without "classes_named", max_classes is the number of those named."""
    limit = whole_number(header["max_classes"], 0, 10**6, "the most classes")
    classes.named = header.get("classes_named", limit != MAX_CLASSES)
    classes.limit = MAX_CLASSES if classes.named else limit
    if not isinstance(classes.named, bool):
        raise FileRefused("it does not say whether its classes were named.")


def _of_bank(name: str) -> bool:
    """Whether an array belongs to a KernelBank, perhaps of a part."""
    return any(part.startswith("bank") for part in name.split("/")[:4])


def check_precision(arrays: Mapping[str, Any]) -> None:
    """Refuse arrays that are not in double precision; only a bank may keep others."""
    for name, array in arrays.items():
        if array.dtype != np.float64:
            raise FileRefused(f"its array {name} is not in double precision.")


def _restore_model(auto: AutoBank, header: Mapping[str, Any], state: Arrays) -> None:
    """The model of an AutoBank, without its banks."""
    counters = header["counters"]
    outputs = tuple(inner.get("outputs", 1) for inner in header["banks"])
    dimension = whole_number(header["dimension"], 1, 10**6, "inputs")
    targets = auto._target_names
    kept = auto.task == "classification" or (targets is None and auto._config.revises)
    rows = REPLAY if kept else task_model.RESTARTS[-1]
    # Before anything is made for so many inputs: the largest array that depends on them alone.
    if state["replay_inputs"].shape != (rows, dimension):
        raise FileRefused("its inputs do not fit its arrays.")
    if targets is not None and state["replay_targets"].shape != (rows, len(targets)):
        raise FileRefused("its targets do not fit its arrays.")
    model = auto._model_for(dimension)
    core = whole_number(header["core"], 1, model.dimension, "the first inputs")
    if model.seasons is not None:
        model.seasons.restore_periods(counters)
    previous = whole_number(header["previous"], 0, model.previous, "inputs of the row before")
    model.use_previous(previous)
    if core < model.dimension or previous < model.dimension or model.seasons is not None:
        model.lay_out(core)
    rows = whole_number(counters["rows"], 0, 2**53, "rows")
    whole_number(counters["unscored"], 0, rows, "predictions that do not count")
    held = whole_number(counters.get("held", 0), 0, CHANGE_AFTER - 1, "rows held back")
    needed: tuple[int, ...] = (model.target_count,)
    if isinstance(model, ClassificationModel):
        classes = whole_number(counters["classes"], 0, len(header["classes"]), "classes")
        for number in outputs:
            whole_number(number, 1, max(classes, 1), "the outputs of a bank")
        model.allocate(classes, sum(outputs))
        whole_number(counters["last_class"] + 1, 0, classes, "the last class")
        needed = model.outputs_per_bank
    if {n: a.shape for n, a in state.items()} != {n: a.shape for n, a in model.state().items()}:
        raise FileRefused("its arrays do not fit its settings.")
    for name, array in state.items():
        # Inputs, lagged targets and some of several targets may be missing; statistics never are.
        if not np.isfinite(array).all() and not name.endswith(_MAY_MISS[model.target_count > 1]):
            raise FileRefused(f"its statistics are not numbers: {name}.")
    model.restore(state, counters)
    if outputs != (needed if model.started else ()):
        raise FileRefused("it has the wrong number of banks or outputs.")
    if not model.is_plausible(held):
        raise FileRefused("no stream has such running statistics.")


def _restore_pending(auto: AutoBank, arrays: Arrays) -> None:
    model = auto._model
    assert model is not None
    count = len(arrays["rows_before"])
    banks, outputs = arrays["scores"].shape[1], arrays["outputs"].shape[1]
    shapes = {
        "rows_before": (count,),
        "sizes": (count, 3),
        "inputs": (count, pending_width(auto)),
        "lagged": (count, model.past),
        "scores": (count, banks),
        "slots": (count, banks, len(model.names)),
        "outputs": (count, outputs),
    }
    if (
        {name: array.shape for name, array in arrays.items()} != shapes
        or count > LARGEST_LIMIT
        or banks > max(model.outputs, model.target_count)
    ):
        raise FileRefused("its pending predictions do not fit its settings.")
    for i in range(count):
        scores, slots, output = (
            whole_number(n, 0, most, "a pending prediction")
            for n, most in zip(arrays["sizes"][i], (banks, banks, outputs), strict=True)
        )
        several = model.target_count
        length = 3 * several + 2 * len(auto.quantiles)
        if auto.task == "regression" and (output != length or scores != several):
            raise FileRefused("a pending prediction has no value.")
        prediction = Prediction(
            whole_number(arrays["rows_before"][i], 0, model.rows, "rows"),
            arrays["lagged"][i : i + 1].copy(),
            arrays["scores"][i : i + 1, :scores].copy(),
            arrays["slots"][i, :slots, None].copy(),
            arrays["outputs"][i : i + 1, :output].copy(),
        )
        auto._pending.append(arrays["inputs"][i].tobytes(), prediction)
