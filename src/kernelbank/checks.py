"""Checks of components: what a bank requires of kernels, losses, learners and combiners.

The tests of kernelbank run these over everything built in; run them over your own. A failure names
a property that does not hold, an example, the reason and a remedy. A check can find a fault, and
cannot prove that there is none; its data are always the same.
"""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from . import kernels, losses
from .auto.loading import load
from .bank.bank import KernelBank
from .bank.engines import Serial
from .bank.slot import Slot
from .combiners import Combiner
from .errors import CheckFailed, InvalidArgument
from .io.specs import from_spec, to_spec
from .kernels import Gaussian, Kernel, Linear, kernel_matrix
from .learners import Learner, Norma
from .losses import Loss, as_loss
from .utils import validation
from .utils.validation import Floats

__all__ = ["check_combiner", "check_kernel", "check_learner", "check_loss"]

_PROPERTIES = """
a frozen dataclass of plain settings: One component serves many banks, and files hold its fields.
    Put @dataclass(frozen=True) above the class; let fields be numbers, strings, tuples, components.
free of exceptions: A block in which a component raises is undone, and the bank cannot go on.
    See the exception above. Arguments are read-only; `needs` names what else a combiner reads.
finite: A slot that is not finite once is quarantined for good.
    Look for divisions by 0, logarithms, overflows. A combiner leaves out infinite losses.
deterministic: A bank that is saved and loaded, or runs in blocks, must give the same bits.
    Let functions depend on their arguments only; draw random numbers once, from a seed.
leaving its arguments unchanged: They are used again, for later samples and by other components.
    Write X = X / 2 or r = f - y, which makes a new array, instead of X /= 2 or f -= y.
computed element by element: A bank calls a function with arrays of any number of rows or values.
    Use no means or sums over other rows, and no matrix products: sum (X[:, None] - Z[None]).
symmetric: A bank computes each pair once, in either order.
    Treat both arguments alike; (k(x, t) + k(t, x)) / 2 is symmetric, if not always a kernel.
positive semi-definite: Squared norms would be negative, and the combiner prefer the worst slot.
    Build it from kernels: sums, products, exp(-distance^p) with 0 < p <= 2. Most others are none.
convex: The weights rest on Jensen's inequality; learners must not stop at a false minimum.
    Use a convex loss that is like it, such as kb.losses.Huber instead of a bounded one.
consistent with its derivative: Learners descend along it; with a wrong one they end elsewhere.
    Differentiate in f, not in y, and mind constant factors; at a kink stay between both slopes.
within its curvature: Banks warn of unstable steps and solve for the weights by this bound.
    State the largest second derivative, or None if there is a kink or no bound.
clear about what it refuses: The user must be told which argument of the bank is wrong.
    Raise kb.errors.InvalidArgument("'loss' must be ...; got ...") in check or check_kernel.
0 before the first sample: A bank without samples predicts 0 without asking its slots.
    Let the function start at 0; learn an offset from the first target on.
free of state outside its bank: One component serves many banks, and each continues on its own.
    Keep what changes in the arrays of the state, not in the component, its class or its module.
the same for blocks and sample by sample: Blocks are for speed only, and must change no bit.
    Go from sample to sample: no mean or np.cumsum over a block; sums continue from the state.
unchanged by predicting: Users predict at any time; learning must not depend on it.
    Let value, or predict_one of a model, only read.
the same after saving and loading: A loaded bank must continue as if it had never been saved.
    Keep all that the next sample depends on in the state, or let a learner have saveable = False.
large enough in its norm: A slot that states too small a norm gets too much weight.
    For f = sum_i c_i k(x_i, .) norm^2 is c'Kc. If f is in no such space, let it be 0: no norm.
robust on extreme data: Streams have such rows; a bank quarantines a slot only if it sees NaN.
    Guard divisions, roots and solves; return true values, NaN too, from value and norm.
without weight on quarantined slots: Their values are NaN, and would make the prediction so.
    End with weights[np.isinf(evidence.window_loss)] = 0, and divide by the sum if it is not 0.
on the simplex: The ledger bounds the cost of the mixture by the slots' for convex weights only.
    Divide by the sum, and let no weight be negative; or set on_simplex = False.
"""
"""Each property with the reason for it, and below that the remedy."""


