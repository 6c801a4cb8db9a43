"""Transforms of the target by their definitions, one number at a time."""

from math import exp, log


def shifted_log(y, shift, steepest=8.0):
    """shift log(1 + y / shift), a tangent where the slope would be above 8 or below 1/8."""
    for r in (1 / steepest, steepest):  # y = shift (r - 1): the ends of the logarithm
        end = shift * (r - 1)
        beyond = y / shift < end / shift if r < 1 else y / shift > end / shift
        if beyond:
            return shift * log(r) + (y - end) / r
    return shift * log(1 + y / shift)


def shifted_exp(u, shift, steepest=8.0):
    """The y with shifted_log(y, shift) = u."""
    v, longest = u / shift, log(steepest)
    if v < -longest:
        return shift * (1 / steepest - 1) + (u + shift * longest) / steepest
    if v > longest:
        return shift * (steepest - 1) + (u - shift * longest) * steepest
    return shift * (exp(v) - 1)
