"""The weights at a query, for combiners whose weights depend on the input (`Combiner.gates`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..combiners.base import Combiner, State
from ..native.phases import Phase
from ..native.workspace import QueryEvidence, Workspace
from ..utils import validation as check
from ..utils.validation import Floats


class Gate:
    """Asks the combiner of an open bank for the weights at points, where slots' values are known.

    `variance` maps inputs (n, d) to the slots' predictive variances (n, P).
    """

    def __init__(
        self,
        combiner: Combiner,
        state: State,
        workspace: Workspace,
        variance: Callable[[Floats], Floats],
    ) -> None:
        self._combiner = combiner
        self._state = state
        self._workspace = workspace
        self._variance = variance

    def phase(self) -> Phase:
        """The phase that writes workspace.query_weights: compiled, or `weights_at` called back."""
        compiled = self._combiner.query_phase(self._workspace, self._state)
        if compiled is not None:
            return compiled
        workspace = self._workspace

        def gate(first: int, count: int) -> None:
            points, values = workspace.query_point[None].copy(), workspace.slot_values[None].copy()
            workspace.query_weights[:] = self.weights_at(points, values)[0]

        return Phase.from_python(gate)

    def weights_at(self, X: Floats, values: Floats) -> Floats:
        """(n, P): the weights at the rows of X, where the slots' values (n, P) are given."""
        variances = np.empty((0, values.shape[1]))
        if "variances" in self._combiner.needs:
            variances = self._variance(X)
        query = QueryEvidence(X, values, variances)
        chosen = np.array(self._combiner.weights_at(self._state, query), dtype=np.float64)
        if chosen.shape != values.shape:
            remedy = "Give the weights at each point of the query."
            rule = f"return weights of shape {values.shape} from weights_at"
            owner = type(self._combiner).__name__
            raise check.refuse("combiner", rule, chosen.shape, remedy, owner)
        return chosen
