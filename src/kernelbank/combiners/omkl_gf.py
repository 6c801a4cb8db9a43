"""OMKLGF: kernels drawn anew for every sample, by a graph that follows the weights."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..losses.objective import Objective
from ..native.arguments import floats
from ..native.functions import native
from ..native.jit import inline
from ..native.scalar_math import power
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Combiner, PhaseList, State, combiner_phase
from .exponential_weights import EVIDENCE, add_losses, exponential_weights, slot_losses
from .feedback_graph import (
    FEEDBACK,
    STEP_SIZES,
    decayed,
    draw_index,
    estimate_losses,
    uniform_draw,
    weigh_shown,
)


@dataclass(frozen=True)
class OMKLGF(Combiner):
    """Online multi-kernel learning with graph feedback: few kernels per sample, drawn by weight.

    With w the weights of the P slots, and x_t = exploration / sqrt(t) at sample t = 1, 2, ...:

        pi_jp = (1 - x_t^j) w_p / sum of w + x_t^j / P     for the nodes j = 1, ..., nodes
        S_j   = the slots that come up in `draws` draws from pi_j
        node j is chosen with probability (1 - x_t) u_j / sum of u + x_t / nodes,
                                                            where u_j = sum of w over S_j

    The prediction is the mean over the slots S of the chosen node, by w. Only their losses are
    used, divided by the probability q_p = sum_j P(j) (1 - (1 - pi_jp)^draws) that they are shown:

        w_p <- w_p exp(-rate_t 2^-floor(log2 nodes) l_p / q_p) for p in S.

    In the paper only the kernels in S learn a sample, which saves their time. Here every slot
    learns every sample, because no slot depends on the weights; the draws decide the prediction and
    the losses that are used. The draws are a hash of the seed and t. (The first prediction, of
    functions that are all 0, has equal weights.)

    Parameters
    ----------
    draws : draws of a node: the most slots in a prediction.
    nodes : number of nodes.
    learning_rate : positive, per unit of loss.
    exploration : from 0 to 1.
    step_size : "inverse_sqrt": rate and exploration are divided by sqrt(t); or "constant".
    least_probability : a smaller q_p counts as this, so that steps stay bounded.
    evidence : "loss", of the predictions alone, or "cost", with the norm (see `Hedge`).
    seed : whole number.

    Cost per sample: O(P nodes draws). Memory: 3 P numbers.

    Reference: Ghari and Shen, Online multi-kernel learning with graph-structured feedback, ICML
    2020; there the evidence is "cost" with a window of 1.

    >>> import kernelbank as kb
    >>> rule = kb.combiners.OMKLGF(draws=2)
    >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 6), combiner=rule)
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> int((bank.weights > 0).sum()) <= 2
    True
    """

    draws: int = 7
    nodes: int = 1
    learning_rate: float = 1.0
    exploration: float = 1.0
    step_size: str = "inverse_sqrt"
    least_probability: float = 0.0
    evidence: str = "loss"
    seed: int = 0

    def __post_init__(self) -> None:
        check.settings(
            self,
            draws=check.whole("Give how many slots a prediction may use, 1 or more.", most=10_000),
            nodes=check.whole("Give the number of nodes, 1 or more.", most=1000),
            learning_rate=check.positive(1.0),
            exploration=check.fraction(1.0),
            step_size=check.one_of(STEP_SIZES),
            least_probability=check.fraction(0.05),
            evidence=check.one_of(EVIDENCE),
            seed=check.whole("Give a whole number; the same draws the same.", least=0),
        )

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        return {"totals": (slots,), "shown": (slots,), "probabilities": (slots,)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> PhaseList:
        slots = len(weights)
        phase = combiner_phase(
            _omkl_gf,
            workspace,
            weights,
            rate=self.learning_rate,
            exploration=self.exploration,
            decaying=int(self.step_size == "inverse_sqrt"),
            least_probability=self.least_probability,
            seed=self.seed,
            slot_loss=slot_losses(workspace, self.evidence),
            **state,
            posterior=np.zeros(slots),
            excess=np.zeros(slots),
            draws=self.draws,
            nodes=self.nodes,
            factor=0.5 ** int(np.log2(self.nodes)),
            pi=np.zeros((self.nodes, slots)),
            members=np.zeros((self.nodes, slots)),
            node_weights=np.zeros(self.nodes),
        )
        return [phase]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """log_weights: of w, minus the largest; probabilities: q; shown: 1 for slots in use."""
        return {
            "log_weights": -state["totals"],
            "probabilities": state["probabilities"].copy(),
            "shown": state["shown"].copy(),
        }


_OMKL_GF = FEEDBACK.extended(
    "omkl_gf",
    draws=int,
    nodes=int,
    factor=float,  # 2^-floor(log2 nodes)
    pi=floats("nodes", "slots"),  # this and the next two are scratch
    members=floats("nodes", "slots"),  # 1 for slots that came up
    node_weights=floats("nodes"),  # u
)


@inline
def _draw_nodes(a, losses, number):
    """shown = the slots of the node drawn for sample t = `number`; probabilities = q."""
    exploration = decayed(a, a.exploration, number)
    exponential_weights(1.0, a.totals, losses, a.posterior)
    left = 0
    for p in range(a.slots):
        a.shown[p] = 0.0
        a.probabilities[p] = 0.0
        left += 1 if losses[p] < np.inf else 0
    if left == 0:
        return
    uniform = 1.0  # x_t^j
    size = 0.0  # the sum of u
    for j in range(a.nodes):
        uniform *= exploration
        for p in range(a.slots):
            a.members[j, p] = 0.0
            a.pi[j, p] = 0.0
            if losses[p] < np.inf:
                a.pi[j, p] = (1.0 - uniform) * a.posterior[p] + uniform / left
        for k in range(a.draws):
            a.members[j, draw_index(a.pi[j], losses, uniform_draw(a, number, j, k))] = 1.0
        a.node_weights[j] = 0.0
        for p in range(a.slots):
            a.node_weights[j] += a.members[j, p] * a.posterior[p]
        size += a.node_weights[j]
    node = -1
    total = 0.0
    u = uniform_draw(a, number, a.nodes, 0)
    for j in range(a.nodes):
        share = a.node_weights[j] / size if size > 0.0 else 1.0 / a.nodes
        probability = (1.0 - exploration) * share + exploration / a.nodes
        total += probability
        if node < 0 and (u < total or j == a.nodes - 1):
            node = j
        for p in range(a.slots):
            missed = power(1.0 - a.pi[j, p], float(a.draws))  # never drawn
            a.probabilities[p] += probability * (1.0 - missed)
    for p in range(a.slots):
        a.shown[p] = a.members[node, p]


@native(_OMKL_GF)
def _omkl_gf(a, first, count):
    """chosen[t] = the weights after sample t."""
    for t in range(count):
        number = first + t + 1
        losses = a.slot_loss[t]
        if number == 1:
            _draw_nodes(a, losses, number)
        estimate_losses(a, losses, decayed(a, a.rate, number) * a.factor)
        add_losses(a.totals, a.excess, losses)
        _draw_nodes(a, losses, number + 1)
        weigh_shown(a, losses, a.chosen[t])
