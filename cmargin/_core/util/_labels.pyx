"""Which rows are of which class: counted, not sorted, and without letting other threads of Python in (`_arrays`)."""

import numpy as np

from libc.stdint cimport int32_t, int64_t

from cmargin._core.util._shapes cimport must_fit

ctypedef fused index:
    int32_t
    int64_t


cdef enum:
    SPARSE_RANGE = 4        # as many possible labels as rows, this many times, are worth a table


def count_codes(const int64_t[::1] y):
    """The distinct numbers of ``y`` (n,), ascending, (n_classes,) int64, and the place of every row's among them, (n,)
    int64; None where the numbers lie too far apart, or n = 0."""
    cdef Py_ssize_t n = y.shape[0], i, k = 0
    cdef int64_t low, high
    cdef int64_t[::1] place, out, distinct
    if n == 0:
        return None
    low = high = y[0]
    for i in range(n):
        low, high = min(low, y[i]), max(high, y[i])
    if <double> high - low > SPARSE_RANGE * n + 1024:
        return None
    place = np.empty(high - low + 1, np.int64)
    for i in range(place.shape[0]):
        place[i] = -1
    for i in range(n):
        place[y[i] - low] = 0
    for i in range(place.shape[0]):
        if place[i] == 0:
            place[i] = k
            k += 1
    found, codes = np.empty(k, np.int64), np.empty(n, np.int64)
    distinct, out = found, codes
    for i in range(place.shape[0]):
        if place[i] >= 0:
            distinct[place[i]] = low + i
    for i in range(n):
        out[i] = place[y[i] - low]
    return found, codes


def rows_by_class(const int64_t[::1] codes, index[::1] rows, index[::1] starts):
    """Rows (n,) of every class, ascending, one class after the other, and where each begins, ``starts``
    (n_classes + 1,), of ``codes`` (n,) of 0 .. n_classes - 1."""
    cdef Py_ssize_t n = codes.shape[0], n_classes = starts.shape[0] - 1, i, c
    must_fit(rows.shape[0] == n and n_classes >= 1, "rows_by_class")
    for c in range(n_classes + 1):
        starts[c] = 0
    for i in range(n):
        must_fit(0 <= codes[i] < n_classes, "rows_by_class, codes")
        starts[codes[i] + 1] += 1
    for c in range(n_classes):
        starts[c + 1] += starts[c]
    for i in range(n):                      # starts[c] goes on to the end of class c, where class c + 1 begins
        rows[starts[codes[i]]] = <index> i
        starts[codes[i]] += 1
    for c in range(n_classes, 0, -1):
        starts[c] = starts[c - 1]
    starts[0] = 0
