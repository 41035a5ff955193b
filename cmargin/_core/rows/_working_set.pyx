"""Rows near the hinge, counted and marked in one pass over numbers kept per row; reasons in ``data/working_set.py``.

Numbers >= 0 fall into bins a sixteenth of a power of two wide: the upper 16 bits of a float64, in the order of the
numbers themselves, NaN last. A limit is a bin.
"""

import numpy as np

from libc.math cimport fabs
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from cmargin._core.util._shapes cimport must_fit

cdef enum:
    BINS = 1 << 16
    ROUNDED = 48                         # bits that a bin does not see


cdef inline Py_ssize_t bin_of(double number) noexcept nogil:
    cdef uint64_t bits
    memcpy(&bits, &number, sizeof(bits))
    return <Py_ssize_t> (bits >> ROUNDED)


cdef inline double distance(double u, double norm) noexcept nogil:
    # of a row from the hinge, beside its measure
    return u * u / norm


cdef object counted(Py_ssize_t[::1] counts):
    there = np.flatnonzero(counts)
    return there, np.asarray(counts)[there]


def count(const double[::1] numbers):
    """The bins in which there are ``numbers`` (n,) >= 0, ascending, and how many in each."""
    cdef Py_ssize_t[::1] counts = np.zeros(BINS, np.intp)
    cdef Py_ssize_t i
    with nogil:
        for i in range(numbers.shape[0]):
            counts[bin_of(numbers[i])] += 1
    return counted(counts)


def are_below(const double[::1] numbers, Py_ssize_t limit):
    """(n,) bool: whose bin is below the limit."""
    cdef unsigned char[::1] below = np.empty(numbers.shape[0], np.uint8)
    cdef Py_ssize_t i
    for i in range(numbers.shape[0]):
        below[i] = bin_of(numbers[i]) < limit
    return np.asarray(below).view(bool)


def count_distances(const double[::1] u, const double[::1] norms):
    """`count` of the distances of rows, u^2 / norm."""
    cdef Py_ssize_t[::1] counts = np.zeros(BINS, np.intp)
    cdef Py_ssize_t i, n = u.shape[0]
    must_fit(norms.shape[0] == n, "count_distances")
    with nogil:
        for i in range(n):
            counts[bin_of(distance(u[i], norms[i]))] += 1
    return counted(counts)


def with_nearest(members, const double[::1] u, const double[::1] norms, Py_ssize_t limit):
    """A new ``members`` (n,) bool, with those rows whose distance is below a limit."""
    cdef const unsigned char[::1] before = members.view(np.uint8)
    cdef unsigned char[::1] out = np.empty(u.shape[0], np.uint8)
    cdef Py_ssize_t i, n = u.shape[0]
    must_fit(norms.shape[0] == n and before.shape[0] == n, "with_nearest")
    with nogil:
        for i in range(n):
            out[i] = before[i] or bin_of(distance(u[i], norms[i])) < limit
    return np.asarray(out).view(bool)


def crossings(const double[::1] before, const double[::1] now, members):
    """Rows that are not ``members`` (n,) bool and on another side of the hinge than before: their places, (n_crossed,)
    intp, ascending, and the part of the way after which each crosses."""
    cdef Py_ssize_t i, n = before.shape[0], found = 0
    cdef const unsigned char[::1] left_out = members.view(np.uint8)
    cdef Py_ssize_t[::1] places
    cdef double[::1] when
    must_fit(now.shape[0] == n and left_out.shape[0] == n, "crossings")
    for i in range(n):
        found += not left_out[i] and (now[i] > 0) != (before[i] > 0)
    places, when = np.empty(found, np.intp), np.empty(found)
    found = 0
    for i in range(n):
        if not left_out[i] and (now[i] > 0) != (before[i] > 0):
            places[found], when[found] = i, before[i] / (before[i] - now[i])
            found += 1
    return np.asarray(places), np.asarray(when)


def sum_of_members(const double[::1] u, members):
    """How many rows are ``members`` (n,) bool, and the sum of their ``|u|``."""
    cdef const unsigned char[::1] marks = members.view(np.uint8)
    cdef Py_ssize_t i, found = 0
    cdef double total = 0
    must_fit(marks.shape[0] == u.shape[0], "sum_of_members")
    with nogil:
        for i in range(u.shape[0]):
            if marks[i]:
                found += 1
                total += fabs(u[i])
    return found, total
