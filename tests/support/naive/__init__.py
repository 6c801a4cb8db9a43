"""Naive definitions of everything that the library computes: slow, plain, and meant to be read.

Every fast path is compared with one of these. Kernels, losses and the bank of the paper are
`naive.gaussian(...)`, `naive.squared()`, `naive.run(...)`; the modules `learners`, `tree`,
`combiners` and `auto` are imported by name.
"""

from .bank import ar1, run  # noqa: F401
from .combiners import simplex_qp, simplex_qp_floats  # noqa: F401
from .kernels import *  # noqa: F403
from .losses import *  # noqa: F403
