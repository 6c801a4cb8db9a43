"""Combiners that each lack one property, with the property (None: a sound one)."""

import itertools
from dataclasses import dataclass, replace

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


class ReturnsNone(Sound):
    def diagnostics(self, state, weights):
        return None


class WritesEvidence(Sound):
    def combine(self, objective, evidence, state, weights):
        evidence.slot_loss[:] = 0
        return super().combine(objective, evidence, state, weights)


class SoundStacking(Sound):
    """Discounted moments of the errors, and thirty Frank-Wolfe steps: sound."""

    def shapes(self, slots):
        return {"moments": (slots, slots)}

    def combine(self, objective, evidence, state, weights):
        targets = evidence.targets[-len(evidence.slot_loss) :]
        out = np.zeros_like(evidence.slot_loss)
        for t, target in enumerate(targets):
            finite = np.isfinite(evidence.window_loss[t])
            errors = np.where(finite, evidence.slot_predictions[t] - target, 0.0)
            state["moments"] *= 0.9
            state["moments"] += np.outer(errors, errors)
            own = finite / max(finite.sum(), 1)
            for step in range(30 if finite.any() else 0):
                slopes = np.where(finite, (state["moments"] * own).sum(axis=1), np.inf)
                best = np.arange(len(own)) == np.argmin(slopes)
                own += (best - own) * 2 / (step + 3)
            out[t] = own
        return out


class ReadsPreviousTarget(SoundStacking):
    """One target back: of the sample before."""

    def combine(self, objective, evidence, state, weights):
        before = replace(evidence, targets=np.roll(evidence.targets, 1))
        return super().combine(objective, before, state, weights)


COMBINERS = [
    (Sound(), None),
    (TotalsPerBlock(), "the same for blocks and sample by sample"),
    (WeightsFailedSlots(), "without weight on quarantined slots"),
    (StateOnItself(), "the same after saving and loading"),
    (CountsRuns(), "free of state outside its bank"),
    (SumAboveOne(), "on the simplex"),
    (NaNIfAllFail(), "finite"),
    (ReturnsNone(), "able to give diagnostics"),
    (WritesEvidence(), "free of exceptions"),
    (SoundStacking(), None),
    (ReadsPreviousTarget(), "right about which target belongs to a sample"),
]
