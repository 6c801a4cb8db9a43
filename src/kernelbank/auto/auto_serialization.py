"""An AutoBank as settings and arrays, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..bank.bank import KernelBank
from ..bank.state import under
from ..errors import FileRefused
from ..io.specs import check_names, to_spec
from ..utils.validation import Floats
from .bank import AutoBank
from .classification import Classification
from .pending import DEEPEST
from .running_stats import PATIENCE
from .task_model import STARTS, Said

KIND = "AutoBank"
"""What the header of such a file says; that of a `KernelBank` says nothing."""

Arrays = dict[str, Floats]
Restore = Callable[[Mapping[str, Any], Arrays], KernelBank]
Parts = Callable[[Any], Any]


def describe(auto: AutoBank) -> tuple[dict[str, Any], Arrays]:
    """Everything that the next answer depends on."""
    plan, desk = auto._plan, auto._desk
    own = plan.slots or ()
    check_names([plan.loss])
    check_names(own)
    header: dict[str, Any] = {
        "kind": KIND,
        "task": auto.task,
        "lags": plan.lags,
        "size": plan.size,
        "seed": plan.seed,
        "scalings": list(plan.scalings),
        "slots": [to_spec(slot) for slot in own],
        "combiner": None if plan.combiner is None else to_spec(plan.combiner),
        "loss": to_spec(plan.loss),
        "window": plan.window,
        "regularization": plan.regularization,
        "labels": auto._labels.known,
        "most_classes": auto._most_classes,
        "dimension": None,
        "facts": None,
        "banks": [],
    }
    arrays: Arrays = {}
    if desk is None:
        return header, arrays
    header["dimension"] = desk.dimension
    header["core"] = desk.scaling.core
    header["facts"] = desk.facts()
    arrays |= {f"desk/{name}": array.copy() for name, array in desk.state().items()}
    arrays |= {f"pending/{name}": array for name, array in _pending(auto).items()}
    for number, bank in enumerate(desk.banks):
        inner, state = bank._description()
        header["banks"].append(inner)
        arrays |= {f"bank{number}/{name}": array for name, array in state.items()}
    return header, arrays


def _pending(auto: AutoBank) -> Arrays:
    """The open questions as arrays, filled up with NaN where some had fewer banks or classes."""
    desk = auto._desk
    assert desk is not None
    asked = auto._pending.asked
    heads = max((len(said.scores) for _, said in asked), default=0)
    answers = max((len(said.answer) for _, said in asked), default=0)
    found = {
        "rows": np.zeros(len(asked)),
        "counts": np.zeros((len(asked), 3)),
        "inputs": np.zeros((len(asked), desk.dimension)),
        "lagged": np.zeros((len(asked), auto.lags)),
        "scores": np.full((len(asked), heads), np.nan),
        "slots": np.full((len(asked), heads, len(desk.names)), np.nan),
        "answers": np.full((len(asked), answers), np.nan),
    }
    for place, (key, said) in enumerate(asked):
        found["rows"][place] = said.row
        found["counts"][place] = (len(said.scores), len(said.slots), len(said.answer))
        found["inputs"][place] = np.frombuffer(key)
        found["lagged"][place] = said.lagged
        found["scores"][place, : len(said.scores)] = said.scores
        found["slots"][place, : len(said.slots)] = said.slots
        found["answers"][place, : len(said.answer)] = said.answer
    return found


def rebuild(
    header: Mapping[str, Any], arrays: Arrays, part: Parts, restore: Restore, engine: Any
) -> AutoBank:
    """The AutoBank of a file; `part` makes components of their specs, `restore` inner banks."""
    slots = [part(slot) for slot in header["slots"]]
    labels = header["labels"]
    auto = AutoBank(
        header["task"],
        header["lags"],
        header["size"],
        slots=slots or None,
        combiner=None if header["combiner"] is None else part(header["combiner"]),
        loss=part(header["loss"]),
        window=header["window"],
        regularization=header["regularization"],
        scalings=header["scalings"],
        engine=engine,
        seed=header["seed"],
    )
    if not all(isinstance(label, (bool, int, float, str)) for label in labels):
        raise FileRefused("its labels are no labels.")
    auto._labels.add(labels)
    auto._most_classes = int(header["most_classes"])
    if header["dimension"] is None:
        if arrays:
            raise FileRefused("it has arrays but no inputs.")
        return auto
    facts = header["facts"]
    desk = auto._open(_natural(header["dimension"], 1, 10**6, "inputs"))
    core = _natural(header["core"], 1, desk.dimension, "the first inputs")
    if core < desk.dimension:
        desk.lay_out(core)
    rows = _natural(facts["rows"], 0, 2**53, "rows")
    _natural(facts["blind"], 0, rows, "answers that do not count")
    _natural(facts.get("held", 0), 0, PATIENCE - 1, "rows held back")
    if isinstance(desk, Classification):
        desk.classes = _natural(facts["classes"], 0, len(labels), "classes")
        desk.counts = np.zeros(desk.classes)
        _natural(facts["last"] + 1, 0, desk.classes, "the last class")
    expected = 1 if auto.task == "regression" else _heads(desk, rows)
    if len(header["banks"]) != (expected if rows >= STARTS[0] else 0):
        raise FileRefused("it has the wrong number of banks.")
    own = under("desk/", arrays)
    if isinstance(desk, Classification):
        desk.platt = np.zeros((len(header["banks"]), desk.platt.shape[1]))
    if {n: a.shape for n, a in own.items()} != {n: a.shape for n, a in desk.state().items()}:
        raise FileRefused("its arrays do not fit its settings.")
    for name, array in own.items():
        # Inputs and lagged targets may be missing; figures never are.
        if not np.isfinite(array).all() and not name.endswith(("lagged", "inputs")):
            raise FileRefused(f"its figures are no numbers: {name}.")
    desk.restore(own, facts)
    if not desk.scaling.sound(int(facts.get("held", 0))):
        raise FileRefused("its running figures are those of no stream.")
    template = auto._plan.bank(desk.scaling)
    for number, inner in enumerate(header["banks"]):
        bank = restore(inner, under(f"bank{number}/", arrays))
        if bank.slots != template.slots or bank._objective != template._objective:
            raise FileRefused("an inner bank is not of its kind.")
        desk.banks.append(bank)
    _restore_pending(auto, under("pending/", arrays))
    return auto


def _heads(desk: Any, rows: int) -> int:
    return int(desk.heads) if rows >= STARTS[0] else 0


def _restore_pending(auto: AutoBank, found: Arrays) -> None:
    desk = auto._desk
    assert desk is not None
    count = len(found["rows"])
    slots = len(desk.names)
    heads, answers = found["scores"].shape[1], found["answers"].shape[1]
    shapes = {
        "rows": (count,),
        "counts": (count, 3),
        "inputs": (count, desk.dimension),
        "lagged": (count, auto.lags),
        "scores": (count, heads),
        "slots": (count, heads, slots),
        "answers": (count, answers),
    }
    if (
        {name: array.shape for name, array in found.items()} != shapes
        or count > DEEPEST
        or heads > max(len(desk.banks), 1)
    ):
        raise FileRefused("its open questions do not fit its settings.")
    for place in range(count):
        scored, spoken, answered = (
            _natural(n, 0, most, "an open question")
            for n, most in zip(found["counts"][place], (heads, heads, answers), strict=True)
        )
        if auto.task == "regression" and (answered != 3 or scored != 1):
            raise FileRefused("an open question has no answer.")
        said = Said(
            _natural(found["rows"][place], 0, desk.rows, "rows"),
            found["lagged"][place].copy(),
            found["scores"][place, :scored].copy(),
            found["slots"][place, :spoken].copy(),
            found["answers"][place, :answered].copy(),
        )
        auto._pending.asked.append((found["inputs"][place].tobytes(), said))


def _natural(value: Any, least: int, most: int, what: str) -> int:
    if isinstance(value, bool) or not (least <= value <= most and value == int(value)):
        raise FileRefused(f"it claims {value!r} for {what}.")
    return int(value)
