"""Rows in a random order, and rows chosen by a random number of their own: the hash of a seed and their place.

Whether a row is `chosen` depends on nothing else, so that the choice is the same wherever rows lie and however they are
split, and needs no stream of random numbers to be shared.
"""

import numpy as np

from libc.stdint cimport int64_t, uint64_t

from cmargin._core.small._random cimport next_below
from cmargin._core.small._shapes cimport must_fit


cdef inline uint64_t mixed(uint64_t word) noexcept nogil:
    # the finaliser of SplitMix64 (Steele, Lea, Flood 2014): every bit depends on every bit
    word ^= word >> 30
    word *= 0xbf58476d1ce4e5b9ULL
    word ^= word >> 27
    word *= 0x94d049bb133111ebULL
    return word ^ (word >> 31)


cdef inline double number_of(uint64_t seed, uint64_t place) noexcept nogil:
    # uniform on [0, 1)
    return <double> (mixed(seed + 0x9e3779b97f4a7c15ULL * (place + 1)) >> 11) * (1.0 / 9007199254740992.0)


def chosen(const double[::1] code, double positives, double negatives, uint64_t seed, Py_ssize_t first=0):
    """Rows that are chosen, one of ``code`` > 0 with probability ``positives``, one of ``code`` < 0 with ``negatives``.

    Parameters
    ----------
    code : (n,) array
        Rows of code 0 are never chosen.
    positives, negatives : float
    seed : int
    first : int
        Place of the first row in the whole data.

    Returns
    -------
    (n_chosen,) intp array, ascending
    """
    cdef Py_ssize_t n = code.shape[0], found = 0, i
    cdef uint64_t start = mixed(seed)
    cdef double limit
    cdef Py_ssize_t[::1] rows = np.empty(n, np.intp)
    with nogil:
        for i in range(n):
            limit = positives if code[i] > 0 else (negatives if code[i] < 0 else 0)
            if number_of(start, first + i) < limit:
                rows[found] = i
                found += 1
    return np.array(rows[:found])


def shuffle(int64_t[::1] a, uint64_t[::1] stream):
    """Put ``a`` (n,) into a random order (Fisher and Yates); ``stream`` (4,) is the state of a stream, and goes on."""
    cdef Py_ssize_t i, j
    must_fit(stream.shape[0] == 4, "shuffle")
    for i in range(a.shape[0] - 1, 0, -1):
        j = next_below(&stream[0], i + 1)
        a[i], a[j] = a[j], a[i]


def held_last(const int64_t[::1] order, const int64_t[::1] truth, int64_t[::1] wanted):
    """``order`` with the rows of every class that come first in it put at the end, ``wanted[c]`` of class c.

    Parameters
    ----------
    order : (n,) array, a permutation of 0 .. n - 1
    truth : (n,) array, the class of every row
    wanted : (n_classes,) array
        Overwritten.

    Returns
    -------
    (n,) int64 array
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