# --- what all checks share ------------------------------------------------------------------------


class _Check:
    """One check of one component, and how it fails."""

    def __init__(self, name: str, component: object) -> None:
        self.component, self.title, self.refusal = component, f"{name}({component!r})", ""

    def fails(self, property: str, example: str) -> CheckFailed:
        """The error to raise when a property does not hold, with an example."""
        ((why, remedy),) = re.findall(rf"\n{property}: (.*)\n    (.*)", _PROPERTIES)
        text = f"{self.title}: not {property}.\n  Found:  {example}\n  Why:    {why}"
        return CheckFailed(f"{text}\n  Repair: {remedy}", property)

    def holds(
        self, property: str, fine: object, example: Callable[..., str], prefer: Floats | float = 0
    ) -> None:
        """Fail unless `fine` is true everywhere, with an example where `prefer` is least."""
        wrong = ~np.asarray(fine)
        if wrong.any():
            index = np.unravel_index(np.argmin(np.where(wrong, prefer, np.inf)), wrong.shape)
            raise self.fails(property, example(*map(int, index)))

    def same(
        self, property: str, expected: object, other: object, name: Callable[..., str], way: str
    ) -> None:
        """Fail unless two arrays have the same bits; `name` says what stands at an index."""
        a, b = np.asarray(expected), np.asarray(other)
        fine = (a == b) | (np.isnan(a) & np.isnan(b))
        self.holds(property, fine, lambda *at: f"{name(*at)} is {a[at]!s}, but {b[at]!s} {way}.")

    @contextmanager
    def works(self, doing: str, property: str = "free of exceptions") -> Iterator[None]:
        """Turn any exception of the component into a failed check."""
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        except CheckFailed:
            raise
        except Exception as error:
            raised = f"{doing}, it raised {type(error).__name__}: {error}"
            raise self.fails(property, raised) from error

    def settings(self, *, saved: bool = True) -> None:
        """Settings are frozen and hashable, and come back from a file."""
        name, component = "a frozen dataclass of plain settings", self.component
        with self.works("when its settings were hashed, written and read", name):
            hash(component)
            if saved and from_spec(to_spec(component), (), _components(component)) != component:
                raise ValueError("it came back from a file with other settings")

    def unchanged(self, function: Callable[..., object], *arguments: Floats) -> None:
        """A user's function does not write to its arguments."""
        copies = [argument.copy() for argument in arguments]
        with suppress(Exception), np.errstate(all="ignore"):  # what it raises is found elsewhere
            function(*copies)
        name = "leaving its arguments unchanged"
        self.same(name, arguments, copies, lambda k, *at: f"argument {k} at {at}", "after a call")


Between = Callable[[KernelBank, int], KernelBank | None]
"""What is done between blocks: with the bank and the samples so far, to another bank or None."""


