"""`kb.load`: a KernelBank or an AutoBank from a file.

A file may come from anywhere: it is checked in every respect before anything is made of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from .. import _core
from ..bank.bank import KernelBank
from ..bank.engines import Engine, Serial, as_engine
from ..bank.revision import Selection
from ..bank.serialization import KNOWN, memory_limit, under
from ..bank.slot_history import parse_changes
from ..errors import FileRefused, KernelBankError
from ..io import checkpoint
from ..io.specs import from_spec
from ..utils import validation as check
from ..utils.validation import Floats
from .auto_bank import AutoBank
from .classes import ClassModel
from .default_slots import WIDE
from .forecaster import RECENT, Forecaster
from .inputs import ColumnEncoder
from .model import REPLAY, Model
from .numbers import NumberModel
from .run import LARGEST_LIMIT
from .saving import AUTO_BANK, Arrays, pending_width
from .scaling import CHANGE_AFTER
from .seasons import restored_periods
from .status import Change
from .targets import MAX_CLASSES, ClassLabels

_MAY_MISS = ("inputs", "past", "lagged")
"""How the names of arrays end that may hold NaN."""

RUN = "Run"
"""The `kind` in the header of the state of a run, which contains a bank."""

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

RestoreBank = Callable[[Mapping[str, Any], Arrays], KernelBank]
RestoreComponent = Callable[[Any], Any]

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
    return _loaded(lambda: checkpoint.read(path), path, components, engine, most_memory)


def from_bytes(
    data: bytes,
    components: Mapping[str, Any] | None = None,
    engine: Any = "serial",
    most_memory: int | None = None,
) -> Any:
    """The bank that `KernelBank.to_bytes` or `AutoBank.to_bytes` returned; see `load`.

    >>> import kernelbank as kb
    >>> bank = kb.AutoBank()
    >>> bank.learn_one([1.0], 2.0)
    >>> kb.from_bytes(bank.to_bytes()).predict_one([1.0])
    2.0
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        remedy = "Give what to_bytes() returned."
        raise check.refuse("data", "be bytes", type(data).__name__, remedy, "from_bytes")
    whole = bytes(data)
    name = "the state in 'data'"
    return _loaded(
        lambda: checkpoint.from_bytes(whole, name), name, components, engine, most_memory
    )


def _loaded(
    read: Callable[[], tuple[dict[str, Any], Arrays]],
    path: Any,
    components: Mapping[str, Any] | None,
    engine: Any,
    most_memory: int | None,
) -> Any:
    given = components if components is not None else {}
    if not isinstance(given, Mapping):
        remedy = "Give a dictionary from names to components."
        raise check.refuse("components", "be a dictionary", components, remedy)
    chosen = as_engine(engine)
    header, arrays = read()
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
    if is_auto and header["model"] is not None:
        limit //= max(len(header["model"]["banks"]), 1)  # they are alike
    inner = partial(KernelBank.restored, engine=engine, components=components, most_memory=limit)
    if not is_auto:
        return inner(header, arrays)
    component = partial(from_spec, known=KNOWN, components=components)
    auto = restore_auto(header, dict(arrays), component, inner, engine)
    model = auto._model
    if model is None or not model.banks:
        scaling = auto._config.make_scaling(1) if model is None else model.scaling
        bank = auto._config.first_bank(scaling)
        bank.check_memory(scaling.width, limit)
    return auto


def restore_auto(
    header: Mapping[str, Any],
    arrays: Arrays,
    component: RestoreComponent,
    restore_bank: RestoreBank,
    engine: Engine,
) -> AutoBank:
    """The AutoBank that a header and arrays describe."""
    check_precision(arrays)
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
    _restore_model(auto, header, under("model/", arrays), restore_bank)
    model = auto._model
    assert model is not None
    encoder = auto._encoder
    if encoder is not None and (
        encoder.width != model.dimension or (encoder.tentative and model.rows)
    ):
        raise FileRefused("its columns do not fit its inputs.")
    forecasts = header.get("forecaster")
    if forecasts is not None or auto.horizons:
        own = under("forecaster/", arrays)
        _restore_forecaster(auto, header["forecaster"], own, component, restore_bank)
    if header.get("quantile_part") is not None or auto.quantiles:
        _restore_quantiles(auto, header, under("quantiles/", arrays), restore_bank)
    _restore_pending(auto, under("pending/", arrays))
    pending = auto._pending
    pending.stale = whole_number(header.get("stale", 0), 0, len(pending.items), "old predictions")
    return auto


