"""DOEBE: dynamic online ensembles of basis expansions."""

from __future__ import annotations

from typing import Any

from ...bank.bank import KernelBank
from ...bank.layout import Slot
from ...combiners import BayesianAveraging
from ...kernels import Additive, Gaussian, Kernel
from ...kernels.dictionary import Dictionary
from ...learners import HilbertRLS
from ...utils import validation as check

_WIDTHS = (0.3, 1.0, 3.0)


def doebe(
    dictionary: Any = None,
    *,
    features: int = 100,
    half_range: float = 3.0,
    ridge: float = 0.25,
    random_walk: float = 0.001,
    static: bool = True,
    combiner: Any = None,
    loss: Any = "squared",
) -> KernelBank:
    """DOEBE: Bayesian regression on sines of the inputs for every kernel, with weights that move.

    Every kernel has a slot whose weights take a random step before each sample and, if `static`,
    one whose weights do not (an ensemble of dynamic and static ones, E-DOEBE). Slots are weighted
    by their likelihoods. Inputs are to be in standard units: see `kb.learners.HilbertRLS`. The
    authors also fit widths and noise to the first 1,000 samples; here the widths are a grid, and
    the noise is estimated along the way.

    Parameters
    ----------
    dictionary : Gaussian or Matern kernels; by default Gaussians with widths 0.3, 1 and 3 that are
        additive over the inputs.
    features : functions of each kernel, over all inputs.
    half_range : the inputs lie in [-half_range, half_range].
    ridge : the noise's variance over the variance of the kernels.
    random_walk : variance of a step, as a fraction of the prior's; above 0 and below 1.
    static : whether there are slots without random steps, too.
    combiner : by default kb.combiners.BayesianAveraging(switching=0.01);
        kb.combiners.BayesianStacking() is online Bayesian stacking.
    loss : of the bank.

    Reference: Waxman and Djurić, Dynamic online ensembles of basis expansions, Transactions on
    Machine Learning Research (2024).

    >>> import kernelbank as kb
    >>> bank = kb.presets.doebe(features=20)
    >>> for n in range(50):
    ...     bank.learn_one(n / 50, 1.0)
    >>> round(bank.predict_one(0.5), 1)
    1.0
    """
    remedy = "Give a small fraction, such as 0.001."
    step = check.number("random_walk", random_walk, "doebe", remedy, above=0, below=1)
    kernels: Any = [Additive(Gaussian(width), 1) for width in _WIDTHS]
    if dictionary is not None:
        kernels = Dictionary([dictionary] if isinstance(dictionary, Kernel) else dictionary)
    learners = [HilbertRLS(features, half_range, 1.5, 1.0 - step, ridge, "random_walk")]
    if static:
        learners.append(HilbertRLS(features, half_range, ridge=ridge))
    slots = [Slot(kernel, learner) for learner in learners for kernel in kernels]
    if combiner is None:
        combiner = BayesianAveraging(switching=0.01)
    return KernelBank(slots=slots, combiner=combiner, loss=loss, window=1)
