"""NORMA: stochastic gradient descent in the RKHS, with a window and a budget.

The compiled step runs a leaf of four kernels at a time, by exact recursions. One term joins per
sample. At sample n the new term stands at position `newest` of the term arrays; the expansion has
`budget` terms at newest - budget .. newest - 1, and the window is the last `window` positions up to
`newest`. The term at newest - budget is dropped at the end of the step. A kernel row of x_n covers
the positions newest - budget .. newest, so that k(x_i, x_j) with j <= i stands in the row of i at
budget - (i - j). The rows of the last window + 1 samples are kept in a ring. Terms from before the
first sample have coefficient 0.

*Tails* make dropping cheap: tail_j = sum of alpha_i k(x_i, x_j) over j itself and the newer terms i
that have left the window. They only decay, so no Gram matrix and no second row is needed.

*Scale*: all coefficients and tails decay by the same factor in every step. The arrays hold
alpha / scale with scale = decays[n % period]. Once per period, by the absolute number of the
sample, it is multiplied in. So a step touches only what changes otherwise.

*Precision*: terms and kernel rows are kept in float64 or float32; the arithmetic is double in both.
Functions on them read `term_array` and `write_row`; their variants with FLOAT32 are the same with
other functions under these names.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..kernels.base import Kernel
from ..kernels.program import kernel_row, repeats
from ..kernels.sample_buffer import USED, SampleBuffer
from ..losses.objective import Objective
from ..native.formulas import call_loss, pointer
from ..native.jit import inline
from ..native.phases import (
    Phase,
    Phases,
    argument_fields,
    compiled,
    float32_array,
    float_array,
    int_array,
    read_float,
    read_int,
    variant,
)
from ..native.simd import WIDTH, absolute, broadcast, fma, load, store, where_less
from ..native.workspace import SLIDE_PERIOD, Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Learner, SlotGroup, check_decay

REFRESH_PERIOD = 32
"""norm^2 is recomputed from the coefficients at every sample number that this divides."""

EXPANSION_FIELDS = argument_fields(
    "leaves",
    "slide_period",
    "history_length",
    "budget",
    "period",
    "decays",  # (period + 1,): decays[n] = decay^n
    "instructions",  # of the kernels' program, see `kernels.program`
    "program",
    "constants",
    "statistics",  # (sources, statistics_steps, history_length + 1)
    "statistics_steps",
    "stack",  # (depth + 1, budget + 1, 4)
    "coefficients",  # (leaves, budget + slide_period, 4): alpha / scale
)
LEARN_FIELDS = argument_fields(
    *EXPANSION_FIELDS._fields,
    "steps",  # longest block + 1
    "window",
    "learning_rate",
    "derivative",  # address of the loss's derivative
    "parameters",  # of the loss
    "targets",  # (history_length + slide_period, 4)
    "repeated",
    "memo",
    "memo_rows",  # (leaves, budget + 1, 4): kernel rows of the last query
    "scratch",  # (3, window, 4)
    "tails",  # (leaves, budget + slide_period, 4): tail / scale
    "diagonals",  # (leaves, budget + slide_period, 4): k(x_j, x_j)
    "rows",  # (leaves, window + 1, budget + 1, 4): ring of kernel rows
    "dropped",  # (leaves, 4): norm^2 of all dropped terms
    "steepness",  # (leaves, 4): largest g'Kg / g'g
    "values",  # (leaves, steps, window, 4)
    "norms",  # (leaves, steps, 4)
    "predictions",  # (leaves, steps - 1, 4)
    "effects",  # (leaves, steps - 1, 4)
)
QUERY_FIELDS = argument_fields(
    *EXPANSION_FIELDS._fields, "window", "memo_repeated", "memo_rows", "rows", "query_values"
)
POINTS_FIELDS = argument_fields(
    *EXPANSION_FIELDS._fields,
    "row",  # (budget, 4)
    "wanted",  # (leaves,)
    "points",  # number of points
    "out",  # (leaves, points, 4)
)


@dataclass(frozen=True)
class Norma(Learner):
    """NORMA with a sliding window, the learner of the paper.

    With S the window, the last L samples, and all gradients at the present f:

        f <- (1 - learning_rate * regularization) f
             - learning_rate * sum_{i in S} l'(f(x_i), y_i) k(x_i, .)

    and beyond `budget` terms the oldest is dropped. Cost per step and slot: budget kernel values
    and O(budget + L^2) products; memory O(budget * L) numbers (the window's kernel rows).
    The step is a contraction on the window while

        learning_rate (curvature of the loss * largest eigenvalue of the window's Gram matrix
                       + regularization) < 2.

    Parameters
    ----------
    learning_rate : positive number, the step size.
    budget : largest number of terms, at least the window.

    Reference: Kivinen, Smola and Williamson, Online learning with kernels, IEEE Transactions on
    Signal Processing 52 (2004); windowed as in the paper of the scheme.

    >>> import kernelbank as kb
    >>> bank = kb.KernelBank(learner=kb.learners.Norma(learning_rate=0.05, budget=100))
    >>> bank.learn_one(0.0, 1.0)
    >>> round(bank.predict_one(0.0), 3)
    0.1
    """

    learning_rate: float = 0.05
    budget: int = 100
    accepts_new_inputs: ClassVar[bool] = True
    float32_arrays: ClassVar[frozenset[str]] = frozenset(
        ["coefficients", "tails", "diagonals", "rows"]
    )

    def __post_init__(self) -> None:
        check.settings(
            self,
            learning_rate=check.positive(0.05),
            budget=check.whole("Give how many terms to keep, 1 or more."),
        )

    def check(self, objective: Objective) -> None:
        if self.budget < objective.window:
            rule = f"be >= window ({objective.window})"
            remedy = "Raise budget or shorten window."
            raise check.refuse("budget", rule, self.budget, remedy, "Norma")
        check_decay(self, objective)

    def history_length(self, objective: Objective) -> int:
        return self.budget

    def shapes(
        self, objective: Objective, leaves: int, dimension: int, kernel: Kernel, history_length: int
    ) -> dict[str, tuple[int, ...]]:
        terms = (leaves, self.budget + SLIDE_PERIOD, WIDTH)
        return {
            "coefficients": terms,
            "tails": terms,
            "diagonals": terms,
            "rows": (leaves, objective.window + 1, self.budget + 1, WIDTH),
            "dropped": (leaves, WIDTH),
            "steepness": (leaves, WIDTH),
        }

    def phases(self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace) -> list[Phase]:
        objective = group.objective
        learn = Phase(
            compiled(LEARN_BLOCK[objective.dtype]),
            LEARN_FIELDS,
            **(group.common() | self._expansion(group, buffer.statistics) | group.state),
            learning_rate=self.learning_rate,
            derivative=objective.loss.derivative_address,
            parameters=objective.loss.parameters,
            targets=buffer.targets,
            repeated=buffer.repeated,
            memo=buffer.memo,
            memo_rows=self._memo_rows(group),
            scratch=np.zeros((3, objective.window, WIDTH)),
            effects=group.effects,
        )
        return [learn]

    def predict_phases(
        self, group: SlotGroup, buffer: SampleBuffer, workspace: Workspace
    ) -> list[Phase]:
        predict = Phase(
            compiled(PREDICT_QUERY[group.objective.dtype]),
            QUERY_FIELDS,
            **self._expansion(group, buffer.memo_statistics[:, None]),
            window=group.objective.window,
            memo_repeated=buffer.memo_repeated,
            memo_rows=self._memo_rows(group),
            rows=group.state["rows"],
            query_values=group.query_values,
        )
        return [predict]

    def evaluate(
        self, group: SlotGroup, seen: int, points: Floats, statistics: Floats, wanted: np.ndarray
    ) -> Floats:
        out = np.zeros((group.leaves, len(points), WIDTH))
        phase = Phase(
            compiled(PREDICT_POINTS[group.objective.dtype]),
            POINTS_FIELDS,
            **self._expansion(group, statistics),
            row=np.empty((self.budget, WIDTH), dtype=group.objective.dtype),
            wanted=wanted.astype(np.int64),
            points=len(points),
            out=out,
        )
        Phases([phase]).run(seen, len(points))
        return out

    def step_ratio(self, group: SlotGroup) -> Floats:
        """From the largest g'Kg / g'g seen, a lower bound of the largest eigenvalue of K."""
        curvature = group.objective.loss.curvature
        if curvature is None:
            return np.zeros((group.leaves, WIDTH))
        eigenvalue = curvature * group.state["steepness"] + group.objective.regularization
        return self.learning_rate * eigenvalue / 2

    def _expansion(self, group: SlotGroup, statistics: Floats) -> dict[str, Any]:
        """The values of EXPANSION_FIELDS; statistics: (sources, steps, history_length + 1)."""
        return {
            "leaves": group.leaves,
            "slide_period": SLIDE_PERIOD,
            "history_length": statistics.shape[2] - 1,
            "budget": self.budget,
            "period": self._period(group.objective),
            "decays": self._decays(group.objective),
            "instructions": len(group.program.code),
            "program": group.program.code,
            "constants": group.program.constants,
            "statistics": statistics,
            "statistics_steps": statistics.shape[1],
            "stack": np.empty(
                (group.program.depth + 1, self.budget + 1, WIDTH)
            ),  # rows of the kernel's parts
            "coefficients": group.state["coefficients"],
        }

    def _decay(self, objective: Objective) -> float:
        return 1.0 - self.learning_rate * objective.regularization

    def _period(self, objective: Objective) -> int:
        """Samples between two multiplications by the common decay, which stays >= 1e-6."""
        period = SLIDE_PERIOD
        while period > 1 and self._decay(objective) ** period < 1e-6:
            period //= 2
        return period

    def _decays(self, objective: Objective) -> Floats:
        """decays[n] = decay^n, by repeated products."""
        steps = np.full(self._period(objective) + 1, self._decay(objective))
        steps[0] = 1.0
        return np.cumprod(steps)

    def _memo_rows(self, group: SlotGroup) -> Floats:
        """The kernel rows of the last query, shared by the phases that write and read them."""
        shape = (group.leaves, self.budget + 1, WIDTH)
        return group.scratch.setdefault("memo_rows", np.zeros(shape, dtype=group.objective.dtype))


# --- compiled: kernel rows and sums over terms ---------------------------------------------------


term_array = float_array
"""How the arrays of terms and kernel values are read."""


@inline
def _kernel_values(args, leaf, t, count, target):
    """target = `count` kernel values of the input of step t with the terms, oldest first."""
    history_length = read_int(args, EXPANSION_FIELDS.history_length)
    kernel_row(
        read_int(args, EXPANSION_FIELDS.instructions),
        int_array(args, EXPANSION_FIELDS.program),
        float_array(args, EXPANSION_FIELDS.constants),
        leaf,
        float_array(args, EXPANSION_FIELDS.statistics),
        read_int(args, EXPANSION_FIELDS.statistics_steps),
        history_length + 1,
        t,
        history_length - read_int(args, EXPANSION_FIELDS.budget),
        count,
        target,
        pointer(float_array(args, EXPANSION_FIELDS.stack), count * WIDTH),
    )


@inline
def write_row(args, leaf, t, count, rows, row):
    """rows[row:] = kernel values of the input of step t with the terms, oldest first."""
    _kernel_values(args, leaf, t, count, pointer(rows, row * WIDTH))


@inline
def write_float32_row(args, leaf, t, count, rows, row):
    """The same in single precision: computed in double precision, then rounded."""
    exact = float_array(args, EXPANSION_FIELDS.stack)
    _kernel_values(args, leaf, t, count, exact)
    copy_row(exact, 0, rows, row, count)


@inline
def copy_row(source, start, rows, row, count):
    """rows[row + m] = source[start + m]."""
    for m in range(count):
        store(rows, row + m, load(source, start + m))


@inline
def expansion(coefficients, start, rows, row, terms):
    """sum_m coefficients[start + m] rows[row + m] over four interleaved partial sums."""
    one = broadcast(0.0)
    two, three, four = one, one, one
    even = terms - terms % 4
    for m in range(0, even, 4):
        one = fma(load(coefficients, start + m), load(rows, row + m), one)
        two = fma(load(coefficients, start + m + 1), load(rows, row + m + 1), two)
        three = fma(load(coefficients, start + m + 2), load(rows, row + m + 2), three)
        four = fma(load(coefficients, start + m + 3), load(rows, row + m + 3), four)
    for m in range(even, terms):
        one = fma(load(coefficients, start + m), load(rows, row + m), one)
    return (one + two) + (three + four)


# --- compiled: the step --------------------------------------------------------------------------


@inline
def _slide(array, leaves, kept, slide_period):
    """Move the last `kept` rows of each leaf's array to its front, at the end of a slide period."""
    for leaf in range(leaves):
        start = leaf * (kept + slide_period)
        for m in range(kept):
            store(array, start + m, load(array, start + slide_period + m))


@inline
def _multiply(array, start, end, factor):
    """array[start:end] *= factor."""
    for m in range(start, end):
        store(array, m, load(array, m) * factor)


@inline
def _row_before(ring, index, age, window, budget):
    """The start of the row of the sample `age` <= window samples before the one at `index`."""
    older = index - age if index >= age else index - age + window + 1
    return ring + older * (budget + 1)


@inline
def _norm(coefficients, tails, diagonals, newest, rows, ring, index, window, budget):
    """norm^2 / scale^2 from coefficients and tails: sum_j alpha_j f(x_j), at least 0."""
    total = broadcast(0.0)
    for j in range(newest - budget + 1, newest - window + 1):  # terms outside the window
        alpha = load(coefficients, j)
        others = 2.0 * load(tails, j) - alpha * load(diagonals, j)
        for i in range(window):
            row = _row_before(ring, index, i, window, budget)
            k = load(rows, row + budget - (newest - i - j))
            others = fma(2.0 * load(coefficients, newest - i), k, others)
        total = fma(alpha, others, total)
    for i in range(window):  # terms of the window, by age
        row = _row_before(ring, index, i, window, budget)
        own = load(coefficients, newest - i)
        value = own * load(rows, row + budget)
        for j in range(i + 1, window):
            k = load(rows, row + budget - (j - i))
            value = fma(2.0 * load(coefficients, newest - j), k, value)
        total = fma(own, value, total)
    return where_less(total, 0.0, 0.0, total)


def learn_block(args, first, count):
    """Run every leaf through samples first .. first + count - 1, which lie in one slide period."""
    leaves = read_int(args, LEARN_FIELDS.leaves)
    steps = read_int(args, LEARN_FIELDS.steps)
    window = read_int(args, LEARN_FIELDS.window)
    slide_period = read_int(args, LEARN_FIELDS.slide_period)
    budget = read_int(args, LEARN_FIELDS.budget)
    period = read_int(args, LEARN_FIELDS.period)
    learning_rate = read_float(args, LEARN_FIELDS.learning_rate)
    decays = float_array(args, LEARN_FIELDS.decays)
    targets = float_array(args, LEARN_FIELDS.targets)
    instructions = read_int(args, LEARN_FIELDS.instructions)
    program = int_array(args, LEARN_FIELDS.program)
    statistics_steps = read_int(args, LEARN_FIELDS.statistics_steps)
    repeated = int_array(args, LEARN_FIELDS.repeated)
    coefficients = term_array(args, LEARN_FIELDS.coefficients)
    tails = term_array(args, LEARN_FIELDS.tails)
    diagonals = term_array(args, LEARN_FIELDS.diagonals)
    rows = term_array(args, LEARN_FIELDS.rows)
    values = float_array(args, LEARN_FIELDS.values)
    norms = float_array(args, LEARN_FIELDS.norms)
    position = read_int(args, LEARN_FIELDS.history_length) + first % slide_period
    length = budget + slide_period
    decay = decays[1]
    old_values = float_array(args, LEARN_FIELDS.scratch)  # (window, 4): f on the window
    gradient = pointer(old_values, window * WIDTH)  # (window, 4): g_i = l'(f(x_i), y_i)
    k_g = pointer(gradient, window * WIDTH)  # (window, 4): K g
    if first > 0 and first % slide_period == 0:
        _slide(coefficients, leaves, budget, slide_period)
        _slide(tails, leaves, budget, slide_period)
        _slide(diagonals, leaves, budget, slide_period)
    for leaf in range(leaves):
        ring = leaf * (window + 1) * (budget + 1)  # start of the leaf's ring
        norm2 = load(norms, leaf * steps)
        steepest = load(float_array(args, LEARN_FIELDS.steepness), leaf)
        dropped = load(float_array(args, LEARN_FIELDS.dropped), leaf)
        for t in range(count):
            number = first + t
            newest = leaf * length + budget + number % slide_period  # position of the new term
            oldest = newest - budget
            seen = min(number + 1, window)
            unseen = window - seen
            index = number % (window + 1)  # in the ring of kernel rows
            row = ring + index * (budget + 1)
            scale = decays[number % period]
            scale_after = decays[number % period + 1]

            # Kernel values of the new input, unless the input repeats.
            if repeats(instructions, program, repeated, statistics_steps - 1, t):
                previous = _row_before(ring, index, 1, window, budget)
                copy_row(rows, previous, rows, row, budget + 1)
            elif int_array(args, LEARN_FIELDS.memo)[USED] == 1:
                known = term_array(args, LEARN_FIELDS.memo_rows)
                copy_row(known, leaf * (budget + 1), rows, row, budget + 1)
            else:
                write_row(args, leaf, t, budget + 1, rows, row)
            store(diagonals, newest, load(rows, row + budget))

            # f(x) = sum_j alpha_j k(x_j, x); values of f on the window; g there, all at the same f.
            prediction = scale * expansion(coefficients, oldest, rows, row, budget)
            store(float_array(args, LEARN_FIELDS.predictions), leaf * (steps - 1) + t, prediction)
            window_before = (leaf * steps + t) * window
            for i in range(window - 1):
                store(old_values, i, load(values, window_before + i + 1))
            store(old_values, window - 1, prediction)
            for i in range(unseen):
                store(gradient, i, 0.0)
            call_loss(
                read_int(args, LEARN_FIELDS.derivative),
                pointer(old_values, unseen * WIDTH),
                pointer(targets, (position + t - seen + 1) * WIDTH),
                seen,
                float_array(args, LEARN_FIELDS.parameters),
                pointer(gradient, unseen * WIDTH),
            )

            # The term i that leaves the window joins the tails: tail_j += alpha_i k(x_i, x_j).
            leaving = newest - window
            alpha = load(coefficients, leaving)
            left = _row_before(ring, index, window, window, budget) + budget - leaving
            for m in range(oldest, leaving):
                store(tails, m, fma(alpha, load(rows, left + m), load(tails, m)))
            store(tails, leaving, alpha * load(diagonals, leaving))

            # K g, and alpha <- alpha - learning_rate g on the window (the paper's NORMA update).
            store(coefficients, newest, 0.0)
            step = -learning_rate / scale_after
            for i in range(window):
                store(k_g, i, 0.0)
            for i in range(unseen, window):
                age = window - 1 - i
                own = _row_before(ring, index, age, window, budget) + budget - i
                g = load(gradient, i)
                total = load(k_g, i)
                for j in range(unseen, i):
                    k = load(rows, own + j)
                    total = fma(load(gradient, j), k, total)
                    store(k_g, j, fma(g, k, load(k_g, j)))
                store(k_g, i, fma(g, load(rows, own + i), total))
                store(coefficients, newest - age, fma(step, g, load(coefficients, newest - age)))

            # |decay f - rate sum_i g_i k(x_i, .)|^2
            #     = decay^2 |f|^2 - 2 decay rate g'f + rate^2 g'K g, before anything is dropped.
            g_f = broadcast(0.0)
            g_k_g = g_f
            g_g = g_f
            for i in range(unseen, window):
                g = load(gradient, i)
                g_f = fma(g, load(old_values, i), g_f)
                g_k_g = fma(g, load(k_g, i), g_k_g)
                g_g = fma(g, g, g_g)
            norm2 = (
                decay * decay * norm2
                - 2.0 * decay * learning_rate * g_f
                + learning_rate * learning_rate * g_k_g
            )
            quotient = g_k_g / g_g
            steepest = where_less(steepest, quotient, quotient, steepest)

            # Drop the oldest term, alpha k(x_j, .):
            #     |f - alpha k(x_j, .)|^2 = |f|^2 - 2 alpha f(x_j) + alpha^2 k(x_j, x_j).
            alpha = scale_after * load(coefficients, oldest)
            value = load(tails, oldest)
            for i in range(unseen, window):
                age = window - 1 - i
                k = load(rows, _row_before(ring, index, age, window, budget) + age)
                value = fma(load(coefficients, newest - age), k, value)
            own = alpha * alpha * load(diagonals, oldest)
            norm2 = norm2 - 2.0 * alpha * (scale_after * value) + own
            norm2 = where_less(norm2, 0.0, 0.0, norm2)
            dropped = dropped + own
            moved = broadcast(0.0)
            largest = moved
            window_after = window_before + window
            for i in range(unseen):
                store(values, window_after + i, 0.0)
            for i in range(unseen, window):
                age = window - 1 - i
                k = load(rows, _row_before(ring, index, age, window, budget) + age)
                # f(x_i) <- decay f(x_i) - rate (K g)_i, then without the dropped term
                full = fma(-learning_rate, load(k_g, i), decay * load(old_values, i))
                change = alpha * k
                store(values, window_after + i, full - change)
                moved = where_less(moved, absolute(change), absolute(change), moved)
                largest = where_less(largest, absolute(full), absolute(full), largest)
            effect = where_less(0.0, moved, moved / largest, 0.0)
            store(float_array(args, LEARN_FIELDS.effects), leaf * (steps - 1) + t, effect)

            if (number + 1) % REFRESH_PERIOD == 0:
                norm2 = (scale_after * scale_after) * _norm(
                    coefficients, tails, diagonals, newest, rows, ring, index, window, budget
                )
            store(norms, leaf * steps + t + 1, norm2)
            if (number + 1) % period == 0:
                _multiply(coefficients, oldest + 1, newest + 1, decays[period])
                _multiply(tails, oldest + 1, newest + 1, decays[period])
        store(float_array(args, LEARN_FIELDS.steepness), leaf, steepest)
        store(float_array(args, LEARN_FIELDS.dropped), leaf, dropped)


# --- compiled: predictions -----------------------------------------------------------------------


@inline
def _value(args, seen, leaf, coefficients, rows, row):
    """f after `seen` samples, at the point whose kernel values are in that row."""
    slide_period = read_int(args, EXPANSION_FIELDS.slide_period)
    budget = read_int(args, EXPANSION_FIELDS.budget)
    start = leaf * (budget + slide_period) + (0 if seen == 0 else (seen - 1) % slide_period + 1)
    period = read_int(args, EXPANSION_FIELDS.period)
    scale = float_array(args, EXPANSION_FIELDS.decays)[seen % period]
    return scale * expansion(coefficients, start, rows, row, budget)


def predict_query(args, first, count):
    """query_values[leaf] = f at query_point; its kernel row is kept in memo_rows."""
    window = read_int(args, QUERY_FIELDS.window)
    budget = read_int(args, QUERY_FIELDS.budget)
    same = first > 0 and repeats(
        read_int(args, QUERY_FIELDS.instructions),
        int_array(args, QUERY_FIELDS.program),
        int_array(args, QUERY_FIELDS.memo_repeated),
        1,
        0,
    )
    for leaf in range(read_int(args, QUERY_FIELDS.leaves)):
        rows = term_array(args, QUERY_FIELDS.memo_rows)
        row = leaf * (budget + 1)
        if same:
            rows = term_array(args, QUERY_FIELDS.rows)
            row = (leaf * (window + 1) + (first - 1) % (window + 1)) * (budget + 1)
        else:
            write_row(args, leaf, -1, budget + 1, rows, row)
        value = _value(args, first, leaf, term_array(args, QUERY_FIELDS.coefficients), rows, row)
        store(float_array(args, QUERY_FIELDS.query_values), leaf, value)


def predict_points(args, seen, count):
    """out[leaf, t] = f at point t < count, for leaves with wanted[leaf]; changes nothing."""
    coefficients = term_array(args, POINTS_FIELDS.coefficients)
    row = term_array(args, POINTS_FIELDS.row)
    for leaf in range(read_int(args, POINTS_FIELDS.leaves)):
        if int_array(args, POINTS_FIELDS.wanted)[leaf] == 0:
            continue
        for t in range(count):
            write_row(args, leaf, t, read_int(args, POINTS_FIELDS.budget), row, 0)
            value = _value(args, seen, leaf, coefficients, row, 0)
            index = leaf * read_int(args, POINTS_FIELDS.points) + t
            store(float_array(args, POINTS_FIELDS.out), index, value)


FLOAT32 = {"term_array": float32_array, "write_row": write_float32_row}
"""The functions of the variants that keep terms and kernel rows in single precision."""

LEARN_BLOCK = {"float64": learn_block, "float32": variant(learn_block, "learn_float32", **FLOAT32)}
PREDICT_QUERY = {
    "float64": predict_query,
    "float32": variant(predict_query, "predict_query_float32", **FLOAT32),
}
PREDICT_POINTS = {
    "float64": predict_points,
    "float32": variant(predict_points, "predict_points_float32", **FLOAT32),
}