def _restore_model(
    auto: AutoBank, header: Mapping[str, Any], arrays: Arrays, restore_bank: RestoreBank
) -> None:
    """The model of an AutoBank, with its banks."""
    dimension = whole_number(header["dimension"], 1, 10**6, "inputs")
    own, targets = header["model"], len(auto._target_names or (0,))
    kept = auto.task == "classification" or auto._config.revises
    # Before anything is made for so many inputs: the largest arrays that depend on them alone.
    rows = REPLAY if kept else auto._config.restarts[-1]
    if arrays["core/replay/inputs"].shape != (rows, dimension):
        raise FileRefused("its inputs do not fit its arrays.")
    if arrays["core/replay/targets"].shape != (rows, targets):
        raise FileRefused("its targets do not fit its arrays.")
    most = min(dimension, WIDE)
    previous = whole_number(own["previous"], 0, most, "inputs of the row before")
    classes = whole_number(own["classes"], 0, len(header["classes"]), "classes")
    auto._model = model = auto._new_model(dimension, targets, previous)
    if (previous and not model.knows_previous) or classes != getattr(model, "classes", 0):
        raise FileRefused("its classes or inputs do not fit its model.")
    restore_state(model, own, arrays, restore_bank)


def restore_state(
    model: Model, header: Mapping[str, Any], arrays: Arrays, restore_bank: RestoreBank
) -> None:
    """Let a model that has learned nothing continue from what `describe_model` returned."""
    config = model.config
    periods = restored_periods(config.seasons, header["periods"])
    first = whole_number(header["first_inputs"], 1, model.dimension, "the first inputs")
    model.core.set_periods(periods)
    outputs = tuple(inner.get("outputs", 1) for inner in header["banks"])
    for number in outputs:
        whole_number(number, 1, 10**6, "the outputs of a bank")
    model.lay_out(first)
    if isinstance(model, ClassModel):
        model.core.allocate(model.classes, sum(outputs))
    if isinstance(model, NumberModel):
        model.core.allocate(whole_number(header["held"], 0, CHANGE_AFTER - 1, "rows held back"))
    state = under("core/", arrays)
    for name, array in state.items():
        # Inputs, past targets and some of several targets may be missing; statistics never are.
        missing = name.endswith(_MAY_MISS) or (model.target_count > 1 and "targets" in name)
        if not np.isfinite(array).all() and not missing:
            raise FileRefused(f"its statistics are not numbers: {name}.")
    model.core.restore(state)
    if model.periods != periods or not model.scaling.has_plausible_shifts():
        raise FileRefused("no stream has such running statistics.")
    model.pool = model.make_pool(model.scaling)  # a target may be skewed
    selection = Selection.parse(header["selection"], len(model.pool.groups))
    if not model.pool.can_run(selection.running):
        raise FileRefused("its running slots do not fit its settings.")
    model._select(selection)
    try:
        model.slot_changes = parse_changes(header["slot_changes"])
    except (TypeError, ValueError) as error:
        raise FileRefused(f"its slot_changes are impossible: {error}.") from None
    model.changes = [
        Change(int(row), str(what), *map(int, rest)) for row, what, *rest in header["changes"]
    ]
    needed = (model.target_count,) if model.targets else model.outputs_per_bank  # type: ignore[attr-defined]
    if outputs != (needed if model.started else ()):
        raise FileRefused("it has the wrong number of banks or outputs.")
    banks = []
    for number, inner in enumerate(header["banks"]):
        template = config.make_bank(model.bank_slots(), outputs[number])
        banks.append(_fitting(restore_bank(inner, under(f"bank{number}/", arrays)), template))
    model.use_banks(banks)


def _restore_forecaster(
    auto: AutoBank,
    header: Mapping[str, Any],
    arrays: Arrays,
    component: RestoreComponent,
    restore_bank: Any,
) -> None:
    """The forecasts of an AutoBank, into its model."""
    model = auto._model
    if not isinstance(model, NumberModel) or model.forecasting.forecaster is None:
        raise FileRefused("it has forecasts but no horizons.")
    model.forecasting.use_periods(model.periods)
    forecaster = model.forecasting.forecaster
    _restore_forecasts(forecaster, model.dimension, header, arrays, component, restore_bank)


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
    core = whole_number(counters["first_inputs"], 1, dimension, "the first inputs of forecasts")
    if core < dimension:
        forecaster.model.lay_out(core)
    check_forecasts(forecaster, state, counters)
    forecaster.restore(state, counters)
    check_scaling(forecaster)
    inner = forecaster.model
    if (header["bank"] is not None) != inner.started:
        raise FileRefused("its forecasts have the wrong number of banks.")
    if header["bank"] is not None:
        template = inner.new_bank()
        _check_outputs(header["bank"], template.outputs)
        own = restore_bank(header["bank"], under("bank/", arrays), engine=inner.config.engine)
        inner.bank = _fitting(own, template)
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
    model = auto._model
    part = getattr(model, "quantile_part", None)
    if model is None or part is None:
        raise FileRefused("it has quantiles that its settings do not have.")
    totals = arrays.pop("totals")
    if totals.shape != part.totals.shape or not np.isfinite(totals).all():
        raise FileRefused("its quantiles do not fit its settings.")
    part.scored = whole_number(header["quantiles_scored"], 0, model.rows, "quantiles")
    part.totals[:] = totals
    restore_state(part.model, header["quantile_part"], arrays, restore_bank)
    if part.model.rows != model.rows:
        raise FileRefused("its quantiles do not fit its rows.")


