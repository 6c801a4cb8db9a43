"""OMKLSFG: one node per slot that shows slots unlike each other; nodes and slots have weights."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..losses.objective import Objective
from ..native.arguments import floats, lanes
from ..native.functions import native
from ..native.jit import inline
from ..native.simd import WIDTH
from ..native.workspace import Workspace
from ..utils import validation as check
from ..utils.validation import Floats
from .base import Combiner, PhaseList, State, combiner_phase
from .exponential_weights import (
    EVIDENCE,
    LARGEST_SUM,
    add_losses,
    exponential_weights,
    slot_losses,
)
from .feedback_graph import (
    FEEDBACK,
    STEP_SIZES,
    decayed,
    draw_index,
    estimate_losses,
    uniform_draw,
    weigh_shown,
)
from .newton_stacking import loss_at

Graph = int | tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class OMKLSFG(Combiner):
    """Graph-aided online multi-kernel learning: a fixed graph of slots, with learned nodes.

    Node i shows the slots graph[i]. With w the weights of the slots, u of the nodes,
    x_t = exploration / sqrt(t) at sample t = 1, 2, ..., and D a set of nodes that show all slots:

        P(i) = (1 - x_t) u_i / sum of u + (x_t / |D| if i is in D)     probability of node i
        q_p  = sum of P(i) over the nodes that show p

    The prediction is the mean over the slots of the node I that is drawn, by w. Then

        w_p <- w_p exp(-rate_t l_p / q_p) for the slots p that were shown,
        u_I <- u_I exp(-rate_t l / P(I)) with the loss l of the prediction.

    In the paper only the kernels that are shown learn a sample; here every slot does (see
    `OMKLGF`). D is chosen greedily.

    Parameters
    ----------
    graph : for each slot the slots that its node shows, or how many: itself and others, evenly
        spaced in the list of slots. `kb.presets.similarity_graph` makes the paper's.
    learning_rate : positive, per unit of loss.
    exploration : from 0 to 1.
    step_size : "inverse_sqrt": rate and exploration are divided by sqrt(t); or "constant".
    least_probability, least_node_probability : smaller q_p and P(I) count as these.
    evidence : "loss", of the predictions alone, or "cost", with the norm (see `Hedge`): for l_p.
    seed : whole number.

    Cost per sample: O(P^2). Memory: 4 P numbers and the graph.

    Reference: Ghari and Shen, Graph-aided online multi-kernel learning, JMLR 24 (2023), without
    refinement of the graph; the bounds 0.1 and 0.2 are those of the authors' program.

    >>> import kernelbank as kb
    >>> rule = kb.combiners.OMKLSFG(graph=2)
    >>> bank = kb.KernelBank(kb.gaussian_grid(1, 2, 6), combiner=rule)
    >>> trace = bank.run([0.0, 0.5, 1.0, 1.5], [1.0, 1.1, 1.2, 1.1])
    >>> int((bank.weights > 0).sum())
    2
    """

    graph: Graph = 5
    learning_rate: float = 0.1
    exploration: float = 0.1
    step_size: str = "inverse_sqrt"
    least_probability: float = 0.1
    least_node_probability: float = 0.2
    evidence: str = "loss"
    seed: int = 0

    fixed_slots: ClassVar[str] = "its graph is one of slots at fixed positions"

    def __post_init__(self) -> None:
        check.settings(
            self,
            graph=_checked_graph,
            learning_rate=check.positive(0.1),
            exploration=check.fraction(0.1),
            step_size=check.one_of(STEP_SIZES),
            least_probability=check.fraction(0.1),
            least_node_probability=check.fraction(0.2),
            evidence=check.one_of(EVIDENCE),
            seed=check.whole("Give a whole number; the same draws the same.", least=0),
        )

    def adjacency(self, slots: int) -> Floats:
        """(P, P): 1 where node i shows slot j."""
        result = np.zeros((slots, slots))
        if isinstance(self.graph, int):
            size = min(self.graph, slots)
            for k in range(size):
                result[np.arange(slots), (np.arange(slots) + k * slots // size) % slots] = 1.0
            return result
        if len(self.graph) != slots or any(p >= slots for shown in self.graph for p in shown):
            rule = f"list, for each of the {slots} slots, slots numbered 0 to {slots - 1}"
            remedy = "Make the graph for the slots of this bank, or give a number."
            raise check.refuse("graph", rule, self.graph, remedy, "OMKLSFG")
        for i, shown in enumerate(self.graph):
            result[i, list(shown)] = 1.0
        return result

    def first_weights(self, slots: int) -> Floats:
        self.adjacency(slots)  # refused before a bank is made
        return super().first_weights(slots)

    def shapes(self, slots: int) -> dict[str, tuple[int, ...]]:
        state = {"totals": (slots,), "shown": (slots,), "probabilities": (slots,)}
        return {**state, "node_totals": (slots,), "node": (2,)}

    def phases(
        self, objective: Objective, workspace: Workspace, state: State, weights: Floats
    ) -> PhaseList:
        slots = len(weights)
        graph = self.adjacency(slots)
        phase = combiner_phase(
            _omkl_sfg,
            workspace,
            weights,
            rate=self.learning_rate,
            exploration=self.exploration,
            decaying=int(self.step_size == "inverse_sqrt"),
            least_probability=self.least_probability,
            least_node_probability=self.least_node_probability,
            seed=self.seed,
            slot_loss=slot_losses(workspace, self.evidence),
            **state,
            posterior=np.zeros(slots),
            excess=np.zeros(slots),
            graph=graph,
            dominating=dominating_set(graph),
            usable=np.zeros(slots),
            value=objective.loss.value_address,
            parameters=objective.loss.parameters,
            one=np.zeros((3, 1, WIDTH)),
        )
        return [phase]

    def diagnostics(self, state: State, weights: Floats) -> dict[str, Floats]:
        """log_weights: of w, log_node_weights: of u, minus the largest; probabilities: q; shown."""
        return {
            "log_weights": -state["totals"],
            "log_node_weights": -state["node_totals"],
            "probabilities": state["probabilities"].copy(),
            "shown": state["shown"].copy(),
        }


def _checked_graph(name: str, value: object, owner: str) -> Graph:
    remedy = "Give how many slots a node shows, or for each slot a tuple of numbers of slots."
    if not isinstance(value, (tuple, list)):
        return check.count(name, value, owner, remedy)
    graph = []
    for i, shown in enumerate(value):
        if not isinstance(shown, (tuple, list)) or i not in shown:
            rule = f"let the node of slot {i} show slot {i}"
            raise check.refuse(name, rule, shown, remedy, owner)
        graph.append(tuple(check.count(name, p, owner, remedy, least=0) for p in shown))
    return tuple(graph)


def dominating_set(graph: Floats) -> Floats:
    """(P,): 1 for nodes that together show all slots.

    Among the slots that are not yet shown, the one whose node shows most of them is next.
    """
    chosen = np.zeros(len(graph))
    left = np.arange(len(graph))
    while len(left):
        node = left[np.argmax(graph[np.ix_(left, left)].sum(axis=1))]
        chosen[node] = 1.0
        left = left[graph[node, left] == 0]
    return chosen


_OMKL_SFG = FEEDBACK.extended(
    "omkl_sfg",
    least_node_probability=float,
    node_totals=floats("slots"),  # minus the logarithms of u, relative to the least
    node=floats(2),  # I and P(I) of the present prediction
    graph=floats("slots", "slots"),
    dominating=floats("slots"),  # 1 for nodes in D
    usable=floats("slots"),  # scratch: 0 for nodes that show some slot, inf for the others
    weights=floats("slots"),
    slot_predictions=floats(None, "slots"),
    new_targets=floats(None),
    value=int,  # address of the loss
    parameters=floats(None),  # of the loss
    one=lanes(3, 1),  # scratch of `loss_at`
)


@inline
def _find_usable(a, losses):
    """usable_i = 0 if node i shows a slot that has not failed, else inf."""
    for i in range(a.slots):
        a.usable[i] = np.inf
        for p in range(a.slots):
            if a.graph[i, p] > 0.0 and losses[p] < np.inf:
                a.usable[i] = 0.0


@inline
def _draw_node(a, number):
    """The node of sample t = `number`, the slots that it shows, and q."""
    exploration = decayed(a, a.exploration, number)
    dominating = 0.0  # |D|
    for i in range(a.slots):
        a.shown[i] = 0.0
        a.probabilities[i] = 0.0
        if a.usable[i] < np.inf:
            dominating += a.dominating[i]
    a.node[0] = -1.0
    exponential_weights(1.0, a.node_totals, a.usable, a.posterior)  # u / sum of u
    for i in range(a.slots):
        if dominating > 0.0 and a.usable[i] < np.inf:
            share = exploration * a.dominating[i] / dominating
            a.posterior[i] = (1.0 - exploration) * a.posterior[i] + share
    node = draw_index(a.posterior, a.usable, uniform_draw(a, number, 0, 0))
    if node < 0:
        return
    a.node[0] = node
    a.node[1] = a.posterior[node]
    for i in range(a.slots):
        for p in range(a.slots):
            if a.graph[i, p] > 0.0:
                a.probabilities[p] += a.posterior[i]
    for p in range(a.slots):
        a.shown[p] = a.graph[node, p]


@inline
def _prediction_loss(a, t, losses):
    """l(f, y) of the prediction; beyond 1e300 or not a number: 1e300."""
    before = a.chosen[t - 1] if t > 0 else a.weights
    mixture = 0.0
    share = 0.0
    for p in range(a.slots):
        if before[p] > 0.0 and losses[p] < np.inf:
            mixture += before[p] * a.slot_predictions[t, p]
            share += before[p]
    loss = loss_at(a, a.value, mixture / share if share > 0.0 else 0.0, a.new_targets[t])
    if not abs(loss) <= LARGEST_SUM:
        return LARGEST_SUM
    return loss


@native(_OMKL_SFG)
def _omkl_sfg(a, first, count):
    """chosen[t] = the weights after sample t."""
    for t in range(count):
        number = first + t + 1
        losses = a.slot_loss[t]
        rate = decayed(a, a.rate, number)
        _find_usable(a, losses)
        if number == 1:
            _draw_node(a, number)
        node = int(a.node[0])
        if 0 <= node < a.slots:  # u_I
            lost = rate * _prediction_loss(a, t, losses)
            for i in range(a.slots):
                a.excess[i] = 0.0
            a.excess[node] = min(lost / max(a.node[1], a.least_node_probability), LARGEST_SUM)
            add_losses(a.node_totals, a.excess, a.usable)
        estimate_losses(a, losses, rate)  # w
        add_losses(a.totals, a.excess, losses)
        _draw_node(a, number + 1)
        weigh_shown(a, losses, a.chosen[t])
