"""Checks of components: what a bank requires of kernels, losses, learners and combiners.

The tests of kernelbank run these over everything built in; run them over your own.
"""

from .combiner import check_combiner
from .kernel import check_kernel
from .learner import check_learner
from .loss import check_loss

__all__ = ["check_combiner", "check_kernel", "check_learner", "check_loss"]
