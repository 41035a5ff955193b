"""Sorting in place: no memory asked for, n log n at worst, the same order on every machine.

Whole arrays by heap sort. Where only a few places of the order are wanted, as for quantiles, by a quicksort that leaves
alone the parts without such a place (Hoare's quickselect, for several places at once), and that gives parts which its
pivots fail to split to the heap sort.
"""

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


cdef inline double pivot_of(Py_ssize_t n, const double *values) noexcept nogil:
    # Median of three, none of them an end: there `gather` leaves what makes bad pivots. With the ends, an order that
    # rises and falls was read 31 times for the trace's five quantiles; so it is 5 times, as are random values
    cdef double a = values[n // 4], b = values[n // 2], c = values[3 * n // 4]
    return max(min(a, b), min(max(a, b), c))


cdef inline Py_ssize_t gather(Py_ssize_t n, double *values, double pivot, bint with_equal) noexcept nogil:
    # those below the pivot, or not above it, to the front: their number. No branch, which random values mispredict
    cdef Py_ssize_t i, found = 0
    cdef double value
    for i in range(n):
        value = values[i]
        values[i] = values[found]
        values[found] = value
        found += not value > pivot if with_equal else value < pivot
    return found


cdef inline Py_ssize_t places_below(Py_ssize_t n_places, const double *places, Py_ssize_t limit) noexcept nogil:
    cdef Py_ssize_t found = 0
    while found < n_places and places[found] < limit:
        found += 1
    return found


cdef void sort_parts(Py_ssize_t n, double *values, Py_ssize_t first, Py_ssize_t n_places, const double *places,
                     int rounds) noexcept nogil:
    # values (n,) are those from ``first`` on of the whole array; all places lie among them
    cdef Py_ssize_t cut, n_left
    cdef double pivot
    cdef bint is_least
    while n > 1 and n_places > 0:
        if rounds == 0:
            sort_with_index(n, values, NULL)
            return
        rounds -= 1
        pivot = pivot_of(n, values)
        cut = gather(n, values, pivot, False)
        is_least = cut == 0
        if is_least:                     # the pivot: it and its equals come first, and are sorted
            cut = gather(n, values, pivot, True)
        n_left = places_below(n_places, places, first + cut)
        if not is_least:
            sort_parts(cut, values, first, n_left, places, rounds)
        n, values, first = n - cut, values + cut, first + cut
        n_places, places = n_places - n_left, places + n_left


cdef int rounds_for(Py_ssize_t n) noexcept nogil:
    # twice as many as if every pivot were the median
    cdef int rounds = 0
    while n > 0:
        n //= 2
        rounds += 2
    return rounds


cdef void sort_places(Py_ssize_t n, double *values, Py_ssize_t n_places, const double *places) noexcept nogil:
    sort_parts(n, values, 0, n_places, places, rounds_for(n))


def with_sorted_places(values, const double[::1] places, int rounds=-1):
    """``values`` (n,) with those in order that `sort_places` is asked for, after so many ``rounds``; for the tests."""
    cdef double[::1] held = np.array(values, float)
    cdef Py_ssize_t n = held.shape[0]
    if n > 0 and places.shape[0] > 0:
        sort_parts(n, &held[0], 0, places.shape[0], &places[0], rounds_for(n) if rounds < 0 else rounds)
    return np.asarray(held)
