"""Heap sort in place: no memory asked for, n log n at worst, the same order on every machine."""

import numpy as np


cdef inline bint before(const double *values, const Py_ssize_t *index, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    return values[a] < values[b] or (values[a] == values[b] and index != NULL and index[a] < index[b])


cdef inline void swap(double *values, Py_ssize_t *index, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    values[a], values[b] = values[b], values[a]
    if index != NULL:
        index[a], index[b] = index[b], index[a]


cdef void sink(Py_ssize_t root, Py_ssize_t n, double *values, Py_ssize_t *index) noexcept nogil:
    cdef Py_ssize_t child
    while 2 * root + 1 < n:
        child = 2 * root + 1
        if child + 1 < n and before(values, index, child, child + 1):
            child += 1
        if not before(values, index, root, child):
            return
        swap(values, index, root, child)
        root = child


cdef void sort_with_index(Py_ssize_t n, double *values, Py_ssize_t *index) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n // 2 - 1, -1, -1):
        sink(i, n, values, index)
    for i in range(n - 1, 0, -1):
        swap(values, index, 0, i)
        sink(0, i, values, index)


cdef void sort_down(Py_ssize_t n, double *values) noexcept nogil:
    cdef Py_ssize_t i
    sort_with_index(n, values, NULL)
    for i in range(n // 2):
        values[i], values[n - 1 - i] = values[n - 1 - i], values[i]


def sorted_places(values):
    """Places of ``values`` (n,), the smallest first; for the tests."""
    cdef double[::1] held = np.array(values, float)
    cdef Py_ssize_t[::1] index = np.arange(held.shape[0])
    if held.shape[0] > 0:
        sort_with_index(held.shape[0], &held[0], &index[0])
    return np.asarray(index)
