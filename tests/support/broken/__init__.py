"""Components that each lack one property, by the property's name: what the checks must find."""

from .combiners import COMBINERS
from .kernels import KERNELS
from .learners import LEARNERS
from .losses import LOSSES

__all__ = ["COMBINERS", "KERNELS", "LEARNERS", "LOSSES"]
