"""What a bank shows of itself: the few words and figures that `glance` draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ..combiners import Combiner
from ..kernels import ActiveDims, Kernel, Product, Scaled, Sum
from ..losses.objective import Objective
from ..utils.rendering import Pairs, Summary, figure, one_line, shortened
from ..utils.validation import Floats
from .engines import Engine, Serial
from .layout import Layout, Slot
from .ledger import Ledger

CARRIERS = 5
"""How many slots are named, at most."""

LONG, LINE = 56, 100
"""Characters of a name, and of the text of a fact."""


@np.errstate(all="ignore")  # figures may be beyond all floats, and a look must not warn of it
def overview(
    title: str,
    objective: Objective,
    layout: Layout,
    combiner: Combiner,
    engine: Engine,
    ledger: Ledger,
    weights: Floats,
    dimension: int | None,
) -> Summary:
    """A `KernelBank` at a glance; its title alone, and its settings, if it has learned nothing."""
    methods = list({(s.learner, s.loss, s.residual_of): s for s in layout.slots}.values())
    settings = (
        ("combiner", told(combiner)),
        ("loss", told(objective.loss)),
        ("window", str(objective.window)),
        ("regularization", f"{objective.regularization:g}"),
        ("learners", shortened("; ".join(method_words(slot, told) for slot in methods[:8]), 1000)),
        ("engine", told(engine)),
        ("dtype", objective.dtype),
    )
    if not ledger.samples:
        return Summary(title, settings=settings)

    def name(place: int) -> str:
        return slot_name(layout.slots, place, learner=len(methods) > 1)

    facts = [("inputs", columns(dimension))]
    if len(methods) == 1:
        facts.append(("learner", method_words(methods[0])))
    facts += engine_fact(engine)
    if objective.dtype != "float64":
        facts.append(("dtype", objective.dtype))
    costs = ledger.slot_cumulative_cost
    out = np.isinf(costs)
    losses = np.where(out, np.inf, ledger.slot_loss)
    facts += [
        ("mean loss", f"{ledger.mean_loss:.4g}{_best(losses, ledger.samples, name)}"),
        ("cumulative cost", f"{ledger.cumulative_cost:.4g}{_best(costs, 1, name)}"),
    ]
    if out.any():
        facts.append(("quarantined", quarantine(np.flatnonzero(out).tolist(), len(out), name)))
    bars, rest = carriers(weights, name)
    return Summary(title, short(facts), "weights", bars, rest, settings)


def _best(totals: Floats, samples: int, name: Callable[[int], str]) -> str:
    """How the best of the slots has done alone."""
    known = np.where(np.isfinite(totals), totals, np.inf)
    place = int(np.argmin(known))
    if not np.isfinite(known[place]):
        return "  (no slot is left)"
    return f"  (best slot alone: {known[place] / samples:.4g}, {shortened(name(place), LONG)})"


# --- parts that an AutoBank's overview has too --------------------------------------------------


def carriers(
    weights: Floats, name: Callable[[int], str]
) -> tuple[tuple[tuple[str, float], ...], str]:
    """The slots of largest weight, by size, and a sentence on the others."""
    sizes = np.where(np.isfinite(weights), np.abs(weights), 0.0)
    order = np.argsort(-sizes, kind="stable")  # equal ones in the order of the slots
    count = int((sizes > 0).sum())
    shown = order[: min(count, CARRIERS)]
    bars = tuple((name(int(p)), float(weights[p])) for p in shown)
    if not count:
        return (), "no slot has any weight"
    others, idle = count - len(shown), len(weights) - count
    rest = []
    if others:
        total = float(weights[order[len(shown) : count]].sum())
        rest.append(f"{figure(total)} on {others} other{'s' * (others > 1)}")
    if idle:
        rest.append(f"{idle} without weight")
    return bars, ", ".join(rest)


def columns(dimension: int | None) -> str:
    """The inputs' width."""
    return "unknown" if dimension is None else f"{dimension} column{'s' * (dimension != 1)}"


def engine_fact(engine: Engine) -> list[tuple[str, str]]:
    """The engine, unless it is the usual one."""
    return [] if engine == Serial() else [("engine", told(engine))]


def quarantine(places: Sequence[int], slots: int, name: Callable[[int], str]) -> str:
    """Which of the slots are out."""
    more = f" and {len(places) - 3} more" if len(places) > 3 else ""
    return f"{len(places)} of {slots}: {', '.join(map(name, places[:3]))}{more}"


