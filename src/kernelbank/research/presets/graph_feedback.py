"""OMKL-GF and OMKL-SFG: many kernels, of which few make each prediction."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...bank.bank import KernelBank
from ...combiners import OMKLGF, OMKLSFG
from ...kernels import Gaussian
from ...kernels.dictionary import Dictionary, gaussian_grid
from ...learners import FourierSGD
from ...utils import validation as check


def omkl_gf(
    dictionary: Any = None,
    *,
    features: int = 100,
    learning_rate: float = 1.0,
    draws: int = 7,
    nodes: int = 1,
    loss: Any = "squared",
    regularization: float = 0.002,
    seed: int = 0,
) -> KernelBank:
    """OMKL-GF: gradient descent on random features; kernels drawn by weight for each sample.

    All rates are learning_rate / sqrt(t). Here every kernel learns every sample; in the paper only
    those that are drawn (see `kb.combiners.OMKLGF`).

    Parameters
    ----------
    dictionary : the kernels; by default 17 Gaussians with widths from 0.01 to 100, as in the paper.
    features : random features of each kernel, even.
    learning_rate : of the slots and of the weights.
    draws, nodes : of the combiner: how many kernels a node may have, and how many nodes there are.
    loss, regularization : of the bank.
    seed : draws the features and the kernels.

    Reference: Ghari and Shen, Online multi-kernel learning with graph-structured feedback,
    ICML 2020.

    >>> import kernelbank as kb
    >>> bank = kb.presets.omkl_gf(features=20)
    >>> for n in range(50):
    ...     bank.learn_one(n / 10, 1.0)
    >>> bank.predict_one(5.0) > 0.5
    True
    """
    kernels = gaussian_grid(0.01, 100, 17) if dictionary is None else dictionary
    learner = FourierSGD(features, learning_rate, seed, "inverse_sqrt")
    rule = OMKLGF(draws, nodes, learning_rate, evidence="cost", seed=seed)
    return KernelBank(kernels, learner, rule, loss, window=1, regularization=regularization)


def omkl_sfg(
    dictionary: Any = None,
    *,
    features: int = 100,
    learning_rate: float = 0.1,
    neighbours: int = 10,
    loss: Any = "squared",
    regularization: float = 0.002,
    seed: int = 0,
) -> KernelBank:
    """OMKL-SFG: as `omkl_gf`, with a fixed graph by the similarity of the kernels.

    Parameters
    ----------
    dictionary : Gaussian kernels; by default 51 with widths from 0.1 to 10, as in the paper.
    features : random features of each kernel, even.
    learning_rate : of the slots and of the weights, each divided by sqrt(t).
    neighbours : how many kernels a node shows.
    loss, regularization : of the bank.
    seed : draws the features and the nodes.

    Reference: Ghari and Shen, Graph-aided online multi-kernel learning, JMLR 24 (2023).

    >>> import kernelbank as kb
    >>> bank = kb.presets.omkl_sfg(kb.gaussian_grid(0.1, 10, 9), features=20, neighbours=3)
    >>> for n in range(50):
    ...     bank.learn_one(n / 10, 1.0)
    >>> bank.predict_one(5.0) > 0.2
    True
    """
    given = gaussian_grid(0.1, 10, 51) if dictionary is None else dictionary
    kernels = Dictionary(given)
    learner = FourierSGD(features, learning_rate, seed, "inverse_sqrt")
    graph = similarity_graph(kernels, neighbours)
    rule = OMKLSFG(graph, learning_rate, learning_rate, evidence="cost", seed=seed)
    return KernelBank(kernels, learner, rule, loss, window=1, regularization=regularization)


def similarity_graph(kernels: Any, neighbours: int) -> tuple[tuple[int, ...], ...]:
    """For each Gaussian kernel itself and others that are unlike it and each other.

    The distance of two kernels of widths s and t is the integral of
    (exp(-r^2 / 2 s^2) - exp(-r^2 / 2 t^2))^2 over r,
    sqrt(pi) (s + t - 2 sqrt(2) s t / sqrt(s^2 + t^2)). The kernel with the largest sum of distances
    to those of the node is added, until there are `neighbours`.

    Parameters
    ----------
    kernels : Gaussian kernels.
    neighbours : how many kernels a node shows, itself included.

    Returns
    -------
    For each kernel the indices of the kernels, ascending: `graph` of `kb.combiners.OMKLSFG`.

    Reference: Ghari and Shen, Graph-aided online multi-kernel learning, JMLR 24 (2023).

    >>> import kernelbank as kb
    >>> kb.presets.similarity_graph(kb.gaussian_grid(0.1, 10, 5), 2)
    ((0, 4), (1, 4), (2, 4), (3, 4), (0, 4))
    """
    widths = np.zeros(len(Dictionary(kernels)))
    for index, kernel in enumerate(Dictionary(kernels)):
        if not isinstance(kernel, Gaussian):
            remedy = "Use Gaussian kernels, or give kb.combiners.OMKLSFG a graph of your own."
            raise check.refuse("kernels", "be Gaussian", kernel, remedy, "similarity_graph")
        widths[index] = kernel.width
    remedy = "Give how many kernels a node shows, 1 or more."
    size = check.count("neighbours", neighbours, "similarity_graph", remedy)
    s, t = widths[:, None], widths[None, :]
    distances = np.sqrt(np.pi) * (s + t - 2 * np.sqrt(2) * s * t / np.hypot(s, t))
    graph = []
    for node in range(len(widths)):
        shown = [node]
        while len(shown) < min(size, len(widths)):
            sums = distances[shown].sum(axis=0)
            sums[shown] = -1.0
            shown.append(int(np.argmax(sums)))
        graph.append(tuple(sorted(shown)))
    return tuple(graph)
