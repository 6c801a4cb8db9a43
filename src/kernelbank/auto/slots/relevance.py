"""How relevant each input is: the slots on relevant columns learn a metric of their own.

A kernel of many inputs sees little if most of them say nothing. So the *relevant columns* of a
scaled row are its inputs, the last targets and the inputs of the row before, each multiplied by its
relevance

    r_k = sqrt(m_k / mean(m)),  m_k = the mean of (d f / d x_k)^2 over the newest rows,

with f the function that one slot on these columns has found so far. The relevance is 1 at first,
and is computed anew when slots restart or are revised; the slots then learn the newest rows again
with it. So kernels become narrow along the inputs that matter, and flat along the others: this is
the diagonal of the average gradient outer product.

Reference: Radhakrishnan, Beaglehole, Pandit and Belkin, Mechanism for feature learning in neural
networks and backpropagation-free machine learning models, Science 383 (2024).
"""

from __future__ import annotations

import numpy as np

from ...bank.bank import KernelBank
from ...kernels.dimensions import active_coordinates
from ...learners import FourierRLS
from ...utils.validation import Floats

LEAST = 1e-4
"""The least m_k, in units of their mean: a column that says nothing now may say something later."""

ROWS = 256
"""How many of the newest rows the gradients are averaged over."""


def new_relevance(bank: KernelBank, slot: int, rows: Floats, relevance: Floats) -> Floats:
    """The relevance of each relevant column, by the functions of a slot on all of them.

    With several outputs the squared derivatives of their functions are added up.

    slot : the index of one with random features.
    rows : (n, width), scaled with the present `relevance`.
    """
    width, kernel, learner = rows.shape[1], bank.slots[slot].kernel, bank.slots[slot].learner
    assert isinstance(learner, FourierRLS)
    columns = active_coordinates(kernel, width)
    features = learner.feature_map(kernel, width, bank.identities[slot])
    state = bank.slot_state(slot)
    points = rows[:, list(columns)]
    total = np.zeros(len(relevance))
    for k in range(bank.outputs):
        total += features.squared_gradients(points, state[f"output{k}/weights"])
    total *= relevance**2  # f is a function of relevance * x, not of x
    mean = float(np.cumsum(total)[-1]) / len(total)
    if not 0.0 < mean < np.inf:
        return relevance
    shares = np.maximum(total / mean, LEAST)
    return np.sqrt(shares / (float(np.cumsum(shares)[-1]) / len(shares)))