def _restore_pending(auto: AutoBank, arrays: Arrays) -> None:
    """The predictions of an AutoBank whose targets have not come."""
    model = auto._model
    assert model is not None
    count = len(arrays["rows_before"])
    banks, outputs = arrays["scores"].shape[1], arrays["results"].shape[1]
    shapes = {
        "rows_before": (count,),
        "sizes": (count, 3),
        "inputs": (count, pending_width(auto)),
        "past": (count, model.core.past),
        "scores": (count, banks),
        "slots": (count, banks, len(model.names)),
        "results": (count, outputs),
        "ends": (count, model.core.ends),
    }
    arrays.setdefault("ends", np.zeros(shapes["ends"]))  # of a file from before there were any
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
        found = arrays["results"][i, :output]
        more = 2 * len(auto.quantiles)
        prediction = _core.Prediction(
            whole_number(arrays["rows_before"][i], 0, model.rows, "rows"),
            arrays["past"][i].copy(),
            arrays["scores"][i, :scores].copy(),
            arrays["slots"][i, :slots].copy(),
            found[: output - more].copy(),
            found[output - more :].copy(),
            arrays["ends"][i].copy(),
        )
        auto._pending.append(arrays["inputs"][i].tobytes(), prediction)


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


def check_precision(arrays: Mapping[str, Any]) -> None:
    """Refuse arrays that are neither in double precision nor whole numbers; a bank may keep others.

    Objects of the core look at the types of their arrays themselves.
    """
    for name, array in arrays.items():
        of_bank = any(part.startswith(("bank", "line")) for part in name.split("/")[:4])
        if not of_bank and array.dtype not in (np.float64, np.int64):
            raise FileRefused(f"its array {name} is not in double precision.")


_TARGETS = ("targets", "late_targets", "observed")
_MAY_MISS_FORECASTS = ("inputs", "recent_inputs", "past", "slots", "seasons/targets", *_TARGETS)
"""Arrays that may hold NaN. Of the last targets all must be numbers that have come."""


def whole_number(value: Any, least: int, most: int, what: str) -> int:
    """A whole number from a file."""
    if isinstance(value, bool) or not (least <= value <= most and value == int(value)):
        raise FileRefused(f"it claims {value!r} for {what}.")
    return int(value)


def check_forecasts(
    forecaster: Forecaster, state: Mapping[str, Floats], counters: Mapping[str, Any]
) -> None:
    """Refuse a state that no forecaster with these settings has; before `Forecaster.restore`."""
    _check_shapes(forecaster, state)
    for name, array in state.items():
        inner = name.removeprefix("model/")
        may_miss = name in _MAY_MISS_FORECASTS
        if inner != name:
            may_miss = inner in ("first_past", "first_inputs")
        if not np.isfinite(array).all() and not may_miss:
            raise FileRefused(f"its forecasts are not numbers: {name}.")
    samples = whole_number(counters["samples"], 0, 2**53, "rows")
    whole_number(counters["begun"], 0, samples, "the first forecast")
    longest = forecaster.horizons[-1]
    learned = max(samples - longest, 0)
    whole_number(counters["rows"], learned, learned, "the rows of its forecasts")
    for name in {*_TARGETS} & {*state}:
        come = min(samples, len(state[name]))
        if not np.isfinite(state[name][len(state[name]) - come :]).all():
            raise FileRefused(f"its last {name} are not numbers.")
    series, kept = (
        counters["series"],
        min(samples, forecaster.model.config.restarts[-1] + longest + 1),
    )
    if len(series) != kept or not all(map(_is_number, series)):
        raise FileRefused("its series does not fit its rows.")


def _check_shapes(forecaster: Forecaster, state: Mapping[str, Floats]) -> None:
    shapes = {name: array.shape for name, array in state.items()}
    recent = len(state["recent_values"])
    wanted = {name: array.shape for name, array in forecaster.state().items()}
    wanted |= {"recent_inputs": (recent, forecaster.dimension), "recent_values": (recent, 3)}
    if shapes != wanted or recent > RECENT:
        raise FileRefused("its forecasts do not fit its settings.")


def check_scaling(forecaster: Forecaster) -> None:
    """Refuse running statistics that no series has; after `Forecaster.restore`."""
    if not forecaster.model.scaling.has_plausible_shifts():
        raise FileRefused("no series has such running statistics.")


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and bool(np.isfinite(value))
