"""From a file: an AutoBank with its banks, forecasts and quantiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ...bank.bank import KernelBank
from ...bank.engines import Engine, Serial
from ...errors import FileRefused
from ..auto_bank import AutoBank
from ..auto_serialization import Arrays
from ..encoding.class_labels import MAX_CLASSES, ClassLabels
from ..encoding.column_encoder import ColumnEncoder
from ..forecasts.forecaster import Forecaster
from ..model_state import under
from ..regression import RegressionModel
from .restored_model import restore_model, restore_pending
from .saved_forecasts import check_forecasts, check_scaling, whole_number

RestoreBank = Callable[[Mapping[str, Any], Arrays], KernelBank]
RestoreComponent = Callable[[Any], Any]


def restore_auto(
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
    restore_model(auto, header, under("model/", arrays))
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
    restore_pending(auto, under("pending/", arrays))
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
            bank = restore_auto(header[name], parts, component, restore_bank, Serial())
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


def _objective(bank: KernelBank) -> tuple[Any, ...]:
    return bank.loss, bank.window, bank.regularization


def _fitting(bank: KernelBank, template: KernelBank) -> KernelBank:
    """The bank, if its settings are those of the template."""
    if (
        bank.slots != template.slots
        or bank.outputs != template.outputs
        or _objective(bank) != _objective(template)
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
    """Which labels may occur."""
    limit = whole_number(header["max_classes"], 0, 10**6, "the most classes")
    classes.named = header["classes_named"]
    classes.limit = MAX_CLASSES if classes.named else limit
    if not isinstance(classes.named, bool):
        raise FileRefused("it does not say whether its classes were named.")


def _of_bank(name: str) -> bool:
    """Whether an array belongs to a KernelBank, perhaps of a part."""
    return any(part.startswith(("bank", "line")) for part in name.split("/")[:4])


def check_precision(arrays: Mapping[str, Any]) -> None:
    """Refuse arrays that are not in double precision; only a bank may keep others."""
    for name, array in arrays.items():
        if array.dtype != np.float64:
            raise FileRefused(f"its array {name} is not in double precision.")
