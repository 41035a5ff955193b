"""Which number stands at a place of the ascending order of numbers that are not together: by counts alone."""

import numpy as np

DIGIT = 8                      # bits found by one question
SIGN = np.uint64(1 << 63)


def places_of(numbers):
    """uint64 that are in the order of the float64 ``numbers``, NaN of either sign at the ends."""
    bits = np.ascontiguousarray(numbers, float).view(np.uint64)
    return np.where(bits & SIGN, ~bits, bits | SIGN)


def numbers_at(places):
    """The float64 numbers of `places_of`."""
    return np.where(places & SIGN, places & ~SIGN, ~places).view(float)


def order_statistics(below, places):
    """The numbers at ``places`` of the ascending order of all numbers, 0 for the first.

    ``below(pivots)``: how many of all `places_of` are below each of the ``pivots``, an array of their shape. It is
    asked 8 times; every answer tells 8 bits of each number.
    """
    known, wanted = np.zeros(len(places), np.uint64), np.asarray(places)[:, None]
    for shift in range(64 - DIGIT, -1, -DIGIT):
        pivots = known[:, None] + (np.arange(1, 1 << DIGIT, dtype=np.uint64) << np.uint64(shift))
        known += (below(pivots) <= wanted).sum(axis=1).astype(np.uint64) << np.uint64(shift)
    return numbers_at(known)