def short(facts: Sequence[tuple[str, str]]) -> Pairs:
    """Facts of a line each."""
    return tuple((label, shortened(one_line(text), LINE)) for label, text in facts)


# --- words for components -----------------------------------------------------------------------


def slot_name(slots: Sequence[Slot], place: int, *, learner: bool) -> str:
    """A slot by its place and its kernel, and by its learner where there are several."""
    slot = slots[place]
    method = f", {method_words(slot)}" if learner else ""
    words = f"{shortened(kernel_words(slot.kernel), LONG)}{shortened(method, LONG)}"
    return f"[{place}] {one_line(words)}"


def method_words(slot: Slot, words: Callable[[Any], str] | None = None) -> str:
    """A slot's learner, its own loss if any, and the slot whose residual it learns if any."""
    words = words or brief
    parts = [words(slot.learner)]
    if slot.loss is not None:
        parts.append(f"loss {words(slot.loss)}")
    if slot.residual_of is not None:
        parts.append(f"residual of [{slot.residual_of}]")
    return ", ".join(parts)


class SlotNames(Sequence[str]):
    """The names of a bank's slots, put together when somebody first asks for one."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self._slots = slots
        self._made: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self._slots)

    def __getitem__(self, place: Any) -> Any:
        return self._all[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __reduce__(self) -> tuple[Any, ...]:
        """As text: slots may hold functions that cannot be pickled."""
        return tuple, (self._all,)

    @property
    def _all(self) -> tuple[str, ...]:
        if self._made is None:
            several = len({(s.learner, s.loss, s.residual_of) for s in self._slots}) > 1
            places = range(len(self._slots))
            self._made = tuple(slot_name(self._slots, p, learner=several) for p in places)
        return self._made


def told(component: Any) -> str:
    """Its repr in one line, or its class if it has none: components may be anybody's."""
    try:
        return one_line(repr(component))
    except Exception:
        return type(component).__name__


def brief(component: Any) -> str:
    """The component with those of its settings that are not the usual ones."""
    try:
        return _call(component, whole=False)
    except Exception:
        return type(component).__name__


def kernel_words(kernel: Kernel) -> str:
    """A kernel as a formula: of a long sum or product, how it begins and how long it is."""
    try:
        return _formula(kernel)
    except Exception:
        return type(kernel).__name__


def _formula(kernel: Kernel) -> str:
    if isinstance(kernel, (Sum, Product)):
        sign = " + " if isinstance(kernel, Sum) else " * "
        parts = _parts(kernel)
        first = parts if len(parts) <= 3 else parts[:2]
        others = [] if len(parts) <= 3 else [f"{len(parts) - 2} more"]
        wrap = _factor if isinstance(kernel, Product) else _formula
        return sign.join([*map(wrap, first), *others])
    if isinstance(kernel, Scaled):
        return f"{kernel.factor:.4g} * {_factor(kernel.kernel)}"
    if isinstance(kernel, ActiveDims):
        some = ", ".join(map(str, kernel.coordinates[:4]))
        more = f", ... ({len(kernel.coordinates)})" if len(kernel.coordinates) > 4 else ""
        return f"{_factor(kernel.base)} on [{some}{more}]"
    return _call(kernel, whole=True)


def _factor(kernel: Kernel) -> str:
    return f"({_formula(kernel)})" if isinstance(kernel, Sum) else _formula(kernel)


def _parts(kernel: Sum | Product) -> list[Kernel]:
    """The parts of a sum of sums, or of a product of products, from left to right."""
    found: list[Kernel] = []
    waiting: list[Kernel] = [kernel]
    while waiting:
        part = waiting.pop()
        if isinstance(part, type(kernel)):
            waiting += [part.right, part.left]
        else:
            found.append(part)
    return found


def _call(component: Any, *, whole: bool) -> str:
    if not is_dataclass(component):
        shows: Any = type(component).__repr__
        return type(component).__name__ if shows is object.__repr__ else told(component)
    given = [
        f"{field.name}={_value(getattr(component, field.name), whole=whole)}"
        for field in fields(component)
        if field.repr and (whole or getattr(component, field.name) != field.default)
    ]
    return f"{type(component).__name__}({', '.join(given)})"


def _value(value: Any, *, whole: bool) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if value is None or isinstance(value, (bool, int, str, tuple)):
        return shortened(repr(value), LONG)
    if is_dataclass(value):
        return _call(value, whole=whole)
    return getattr(
        value, "__name__", type(value).__name__
    )  # somebody's model may be a slide_period long
