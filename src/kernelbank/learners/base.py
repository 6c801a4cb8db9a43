"""What a learner is: frozen settings, of which the core makes the object that learns.

A learner never reads the weights, and never the state of another one. For every sample it gives the
prediction, the values on the window and norm^2 of each of its slots. All else (losses, costs,
evidence, mixtures) is computed from these by code that knows no learner. The methods themselves are
in `src/core/learners/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..kernels import Kernel, NoKernel, active_coordinates, without_active_dims
from ..losses import Objective, Squared
from ..utils import validation as check

MOST = 10**9
"""Larger budgets are refused: the core counts in 32 bits."""

Values = dict[str, Any]
"""Settings by name, as the core takes them."""


class Learner(check.Settings):
    """A single-kernel online method. Subclasses are frozen dataclasses of their settings.

    Derive learners of your own from `PythonLearner`: the core calls their functions in Python.
    """

    core_name: ClassVar[str] = ""
    pack_width: ClassVar[int] = 1
    """Slots per pack: four where they run side by side, one where a slot is a matrix itself."""
    saveable: ClassVar[bool] = True
    """Whether the state is arrays, so that a file can keep it."""
    second_order: ClassVar[bool] = False
    """Whether the step uses the loss's second derivative, or a bound: the loss must have one."""
    needs_squared: ClassVar[bool] = False
    """Whether the loss must be the squared one."""
    decays: ClassVar[bool] = False
    """Whether a step multiplies f by 1 - learning_rate * regularization, which must be positive."""
    learns_window: ClassVar[bool] = False
    """Whether a step changes f by all samples of the window, not only by the newest."""
    accepts_new_inputs: ClassVar[bool] = True
    """Whether the slots can use columns that are added later."""
    uses_values: ClassVar[bool] = True
    """Whether the core needs values of the kernels."""
    only_kernel: ClassVar[type[Kernel] | None] = None
    """The one kernel that the method works with, if there is only one."""

    def core_settings(self, kernels: Sequence[Kernel], dimension: int, identity: int) -> Values:
        """What the core makes the learner of a pack of, by name: fields, coordinates, and more.

        identity : of the pack's first slot; random draws follow from it and from a seed.
        """
        values, coordinates = self._values(), active_coordinates(kernels[0], dimension)
        if "seed" in values:
            parts = [values["seed"] >> 32, values["seed"] & 0xFFFFFFFF]
            values |= {"seed_parts": np.array(parts, dtype=float), "identity": float(identity)}
        return values | {"coordinates": np.array(coordinates, dtype=float)}

    def core_model(self, kernel: Kernel, dimension: int) -> Any:
        """A new model in Python that the core calls for one output of a slot; None: it needs none.

        It has value(x), learn(x, y, slope), norm(), variance(x), copy(), `arrays`, the state by
        name, and `may_fail`, whether an error of it is raised by the bank.
        """
        return None

    def described_numbers(self, kernel: Kernel, dimension: int) -> int:
        """How many numbers `core_settings` makes, about."""
        return 0

    def check(self, objective: Objective) -> None:
        """Refuse a window, regularization or loss that the method cannot work with."""
        if self.second_order and not objective.loss.curvature:
            rule = f"have a bounded curvature for {type(self).__name__}, a second-order method"
            remedy = 'Use "squared", "logistic" or "huber", a first-order learner such as '
            remedy += "kb.learners.KLMS(), or let this one learn by squares all the same: "
            remedy += 'kb.Slot(..., loss="squared").'
            raise check.refuse("loss", rule, objective.loss, remedy)
        if self.needs_squared and objective.loss != Squared():
            rule = f"be the squared one for {type(self).__name__}"
            remedy = 'Use "squared", another learner, or let this one learn by squares all the '
            remedy += 'same: kb.Slot(..., loss="squared").'
            raise check.refuse("loss", rule, objective.loss, remedy)
        rate = getattr(self, "learning_rate", 0.0) * objective.regularization
        if self.decays and getattr(self, "step_size", "") != "adagrad" and rate >= 1:
            rule = f"be < 1 / regularization ({1 / objective.regularization:g})"
            remedy = "Lower learning_rate or regularization: their product must stay below 1."
            raise self._refuse("learning_rate", rule, remedy)

    @property
    def late_price(self) -> float:
        """How much is held against a slot of late labels, 0 to 1, because luck may explain it:
        little for a line, much for what follows the last errors."""
        return 0.5

    def fewest_columns(self) -> int:
        """The fewest columns of inputs that the method can work with."""
        return 1

    def check_width(self, width: int) -> None:
        """Refuse a number of columns of the inputs that the method cannot work with."""

    def check_kernel(self, kernel: Kernel) -> None:
        """Refuse a kernel that the method cannot work with."""
        only, owner = self.only_kernel, type(self).__name__
        inner = kernel if only is NoKernel else without_active_dims(kernel)
        if only is None and not kernel.pairwise:
            remedy = "Use another kernel, or kb.learners.PartitionTree with this one."
            raise check.refuse("kernel", "be a function of two inputs", kernel, remedy, owner)
        if only is not None and not isinstance(inner, only):
            remedy = f"Use kb.kernels.{only.__name__}(), or another learner for this kernel."
            rule = f"be {only.__name__}"
            if only is not NoKernel:
                rule += f", or ActiveDims({only.__name__}(...), coordinates)"
            raise check.refuse("kernel", rule, kernel, remedy, owner)

    def most_initial_terms(self, objective: Objective) -> float | None:
        """The most terms of an initial function; None: the method starts at 0."""
        return None

    def check_initial(self, objective: Objective, terms: int) -> None:
        """Refuse an initial function of that many terms, if it must have fewer, or none."""
        most, owner = self.most_initial_terms(objective), type(self).__name__
        if most is None:
            rule = f"be left out for {owner}, which starts at 0"
            remedy = "Use kb.learners.Norma, KLMS, KNLMS, QKLMS or a learner on random features."
            raise check.refuse("initial", rule, f"{terms} terms", remedy)
        if terms > most:
            rule, remedy = f"have at most {most} points for {owner}", "Give fewer, or raise budget."
            raise check.refuse("initial", rule, terms, remedy)

    def history_length(self) -> int:
        """The number of past inputs that the method reads, if more than the window."""
        return 0


def count_of(things: str, default: int, *, least: int = 1) -> Any:
    """A setting that counts things in the core."""
    remedy = f"Give how many {things} to keep, {least} or more."
    return check.count_field(default, remedy, least=least, most=MOST)


def forgetting_field() -> Any:
    """The factor per step of the weight of the past."""
    return check.number_field(1.0, "Give 1, or a little less, such as 0.999.", above=0, most=1)


def seed_field() -> Any:
    """The number from which random draws follow, with the slot's identity."""
    return check.count_field(0, "Give a whole number; the same one draws the same.", least=0)
