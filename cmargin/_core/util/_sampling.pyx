"""Rows in a random order."""

import numpy as np

from libc.stdint cimport int64_t, uint64_t

from cmargin._core.util._random cimport shuffle_places
from cmargin._core.util._shapes cimport must_fit


def shuffle(int64_t[::1] a, uint64_t[::1] stream):
    """Put ``a`` (n,) into a random order; ``stream`` (4,) is the state of a stream, and goes on."""
    must_fit(stream.shape[0] == 4, "shuffle")
    if a.shape[0] > 0:
        shuffle_places(&a[0], a.shape[0], &stream[0])


def held_last(const int64_t[::1] order, const int64_t[::1] truth, int64_t[::1] wanted):
    """``order`` (n,) with the rows of every class that come first in it put at the end, ``wanted[c]`` of class c.

    ``truth`` (n,) has the class of every row; ``wanted`` (n_classes,) is overwritten.
    """
    cdef Py_ssize_t n = order.shape[0], kept = 0, held = 0, i, c
    must_fit(truth.shape[0] == n, "held_last")
    for i in range(n):
        if not 0 <= order[i] < n or not 0 <= truth[i] < wanted.shape[0]:
            raise ValueError("held_last: a row or a class is out of range")
    out = np.empty(n, np.int64)
    cdef int64_t[::1] arranged = out, apart = np.empty(n, np.int64)
    with nogil:
        for i in range(n):
            c = truth[order[i]]
            if wanted[c] > 0:
                wanted[c] -= 1
                apart[held] = order[i]
                held += 1
            else:
                arranged[kept] = order[i]
                kept += 1
        for i in range(held):
            arranged[kept + i] = apart[i]
    return out