def _check_runs(check: _Check, make: Callable[..., KernelBank], X: Floats, y: Floats) -> None:
    """The component gives the same bits in every way in which a bank may run."""
    ends = (*(n for n in (0, 1, 2, 3, 7, 8, 50, 51, 120, 222, 255, 256, 257) if n < len(X)), len(X))
    whole, single, neighbour = (0, len(X)), (*range(61), len(X)), make()
    names = ("slot_predictions", "curvature", "window_loss", "slot_cost")

    def run(ends: Sequence[int], between: Between | None = None, **options: object) -> Floats:
        """(n + m, k): weights for each sample, or figures of slot 0; then some predictions."""
        bank, rows = make(**options), []
        for start, end in pairwise(ends):
            trace = bank.run(X[start:end], y[start:end])
            figures = np.column_stack([getattr(trace, name)[:, 0] for name in names])
            rows.append(trace.weights if weights else figures)
            bank = (between(bank, end) if between else None) or bank
        ahead = bank.predict_slots(X[:40])[:, 0].reshape(-1, 4)
        return np.vstack([*rows, bank.weights if weights else ahead])

    def figure(n: int, k: int) -> str:
        name = f"the weight of slot {k}" if weights else f"its {names[k]}"
        return f"{name} at sample {n}" if n < len(X) else "a last weight or prediction"

    def take_turns(_: KernelBank, done: int) -> None:
        neighbour.run(X[len(X) - done :][:1], y[len(X) - done :][:1])

    def predict(bank: KernelBank, done: int) -> None:
        bank.predict(X[done % 20 : 20])
        bank.predict_one(X[-1])

    def reload(bank: KernelBank, done: int) -> KernelBank | None:
        if done != ends[2 * len(ends) // 3] or not getattr(check.component, "saveable", True):
            return None
        with tempfile.TemporaryDirectory() as folder:
            bank.save(f"{folder}/bank.kb")
            components = _components(*bank.slots, bank.loss, check.component)
            loaded = load(f"{folder}/bank.kb", components=components)
            assert isinstance(loaded, KernelBank)
            return loaded

    weights = isinstance(check.component, Combiner)
    outside, blocks = "free of state outside its bank", "the same for blocks and sample by sample"
    ways: list[tuple[str, str, Callable[[], Floats]]] = [
        (outside, "in a second, equal bank", lambda: run(whole)),
        (blocks, f"in blocks up to {ends[1:]}", lambda: run(ends, engine=Serial(block=64))),
        (blocks, "sample by sample", lambda: run(single)),
        (outside, "in turn with another bank", lambda: run(single, take_turns)),
        ("unchanged by predicting", "with predictions between", lambda: run(ends, predict)),
        ("the same after saving and loading", "loaded from a file", lambda: run(ends, reload)),
    ]
    with check.works("while learning"):
        expected = run(whole)
    for property, way, call in ways:
        with check.works(f"while learning {way}"):
            figures = call()
        check.same(property, expected, figures, figure, way)


def _parts(component: object) -> Iterator[Any]:
    """A component, and the components in its fields."""
    if isinstance(component, tuple):
        yield from (part for member in component for part in _parts(member))
    elif is_dataclass(component) and not isinstance(component, type):
        yield component
        yield from _parts(tuple(getattr(component, setting.name) for setting in fields(component)))


def _components(*components: object) -> dict[str, object]:
    """The `components` that `kb.load` needs for user-made ones: by name, classes or instances."""
    by_name: dict[str, object] = {}
    for part in _parts(components):
        name, in_file = type(part).__name__, True
        if any(setting.metadata.get("callable") for setting in fields(part)):
            name, in_file = part.name if name == "Custom" else name, False
        by_name[name] = type(part) if in_file else part
    return by_name


# --- kernels --------------------------------------------------------------------------------------


def check_kernel(kernel: Kernel, dimension: int | None = None) -> None:
    """Check that a kernel does what a bank requires, or raise `kb.errors.CheckFailed`.

    Values are finite, the same bits each time and for calls of any number of rows; k is symmetric,
    and no Gram matrix has a negative eigenvalue beyond rounding; arguments are not changed.

    Parameters
    ----------
    kernel : one of kb.kernels, or your own: `kb.kernels.Custom(function)`.
    dimension : the width of the inputs; by default all of 1, 2 and 5 that the kernel accepts.

    >>> import kernelbank as kb
    >>> kb.checks.check_kernel(kb.kernels.Gaussian(1.0) + kb.kernels.Linear(0.5))
    """
    if not (isinstance(kernel, Kernel) and kernel.pairwise):
        rule, remedy = "be a kernel of two inputs", "Wrap yours: kb.kernels.Custom(function)."
        raise validation.refuse("kernel", rule, kernel, remedy, "check_kernel")
    if dimension is not None:
        validation.count("dimension", dimension, "check_kernel", "Give the width of the inputs.")
    check = _Check("check_kernel", kernel)
    check.settings()
    widths, errors = {1, 2, 5, kernel.fewest_columns()} if dimension is None else {dimension}, []
    for width in sorted(widths):
        inputs = list(_kernel_inputs(width))
        try:
            kernel(inputs[0], inputs[0])
        except Exception as error:  # perhaps it is made for other widths
            errors.append(error)
            continue
        for index, X in enumerate(inputs):
            _check_gram(check, kernel, X, rows=index < 3)
    if len(errors) == len(widths):
        with check.works("on inputs of any width"):
            raise errors[0]


def _kernel_inputs(width: int) -> Iterator[Floats]:
    """Several (20, width) arrays, all but one of short numbers."""
    draw = np.random.default_rng(width)
    size = (20, width)
    yield draw.uniform(-1, 1, size)  # with all digits: the order of a sum shows
    yield np.round(8 * draw.uniform(-1, 1, size)) / 8
    yield np.round(64 * draw.uniform(-10, 10, size)) / 64
    yield np.repeat(np.arange(20)[:, None] / 4, width, axis=1)  # a regular grid
    close = np.repeat(np.round(8 * draw.uniform(0, 2, (5, width))) / 8, 4, axis=0)
    yield close + np.tile([0.0, 0.0, 2.0**-10, 2.0**-6], 5)[:, None]
    yield 100 * np.round(draw.uniform(-5, 5, size))


def _check_gram(check: _Check, kernel: Kernel, X: Floats, *, rows: bool) -> None:
    for part in _parts(kernel):
        if isinstance(part, kernels.Custom) and callable(part.function):
            check.unchanged(part.function, X, X)
            check.unchanged(part.function, X[:, :1], X[:, :1])  # as in `ActiveDims`
    others = {}
    with check.works(f"on inputs such as {X[0].tolist()}"):
        gram, again = kernel(X, X), kernel(X, X)
        if rows:  # many calls: on some of the inputs only
            others["row by row"] = np.vstack([kernel(x[None], X) for x in X])
            others["column by column"] = np.hstack([kernel(X, t[None]) for t in X])
            others["in the loops of a bank"] = kernel_matrix(kernel, X, X)

    def pair(i: int, j: int) -> str:
        return f"k({X[i].tolist()}, {X[j].tolist()})"

    check.holds("finite", np.isfinite(gram), lambda i, j: f"{pair(i, j)} = {gram[i, j]}.")
    check.same("deterministic", gram, again, pair, "in a second call")
    for way, values in others.items():
        check.same("computed element by element", gram, values, pair, way)
    check.holds(
        "symmetric",
        np.abs(gram - gram.T) <= 1e-14 * np.abs(gram).max(),
        lambda i, j: f"{pair(i, j)} = {gram[i, j]!s}, but {pair(j, i)} = {gram[j, i]!s}.",
    )
    gram = (gram + gram.T) / 2
    bound = -2e-13 * len(X) * np.abs(gram).max()  # some hundred units in the last place
    if np.linalg.eigvalsh(gram)[0] >= bound:
        return
    chosen = list(range(len(X)))
    for row in reversed(range(len(X))):  # as few inputs as possible
        fewer = [other for other in chosen if other != row]
        if fewer and np.linalg.eigvalsh(gram[np.ix_(fewer, fewer)])[0] < bound:
            chosen = fewer
    value = np.linalg.eigvalsh(gram[np.ix_(chosen, chosen)])[0]
    example = f"for the inputs {X[chosen].tolist()} the Gram matrix has the eigenvalue {value:.3g}."
    raise check.fails("positive semi-definite", example)


# --- losses ---------------------------------------------------------------------------------------


def check_loss(loss: Loss) -> None:
    """Check that a loss does what a bank requires, or raise `kb.errors.CheckFailed`.

    Values and derivatives are finite, element by element, the same each time, and change no
    argument; the loss is convex in the prediction; the derivative is a subgradient, l(g) >= l(f) +
    l'(f) (g - f), and changes by no more than `curvature` per unit.

    Parameters
    ----------
    loss : one of kb.losses, its name, or your own: `kb.losses.Custom(value, derivative)`.

    >>> import kernelbank as kb
    >>> kb.checks.check_loss("huber")
    """
    loss = as_loss(loss)
    check = _Check("check_loss", loss)
    check.settings()
    least, most = loss.targets
    tried = (0.0, 0.75, -2.5, 20.0, least, least + 1, least + 20, most - 20, most - 1, most)
    targets = [y for y in tried if least <= y <= most and np.isfinite(y)]
    for y in (-1.0, 1.0) if loss.labels else list(dict.fromkeys(targets))[:4]:
        _check_target(check, loss, y)


def _check_target(check: _Check, loss: Loss, y: float) -> None:
    """The loss of many predictions of one target."""

    def both(f: Floats) -> Floats:
        """(2, ...): values and derivatives."""
        targets = np.full(f.shape, y)
        with check.works(f"for predictions such as {f.flat[0]} and the target {y}"):
            return np.array([loss.value(f, targets), loss.derivative(f, targets)])

    def figure(k: int, i: int) -> str:
        return f"the {('value', 'derivative')[k]} for the prediction {f[i]} and the target {y}"

    grid = np.concatenate([np.arange(-32, 33) / 8, [-1e3, -50.0, -12.0, 12.0, 50.0, 1e3]])
    irregular = np.round(np.random.default_rng(0).normal(size=40) * 3, 3)
    f = np.unique(np.concatenate([grid if loss.labels else y + grid, grid, irregular]))
    if isinstance(loss, losses.Custom):
        for function in filter(callable, (loss.value_function, loss.derivative_function)):
            check.unchanged(function, f, np.full(f.shape, y))
    figures = both(f)
    check.holds(
        "finite", np.isfinite(figures), lambda k, i: f"{figure(k, i)} is {figures[k, i]!s}."
    )
    check.same("deterministic", figures, both(f), figure, "in a second call")
    alone = np.hstack([both(prediction[None]) for prediction in f])
    check.same("computed element by element", figures, alone, figure, "alone")
    values, slopes = figures
    apart, sizes = np.abs(f[:, None] - f), 1 + np.abs(values[:, None]) + np.abs(values)
    middles = both((f[:, None] + f) / 2)[0]
    convex = (middles - (values[:, None] + values) / 2 <= 1e-12 * sizes).all()
    tangents = values[:, None] + slopes[:, None] * (f - f[:, None])
    check.holds(
        "consistent with its derivative" if convex else "convex",
        tangents - values <= 1e-11 * (sizes + np.abs(tangents)),
        lambda i, j: (
            f"for the target {y}: the tangent at {f[i]}, with the derivative {slopes[i]:.6g}, is "
            f"{tangents[i, j]:.6g} at {f[j]}, above the loss {values[j]:.6g}."
        ),
        prefer=apart,
    )
    bound = np.inf if loss.curvature is None else loss.curvature
    growth = np.abs(slopes[:, None] - slopes) / np.where(apart > 0, apart, np.inf)
    check.holds(
        "within its curvature",
        growth <= bound + 1e-9 * (1 + np.abs(slopes).max()),
        lambda i, j: f"from {f[i]} to {f[j]}, y = {y}, l' grows by {growth[i, j]:.6g} per unit.",
        prefer=apart,
    )


# --- learners -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Trial:
    """A small bank in which a learner is slot 0, beside a built-in one, and a stream for it."""

    kernel: Kernel
    learner: Learner
    loss: Loss
    window: int
    regularization: float

    def bank(self, engine: object = "serial") -> KernelBank:
        """A new bank."""
        slots = [Slot(self.kernel, self.learner), Slot(Gaussian(0.3), Norma())]
        rest = {"window": self.window, "regularization": self.regularization, "engine": engine}
        return KernelBank(slots=slots, loss=self.loss, **rest)  # type: ignore[arg-type]

    def stream(self, samples: int) -> tuple[Floats, Floats]:
        """Non-negative inputs, some of them twice, and a sine with noise as the loss takes it."""
        draw = np.random.default_rng(0)
        X = draw.uniform(0, 1.5, (samples, max(2, self.kernel.fewest_columns())))
        X[9::10] = X[4::10][: len(X[9::10])]
        y = np.sin(3 * X).mean(axis=1) + 0.1 * draw.normal(size=samples)
        y = np.where(y >= np.median(y), 1.0, -1.0) if self.loss.labels else y
        return X, np.clip(y, *self.loss.targets)


def check_learner(
    learner: Learner, kernel: Kernel | None = None, loss: Loss | str | None = None
) -> None:
    """Check that a learner does what a bank requires, or raise `kb.errors.CheckFailed`.

    What it does not accept is refused by name; f is 0 before the first sample; banks and slots
    share nothing; predicting changes nothing; blocks, single samples and a bank from a file give
    the same bits; norm^2 is at least f(x)^2 / k(x, x), or 0; extreme streams raise no exception.

    Parameters
    ----------
    learner : one of kb.learners, or your own.
    kernel : by default the first that it accepts of Gaussian, Linear, TreeKernel and NoKernel.
    loss : a loss or its name; by default "squared", or the first built-in one that it accepts.

    >>> import kernelbank as kb
    >>> kb.checks.check_learner(kb.learners.KLMS(learning_rate=0.1, budget=20))
    """
    if not isinstance(learner, Learner):
        remedy = "Derive your class from kb.learners.PythonLearner, and give an instance."
        raise validation.refuse("learner", "be a learner", learner, remedy, "check_learner")
    check = _Check("check_learner", learner)
    check.settings(saved=learner.saveable and type(learner).__eq__ is not object.__eq__)
    offered = (Gaussian(0.6), Linear(0.5), kernels.TreeKernel(), kernels.NoKernel())
    names = sorted(losses.BUILT_IN, key=lambda name: name != "squared") if loss is None else [loss]
    trials: list[_Trial] = []
    for candidate in offered if kernel is None else (kernel,):
        for name in names[:1] if trials else names:
            trials += _accepted_trial(check, learner, candidate, as_loss(name))
    if not trials:
        raise check.fails("clear about what it refuses", f"all was refused: {check.refusal}")
    trial = trials[0]
    _check_runs(check, trial.bank, *trial.stream(280))
    if trial.kernel.pairwise and learner.saveable:
        _check_norm(check, trial)
    _check_extreme(check, trial)


def _accepted_trial(check: _Check, learner: Learner, kernel: Kernel, loss: Loss) -> list[_Trial]:
    """The first window and regularization that are accepted, if any, after learning a little."""
    for window, regularization in ((4, 0.05), (1, 0.0)):
        trial = _Trial(kernel, learner, loss, window, regularization)
        try:
            trial.bank()
        except Exception as error:
            check.refusal = str(error)
            named = re.search("kernel|loss|window|regularization", check.refusal)
            if not (named and isinstance(error, InvalidArgument)):
                example = f"with {kernel!r} and {loss!r} a bank was refused by {error!r}."
                raise check.fails("clear about what it refuses", example) from error
            continue
        X, y = trial.stream(12)
        with check.works(f"while learning with {kernel!r} and {loss!r}"):
            first = trial.bank().run(X, y).slot_predictions[0, 0]
        if first != 0:
            raise check.fails("0 before the first sample", f"f({X[0].tolist()}) = {first!s}.")
        return [trial]
    return []


def _check_norm(check: _Check, trial: _Trial) -> None:
    """|f(x)|^2 <= norm^2 k(x, x), unless the learner says that it has no norm."""
    (X, y), bank = trial.stream(60), trial.bank()
    norms, values = [], []
    with check.works("while predicting and learning in turn"):
        for n in range(60):
            trace = bank.run(X[n : n + 1], y[n : n + 1])
            norms.append(trace.curvature[0, 0] / (trial.regularization / 2 or 1.0))
            values.append(bank.predict_slots(X)[:, 0])
    diagonal = np.array([trial.kernel(x[None], x[None])[0, 0] for x in X])
    squares, bounds = np.square(values), np.multiply.outer(norms, diagonal)
    rounding = 1e-6 * bounds + 1e-9 * (1 + squares.max(axis=1, keepdims=True))
    check.holds(
        "large enough in its norm",
        (squares <= bounds + rounding) | (np.array(norms) == 0)[:, None],
        lambda n, i: f"f({X[i]})^2 = {squares[n, i]:.6g}, norm^2 k(x, x) = {bounds[n, i]:.6g}.",
    )


def _check_extreme(check: _Check, trial: _Trial) -> None:
    """Streams on which formulas break."""
    (X, y), labels = trial.stream(60), trial.loss.labels
    streams = {
        "a constant input": (np.full_like(X, 1.5), y),
        "nearly equal inputs": (1 + 1e-9 * X, y),
        "tiny numbers": (1e-12 * X, 1e-12 * y),
        "huge inputs": (1e12 * X, y),
        "huge targets": (X, 1e12 * y),
        "one target of 1e9 among small ones": (X, np.where(y == y[30], 1e9, y)),
    }
    for kind, (points, targets) in streams.items():
        bank = trial.bank()
        with check.works(f"on {kind}", "robust on extreme data"):
            trace = bank.run(points, y if labels else np.clip(targets, *trial.loss.targets))
            values = np.append(trace.slot_predictions[:, 0], bank.predict_slots(points)[:, 0])
        if not (np.isfinite(values).all() or 0 in bank.quarantined):
            example = f"on {kind} it predicted NaN or infinity without being quarantined."
            raise check.fails("robust on extreme data", example)


# --- combiners ------------------------------------------------------------------------------------


def check_combiner(combiner: Combiner) -> None:
    """Check that a combiner does what a bank requires, or raise `kb.errors.CheckFailed`.

    Weights are finite, 0 for quarantined slots, and on the simplex if `on_simplex` says so; blocks,
    single samples and a bank from a file give the same bits; banks share nothing; `diagnostics` can
    be called at any time.

    Parameters
    ----------
    combiner : one of kb.combiners, or your own.

    >>> import kernelbank as kb
    >>> kb.checks.check_combiner(kb.combiners.Hedge())
    """
    if not isinstance(combiner, Combiner):
        remedy = "Derive your class from kb.combiners.Combiner, and give an instance."
        raise validation.refuse("combiner", "be a combiner", combiner, remedy, "check_combiner")
    check = _Check("check_combiner", combiner)
    check.settings()
    _check_case(check, "with one slot", [-1])
    _check_case(check, "with five slots, of which three fail", [0, 20, -1, 45, -1])
    _check_case(check, "with slots that all fail", [10, 50, 30])
    if combiner.on_simplex:  # a rule without bounds may well overflow
        _check_case(check, "with huge targets", [-1] * 4, size=1e6)
        _check_case(check, "with tiny targets", [-1] * 4, size=1e-6)


def _check_case(check: _Check, case: str, failures: Sequence[int], size: float = 1.0) -> None:
    """Slot p learns by column p of the inputs, and fails at sample failures[p] by an overflow."""
    draw = np.random.default_rng(len(failures))
    combiner = check.component
    assert isinstance(combiner, Combiner)
    columns, square = range(len(failures)), kernels.Polynomial(2)
    slots = [Slot(kernels.ActiveDims(square, (p,)), Norma(0.02, 20)) for p in columns]
    X = draw.uniform(-1, 1, (80, len(slots)))
    y = size * (X @ np.linspace(1, 0.2, len(slots)) + draw.normal(size=80))
    X[[n for n in failures if n >= 0], [p for p in columns if failures[p] >= 0]] = 1e120

    def bank(engine: object = "serial") -> KernelBank:
        return KernelBank(slots=slots, combiner=combiner, window=3, engine=engine)

    with check.works(case):
        whole = bank()
        whole.evidence()
        trace = whole.run(X, y)
        whole.evidence()
    _check_runs(check, bank, X, y)
    weights = np.vstack([trace.weights, whole.weights])  # before the first sample, and after each
    alive = np.vstack([np.ones((1, len(slots)), bool), np.isfinite(trace.window_loss)])

    def row(n: int, *_: int) -> str:
        return f"{case}, the weights after {n} samples are {weights[n].tolist()}."

    check.holds("finite", np.isfinite(weights), row)
    check.holds("without weight on quarantined slots", alive | (weights == 0), row)
    if combiner.on_simplex:  # if all slots are quarantined, all weights are 0
        off = np.abs(weights.sum(axis=1) - alive.any(axis=1))
        fine = (weights.min(axis=1) >= 0) & (off <= 1e-14 * len(slots))
        check.holds("on the simplex", fine, row)
