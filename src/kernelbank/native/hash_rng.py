"""Pseudo-random numbers that are a hash of their keys: there is no generator state to store."""

import numpy as np

from .jit import inline

# The increment and the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_THIRTY, _TWENTY_SEVEN, _THIRTY_ONE = np.uint64(30), np.uint64(27), np.uint64(31)
_ELEVEN = np.uint64(11)


@inline
def mix_key(key, word):
    """A new 64-bit key from a key and an int."""
    bits = key + _STEP * (np.uint64(word) + np.uint64(1))
    bits = (bits ^ (bits >> _THIRTY)) * _FIRST
    bits = (bits ^ (bits >> _TWENTY_SEVEN)) * _SECOND
    return bits ^ (bits >> _THIRTY_ONE)


@inline
def unit_interval(key):
    """A number in [0, 1) from the upper 53 bits of a key."""
    return np.float64(key >> _ELEVEN) * 2.0**-53
