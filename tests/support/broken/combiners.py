"""Combiners that each lack one property, with the property (None: a sound one)."""

import itertools
from dataclasses import dataclass

import numpy as np

import kernelbank as kb


@dataclass(frozen=True)
class Sound(kb.combiners.Combiner):
    """Weights by the inverse sum of losses: sound. The others break one property each."""

    def shapes(self, slots):
        return {"totals": (slots,)}

    def combine(self, objective, evidence, state, weights):
        out = np.zeros_like(evidence.slot_loss)
        for t, losses in enumerate(evidence.slot_loss):
            state["totals"] += losses
            out[t] = 1 / (1e-300 + state["totals"])
            if out[t].any():
                out[t] /= out[t].sum()
        return out


class TotalsPerBlock(Sound):
    def combine(self, objective, evidence, state, weights):
        totals = np.cumsum(evidence.slot_loss, axis=0)
        out = 1 / totals
        sums = out.sum(axis=1, keepdims=True)
        return out / np.where(sums > 0, sums, 1)


class WeightsFailedSlots(Sound):
    def combine(self, objective, evidence, state, weights):
        return np.full_like(evidence.slot_loss, 1 / len(weights))


class StateOnItself(Sound):
    def combine(self, objective, evidence, state, weights):
        own = vars(self).setdefault("own", {})
        if evidence.first == 0:
            own[id(state)] = {"totals": np.zeros(len(weights))}
        kept = own.setdefault(id(state), {"totals": np.zeros(len(weights))})
        return super().combine(objective, evidence, kept, weights)


class CountsRuns(Sound):
    runs = itertools.count(1)

    def combine(self, objective, evidence, state, weights):
        out = super().combine(objective, evidence, state, weights)
        out[:, 0] += next(self.runs) * 1e-9
        return out


class SumAboveOne(Sound):
    def combine(self, objective, evidence, state, weights):
        return 1.1 * super().combine(objective, evidence, state, weights)


class NaNIfAllFail(Sound):
    """inf - inf, once all slots have failed."""

    def combine(self, objective, evidence, state, weights):
        above = evidence.slot_loss - evidence.slot_loss.min(axis=1, keepdims=True)
        return np.exp(-above) / np.exp(-above).sum(axis=1, keepdims=True)


class WritesEvidence(Sound):
    def combine(self, objective, evidence, state, weights):
        evidence.slot_loss[:] = 0
        return super().combine(objective, evidence, state, weights)


COMBINERS = [
    (Sound(), None),
    (TotalsPerBlock(), "the same for blocks and sample by sample"),
    (WeightsFailedSlots(), "without weight on quarantined slots"),
    (StateOnItself(), "the same after saving and loading"),
    (CountsRuns(), "free of state outside its bank"),
    (SumAboveOne(), "on the simplex"),
    (NaNIfAllFail(), "finite"),
    (WritesEvidence(), "free of exceptions"),
]
