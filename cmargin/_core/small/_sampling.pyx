"""Rows chosen by a random number of their own: the hash of a seed and their place in the whole data.

Whether a row is chosen depends on nothing else, so that the choice is the same wherever rows lie and however they are
split, and needs no stream of random numbers to be shared.
"""

import numpy as np

from libc.stdint cimport uint64_t


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
